//! Attaching to processes that run already, thread by thread, while they create threads.
//!
//! In: a plan and process ids. Out: a session that sees every thread of them and every thread and
//! child that they create. Opening events takes longer than some threads live, hence:
//!
//! 1. every event is opened once on ourselves: a tracepoint's first open takes milliseconds;
//! 2. each thread in `/proc/PID/task` that is not known gets its events, inherited by what it creates;
//! 3. threads announced by a FORK record of a thread that has all events have inherited them;
//! 4. again from 2 until a pass finds no unknown thread.
//!
//! A thread that inherits its events and is opened too gives every record twice, under two ids.
//!
//! No event is opened disabled: PERF_EVENT_IOC_ENABLE goes through an event and its children one by
//! one, and a child that is created meanwhile may take over what its parent was before. It stays
//! disabled, with its own children, and the parent too once the scheduler has swapped their contexts:
//! begins without ends, for good (`inherit_event` and `perf_event_context_sched_out` of
//! `kernel/events/core.c`). Events count at once instead, and writing is what starts, for the whole
//! family in one moment: when all are open, each is connected with its ring.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::perf::attr::flag;
use crate::perf::plan::Plan;
use crate::perf::record::{HEADER_SIZE, RecordHeader, kind};
use crate::perf::session::{Session, SessionError};
use crate::procfs::task;

/// A process that creates threads faster than they can be opened is given up after that long.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// A session on processes.
#[derive(Debug)]
pub struct Attached {
    /// Enabled already.
    pub session: Session,
    /// Threads that events were opened on.
    pub threads: usize,
    /// Times that `/proc/PID/task` was read.
    pub passes: usize,
    /// The last pass found no unknown thread; otherwise some may go unseen.
    pub complete: bool,
}

/// Opens the plan's events on every thread of `pids`, enabled. The tasks of the plan's scope are not
/// looked at; `inherit` should be set in it.
pub fn attach(plan: &Plan, pids: &[i32]) -> Result<Attached, SessionError> {
    let (mut session, _warm) = Session::prepare(&counting(plan))?;
    let mut known = Known::default();
    let (mut threads, mut passes, mut complete) = (0, 0, false);
    let start = Instant::now();
    while !complete && start.elapsed() < TIME_LIMIT {
        passes += 1;
        let listed = listed_threads(pids);
        // Forks are learnt after the list was read, so that they explain what stands in it.
        known.learn(forks(session.hold_round()).collect(), passes);
        complete = true;
        for tid in listed {
            if known.has(tid) {
                continue;
            }
            complete = false;
            threads += usize::from(session.open_on(tid)?);
            known.open(tid, passes);
        }
    }
    if threads == 0 {
        return Err(SessionError::NoSuchTask { tasks: pids.to_vec() });
    }
    Ok(Attached { session, threads, passes, complete })
}

/// The plan with events that count from the moment they are open: what inherits one counts as well.
fn counting(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.events.iter_mut().for_each(|event| event.attr.flags &= !flag::DISABLED);
    plan
}

/// Threads of all processes that still run.
fn listed_threads(pids: &[i32]) -> Vec<i32> {
    pids.iter().flat_map(|pid| task::threads(*pid).unwrap_or_default()).collect()
}

/// A FORK record: who created whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fork {
    parent: i32,
    child: i32,
}

/// Finds the FORK records.
///
/// ```text
/// header; u32 pid, ppid; u32 tid, ptid; u64 time; sample id
/// ```
fn forks(records: &[u8]) -> impl Iterator<Item = Fork> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let header = RecordHeader::parse(rest)?;
        let (record, behind) = rest.split_at_checked(usize::from(header.size))?;
        rest = if record.len() < HEADER_SIZE { &[] } else { behind };
        Some((header.kind, record))
    })
    .filter(|(kind, _)| *kind == kind::FORK)
    .filter_map(|(_, record)| {
        let word = |at: usize| {
            let bytes = record.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_ne_bytes(bytes))
        };
        Some(Fork { child: word(16)?, parent: word(20)? })
    })
}

/// Threads that have their events.
#[derive(Debug, Default)]
struct Known {
    /// The pass from which on a FORK of the thread proves that the child has all events.
    proves_from: HashMap<i32, usize>,
    /// Children whose parent's events were just being opened: they may have inherited only some.
    doubtful: HashSet<i32>,
}

impl Known {
    fn has(&self, tid: i32) -> bool {
        self.proves_from.contains_key(&tid)
    }

    /// Events were opened on a thread in this pass. The forks found in the next pass may have begun
    /// before; those found later have not. A doubtful child has inherited in all likelihood, so that
    /// its own children need no doubt: else a chain of threads would never come to an end.
    fn open(&mut self, tid: i32, pass: usize) {
        let proves_from = if self.doubtful.contains(&tid) { 0 } else { pass + 2 };
        self.proves_from.insert(tid, proves_from);
    }

    /// Takes in the forks of a pass. They come from several rings, so a child's own forks may stand
    /// before its parent's: what is not understood is tried again.
    fn learn(&mut self, mut forks: Vec<Fork>, pass: usize) {
        loop {
            let before = forks.len();
            forks.retain(|fork| !self.learn_one(*fork, pass));
            if forks.len() == before {
                return;
            }
        }
    }

    /// False when the parent is not known.
    fn learn_one(&mut self, fork: Fork, pass: usize) -> bool {
        let Some(proves_from) = self.proves_from.get(&fork.parent) else { return false };
        if pass >= *proves_from {
            self.proves_from.entry(fork.child).or_insert(0);
        } else {
            self.doubtful.insert(fork.child);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: [i32; 4]) -> Vec<u8> {
        let mut bytes = RecordHeader { kind, misc: 0, size: 32 }.to_bytes().to_vec();
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.resize(32, 0);
        bytes
    }

    fn fork(parent: i32, child: i32) -> Fork {
        Fork { parent, child }
    }

    #[test]
    fn forks_are_found_among_other_records() {
        let (pid, ppid) = (5, 6);
        let records = [
            record(kind::EXIT, [pid, ppid, 8, 9]),
            record(kind::FORK, [pid, ppid, 11, 10]),
            record(kind::FORK, [pid, ppid, 12, 11]),
        ]
        .concat();
        assert_eq!(forks(&records).collect::<Vec<_>>(), [fork(10, 11), fork(11, 12)]);
        for cut in 64..95 {
            assert_eq!(forks(&records[..cut]).count(), 1, "cut after {cut} bytes");
        }
        assert_eq!(forks(&[0; 64]).count(), 0, "a size of zero ends the walk");
    }

    #[test]
    fn children_of_a_thread_that_was_open_before_are_known_in_whatever_order_they_are_told() {
        let mut known = Known::default();
        known.open(1, 1);
        known.learn(vec![fork(3, 4), fork(2, 3), fork(1, 2), fork(8, 9)], 3);
        assert!([1, 2, 3, 4].iter().all(|tid| known.has(*tid)));
        assert!(!known.has(9), "its parent was never open");
    }

    #[test]
    fn a_child_of_a_thread_just_opened_is_opened_too_but_proves_its_own_children_at_once() {
        let mut known = Known::default();
        known.open(1, 1);
        known.learn(vec![fork(1, 2)], 2);
        assert!(!known.has(2), "the fork may have begun before the events were open");
        known.open(2, 2);
        known.learn(vec![fork(2, 3)], 3);
        assert!(known.has(3));
    }
}
