//! The bytes around the records: what stands in front of them, and what closes the file.
//!
//! In: an origin, or the sections that are known at the end. Out: bytes for the writer and for
//! `repair`, which lay down the same file.
//!
//! ```text
//! header 104 | LOCKPROF block | ids | attrs | sections known at the start | records
//!            | feature table | sections known at the end
//! ```
//!
//! perf looks for its table exactly where the records end; payloads may stand anywhere. While
//! recording, the records' size and the flags are 0: the mark of a file that was not finished.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use lockprof_collectors::perf::attr::{ATTR_SIZE, event_type};

use super::block::{BLOCK_OFFSET, Block, Section, kind};
use super::features;
use super::header::{Extent, FileHeader, HEADER_SIZE};
use super::origin::{EventDesc, Origin};
use super::tracing_data::TracingData;

/// Sections that are written at the end: build ids, sample time, `end`.
const END_SECTIONS: u32 = 3;
/// An attr and the extent of its ids.
const ENTRY_SIZE: u64 = ATTR_SIZE as u64 + 16;

/// A file up to its first record.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) bytes: Vec<u8>,
    pub(super) header: FileHeader,
    pub(super) block: Block,
}

impl Start {
    /// Lays out everything in front of the records.
    pub(super) fn of(origin: &Origin, tracing: &TracingData) -> serde_json::Result<Start> {
        let mut sections = features::encode_start(origin)?;
        if origin.events.iter().any(|event| event.attr.kind == event_type::TRACEPOINT) {
            sections.push((kind::TRACING_DATA, tracing.encode()));
        }
        let capacity = sections.len() as u32 + END_SECTIONS;
        let mut block = Block { sections: Vec::new(), capacity };
        let mut bytes = vec![0; (HEADER_SIZE + Block::size(capacity)) as usize];
        let attrs = put_events(&mut bytes, &origin.events);
        for (kind, payload) in sections {
            block.set(Section { kind, extent: put(&mut bytes, &payload) });
        }
        let data = Extent { offset: bytes.len() as u64, size: 0 };
        let header = FileHeader { entry_size: ENTRY_SIZE, attrs, data, flags: [0; 4] };
        overwrite(&mut bytes, 0, &header.to_bytes());
        overwrite(&mut bytes, BLOCK_OFFSET, &block.to_bytes());
        Ok(Start { bytes, header, block })
    }
}

/// A file from its last record on.
#[derive(Debug)]
pub(super) struct Tail {
    /// The feature table and the sections behind it.
    bytes: Vec<u8>,
    header: FileHeader,
    block: Block,
}

impl Tail {
    /// Closes a file whose records end at `data_end`. `block` has the sections that are in the file,
    /// `sections` those that are to stand at its end.
    pub(super) fn of(
        header: &FileHeader,
        block: &Block,
        sections: &[(u64, Vec<u8>)],
        data_end: u64,
    ) -> Tail {
        let mut block = block.clone();
        for &(kind, _) in sections {
            block.set(Section { kind, extent: Extent::default() });
        }
        let mut bits: Vec<u64> = block.sections.iter().map(|section| section.kind).collect();
        bits.retain(|&kind| kind::is_perf_feature(kind));
        bits.sort_unstable();
        let mut bytes = vec![0; 16 * bits.len()];
        for (kind, payload) in sections {
            let Extent { offset, size } = put(&mut bytes, payload);
            block.set(Section { kind: *kind, extent: Extent { offset: data_end + offset, size } });
        }
        let mut header = *header;
        header.data.size = data_end - header.data.offset;
        header.flags = [0; 4];
        for (place, &bit) in bits.iter().enumerate() {
            header.flags[(bit / 64) as usize] |= 1 << (bit % 64);
            let section = block.sections.iter().find(|section| section.kind == bit);
            let Extent { offset, size } = section.map_or(Extent::default(), |s| s.extent);
            overwrite(&mut bytes, 16 * place as u64, &features::words_of([offset, size]));
        }
        Tail { bytes, header, block }
    }

    /// Writes the tail, then what makes it count: block and header last, so that whoever is killed
    /// on the way leaves an unfinished file. Needs room behind the records only.
    pub(super) fn write(&self, file: &File, has_block: bool) -> io::Result<()> {
        let data_end = self.header.data.end();
        file.write_all_at(&self.bytes, data_end)?;
        file.set_len(data_end + self.bytes.len() as u64)?;
        if has_block {
            file.write_all_at(&self.block.to_bytes(), BLOCK_OFFSET)?;
        }
        file.write_all_at(&self.header.to_bytes(), 0)
    }

    /// Bytes of the whole file.
    pub(super) fn file_len(&self) -> u64 {
        self.header.data.end() + self.bytes.len() as u64
    }
}

/// Appends ids, then attrs that point to them.
fn put_events(bytes: &mut Vec<u8>, events: &[EventDesc]) -> Extent {
    let ids = events.iter().map(|event| features::words_of(event.ids.iter().copied()));
    let ids: Vec<Extent> = ids.map(|ids| put(bytes, &ids)).collect();
    let mut entries = Vec::new();
    for (event, ids) in events.iter().zip(ids) {
        entries.extend(event.attr.to_bytes());
        entries.extend(features::words_of([ids.offset, ids.size]));
    }
    put(bytes, &entries)
}

/// Appends a payload, padded to 8 so that the next one is aligned.
fn put(bytes: &mut Vec<u8>, payload: &[u8]) -> Extent {
    let extent = Extent { offset: bytes.len() as u64, size: payload.len() as u64 };
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    extent
}

fn overwrite(bytes: &mut [u8], offset: u64, with: &[u8]) {
    for (byte, &new) in bytes.iter_mut().skip(offset as usize).zip(with) {
        *byte = new;
    }
}
