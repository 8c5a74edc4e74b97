//! What is done to a recording to see that a check notices.
//!
//! In: what is known before the records, and their bytes. Out: the same with a fault: symbols that are one
//! place off, wakings left out, readers taken for writers.

use lockprof::decode::{Body, Decoder, LayoutError, RawRecord};
use lockprof::model::{StackId, Timestamp};
use lockprof::recording::Origin;
use lockprof_collectors::perf::record::RecordHeader;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Each symbol has the address of one behind it.
    SymbolsOff,
    /// Wakings and releases are not there.
    NoWakings,
    /// Readers are writers: in the flags of events, and in the names of functions.
    ModesSwapped,
}

/// Places that symbols are off: next to a function there may be its own padding.
const OFF: usize = 5;

/// Which checks have to notice which fault.
pub(crate) const NOTICED: [(Fault, &[&str]); 3] =
    [(Fault::SymbolsOff, &ROWS), (Fault::NoWakings, &["releasers"]), (Fault::ModesSwapped, &ROWS)];

/// The checks of rows.
const ROWS: [&str; 5] = [
    "mmap: rows",
    "mmap, -a: rows",
    "directory: rows",
    "directory, -p: rows",
    "directory of XFS: rows",
];

impl Fault {
    /// Breaks symbols and events.
    pub(crate) fn in_origin(self, origin: &mut Origin) {
        match self {
            Fault::None => {}
            Fault::NoWakings => {
                let told = ["sched:sched_waking", "lock:contended_release"];
                let told = |name: &str| told.contains(&name);
                origin.events.iter_mut().filter(|event| told(&event.name)).for_each(|event| {
                    event.name = "hidden:event".to_owned();
                });
            }
            Fault::SymbolsOff => change_lines(origin, |lines| {
                for at in (OFF..lines.len()).rev() {
                    lines[at].1 = lines[at - OFF].1.clone();
                }
            }),
            Fault::ModesSwapped => change_lines(origin, |lines| {
                lines.iter_mut().for_each(|(_, name)| *name = other_mode(name));
            }),
        }
    }

    /// How to break records: to be asked for when the origin is broken already.
    pub(crate) fn in_records(self, origin: &Origin) -> Result<Broken, LayoutError> {
        let swaps = self == Fault::ModesSwapped;
        Ok(Broken(swaps.then(|| Decoder::new(&origin.events)).transpose()?))
    }
}

/// Lets `change` have the lines of kallsyms in order, cut in front of the name.
fn change_lines(origin: &mut Origin, change: impl Fn(&mut Vec<(String, String)>)) {
    let text = String::from_utf8_lossy(origin.kallsyms.as_deref().unwrap_or_default()).into_owned();
    // "ffffffff81000000 T name", then a tab and "[module]" for those of modules.
    let cut = |line: &str| line.split_at_checked(19).map(|(at, name)| (at.into(), name.into()));
    let mut lines: Vec<(String, String)> = text.lines().filter_map(cut).collect();
    lines.sort();
    change(&mut lines);
    let lines: Vec<String> = lines.into_iter().map(|(at, name)| at + &name).collect();
    origin.kallsyms = Some(lines.join("\n").into_bytes());
}

/// `down_read` for `down_write` and the other way round, in lock code.
fn other_mode(name: &str) -> String {
    let lock_code = ["down_", "up_", "rwsem_", "rwbase_", "__down_", "__rwbase_", "__up_"];
    if !lock_code.iter().any(|begin| name.starts_with(begin)) {
        return name.to_owned();
    }
    match (name.contains("read"), name.contains("write")) {
        (true, false) => name.replace("read", "write"),
        (false, true) => name.replace("write", "read"),
        _ => name.to_owned(),
    }
}

/// The flags of a begin, `LCB_F_READ` and `LCB_F_WRITE` (`include/trace/events/lock.h`).
const READ_AND_WRITE: u8 = 2 | 4;

/// Changes records; without a decoder it leaves them as they are.
pub(crate) struct Broken(Option<Decoder>);

impl Broken {
    /// Changes the records of a round.
    pub(crate) fn change(&self, bytes: &mut [u8]) {
        let Some(decoder) = &self.0 else { return };
        let mut rest = bytes;
        while let Some(header) = RecordHeader::parse(rest) {
            let Some((record, behind)) = rest.split_at_mut_checked(usize::from(header.size)) else {
                return;
            };
            swap_modes(decoder, record);
            rest = behind;
        }
    }
}

fn swap_modes(decoder: &Decoder, record: &mut [u8]) {
    let raw = RawRecord { bytes: record, offset: 0, time: Timestamp(0), stack: StackId::EMPTY };
    let Ok(event) = decoder.decode(raw) else { return };
    let Body::ContentionBegin(begin) = event.body else { return };
    if begin.flags.0 as u8 & READ_AND_WRITE == 0 {
        return;
    }
    // Its raw part comes last: the address of the lock, then the flags.
    let address = begin.lock.0.to_le_bytes();
    let found = record.windows(8).rposition(|window| window == address);
    if let Some(flags) = found.and_then(|at| record.get_mut(at + 8)) {
        *flags ^= READ_AND_WRITE;
    }
}
