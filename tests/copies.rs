//! Samples that come twice, of threads that events were opened on although they had inherited them.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod streams;

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy};
use lockprof::pipeline::Pipeline;
use lockprof::recording::{RecordedTarget, Settings};
use lockprof::report::Report;
use lockprof::source::{At, Synthetic};
use streams::{MUTEX, SPIN, WRITE, ask, at};

/// The report of a recording of `target` that `write` writes.
fn report(target: RecordedTarget, write: impl FnOnce(&mut Synthetic)) -> Report {
    let mut synthetic = Synthetic::new();
    let mut origin = synthetic.origin();
    origin.settings = Some(Settings { target, ..Settings::default() });
    let kernel = (Kernel::default(), "a test".into());
    let mut pipeline =
        Pipeline::new(origin, kernel, Detail::default(), &Filter::default()).unwrap();
    write(&mut synthetic);
    pipeline.push(synthetic.take_round());
    pipeline.finish();
    pipeline.report(&ask(GroupBy::Task))
}

fn attached() -> RecordedTarget {
    RecordedTarget::Processes { pids: vec![7] }
}

/// What a thread writes, once for each of `instances`: the second, with the clock read a little later.
fn twice(s: &mut Synthetic, instances: &[bool], write: impl Fn(&mut Synthetic, u64)) {
    for (&second, later) in instances.iter().zip([0, 3]) {
        write(s.instance(second), later);
    }
}

fn waits(s: &mut Synthetic, instances: &[bool]) {
    let b = |time| At { pid: 7, ..at(time, 0, 8) };
    // It begins to wait on one CPU and goes on on another, where other instances write.
    let moved = |time| At { cpu: 1, ..b(time) };
    twice(s, instances, |s, l| {
        s.begin(b(100 + l), 0xa, SPIN | MUTEX, &[1]);
    });
    twice(s, instances, |s, l| {
        s.begin(b(110 + l), 0xa, MUTEX, &[]);
    });
    twice(s, instances, |s, l| {
        s.end(moved(150 + l), 0xa, 0);
    });
    twice(s, instances, |s, l| {
        s.begin(moved(200 + l), 0xb, WRITE, &[1]);
    });
    twice(s, instances, |s, l| {
        s.end(b(260 + l), 0xb, 0);
    });
    twice(s, instances, |s, l| {
        s.cpu_sample(b(300 + l), &[1], &[]);
    });
}

#[test]
fn each_sample_counts_once_and_the_copies_are_told() {
    let once = report(attached(), |s| waits(s, &[false]));
    let both = report(attached(), |s| waits(s, &[false, true]));
    assert_eq!((once.total.ended.count, once.total.ended.total.0), (2, 110));
    assert_eq!(both.total, once.total);
    assert_eq!(both.rows, once.rows);
    assert_eq!(both.trust.counts, once.trust.counts);
    assert_eq!(both.trust.cpu_samples, 1);
    assert_eq!(once.trust.notes, [""; 0]);
    let note = "6 samples came twice, of threads that were created while they were attached to; each \
                counts once";
    assert_eq!(both.trust.notes, [note]);
}

#[test]
fn a_new_thread_of_the_same_number_may_have_other_instances() {
    let life = |s: &mut Synthetic, from: u64, second| {
        let at = At { pid: 7, ..at(from, 0, 8) };
        s.instance(second).fork(at, 7, 7);
        s.begin(At { time: from + 1, ..at }, 0xa, WRITE, &[1]);
        s.end(At { time: from + 5, ..at }, 0xa, 0);
    };
    // Its EXIT was lost, or not.
    for exit in [true, false] {
        let both = report(attached(), |s| {
            life(s, 100, false);
            if exit {
                s.exit(At { pid: 7, ..at(150, 0, 8) });
            }
            life(s, 200, true);
        });
        assert_eq!(both.total.ended.count, 2, "exit {exit}");
        assert_eq!(both.trust.notes, [""; 0]);
    }
}

#[test]
fn threads_without_a_number_and_recordings_without_attaching_have_no_copies() {
    let nameless = |s: &mut Synthetic| {
        let at = |time| At { tid: 0, common_pid: 99, ..at(time, 0, 0) };
        s.begin(at(100), 0xa, WRITE, &[1]).instance(true).end(at(110), 0xa, 0);
        s.begin(at(120), 0xa, WRITE, &[1]).instance(false).end(at(130), 0xa, 0);
    };
    assert_eq!(report(attached(), nameless).total.ended.count, 2);
    let whole = report(RecordedTarget::System, |s| waits(s, &[false, true]));
    assert_eq!(whole.trust.cpu_samples, 2);
}
