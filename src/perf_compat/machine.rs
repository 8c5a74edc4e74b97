//! perf's state machine: one sequence for each (tid, lock address), statistics for each key.
//!
//! ```text
//!               begin: count it                 end: time to the END's key
//!   (nothing) ------------------> contended ------------------------------> acquired
//!       |                          |     ^                                  |      |
//!       | end                      +-----+ begin: passed over               |      | end: "bad",
//!       v                                                                   |      v forgotten
//!   unmatched ------------------> contended <-------------------------------+   (nothing)
//!               begin                             begin: count it
//! ```
//!
//! A begin makes the row of its key, an end never does: the end of a key without a row is passed
//! over. `ret` is not looked at, nothing resets on LOST, and tid 0 is one thread on all CPUs.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::caller::{self, Caller, Walk};
use super::differences::Differences;
use super::report::{CompatKey, CompatReport};
use super::row::Row;
use crate::decode::{Begin, Body, Callchain, End, Event};
use crate::kernel::Kernel;
use crate::model::{Cpu, GroupBy, LockAddr, LockFlags, Timestamp};

/// Computes what `perf lock contention` would print.
#[derive(Debug)]
pub struct PerfCompat {
    by: GroupBy,
    walk: Walk,
    rows: HashMap<u64, Row>,
    sequences: HashMap<(i32, LockAddr), Sequence>,
    /// Waits now open of every thread that was seen at a begin.
    threads: HashMap<i32, u32>,
    comms: HashMap<i32, String>,
    lost_records: u64,
    last: Timestamp,
    differences: Differences,
}

#[derive(Debug)]
enum Sequence {
    /// An end came first.
    Unmatched,
    Contended(Open),
    Acquired,
}

/// A wait as perf knows it (`since`), and what our rules look at.
#[derive(Debug)]
struct Open {
    since: Timestamp,
    key: u64,
    cpu: Option<Cpu>,
    /// By the begin that perf takes it from.
    spins: bool,
    /// Of the last begin: an open mutex wait alternates.
    flags: LockFlags,
    lost_before: u64,
    nested: bool,
}

impl PerfCompat {
    /// [`GroupBy::Site`] is perf's default, `Lock` is `-l`, `Task` is `-t`; perf has no others.
    pub fn new(by: GroupBy, walk: Walk) -> PerfCompat {
        PerfCompat {
            by,
            walk,
            rows: HashMap::new(),
            sequences: HashMap::new(),
            threads: HashMap::new(),
            comms: HashMap::new(),
            lost_records: 0,
            last: Timestamp(0),
            differences: Differences::default(),
        }
    }

    /// Takes the next event in order of time.
    pub fn push(&mut self, event: &Event<'_>, kernel: &Kernel) {
        self.last = self.last.max(event.time);
        match &event.body {
            Body::ContentionBegin(begin) => self.begin(event, begin, kernel),
            Body::ContentionEnd(end) => self.end(event, end, kernel),
            Body::Lost(_) => self.lost_records += 1,
            Body::Comm(comm) => {
                let name = String::from_utf8_lossy(comm.name).into_owned();
                self.comms.insert(comm.tid, name);
            }
            _ => {}
        }
    }

    /// The rows, longest total first, and what differs from our own rules.
    pub fn finish(mut self) -> CompatReport {
        self.note_open();
        self.note_split_rows();
        let bad = self.rows.values().filter(|row| row.bad).count() as u64;
        let total = self.rows.len() as u64;
        let comms = &self.comms;
        let mut rows: Vec<_> = self.rows.into_values().map(|row| row.finish(comms)).collect();
        rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.cmp(b)));
        CompatReport { rows, bad, total, differences: self.differences }
    }

    fn begin(&mut self, event: &Event<'_>, begin: &Begin<'_>, kernel: &Kernel) {
        let caller = self.caller(begin.chain.split(), kernel);
        let key = self.key(event.tid, begin.lock, caller);
        let by = self.by;
        let row = self.rows.entry(key).or_insert_with(|| {
            let name = match by {
                GroupBy::Lock => CompatKey::lock(begin.lock, kernel),
                GroupBy::Task => CompatKey::task(event.tid),
                _ => CompatKey::caller(caller::name(caller.addr, kernel)),
            };
            Row::new(name, begin.flags, caller.kernel_key)
        });
        let open_of_thread = self.threads.entry(event.tid).or_default();
        let sequence = self.sequences.entry((event.tid, begin.lock)).or_insert(Sequence::Unmatched);
        if let Sequence::Contended(open) = sequence {
            let phase = is_phase(open.flags, begin.flags);
            self.differences.swallowed_begins += u64::from(!phase);
            open.flags = begin.flags;
            return;
        }
        row.contended += 1;
        *sequence = Sequence::Contended(Open {
            since: event.time,
            key,
            cpu: event.cpu,
            spins: begin.flags.spins(),
            flags: begin.flags,
            lost_before: self.lost_records,
            nested: *open_of_thread > 0 && event.tid > 0,
        });
        *open_of_thread += 1;
    }

    fn end(&mut self, event: &Event<'_>, end: &End<'_>, kernel: &Kernel) {
        let chain = end.chain.split();
        let caller = self.caller(chain, kernel);
        let key = self.key(event.tid, end.lock, caller);
        let blind = chain.kernel.is_empty() && chain.user.is_empty();
        self.differences.ends_without_callchain += u64::from(blind && self.by == GroupBy::Site);
        let (Some(row), Some(open_of_thread)) =
            (self.rows.get_mut(&key), self.threads.get_mut(&event.tid))
        else {
            self.differences.dropped_ends += 1;
            return;
        };
        let at = (event.tid, end.lock);
        match self.sequences.get_mut(&at) {
            None => {
                self.sequences.insert(at, Sequence::Unmatched);
                self.differences.unmatched_ends += 1;
            }
            Some(Sequence::Unmatched) => self.differences.unmatched_ends += 1,
            Some(Sequence::Acquired) => {
                self.sequences.remove(&at);
                self.differences.bad_ends += 1;
                row.bad = true;
            }
            Some(sequence) => {
                let ended = std::mem::replace(sequence, Sequence::Acquired);
                *open_of_thread = open_of_thread.saturating_sub(1);
                if let Sequence::Contended(open) = ended {
                    row.add(event.time.since(open.since));
                    self.note_pair(event, end, &open, key);
                }
            }
        }
    }

    fn note_pair(&mut self, event: &Event<'_>, end: &End<'_>, open: &Open, key: u64) {
        let time = event.time.since(open.since);
        let differences = &mut self.differences;
        // perf's thread of many: 0 idle tasks and those outside the namespace, -1 exiting ones.
        let nameless = event.tid <= 0;
        let bound = open.spins || nameless;
        differences.failed.add_if(end.ret < 0, time);
        differences.across_lost.add_if(self.lost_records > open.lost_before, time);
        differences.across_cpus.add_if(bound && open.cpu != event.cpu, time);
        differences.nameless.add_if(nameless, time);
        differences.nested.add_if(open.nested, time);
        differences.moved.add_if(open.key != key, time);
    }

    fn note_open(&mut self) {
        for sequence in self.sequences.values() {
            if let Sequence::Contended(open) = sequence {
                self.differences.open.add(self.last.since(open.since));
            }
        }
    }

    fn note_split_rows(&mut self) {
        if self.by != GroupBy::Site {
            return;
        }
        let rows = self.rows.len() as u64;
        let kernel = distinct(self.rows.values().map(|row| row.kernel_key));
        let callers = distinct(self.rows.values().map(|row| (&row.key, row.lock_type)));
        self.differences.split_by_user_frames = rows - kernel;
        // Rows apart in user frames only have one caller, but can be of several types.
        self.differences.split_by_kernel_frames = kernel.saturating_sub(callers);
    }

    fn caller(&self, chain: Callchain<'_>, kernel: &Kernel) -> Caller {
        match self.by {
            GroupBy::Lock | GroupBy::Task => Caller::default(),
            _ => self.walk.caller(chain, kernel),
        }
    }

    fn key(&self, tid: i32, lock: LockAddr, caller: Caller) -> u64 {
        match self.by {
            GroupBy::Lock => lock.0,
            GroupBy::Task => tid as u64,
            _ => caller.key,
        }
    }
}

/// Whether a begin over an open wait is the same mutex wait that now sleeps, or spins again.
fn is_phase(open: LockFlags, begun: LockFlags) -> bool {
    open.has(LockFlags::MUTEX) && begun.has(LockFlags::MUTEX) && open != begun
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> u64 {
    values.collect::<BTreeSet<T>>().len() as u64
}
