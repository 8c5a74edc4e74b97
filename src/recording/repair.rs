//! Finishes a recording whose recorder was killed, or whose end is missing, so that perf reads it.
//!
//! In: a file. Out: the same file with a feature table behind its last whole record and a header
//! that counts ([`Repaired`]); a good file is left as it is. Sections come from the LOCKPROF block;
//! of perf's own unfinished files only those without tracepoints can be saved.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use lockprof_collectors::perf::attr::event_type;

use super::block::{Block, Section};
use super::error::{ReadError, RepairError};
use super::features::{self, Collected};
use super::header::{Extent, FileHeader};
use super::layout::Tail;
use super::sections::Sections;
use super::walk::{Stop, Walk};

/// Bytes read at once while looking for the last record.
const READ_SIZE: u64 = 256 * 1024;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// Nothing was wrong.
    Good,
    /// The file was finished.
    Mended {
        /// Bytes of its records.
        record_bytes: u64,
        /// Bytes behind the last whole record that were cut off.
        dropped_bytes: u64,
    },
}

/// Repairs the file at `path` in place.
pub fn repair(path: &Path) -> Result<Repaired, RepairError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|source| RepairError::Io { action: "open", source })?;
    let (mut sections, header) = Sections::open(file)?;
    if is_finished(&mut sections, &header)? {
        return Ok(Repaired::Good);
    }
    let block = sections.block(&mut Vec::new())?;
    // Also the proof that the attrs can be read: nothing is written into a file that is not one.
    let tracepoints = has_tracepoints(&mut sections, &header)?;
    if tracepoints && block.is_none() {
        return Err(RepairError::NoFormats);
    }
    let data_end = find_data_end(&mut sections, &header)?;
    if data_end == header.data.offset {
        return Err(RepairError::NoRecords);
    }
    let (has_block, kept) = (block.is_some(), block.unwrap_or_default());
    let data = Extent { size: data_end - header.data.offset, ..header.data };
    let (kept, at_end) = sort_out(&mut sections, kept, data);
    let tail = Tail::of(&header, &kept, &at_end, data_end);
    let written = tail.write(&sections.input, has_block);
    written.map_err(|source| RepairError::Io { action: "write", source })?;
    Ok(Repaired::Mended {
        record_bytes: data.size,
        dropped_bytes: dropped(&header, data_end, sections.len),
    })
}

/// Records beyond the last whole one: up to where the header says they end, or the end of the file.
fn dropped(header: &FileHeader, data_end: u64, len: u64) -> u64 {
    header.data_or_rest(len).end().min(len).saturating_sub(data_end)
}

/// Whether perf finds its table and all that it lists.
fn is_finished(sections: &mut Sections<File>, header: &FileHeader) -> Result<bool, ReadError> {
    if header.data.size == 0 || header.data.end() > sections.len {
        return Ok(false);
    }
    let table = sections.table(header)?;
    let inside = |section: &Section| section.extent.end() <= sections.len;
    Ok(table.len() == header.features().count() && table.iter().all(inside))
}

fn has_tracepoints(sections: &mut Sections<File>, header: &FileHeader) -> Result<bool, ReadError> {
    let events = sections.events(header)?;
    Ok(events.iter().any(|event| event.attr.kind == event_type::TRACEPOINT))
}

/// Splits the block's sound sections: those in front of the records stay where they are, those
/// behind (of a recorder that was killed while finishing) are read, to be written anew.
fn sort_out(
    sections: &mut Sections<File>,
    block: Block,
    data: Extent,
) -> (Block, Vec<(u64, Vec<u8>)>) {
    let capacity = block.capacity;
    let mut kept = Block { sections: Vec::new(), capacity };
    let mut at_end = Vec::new();
    for section in block.sections {
        let Ok(payload) = sections.load(section.extent, features::name_of(section.kind)) else {
            continue;
        };
        let sound = Collected::default().add(section.kind, &payload).is_some();
        if sound && section.extent.end() <= data.offset {
            kept.set(section);
        } else if sound && section.extent.offset >= data.end() {
            at_end.push((section.kind, payload));
        }
    }
    (kept, at_end)
}

/// Walks the records up to the last whole one.
fn find_data_end(sections: &mut Sections<File>, header: &FileHeader) -> Result<u64, ReadError> {
    let what = "the records";
    let error = |source| ReadError::Io { what, source };
    let data: Extent = header.data_or_rest(sections.len);
    let end = data.end().min(sections.len);
    let mut at = data.offset;
    let mut chunk = Vec::new();
    while at < end {
        sections.input.seek(SeekFrom::Start(at)).map_err(error)?;
        chunk.clear();
        let most = READ_SIZE.min(end - at);
        sections.input.by_ref().take(most).read_to_end(&mut chunk).map_err(error)?;
        let mut walk = Walk::default();
        let stop = walk.on(&chunk);
        let next = at + walk.at() as u64;
        at = match stop {
            Stop::Followed(extra) if next.saturating_add(extra) <= end => next + extra,
            Stop::RoundEnd => next,
            Stop::NeedMore if next > at => next,
            Stop::Compressed => return Err(ReadError::Compressed),
            _ => return Ok(next),
        };
    }
    Ok(at)
}
