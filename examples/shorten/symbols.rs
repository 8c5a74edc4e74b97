//! The symbols in a recording of lockprof, cut down to what its records need.
//!
//! In: a whole file. Out: where its symbols are stored, and the lines of them that are lock code, hold an
//! address of a stack or a lock, or bound those that do; deflated as they were.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use lockprof::decode::{Body, Callchain, Event};
use lockprof::kernel::{Verdict, fold, verdict};
use lockprof::pipeline::EventStream;
use lockprof::source::{Replay, Round};

/// lockprof's block: behind the file header, its number of entries, the first of them, their size.
const BLOCK: usize = 104;
const ENTRIES: Range<usize> = 116..120;
const FIRST_ENTRY: usize = 120;
const ENTRY: usize = 24;
/// The kind of the section with kallsyms.
const KALLSYMS: u64 = 0x1000;
/// Where the kernel's text and data and its sections of lock code begin and end.
const BOUNDS: [&str; 13] = [
    "_text",
    "_stext",
    "_etext",
    "_sdata",
    "_edata",
    "_end",
    "__bss_stop",
    "__sched_text_start",
    "__sched_text_end",
    "__lock_text_start",
    "__lock_text_end",
    "__cpuidle_text_start",
    "__cpuidle_text_end",
];

/// Where the used entries of lockprof's block stand; none in a file of perf.
pub(crate) fn block(file: &[u8]) -> impl Iterator<Item = usize> {
    let ours = file.get(BLOCK..BLOCK + 8) == Some(b"LOCKPROF");
    let entries = file.get(ENTRIES).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let entries = if ours { entries.unwrap_or(0).min(256) as usize } else { 0 };
    let used = (0..entries).map(|entry| FIRST_ENTRY + entry * ENTRY);
    used.filter(move |&at| kind(file, at) != Some(0))
}

fn kind(file: &[u8], entry: usize) -> Option<u64> {
    Some(u64::from_le_bytes(file.get(entry..entry + 8)?.try_into().ok()?))
}

/// Where the symbols are stored.
pub(crate) fn stored(file: &[u8]) -> Option<Range<usize>> {
    let entry = block(file).find(|&entry| kind(file, entry) == Some(KALLSYMS))?;
    super::extent(file, entry + 8).ok()
}

/// The symbols that the records of the file need, deflated.
pub(crate) fn needed(file: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut replay = Replay::from_bytes(file.to_vec())?;
    let origin = replay.take_origin();
    let mut stream = EventStream::new(&origin)?;
    let (mut addresses, mut round) = (BTreeSet::new(), Round::default());
    while replay.next_round(&mut round)? {
        stream.push(std::mem::take(&mut round), &mut |event| note(event, &mut addresses));
    }
    stream.finish(&mut |event| note(event, &mut addresses));
    let text = String::from_utf8(origin.kallsyms.unwrap_or_default())?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for line in lines(&text, &addresses) {
        writeln!(encoder, "{line}")?;
    }
    Ok(encoder.finish()?)
}

fn note(event: &Event<'_>, addresses: &mut BTreeSet<u64>) {
    let mut chain = |chain: Callchain<'_>| {
        let words = chain.kernel.chunks_exact(8);
        addresses.extend(words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))));
    };
    match &event.body {
        Body::ContentionBegin(begin) => {
            chain(begin.chain.split());
            addresses.insert(begin.lock.0);
        }
        Body::SchedWaking(waking) => chain(waking.chain.split()),
        Body::SchedSwitch(switch) => chain(switch.chain.split()),
        Body::CpuSample(sample) => chain(sample.chain.split()),
        Body::Tracepoint(_, _, found) => chain(found.split()),
        _ => {}
    }
}

/// Lines of kallsyms in order of their addresses. A symbol ends where the next one begins: that one is
/// kept too.
fn lines<'a>(text: &'a str, addresses: &BTreeSet<u64>) -> Vec<&'a str> {
    let parsed = |line: &'a str| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.next()?, words.next()?, line))
    };
    let mut all: Vec<(u64, &str, &str, &str)> = text.lines().filter_map(parsed).collect();
    all.sort_by_key(|(address, ..)| *address);
    let starts: Vec<u64> = all.iter().map(|(address, ..)| *address).collect();
    let mut kept: BTreeSet<u64> = BTreeSet::new();
    for &address in addresses {
        let next = starts.partition_point(|&start| start <= address);
        let start = next.checked_sub(1).and_then(|at| starts.get(at));
        kept.extend(start.into_iter().chain(starts.get(next)));
    }
    let code = |kind: &str| matches!(kind, "t" | "T" | "w" | "W");
    let lock_code = |name: &str| match verdict(fold(name)) {
        Verdict::Lock(function) => function.is_lock_code(),
        Verdict::NotALock | Verdict::Unknown => false,
    };
    let wanted = |(address, kind, name, _): &&(u64, &str, &str, &str)| {
        kept.contains(address) || BOUNDS.contains(name) || (code(kind) && lock_code(name))
    };
    all.iter().filter(wanted).map(|(.., line)| *line).collect()
}
