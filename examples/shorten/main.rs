//! Shortens a recording for a bug report or a test: what was recorded up to a moment stays.
//!
//! ```text
//! cargo run --example shorten -- IN OUT BYTES [MS]
//! ```
//!
//! In: a finished perf.data of perf or lockprof. Out: the same file with the oldest records, about
//! BYTES of them, as if recording had been stopped earlier. A moment is chosen, not a place in the
//! file: there the rings of all CPUs stand one behind the other. Records without a time (what the
//! recorder wrote itself) all stay. With MS, samples and switches of the first MS milliseconds go too:
//! names and maps of tasks stay. The symbols that lockprof stores are cut down to those that the
//! records need (`symbols.rs`). Sections move up; nothing else changes.

mod symbols;

use std::error::Error;
use std::fs;
use std::ops::Range;

use lockprof::decode::Stamps;
use lockprof::model::Timestamp;
use lockprof::recording::Reader;
use lockprof_collectors::perf::record::{RecordHeader, kind};

/// Where the file header says where attrs and records stand, and its feature bits.
const ATTRS: usize = 24;
const DATA: usize = 40;
const FEATURES: Range<usize> = 72..104;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (from, to, bytes, skipped) = match arguments.as_slice() {
        [from, to, bytes] => (from, to, bytes, 0),
        [from, to, bytes, ms] => (from, to, bytes, ms.parse()?),
        _ => return Err("usage: shorten IN OUT BYTES [MS]".into()),
    };
    let file = fs::read(from)?;
    let short = shorten(&file, bytes.parse()?, skipped)?;
    fs::write(to, &short)?;
    println!("{to}: {} of {} bytes", short.len(), file.len());
    Ok(())
}

fn shorten(file: &[u8], most: usize, skipped: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let reader = Reader::new(std::io::Cursor::new(file))?;
    let data = reader.data().start as usize..reader.data().end as usize;
    let stamps = Stamps::new(&reader.origin().events)?;
    let records = without_first(records(file, data.clone(), &stamps)?, skipped);
    let last = last_moment(&records, most);
    let kept = records.iter().filter(|record| record.time <= last);
    let kept: Vec<u8> = kept.flat_map(|record| &file[record.at.clone()]).copied().collect();
    let short = replaced(file, data, &kept)?;
    match symbols::stored(&short) {
        Some(section) => replaced(&short, section, &symbols::needed(&short)?),
        None => Ok(short),
    }
}

/// When a record happened, and where it stands in the file.
struct Record {
    time: Timestamp,
    kind: u32,
    at: Range<usize>,
}

/// Leaves out what happened in the first `ms` milliseconds, but for what says who is who.
fn without_first(mut records: Vec<Record>, ms: u64) -> Vec<Record> {
    let happened = [kind::SAMPLE, kind::SWITCH, kind::SWITCH_CPU_WIDE];
    let happened = |record: &Record| happened.contains(&record.kind);
    let first = records.iter().filter(|record| happened(record)).map(|record| record.time).min();
    let from = Timestamp(first.unwrap_or_default().0 + ms * 1_000_000);
    records.retain(|record| record.time >= from || !happened(record));
    records
}

fn records(
    file: &[u8],
    data: Range<usize>,
    stamps: &Stamps,
) -> Result<Vec<Record>, Box<dyn Error>> {
    let mut records = Vec::new();
    let mut at = data.start;
    while at < data.end {
        let header = RecordHeader::parse(&file[at..]).ok_or("a record is cut")?;
        let end = at + usize::from(header.size);
        let record = file.get(at..end).filter(|record| record.len() >= 8);
        let record = record.ok_or_else(|| format!("the record at {at} has no good size"))?;
        let time = stamps.time(header, record);
        records.push(Record { time, kind: header.kind, at: at..end });
        at = end;
    }
    Ok(records)
}

/// The time of the youngest record that stays.
fn last_moment(records: &[Record], most: usize) -> Timestamp {
    let mut by_time: Vec<(Timestamp, usize)> =
        records.iter().map(|record| (record.time, record.at.len())).collect();
    by_time.sort_unstable();
    let mut bytes = 0;
    let fits = by_time.iter().take_while(|(_, len)| {
        bytes += len;
        bytes <= most
    });
    fits.last().map_or(Timestamp(0), |(time, _)| *time)
}

/// The file with `new` in place of the bytes at `old`: what says where something stands, or how long it is,
/// follows. That is the header, the table of feature sections behind the records with an `{offset, size}`
/// for each bit of the header, and lockprof's block of `{kind, offset, size}`.
fn replaced(file: &[u8], old: Range<usize>, new: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut out = [file.get(..old.start).ok_or("cut")?, new, &file[old.end..]].concat();
    let moved = |at: u64| match at >= old.end as u64 {
        true => at - old.len() as u64 + new.len() as u64,
        false => at,
    };
    let mut extents = vec![ATTRS, DATA];
    let data = extent(file, DATA)?;
    let table = moved(data.end as u64) as usize;
    let sections: u32 = file[FEATURES].iter().map(|byte| byte.count_ones()).sum();
    extents.extend((0..sections as usize).map(|entry| table + 16 * entry));
    extents.extend(symbols::block(file).map(|entry| entry + 8));
    for at in extents {
        let found = extent(&out, at)?;
        let size = if found == old { new.len() } else { found.len() };
        put(&mut out, at, moved(found.start as u64))?;
        put(&mut out, at + 8, size as u64)?;
    }
    Ok(out)
}

/// The range that an `{offset, size}` at `at` spells.
fn extent(file: &[u8], at: usize) -> Result<Range<usize>, Box<dyn Error>> {
    let word = |at: usize| -> Result<usize, Box<dyn Error>> {
        let bytes = file.get(at..at + 8).ok_or("the file is cut")?;
        Ok(u64::from_le_bytes(bytes.try_into()?) as usize)
    };
    let (offset, size) = (word(at)?, word(at + 8)?);
    Ok(offset..offset.checked_add(size).ok_or("a section without an end")?)
}

fn put(file: &mut [u8], at: usize, value: u64) -> Result<(), Box<dyn Error>> {
    let place = file.get_mut(at..at + 8).ok_or("the file is cut")?;
    place.copy_from_slice(&value.to_le_bytes());
    Ok(())
}
