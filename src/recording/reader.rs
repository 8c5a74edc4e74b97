//! A perf.data file -> [`Origin`], and where its records stand.
//!
//! In: anything that reads and seeks, of `perf record` (file mode, 5.10 to 7.2) or of lockprof.
//! Out: the origin with warnings about what could be worked around, or a [`ReadError`]. Every size
//! is checked against the file's length before anything is allocated; records are left to
//! `source::Replay`.
//!
//! ```text
//! header --+--> LOCKPROF block ----+--> sections --> names, formats, host ... --+--> Origin
//!          +--> feature table -----+                                            |
//!          +--> attrs --> ids ---------------------> events --------------------+
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use lockprof_collectors::perf::attr::{Attr, event_type, flag};
use lockprof_collectors::procfs::tracefs::Format;

use super::block::{BLOCK_HEAD, BLOCK_OFFSET, Block, Section, kind};
use super::bytes::Cursor;
use super::error::ReadError;
use super::event_name;
use super::features::{self, Collected, Described};
use super::header::{Extent, FileHeader, HEADER_SIZE};
use super::origin::{EventDesc, Origin};

/// More than any real section (kallsyms, deflated: 2 MB); what a hostile file can make us allocate.
const SECTION_MAX: u64 = 64 << 20;
/// Bytes of an entry of the feature table: offset and size.
const TABLE_ENTRY: u64 = 16;

/// Where the records stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRange {
    /// The first byte of the first record.
    pub start: u64,
    /// The byte behind the last record, or the end of the file when that comes first.
    pub end: u64,
    /// The recorder ended before it could write where the records end.
    pub unfinished: bool,
}

/// A recording that was opened.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    origin: Origin,
    data: DataRange,
}

impl Reader<File> {
    /// Opens the recording at `path`.
    pub fn open(path: &Path) -> Result<Reader<File>, ReadError> {
        Reader::new(File::open(path).map_err(io_error("the file"))?)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads all of the recording but its records.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        let (mut file, header) = Sections::open(input)?;
        let mut warnings = Vec::new();
        let sections = file.list(&header, &mut warnings)?;
        if sections.iter().any(|section| section.kind == kind::COMPRESSED) {
            return Err(ReadError::Compressed);
        }
        let mut collected = Collected::default();
        file.collect(&sections, &mut collected, &mut warnings)?;
        let events = file.events(&header)?;
        let data = data_range(&header, file.len, &mut warnings);
        let origin = assemble(collected, events, warnings);
        Ok(Reader { input: file.input, origin, data })
    }

    /// What is known before the first record.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Where the records stand.
    pub fn data(&self) -> DataRange {
        self.data
    }

    /// The origin, where the records stand, and the input to read them from.
    pub fn into_parts(self) -> (Origin, DataRange, R) {
        (self.origin, self.data, self.input)
    }
}

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
        if let Err(error) = FileHeader::parse(&start, u64::MAX) {
            return Err(error);
        }
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
    fn list(
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
    fn table(&mut self, header: &FileHeader) -> Result<Vec<Section>, ReadError> {
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
    fn collect(
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
    fn events(&mut self, header: &FileHeader) -> Result<Vec<EventDesc>, ReadError> {
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

fn data_range(header: &FileHeader, len: u64, warnings: &mut Vec<String>) -> DataRange {
    let data = header.data_or_rest(len);
    let unfinished = header.data.size == 0;
    if unfinished {
        warnings.push("the recorder was stopped before it could finish the file".to_owned());
    } else if data.end() > len {
        let missing = data.end() - len;
        warnings.push(format!(
            "the file was cut: the last {missing} bytes of its records and all behind them are \
             missing"
        ));
    }
    DataRange { start: data.offset.min(len), end: data.end().min(len), unfinished }
}

/// Joins what attrs, EVENT_DESC and formats say of each event.
fn assemble(collected: Collected, events: Vec<EventDesc>, mut warnings: Vec<String>) -> Origin {
    let Collected { mut origin, described, formats } = collected;
    origin.events = events;
    describe(&mut origin.events, described);
    let formats = formats.into_iter().map(|(system, format)| (format.id, (system, format)));
    let formats: HashMap<u64, (String, Arc<Format>)> = formats.collect();
    let mut without = 0;
    for event in &mut origin.events {
        if event.attr.kind == event_type::TRACEPOINT {
            without += usize::from(!give_format(event, &formats));
        } else if event.name.is_empty() {
            event.name = event_name::of_attr(&event.attr).unwrap_or_default().to_owned();
        }
    }
    if without > 0 {
        warnings.push(format!(
            "tracepoints whose format is not in the file: {without}; their samples cannot be read"
        ));
    }
    let with_clock = origin.events.iter().find(|event| event.attr.has(flag::USE_CLOCKID));
    origin.clock.clockid = with_clock.map(|event| event.attr.clockid);
    origin.warnings = warnings;
    origin
}

/// Gives each event the name of the description that starts with the same id; where the attrs have
/// no ids, name and ids of the description at the same place.
fn describe(events: &mut [EventDesc], mut described: Vec<Described>) {
    let first_id = |(at, d): (usize, &Described)| Some((*d.ids.first()?, at));
    let by_id: HashMap<u64, usize> = described.iter().enumerate().filter_map(first_id).collect();
    let in_order = described.len() == events.len();
    for (place, event) in events.iter_mut().enumerate() {
        let found = match event.ids.first() {
            Some(id) => by_id.get(id).copied(),
            None => in_order.then_some(place),
        };
        let Some(description) = found.and_then(|at| described.get_mut(at)) else { continue };
        event.name = std::mem::take(&mut description.name);
        if event.ids.is_empty() {
            event.ids = std::mem::take(&mut description.ids);
        }
    }
}

/// Whether the tracepoint's format is known; also its name when EVENT_DESC had none.
fn give_format(event: &mut EventDesc, formats: &HashMap<u64, (String, Arc<Format>)>) -> bool {
    let Some((system, format)) = formats.get(&event.attr.config) else { return false };
    event.format = Some(format.clone());
    if event.name.is_empty() {
        event.name = format!("{system}:{}", format.name);
    }
    true
}

fn io_error(what: &'static str) -> impl Fn(io::Error) -> ReadError {
    move |source| ReadError::Io { what, source }
}
