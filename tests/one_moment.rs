//! A recording begins and ends at one moment on all CPUs, although events are enabled and rings are read
//! one after the other.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod recorded;
mod streams;

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use lockprof::correlate::Counts;
use lockprof::model::{GroupBy, Timestamp};
use lockprof::pipeline::Pipeline;
use lockprof::recording::Writer;
use lockprof::source::{Recorder, Replay, Rings, Round, Synthetic};
use lockprof_collectors::perf::session::{Ready, SessionError};
use recorded::{end, finish, live, origin, replayed};
use streams::{RT_KALLSYMS, WRITE, WRITER, ask, at};

const LOCK: u64 = 0xb0;

/// Rings that are told to stop before their last two rounds, as a recorder is: what is written while it
/// reads them comes with the second.
struct Stopped(VecDeque<Vec<u8>>);

impl Rings for Stopped {
    fn poll(&self, _timeout: Duration, _stop: BorrowedFd<'_>) -> Result<Ready, SessionError> {
        let stopped = self.0.len() <= 2;
        Ok(Ready { rings: true, others: if stopped { vec![0] } else { Vec::new() } })
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        let round = self.0.pop_front().unwrap_or_default();
        into.extend_from_slice(&round);
        round.len()
    }
}

/// Pairs what is recorded of `rounds` by a recorder all of whose events are enabled at `since`. What a
/// live screen counted and what the file says are the same.
fn counts(since: u64, rounds: [Vec<u8>; 3]) -> Counts {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lockprof.data");
    let origin = origin(RT_KALLSYMS);
    let writer = Writer::create(&path, &origin, &Synthetic::new().tracing_data()).unwrap();
    let mut heard: Vec<Round> = Vec::new();
    let recorder = Recorder::new(Stopped(rounds.into()), writer, None).since(Timestamp(since));
    let recorded = recorder.run(File::open("/dev/null").unwrap().as_fd(), |round| {
        heard.push(round);
        None
    });
    assert!(recorded.failure.is_none(), "{:?}", recorded.failure);
    finish(recorded.writer.unwrap(), &origin, &end(0), recorded.sample_time);
    let counts_of = |pipeline: &Pipeline| pipeline.report(&ask(GroupBy::Task)).trust.counts;
    let counts = counts_of(&live(&origin, &heard, None));
    assert_eq!(counts_of(&replayed(Replay::open(&path).unwrap()).0), counts);
    counts
}

fn written(write: impl FnOnce(&mut Synthetic)) -> Vec<u8> {
    let mut synthetic = Synthetic::new();
    write(&mut synthetic);
    synthetic.take_round().bytes
}

#[test]
fn a_wait_that_ends_on_a_cpu_after_it_was_read_is_open_and_not_restarted() {
    let waits = |s: &mut Synthetic| {
        s.begin(at(1_000, 0, 7), LOCK, WRITE, WRITER);
    };
    let others = |s: &mut Synthetic| {
        s.cpu_sample(at(2_000, 1, 9), WRITER, &[]);
    };
    // CPU 0 was read at 2,100. The wait ended there at 2,200, the task went to CPU 1 and waits again.
    let again = |s: &mut Synthetic| {
        s.begin(at(2_300, 1, 7), LOCK, WRITE, WRITER);
    };
    let counts = counts(0, [written(waits), written(others), written(again)]);
    assert_eq!((counts.begins, counts.restarts, counts.open), (1, 0, 1));
}

#[test]
fn what_was_written_before_the_last_moment_counts_although_it_was_read_later() {
    let waits = |s: &mut Synthetic| {
        s.begin(at(1_000, 0, 7), LOCK, WRITE, WRITER);
    };
    let others = |s: &mut Synthetic| {
        s.cpu_sample(at(2_000, 1, 9), WRITER, &[]);
    };
    let ends = |s: &mut Synthetic| {
        s.end(at(1_990, 0, 7), LOCK, 0).begin(at(2_001, 0, 7), LOCK, WRITE, WRITER);
        s.exit(at(2_400, 0, 7)).lost(at(2_500, 0, 9), 3);
    };
    let counts = counts(0, [written(waits), written(others), written(ends)]);
    assert_eq!((counts.begins, counts.ended, counts.open), (1, 1, 0));
}

#[test]
fn an_end_from_before_all_events_were_enabled_is_no_end_without_a_begin() {
    let early = |s: &mut Synthetic| {
        // Begins were not enabled yet on CPU 1, where this wait began, and were on CPU 0.
        s.end(at(1_000, 1, 7), LOCK, 0).begin(at(1_010, 0, 8), LOCK, WRITE, WRITER);
        s.end(at(1_100, 0, 8), LOCK, 0).begin(at(1_110, 0, 8), LOCK, WRITE, WRITER);
    };
    let counts = counts(1_050, [written(early), Vec::new(), Vec::new()]);
    // It waited when the recording began.
    assert_eq!((counts.unmatched, counts.begins, counts.open), (1, 1, 1));
}
