//! The parts of a file by their place: header, sections, attrs and ids.
//!
//! In: anything that reads and seeks. Out: bytes and tables, each checked against the length of the
//! file; the reader and `repair` make sense of them. Sections are listed by the LOCKPROF block and
//! by perf's own table:
//!
//! ```text
//! table, right behind the records: of each set bit of the flags, ascending: u64 offset, u64 size
//! attrs: of each event: attr | u64 offset, u64 size of its ids
//! ```

use std::io::{self, Read, Seek, SeekFrom};

use lockprof_collectors::perf::attr::Attr;

use super::block::{BLOCK_HEAD, BLOCK_OFFSET, Block, Section};
use super::bytes::Cursor;
use super::error::ReadError;
use super::features::{self, Collected};
use super::header::{Extent, FileHeader, HEADER_SIZE};
use super::origin::EventDesc;

/// More than any real section (kallsyms, deflated: 2 MB); what a hostile file can make us allocate.
const SECTION_MAX: u64 = 64 << 20;
/// Bytes of an entry of the feature table: offset and size.
const TABLE_ENTRY: u64 = 16;

/// A file whose parts are read by extent.
#[derive(Debug)]
pub(super) struct Sections<R> {
    pub(super) input: R,
    pub(super) len: u64,
}

impl<R: Read + Seek> Sections<R> {
    /// Reads the header before anything else: of a stream there is nothing to seek in.
    pub(super) fn open(mut input: R) -> Result<(Sections<R>, FileHeader), ReadError> {
        let error = io_error("the file header");
        let mut start = Vec::new();
        input.by_ref().take(HEADER_SIZE).read_to_end(&mut start).map_err(error)?;
        // Of a foreign file or a pipe the first bytes say more than a seek that fails.
        FileHeader::parse(&start, u64::MAX)?;
        let len = input.seek(SeekFrom::End(0)).map_err(io_error("the end of the file"))?;
        let header = FileHeader::parse(&start, len)?;
        Ok((Sections { input, len }, header))
    }

    /// The bytes of `extent`, no more than [`SECTION_MAX`].
    pub(super) fn load(
        &mut self,
        extent: Extent,
        what: &'static str,
    ) -> Result<Vec<u8>, ReadError> {
        let Extent { offset, size } = extent.within(self.len, what)?;
        if size > SECTION_MAX {
            return Err(ReadError::TooLarge { what, size, limit: SECTION_MAX });
        }
        let mut bytes = vec![0; size as usize];
        self.input.seek(SeekFrom::Start(offset)).map_err(io_error(what))?;
        self.input.read_exact(&mut bytes).map_err(io_error(what))?;
        Ok(bytes)
    }

    /// The LOCKPROF block, when there is a sound one.
    pub(super) fn block(&mut self, warnings: &mut Vec<String>) -> Result<Option<Block>, ReadError> {
        let what = "the LOCKPROF block";
        let head = Extent { offset: BLOCK_OFFSET, size: BLOCK_HEAD as u64 };
        if head.end() > self.len {
            return Ok(None);
        }
        let announced = Block::announced(&self.load(head, what)?);
        let damage = match announced {
            None => return Ok(None),
            Some(Err(damage)) => damage,
            Some(Ok(entries)) => {
                let size = Block::size(entries) - head.size;
                let entries = Extent { offset: head.end(), size };
                if entries.end() <= self.len {
                    return Ok(Some(Block::parse_entries(&self.load(entries, what)?)));
                }
                "is cut".to_owned()
            }
        };
        warnings.push(format!("{what} {damage}; what only lockprof stores is left out"));
        Ok(None)
    }

    /// All sections, one of a kind: those of the block, and of perf's table what it does not have.
    pub(super) fn list(
        &mut self,
        header: &FileHeader,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Section>, ReadError> {
        let mut listed = self.block(warnings)?.unwrap_or_default().sections;
        // A killed perf has set the flags but not written the table.
        if header.data.size != 0 {
            listed.extend(self.table(header)?);
        }
        let mut sections: Vec<Section> = Vec::new();
        for section in listed {
            let Section { kind, extent } = section;
            if sections.iter().any(|known| known.kind == kind) {
                continue;
            }
            if header.data.size != 0 && extent.size != 0 && extent.overlaps(header.data) {
                let name = features::name_of(kind);
                warnings.push(format!("section {name} overlaps the records and was left out"));
                continue;
            }
            sections.push(section);
        }
        Ok(sections)
    }

    /// perf's own table, which stands right behind the records; nothing when the file ends before.
    pub(super) fn table(&mut self, header: &FileHeader) -> Result<Vec<Section>, ReadError> {
        let kinds: Vec<u64> = header.features().collect();
        let table = Extent { offset: header.data.end(), size: TABLE_ENTRY * kinds.len() as u64 };
        if table.end() > self.len {
            return Ok(Vec::new());
        }
        let bytes = self.load(table, "the feature table")?;
        let entry = |(&kind, entry): (&u64, &[u8])| {
            let mut cursor = Cursor::new(entry);
            let extent = Extent { offset: cursor.u64()?, size: cursor.u64()? };
            Some(Section { kind, extent })
        };
        Ok(kinds.iter().zip(bytes.chunks_exact(TABLE_ENTRY as usize)).filter_map(entry).collect())
    }

    /// Reads the sections that are understood; a damaged one costs a warning, not the recording.
    pub(super) fn collect(
        &mut self,
        sections: &[Section],
        into: &mut Collected,
        warnings: &mut Vec<String>,
    ) -> Result<(), ReadError> {
        for &Section { kind, extent } in sections.iter().filter(|s| features::is_read(s.kind)) {
            let name = features::name_of(kind);
            match self.load(extent, name) {
                Ok(payload) if into.add(kind, &payload).is_none() => {
                    warnings.push(format!("section {name} is malformed and was left out"));
                }
                Ok(_) => {}
                Err(error @ ReadError::Io { .. }) => return Err(error),
                Err(error) => warnings.push(format!("section left out: {error}")),
            }
        }
        Ok(())
    }

    /// Attrs with the ids that stand in the attr section; all ids together fit into the file.
    pub(super) fn events(&mut self, header: &FileHeader) -> Result<Vec<EventDesc>, ReadError> {
        let attrs = self.load(header.attrs, "the attrs")?;
        let mut ids_left = self.len;
        let mut events = Vec::new();
        for entry in attrs.chunks_exact(header.entry_size as usize) {
            let (attr, ids) = parse_entry(entry).ok_or(ReadError::NoEvents)?;
            let what = "the ids of an event";
            ids_left = ids_left.checked_sub(ids.size).ok_or(ReadError::OutOfFile {
                what,
                offset: ids.offset,
                size: ids.size,
                len: self.len,
            })?;
            let ids = Cursor::new(&self.load(ids, what)?).u64s();
            events.push(EventDesc { attr, name: String::new(), ids, format: None });
        }
        if events.is_empty() {
            return Err(ReadError::NoEvents);
        }
        Ok(events)
    }
}

/// An attr, and behind it where its ids are.
fn parse_entry(entry: &[u8]) -> Option<(Attr, Extent)> {
    let (attr, ids) = entry.split_at_checked(entry.len().checked_sub(16)?)?;
    let mut ids = Cursor::new(ids);
    Some((Attr::parse(attr)?, Extent { offset: ids.u64()?, size: ids.u64()? }))
}

/// A refusal of the system while reading `what`.
pub(super) fn io_error(what: &'static str) -> impl Fn(io::Error) -> ReadError {
    move |source| ReadError::Io { what, source }
}
