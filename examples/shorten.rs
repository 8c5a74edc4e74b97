//! Shortens a recording for a bug report or a test: what was recorded up to a moment stays.
//!
//! ```text
//! cargo run --example shorten -- IN OUT BYTES
//! ```
//!
//! In: a finished perf.data of perf or lockprof. Out: the same file with the oldest records, about
//! BYTES of them, as if recording had been stopped earlier. A moment is chosen, not a place in the
//! file: there the rings of all CPUs stand one behind the other. Records without a time (what the
//! recorder wrote itself) all stay. The sections behind the records move up; nothing else changes.

use std::error::Error;
use std::fs;
use std::ops::Range;

use lockprof::decode::Stamps;
use lockprof::model::Timestamp;
use lockprof::recording::Reader;
use lockprof_collectors::perf::record::RecordHeader;

/// Bytes of the file header: where `data.size` and the feature bits stand in it, and their end.
const DATA_SIZE: usize = 48;
const FEATURES: Range<usize> = 72..104;

/// Time and place of a record.
type Timed = (Timestamp, Range<usize>);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, bytes] = arguments.as_slice() else {
        return Err("usage: shorten IN OUT BYTES".into());
    };
    let file = fs::read(from)?;
    let short = shorten(&file, bytes.parse()?)?;
    fs::write(to, &short)?;
    println!("{to}: {} of {} bytes", short.len(), file.len());
    Ok(())
}

fn shorten(file: &[u8], most: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let reader = Reader::new(std::io::Cursor::new(file))?;
    let data = reader.data().start as usize..reader.data().end as usize;
    let stamps = Stamps::new(&reader.origin().events)?;
    let records = records(file, data.clone(), &stamps)?;
    let last = last_moment(&records, most);
    let kept = records.iter().filter(|(time, _)| *time <= last);
    let kept: Vec<u8> = kept.flat_map(|(_, at)| &file[at.clone()]).copied().collect();
    let mut short = file[..data.start].to_vec();
    short[DATA_SIZE..DATA_SIZE + 8].copy_from_slice(&(kept.len() as u64).to_le_bytes());
    let cut = (data.len() - kept.len()) as u64;
    short.extend(kept);
    short.extend(moved_up(file, data.end, cut)?);
    Ok(short)
}

fn records(file: &[u8], data: Range<usize>, stamps: &Stamps) -> Result<Vec<Timed>, Box<dyn Error>> {
    let mut records = Vec::new();
    let mut at = data.start;
    while at < data.end {
        let header = RecordHeader::parse(&file[at..]).ok_or("a record is cut")?;
        let end = at + usize::from(header.size);
        let record = file.get(at..end).filter(|record| record.len() >= 8);
        let record = record.ok_or_else(|| format!("the record at {at} has no good size"))?;
        records.push((stamps.time(header, record), at..end));
        at = end;
    }
    Ok(records)
}

/// The time of the youngest record that stays.
fn last_moment(records: &[Timed], most: usize) -> Timestamp {
    let mut by_time: Vec<(Timestamp, usize)> =
        records.iter().map(|(time, at)| (*time, at.len())).collect();
    by_time.sort_unstable();
    let mut bytes = 0;
    let fits = by_time.iter().take_while(|(_, len)| {
        bytes += len;
        bytes <= most
    });
    fits.last().map_or(Timestamp(0), |(time, _)| *time)
}

/// What stands behind the records: a table of feature sections, one `{offset, size}` for each bit of
/// the header, and the sections themselves. Their offsets shrink.
fn moved_up(file: &[u8], table: usize, cut: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let sections: u32 = file[FEATURES].iter().map(|byte| byte.count_ones()).sum();
    let mut tail = file[table..].to_vec();
    for entry in 0..sections as usize {
        let offset = tail.get_mut(16 * entry..16 * entry + 8).ok_or("the table is cut")?;
        let old = u64::from_le_bytes((&*offset).try_into()?);
        // Sections in front of the records, of our own recordings, stay where they are.
        if old >= table as u64 {
            offset.copy_from_slice(&(old - cut).to_le_bytes());
        }
    }
    Ok(tail)
}
