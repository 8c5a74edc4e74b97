//! Readers and writers: who waits behind whom, convoys, and what must hold for every stream: nobody is
//! waited behind twice, and queues hold exactly those who wait.

mod streams;

use std::process::Command;

use lockprof::model::{Behind, GroupBy, LockType, Mode, Nanos};
use lockprof::report::{Report, Row};
use lockprof::source::Synthetic;
use proptest::prelude::*;
use streams::scenario::{Scenario, arbitrary, realistic};
use streams::symbols::Symbols;
use streams::{READ, RT_KALLSYMS, Reading, WRITE, ask, at};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "rwsem_down_write_slowpath",
    "rwsem_down_read_slowpath",
    "down_write",
    "down_read",
    "do_mprotect_pkey",
    "try_to_wake_up",
    "rwsem_wake",
    "up_write",
    "up_read",
    "downgrade_write",
]);
const WAIT: [&str; 2] = ["rwsem_down_write_slowpath", "do_mprotect_pkey"];
const UP_WRITE: [&str; 4] = ["try_to_wake_up", "rwsem_wake", "up_write", "do_mprotect_pkey"];
const UP_READ: [&str; 4] = ["try_to_wake_up", "rwsem_wake", "up_read", "do_mprotect_pkey"];
const DOWNGRADE: [&str; 3] = ["try_to_wake_up", "downgrade_write", "do_mprotect_pkey"];
const NO_MODE: [&str; 3] = ["try_to_wake_up", "rwsem_wake", "do_mprotect_pkey"];
const PASS_ON: [&str; 4] =
    ["try_to_wake_up", "rwsem_down_read_slowpath", "down_read", "do_mprotect_pkey"];
const LOCK: u64 = 0xa0;

fn stack(names: &[&str]) -> Vec<u64> {
    FUNCTIONS.stack(names)
}

fn reading() -> Reading {
    Reading { kallsyms: FUNCTIONS.kallsyms(), wakings: true, ..Reading::with_switches() }
}

fn begin(s: &mut Synthetic, time: u64, tid: i32, flags: u32) {
    s.begin(at(time, 0, tid), LOCK, flags, &stack(&WAIT));
}

fn end(s: &mut Synthetic, time: u64, tid: i32) {
    s.end(at(time, 0, tid), LOCK, 0);
}

fn wake(s: &mut Synthetic, time: u64, (by, woken): (i32, i32), release: &[&str]) {
    s.waking(at(time, 1, by), woken, &stack(release));
}

/// Whom the waits of one mode stood behind.
fn behind(report: &Report, mode: Mode) -> Behind {
    let mut all = Behind::default();
    for split in report.rows.iter().flat_map(|row| &row.splits) {
        if split.lock_type.mode == mode {
            all.merge(split.stat.behind);
        }
    }
    all
}

fn ns(writer: u64, queued_writer: u64, reader: u64, woken: u64, unknown: u64) -> Behind {
    let [writer, queued_writer, reader, woken, unknown] =
        [writer, queued_writer, reader, woken, unknown].map(Nanos);
    Behind { writer, queued_writer, reader, woken, unknown }
}

type Case = (&'static str, fn(&mut Synthetic), Behind, Behind);

/// `(what happens, the records, readers stand behind, writers stand behind)`.
fn cases() -> Vec<Case> {
    let none = Behind::default();
    vec![
        (
            "who releases with up_write held the lock as a writer",
            |s| {
                begin(s, 100, 7, READ);
                begin(s, 110, 8, WRITE);
                wake(s, 180, (1, 7), &UP_WRITE);
                end(s, 190, 7);
                wake(s, 250, (2, 8), &UP_WRITE);
                end(s, 260, 8);
            },
            ns(80, 0, 0, 10, 0),
            ns(140, 0, 0, 10, 0),
        ),
        (
            "a writer waits for the readers that release with up_read",
            |s| {
                begin(s, 100, 8, WRITE);
                wake(s, 180, (1, 8), &UP_READ);
                end(s, 200, 8);
            },
            none,
            ns(0, 0, 80, 20, 0),
        ),
        (
            "a reader that readers keep waiting stands behind a queued writer",
            |s| {
                begin(s, 100, 8, WRITE);
                begin(s, 120, 7, READ);
                wake(s, 180, (1, 8), &UP_READ);
                end(s, 190, 8);
                wake(s, 230, (8, 7), &UP_WRITE);
                end(s, 240, 7);
            },
            ns(50, 60, 0, 10, 0),
            ns(0, 0, 80, 10, 0),
        ),
        (
            "a writer that becomes a reader held the lock as a writer",
            |s| {
                begin(s, 100, 7, READ);
                wake(s, 150, (1, 7), &DOWNGRADE);
                end(s, 150, 7);
            },
            ns(50, 0, 0, 0, 0),
            none,
        ),
        (
            "a release whose code does not tell leaves a writer's wait unknown",
            |s| {
                begin(s, 100, 8, WRITE);
                wake(s, 150, (1, 8), &NO_MODE);
                end(s, 160, 8);
            },
            none,
            ns(0, 0, 0, 10, 50),
        ),
    ]
}

/// The same without a release that tells how the lock was held.
fn cases_of_queues() -> Vec<Case> {
    let none = Behind::default();
    vec![
        (
            "a reader without a writer in the queue waits for one that holds the lock",
            |s| {
                begin(s, 100, 7, READ);
                begin(s, 110, 8, READ);
                end(s, 150, 7);
                end(s, 160, 8);
            },
            ns(100, 0, 0, 0, 0),
            none,
        ),
        (
            "a reader stands behind a queued writer until that one has the lock",
            |s| {
                begin(s, 100, 8, WRITE);
                begin(s, 110, 7, READ);
                end(s, 150, 8);
                end(s, 180, 7);
            },
            ns(30, 40, 0, 0, 0),
            ns(0, 0, 0, 0, 50),
        ),
        (
            "who passes a lock on was let in itself: the queue tells",
            |s| {
                begin(s, 100, 7, READ);
                wake(s, 150, (1, 7), &PASS_ON);
                end(s, 170, 7);
            },
            ns(50, 0, 0, 20, 0),
            none,
        ),
        (
            "a wait whose begin was not seen has no place in a queue",
            |s| {
                begin(s, 100, 7, WRITE);
                s.lost(at(120, 0, 7), 3);
                wake(s, 150, (1, 7), &UP_WRITE);
                s.begin(at(160, 0, 7), LOCK + 8, READ, &stack(&WAIT));
                s.end(at(170, 0, 7), LOCK + 8, 0);
            },
            ns(10, 0, 0, 0, 0),
            none,
        ),
    ]
}

#[test]
fn every_part_of_a_wait_stands_behind_someone() {
    for (name, write, readers, writers) in cases().into_iter().chain(cases_of_queues()) {
        let report = reading().report(GroupBy::Lock, write);
        assert_eq!(behind(&report, Mode::Read), readers, "readers: {name}");
        assert_eq!(behind(&report, Mode::Write), writers, "writers: {name}");
    }
}

/// Eight writers that begin one after the other and get the lock in that order; then one alone.
fn convoy(s: &mut Synthetic) {
    (0..8).for_each(|n| begin(s, 1_000 + n, 10 + n as i32, WRITE));
    (0..8).for_each(|n| end(s, 2_000 + 10 * n, 10 + n as i32));
    begin(s, 9_000, 7, READ);
    end(s, 9_500, 7);
}

#[test]
fn a_convoy_is_as_long_as_the_queue_is_not_empty() {
    let report = reading().report(GroupBy::Lock, convoy);
    let queues: Vec<_> = report.rows.iter().filter_map(|row| row.queue).collect();
    let [queue] = queues.as_slice() else { panic!("{queues:?}") };
    assert_eq!((queue.convoys, queue.convoy_waits, queue.convoy_hand_overs), (1, 8, 8));
    assert_eq!((queue.longest_waits, queue.longest_time), (8, Nanos(1_070)));
    assert_eq!((queue.most_readers, queue.most_writers), (1, 8));
    assert_eq!(queue.busy, Nanos(1_070 + 500));
}

#[test]
fn a_part_of_a_recording_has_its_part_of_the_waiting_and_the_convoys_that_end_in_it() {
    let part = |from, to| {
        let mut reading = reading();
        // From the first event on.
        reading.filter.time = Some((Nanos(from), Nanos(to)));
        let report = reading.report(GroupBy::Lock, convoy);
        let row = report.rows.into_iter().next().expect("a row");
        assert_eq!(row.stat.behind.all(), row.stat.traced());
        row.queue.expect("a queue")
    };
    let (first, second) = (part(0, 500), part(500, u64::MAX));
    assert_eq!((first.convoys, second.convoys), (0, 1));
    assert_eq!(first.writers, Nanos((0..8).map(|n| 500 - n).sum()));
    let whole = part(0, u64::MAX);
    assert_eq!(first.writers + second.writers, whole.writers);
    assert_eq!(first.busy + second.busy, whole.busy);
}

#[test]
fn a_convoy_with_a_wait_that_losses_may_have_cut_is_none() {
    let report = reading().report(GroupBy::Lock, |s| {
        begin(s, 100, 7, WRITE);
        begin(s, 110, 8, WRITE);
        begin(s, 120, 9, WRITE);
        s.switch(at(125, 0, 7), true).lost(at(130, 0, 1), 9);
        (7..10).for_each(|tid| end(s, 100 + 10 * tid as u64, tid));
    });
    let queue = report.rows.iter().find_map(|row| row.queue).expect("a queue");
    assert!(report.total.uncertain > 0);
    assert_eq!((queue.convoys, queue.doubtful), (0, 1));
}

/// Without ends a wait is counted where it begins; it stands in no queue.
#[test]
fn begins_alone_tell_of_no_queue() {
    let reading = Reading { ends: false, ..reading() };
    let report = reading.report(GroupBy::Lock, |s| begin(s, 100, 7, READ));
    assert!(report.rows.iter().all(|row| row.queue.is_none()), "{:#?}", report.rows);
}

fn is_shared(lock_type: LockType) -> bool {
    lock_type.mode != Mode::Exclusive
}

fn reports(reading: &Reading, scenario: &Scenario) -> [Report; 2] {
    let bytes = scenario.records.iter().flat_map(|record| record.bytes.clone()).collect();
    let round = lockprof::source::Round { bytes, offset: 0, finished: true };
    let pipeline = reading.pipeline([round]);
    [GroupBy::Site, GroupBy::Lock].map(|by| pipeline.report(&ask(by)))
}

fn assert_behind_adds_up(row: &Row) {
    for split in &row.splits {
        let expected = if is_shared(split.lock_type) { split.stat.traced() } else { Nanos::ZERO };
        assert_eq!(split.stat.behind.all(), expected, "{split:?}");
        match split.lock_type.mode {
            Mode::Read => assert_eq!(split.stat.behind.reader, Nanos::ZERO),
            _ => assert_eq!(split.stat.behind.queued_writer, Nanos::ZERO),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is recorded: who was waited behind adds up to the waiting.
    #[test]
    fn all_waiting_is_behind_someone_once(records in arbitrary(0..200, |time, by| time + 1 + u64::from(by))) {
        let scenario = Scenario { records, waited: 0, elapsed: 0 };
        let rt = Reading { kallsyms: RT_KALLSYMS, ..Reading::default() };
        for reading in [Reading::default(), rt, reading()] {
            for report in reports(&reading, &scenario) {
                report.rows.iter().for_each(assert_behind_adds_up);
            }
        }
    }

    /// The integral of how many wait, over time, is the sum of the waits.
    #[test]
    fn queues_hold_those_who_wait(scenario in realistic(0..300)) {
        let [_, by_lock] = reports(&Reading::with_switches(), &scenario);
        let mut sums = [Nanos::ZERO; 2];
        let mut waits = [Nanos::ZERO; 2];
        for row in &by_lock.rows {
            for split in &row.splits {
                let at = usize::from(split.lock_type.mode == Mode::Write);
                if is_shared(split.lock_type) {
                    waits[at] += split.stat.ended.total + split.stat.open_time;
                }
            }
            if let Some(queue) = row.queue {
                sums[0] += queue.readers;
                sums[1] += queue.writers;
                prop_assert!(queue.busy <= Nanos(scenario.elapsed));
                prop_assert!(queue.readers + queue.writers >= queue.busy);
                let most = Nanos(queue.busy.0 * (queue.most_readers + queue.most_writers));
                prop_assert!(queue.readers + queue.writers <= most);
                prop_assert!(queue.convoy_hand_overs <= queue.convoy_waits);
            }
        }
        // An open wait's own time lacks what is nested in it.
        prop_assert!(sums[0] >= waits[0] && sums[1] >= waits[1]);
        if by_lock.total.open == 0 {
            prop_assert_eq!(sums, waits);
        }
    }
}

fn recorded(file: &str, options: &[&str]) -> serde_json::Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings");
    let output = Command::new(env!("CARGO_BIN_EXE_lockprof"))
        .args(["report", &format!("{folder}/{file}"), "--format", "json", "--kallsyms"])
        .arg(format!("{folder}/6.18/kallsyms.xz"))
        .args(options)
        .output()
        .expect("lockprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// `6.18/convoy.data`: nobody but writers, one of which holds the mmap_lock for 10 ms at a time.
#[test]
fn in_a_recorded_convoy_of_writers_writers_stand_behind_writers() {
    let report = recorded("6.18/convoy.data", &["--by", "lock", "--lock", "mmap_lock"]);
    let sides = &report["rows"][0]["readers_writers"];
    let ns = |name: &str| sides["writers"][name].as_f64().expect("a time");
    let sum = ns("behind_writer_ns") + ns("behind_reader_ns") + ns("woken_ns") + ns("unknown_ns");
    assert_eq!(sum, ns("traced_ns"));
    assert!(ns("behind_writer_ns") > 0.9 * sum, "{sides}");
    assert!(sides["queue"]["most_writers"].as_u64() >= Some(5), "{sides}");
    assert!(sides["convoys"]["longest_waits"].as_u64() >= Some(6), "{sides}");
}
