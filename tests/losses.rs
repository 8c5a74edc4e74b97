//! What a full ring makes uncertain, and what stays certain.

mod streams;

use lockprof::model::{GroupBy, Nanos, WaitStat};
use lockprof::source::Synthetic;
use streams::{Reading, SPIN, WRITE, at, ended, of_task, of_type};

type Write = fn(&mut Synthetic);

/// `(ended, open, uncertain)` of the task named `comm`.
fn waits(reading: &Reading, comm: &str, write: impl FnOnce(&mut Synthetic)) -> (u64, u64, u64) {
    let report = reading.report(GroupBy::Task, write);
    assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
    let WaitStat { ended, open, uncertain, .. } = &of_task(&report, comm).stat;
    (ended.count, *open, *uncertain)
}

#[test]
fn a_spinning_wait_of_the_ring_is_uncertain_and_one_of_another_cpu_is_not() {
    for reading in [Reading::default(), Reading::with_switches()] {
        let report = reading.report(GroupBy::Site, |s| {
            s.begin(at(100, 0, 7), 0xa, SPIN, &[])
                .begin(at(100, 1, 8), 0xb, SPIN, &[])
                .lost(at(200, 0, 7), 3)
                .end(at(300, 0, 7), 0xa, 0)
                .end(at(300, 1, 8), 0xb, 0);
        });
        assert_eq!(ended(&report.total), (1, 200, 200));
        assert_eq!((report.total.uncertain, report.total.uncertain_time), (1, Nanos(100)));
        assert_eq!(report.trust.lost, [(Some(lockprof::model::Cpu(0)), 3)]);
    }
}

#[test]
fn a_sleeper_that_last_ran_on_the_full_ring_is_uncertain_and_one_elsewhere_is_not() {
    let sleepers = |s: &mut Synthetic| {
        s.comm(1, 7, 7, "here", false)
            .comm(1, 8, 8, "elsewhere", false)
            .begin(at(100, 0, 7), 0xa, WRITE, &[])
            .switch(at(110, 0, 7), true)
            .begin(at(100, 1, 8), 0xa, WRITE, &[])
            .switch(at(110, 1, 8), true)
            .lost(at(200, 0, 9), 1)
            .switch(at(290, 1, 8), false)
            .end(at(300, 1, 8), 0xa, 0)
            .switch(at(290, 0, 7), false)
            .end(at(300, 0, 7), 0xa, 0);
    };
    let reading = Reading::with_switches();
    assert_eq!(waits(&reading, "here", sleepers), (0, 0, 1));
    assert_eq!(waits(&reading, "elsewhere", sleepers), (1, 0, 0));
    // Without switch records nobody knows who ran where.
    let reading = Reading::default();
    assert_eq!(waits(&reading, "here", sleepers), (0, 0, 1));
    assert_eq!(waits(&reading, "elsewhere", sleepers), (0, 0, 1));
}

#[test]
fn a_sleeper_that_comes_to_the_full_cpu_after_the_loss_is_certain() {
    let sleeper = |s: &mut Synthetic| {
        s.comm(1, 7, 7, "waiter", false)
            .begin(at(100, 1, 7), 0xa, WRITE, &[])
            .switch(at(110, 1, 7), true)
            .lost(at(200, 0, 9), 1)
            .switch(at(290, 0, 7), false)
            .end(at(300, 0, 7), 0xa, 0);
    };
    assert_eq!(waits(&Reading::with_switches(), "waiter", sleeper), (1, 0, 0));
}

#[test]
fn a_sleeper_heard_of_on_the_full_cpu_without_having_come_there_is_uncertain() {
    let events: [(&str, Write); 3] = [
        ("its end", |s| {
            s.end(at(300, 0, 7), 0xa, 0);
        }),
        ("a switch-out", |s| {
            s.switch(at(250, 0, 7), true).end(at(300, 1, 7), 0xa, 0);
        }),
        ("its exit", |s| {
            s.exit(at(300, 0, 7));
        }),
    ];
    for (event, write) in events {
        let sleeper = |s: &mut Synthetic| {
            s.comm(1, 7, 7, "waiter", false)
                .begin(at(100, 1, 7), 0xa, WRITE, &[])
                .switch(at(110, 1, 7), true)
                .lost(at(200, 0, 9), 1);
            write(s);
        };
        assert_eq!(waits(&Reading::with_switches(), "waiter", sleeper), (0, 0, 1), "{event}");
    }
}

#[test]
fn a_wait_begun_with_the_record_behind_the_loss_is_certain() {
    for reading in [Reading::default(), Reading::with_switches()] {
        // The kernel gives both records one time.
        let behind = |s: &mut Synthetic| {
            s.comm(1, 7, 7, "waiter", false)
                .lost(at(200, 0, 7), 9)
                .begin(at(200, 0, 7), 0xa, WRITE, &[])
                .begin(at(205, 0, 7), 0xb, SPIN, &[])
                .end(at(210, 0, 7), 0xb, 0)
                .end(at(300, 0, 7), 0xa, 0);
        };
        assert_eq!(waits(&reading, "waiter", behind), (2, 0, 0));
    }
}

#[test]
fn a_touched_wait_that_never_ends_is_uncertain_at_the_end_and_at_the_next_wait() {
    let never = |s: &mut Synthetic| {
        s.comm(1, 7, 7, "waiter", false)
            .begin(at(100, 0, 7), 0xa, WRITE, &[])
            .lost(at(200, 0, 9), 1);
    };
    let next = |s: &mut Synthetic| {
        never(s);
        s.begin(at(300, 0, 7), 0xb, WRITE, &[]).end(at(310, 0, 7), 0xb, 0);
    };
    for reading in [Reading::default(), Reading::with_switches()] {
        assert_eq!(waits(&reading, "waiter", never), (0, 0, 1));
        assert_eq!(waits(&reading, "waiter", next), (1, 0, 1));
    }
}

#[test]
fn uncertain_waits_are_counted_with_their_time_and_are_in_no_statistic() {
    let report = Reading::default().report(GroupBy::Site, |s| {
        s.begin(at(100, 0, 7), 0xa, WRITE, &[])
            .end(at(110, 0, 7), 0xa, 0)
            .begin(at(200, 0, 7), 0xa, WRITE, &[])
            .lost(at(300, 0, 9), 1)
            .end(at(9_000_200, 0, 7), 0xa, 0);
    });
    let stat = of_type(&report, "rwsem:W");
    assert_eq!((stat.uncertain, stat.uncertain_time), (1, Nanos(9_000_000)));
    assert_eq!((ended(&stat), stat.ended.max), ((1, 10, 10), Nanos(10)));
    assert_eq!((stat.ended.histogram.count(), stat.ended.quantile(1.0)), (1, Some(Nanos(10))));
    assert_eq!((stat.wait(), stat.contended()), (Nanos(10), 2));
    assert_eq!(report.trust.counts.uncertain_ended, 1);
}

#[test]
fn a_loss_that_does_not_say_where_touches_every_wait() {
    let mut synthetic = Synthetic::new();
    let mut origin = Reading::with_switches().origin();
    // Without PERF_SAMPLE_CPU in any event.
    let cpu = lockprof_collectors::perf::attr::sample::CPU;
    origin.events.iter_mut().for_each(|event| event.attr.sample_type &= !cpu);
    synthetic
        .begin(at(100, 0, 7), 0xa, WRITE, &[])
        .begin(at(100, 0, 8), 0xb, SPIN, &[])
        .lost(at(200, 0, 9), 1)
        .end(at(300, 0, 7), 0xa, 0)
        .end(at(300, 0, 8), 0xb, 0);
    let mut round = synthetic.take_round();
    round.bytes = without_cpu(&round.bytes);
    let reading = Reading::with_switches();
    let kernel = (lockprof::kernel::Kernel::default(), String::new());
    let mut pipeline =
        lockprof::pipeline::Pipeline::new(origin, kernel, reading.detail, &reading.filter).unwrap();
    pipeline.push(round);
    pipeline.finish();
    let report = pipeline.report(&streams::ask(GroupBy::Site));
    assert_eq!((report.total.uncertain, report.total.ended.count), (2, 0));
    assert!(report.trust.counts.balance() && report.trust.unreadable.is_empty());
}

/// The same records without their CPU field.
fn without_cpu(bytes: &[u8]) -> Vec<u8> {
    use lockprof_collectors::perf::record::{RecordHeader, kind};
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(header) = RecordHeader::parse(&bytes[at..]) {
        let record = &bytes[at..at + usize::from(header.size)];
        // Of a sample: header, id, ip, tid, time come first. Of others: it and the id come last.
        let cpu = if header.kind == kind::SAMPLE { 40 } else { record.len() - 16 };
        out.extend(RecordHeader { size: header.size - 8, ..header }.to_bytes());
        out.extend_from_slice(&record[8..cpu]);
        out.extend_from_slice(&record[cpu + 8..]);
        at += record.len();
    }
    out
}
