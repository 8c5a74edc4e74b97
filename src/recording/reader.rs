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
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

use lockprof_collectors::perf::attr::{event_type, flag};
use lockprof_collectors::procfs::tracefs::Format;

use super::block::kind;
use super::error::ReadError;
use super::event_name;
use super::features::{Collected, Described};
use super::header::FileHeader;
use super::origin::{EventDesc, Origin};
use super::sections::{Sections, io_error};

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
