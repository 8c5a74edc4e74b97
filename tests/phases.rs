//! What waiters did while they waited, and those who let them wait: case by case, through the public
//! pipe. Task 7 waits on CPU 0, task 1 holds the lock on CPU 1.

mod streams;

use lockprof::model::{Filter, GroupBy, HolderTimes, Nanos, PhaseTimes, Uncharged, WaitStat};
use lockprof::pipeline::Pipeline;
use lockprof::recording::Settings;
use lockprof::report::{ChargedName, Report};
use lockprof::source::Synthetic;
use lockprof_collectors::perf::attr::{Attr, event_type, flag, software};
use streams::{MUTEX, Reading, SPIN, WRITE, ask, at};

const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000100 t rwsem_down_write_slowpath
ffffffff81000200 T down_write
ffffffff81000300 T do_mprotect_pkey
ffffffff81000400 T try_to_wake_up
ffffffff81000500 t rwsem_wake
ffffffff81000600 T up_write
ffffffff81000700 T schedule
ffffffff81000800 t xlog_wait_on_iclog
ffffffff81000900 T __mutex_lock
ffffffff81000a00 T _etext
";
const WAIT: &[u64] = &[0xffff_ffff_8100_0110, 0xffff_ffff_8100_0210, 0xffff_ffff_8100_0310];
const RELEASE: &[u64] =
    &[0xffff_ffff_8100_0410, 0xffff_ffff_8100_0510, 0xffff_ffff_8100_0610, 0xffff_ffff_8100_0310];
/// A waiter that passes the lock on in its slow path.
const PASS_ON: &[u64] =
    &[0xffff_ffff_8100_0410, 0xffff_ffff_8100_0110, 0xffff_ffff_8100_0210, 0xffff_ffff_8100_0310];
const LOG: &[u64] = &[0xffff_ffff_8100_0710, 0xffff_ffff_8100_0810, 0xffff_ffff_8100_0310];
const MUTEX_WAIT: &[u64] = &[0xffff_ffff_8100_0910, 0xffff_ffff_8100_0310];
const LOCK: u64 = 0xa0;
const OTHER: u64 = 0xb0;
/// Of the event that records switches into a ring of its own.
const SWITCHES_ID: u64 = 9;

fn reading() -> Reading {
    Reading { kallsyms: KALLSYMS, wakings: true, sleeps: true, ..Reading::with_switches() }
}

fn total(reading: &Reading, write: impl FnOnce(&mut Synthetic)) -> WaitStat {
    reading.report(GroupBy::Site, write).total
}

/// `[spin, asleep, runnable, rest, unknown]` and `[running, runnable, asleep, unknown]` in ns.
fn numbers(stat: &WaitStat) -> ([u64; 5], [u64; 4]) {
    let PhaseTimes { spin, asleep, runnable, rest, unknown } = stat.phases;
    assert_eq!(stat.phases.total(), stat.traced(), "phases add up to the waiting");
    let holder = stat.holder;
    (
        [spin, asleep, runnable, rest, unknown].map(|time| time.0),
        [holder.running, holder.runnable, holder.asleep, holder.unknown].map(|time| time.0),
    )
}

type Case = (&'static str, fn(&mut Synthetic), [u64; 5], [u64; 4]);

/// What happens, its records, what the waiter did, what the holder did.
const CASES: &[Case] = &[
    (
        "a waiter sleeps, is runnable, and runs in its slow path",
        |s| {
            s.switch(at(50, 0, 7), false).switch(at(50, 1, 1), false);
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).switch(at(110, 0, 7), true);
            s.waking(at(170, 1, 1), 7, RELEASE).switch(at(185, 0, 7), false);
            s.end(at(200, 0, 7), LOCK, 0);
        },
        [0, 60, 15, 25, 0],
        [70, 0, 0, 0],
    ),
    (
        "a holder is preempted, and sleeps on a log",
        |s| {
            s.switch(at(50, 0, 7), false).switch(at(50, 1, 1), false);
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).switch(at(100, 0, 7), true);
            s.preempt(at(110, 1, 1)).switch(at(150, 1, 1), false);
            s.sched_switch(at(160, 1, 1), 2, 0, (LOG, &[])).switch(at(161, 1, 1), true);
            s.waking(at(175, 0, 3), 1, &[]).switch(at(180, 1, 1), false);
            s.waking(at(190, 1, 1), 7, RELEASE).switch(at(200, 0, 7), false);
            s.end(at(200, 0, 7), LOCK, 0);
        },
        [0, 90, 10, 0, 0],
        [10 + 10 + 10, 40 + 5, 15, 0],
    ),
    (
        "a spinlock is spun for, whatever the scheduler does",
        |s| {
            s.begin(at(100, 0, 7), LOCK, SPIN, WAIT).end(at(130, 0, 7), LOCK, 0);
        },
        [30, 0, 0, 0, 0],
        [0; 4],
    ),
    (
        "a mutex is spun for first",
        |s| {
            s.switch(at(50, 0, 7), false);
            s.begin(at(100, 0, 7), LOCK, SPIN | MUTEX, MUTEX_WAIT);
            s.begin(at(120, 0, 7), LOCK, MUTEX, MUTEX_WAIT).switch(at(125, 0, 7), true);
            s.waking(at(160, 1, 1), 7, &[]).switch(at(170, 0, 7), false);
            s.end(at(180, 0, 7), LOCK, 0);
        },
        [20, 35, 10, 15, 0],
        [0; 4],
    ),
    (
        "a waiter of whom nothing is known",
        |s| {
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).end(at(130, 0, 7), LOCK, 0);
        },
        [0, 0, 0, 0, 30],
        [0; 4],
    ),
    (
        "who passes a lock on is not its holder",
        |s| {
            s.switch(at(50, 0, 7), false).switch(at(50, 1, 1), false);
            s.begin(at(90, 1, 1), LOCK, WRITE, WAIT);
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).switch(at(100, 0, 7), true);
            s.waking(at(160, 1, 1), 7, PASS_ON).switch(at(170, 0, 7), false);
            s.end(at(170, 0, 7), LOCK, 0).end(at(190, 1, 1), LOCK, 0);
        },
        [0, 60, 10, 100, 0],
        // Its own waiting is charged to nobody.
        [0, 0, 0, 60],
    ),
    (
        "a spinlock nested in the wait takes its share of every phase",
        |s| {
            s.switch(at(50, 0, 7), false);
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).begin(at(100, 0, 7), OTHER, SPIN, WAIT);
            s.end(at(110, 0, 7), OTHER, 0).switch(at(120, 0, 7), true);
            s.waking(at(180, 1, 1), 7, &[]).switch(at(200, 0, 7), false);
            s.end(at(200, 0, 7), LOCK, 0);
        },
        [10, 54, 18, 18, 0],
        [0; 4],
    ),
    (
        "a wait that is still open has phases too",
        |s| {
            s.switch(at(50, 0, 7), false).begin(at(100, 0, 7), LOCK, WRITE, WAIT);
            s.switch(at(110, 0, 7), true).cpu_sample(at(150, 1, 1), &[], &[]);
        },
        [0, 40, 0, 10, 0],
        [0; 4],
    ),
    (
        "after a loss the state is unknown until the task is heard of again",
        |s| {
            s.switch(at(50, 0, 7), false).switch(at(50, 1, 1), false);
            s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).switch(at(110, 0, 7), true);
            s.cpu_sample(at(120, 1, 1), &[], &[]).lost(at(140, 1, 1), 3);
            s.waking(at(160, 1, 1), 7, RELEASE).switch(at(170, 0, 7), false);
            s.end(at(200, 0, 7), LOCK, 0);
        },
        [0, 10, 10, 40, 40],
        // What is charged after a loss is charged to nobody.
        [0; 4],
    ),
];

#[test]
fn phases_follow_from_switches_and_wakings() {
    for (name, write, phases, holder) in CASES {
        let total = total(&reading(), write);
        assert_eq!(numbers(&total), (*phases, *holder), "{name}");
    }
}

#[test]
fn holder_states_add_up_to_what_releasers_are_charged_with_in_every_grouping() {
    for (name, write, ..) in CASES {
        let charged = |report: &Report| -> Nanos {
            let rows = report.rows.iter();
            let to =
                rows.filter(|row| matches!(row.key.releaser, Some(ChargedName::Releaser { .. })));
            to.map(|row| row.stat.wait()).sum()
        };
        for by in [GroupBy::Blame, GroupBy::Releaser] {
            let report = reading().report(by, write);
            let holder: Nanos = report.rows.iter().map(|row| row.stat.holder.total()).sum();
            assert_eq!(holder, charged(&report), "{name}, {by:?}");
            assert_eq!(report.total.holder.total(), holder, "{name}, {by:?}");
        }
        for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task] {
            let report = reading().report(by, write);
            let mut sum = HolderTimes::default();
            report.rows.iter().for_each(|row| sum.merge(&row.stat.holder));
            assert_eq!(sum, report.total.holder, "{name}, {by:?}");
        }
    }
}

#[test]
fn the_place_where_a_holder_slept_is_named() {
    let report = reading().report(GroupBy::Blame, CASES[1].1);
    let slept: Vec<_> = report.rows.iter().flat_map(|row| row.holder_slept.clone()).collect();
    assert_eq!(slept, [("xlog_wait_on_iclog".to_owned(), Nanos(15))]);
}

#[test]
fn ranges_of_time_clip_phases_and_add_up() {
    for (name, write, ..) in CASES {
        let within = |from, to| {
            let filter = Filter { time: Some((Nanos(from), Nanos(to))), ..Filter::default() };
            total(&Reading { filter, ..reading() }, write)
        };
        let whole = total(&reading(), write);
        for cut in [0, 55, 61, 77, 83, 104, 118, 131, 149] {
            let mut sum = within(0, cut);
            sum.merge(&within(cut, u64::MAX));
            assert_eq!(sum.phases, whole.phases, "{name}, cut at {cut}");
            assert_eq!(sum.holder, whole.holder, "{name}, cut at {cut}");
        }
    }
}

#[test]
fn without_switches_only_spinning_is_known() {
    let reading = Reading { switches: false, sleeps: false, ..reading() };
    let numbers = |at: usize| numbers(&total(&reading, CASES[at].1));
    assert_eq!(numbers(0), ([0, 0, 0, 0, 100], [0, 0, 0, 70]));
    assert_eq!(numbers(2), ([30, 0, 0, 0, 0], [0; 4]));
    assert_eq!(numbers(3), ([20, 0, 0, 0, 60], [0; 4]));
}

/// A recording whose switches came through rings of their own.
fn apart(write: impl FnOnce(&mut Synthetic)) -> Report {
    let mut origin = reading().origin();
    origin.events[0].attr.flags &= !flag::CONTEXT_SWITCH;
    let mut switches = origin.events[0].clone();
    switches.attr = Attr {
        kind: event_type::SOFTWARE,
        config: software::DUMMY,
        flags: flag::SAMPLE_ID_ALL | flag::CONTEXT_SWITCH,
        ..switches.attr
    };
    (switches.name, switches.ids, switches.format) = ("dummy".into(), vec![SWITCHES_ID], None);
    origin.events.push(switches);
    let own_ring = vec![origin.events.len() as u32 - 1];
    origin.settings = Some(Settings { own_ring, ..Settings::default() });
    let kernel = lockprof::kernel::Kernel::from_kallsyms(KALLSYMS.as_bytes());
    let reading = reading();
    let mut pipeline =
        Pipeline::new(origin, (kernel, "a test".into()), reading.detail, &reading.filter)
            .expect("the layout of synthetic records");
    let mut synthetic = Synthetic::new();
    write(&mut synthetic);
    pipeline.push(synthetic.take_round());
    pipeline.finish();
    pipeline.report(&ask(GroupBy::Blame))
}

#[test]
fn switches_that_were_lost_make_phases_and_releasers_unknown_and_no_wait_uncertain() {
    let report = apart(|s| {
        s.switch(at(50, 0, 7), false).begin(at(100, 0, 7), LOCK, WRITE, WAIT);
        s.lost_of(SWITCHES_ID, at(140, 0, 7), 5);
        s.waking(at(160, 1, 1), 7, RELEASE).switch(at(170, 0, 7), false);
        s.end(at(200, 0, 7), LOCK, 0);
    });
    assert_eq!((report.trust.lost_sched, report.trust.lost.as_slice()), (5, &[][..]));
    assert_eq!((report.total.uncertain, report.total.ended.count), (0, 1));
    // Since the last switch that was read; runnable from the waking on.
    assert_eq!(numbers(&report.total).0, [0, 0, 10, 30, 60]);
    // A waking before the one that was read may be missing.
    let lost = Some(ChargedName::Nobody(Uncharged::Lost));
    let of_lost = report.rows.iter().filter(|row| row.key.releaser == lost);
    assert_eq!(of_lost.map(|row| row.stat.wait().0).sum::<u64>(), 60);
}

#[test]
fn a_loss_of_other_records_is_none_of_switches() {
    let report = apart(|s| {
        s.switch(at(50, 0, 7), false).begin(at(100, 0, 7), LOCK, WRITE, WAIT);
        s.lost_of(1, at(140, 0, 7), 5).end(at(200, 0, 7), LOCK, 0);
    });
    assert_eq!(report.trust.lost_sched, 0);
    assert_eq!((report.total.uncertain, report.total.ended.count), (1, 0));
}

#[test]
fn when_switches_came_too_fast_phases_are_unknown_from_then_on() {
    let report = apart(|s| {
        s.switch(at(50, 0, 7), false);
        s.begin(at(100, 0, 7), LOCK, WRITE, WAIT).switch(at(110, 0, 7), true);
        s.throttle(SWITCHES_ID, at(150, 0, 7));
        // A record that was written before the event was stopped.
        s.switch(at(155, 0, 7), false).switch(at(156, 0, 7), true);
        s.waking(at(190, 1, 1), 7, RELEASE).end(at(200, 0, 7), LOCK, 0);
    });
    assert_eq!(report.trust.sched_until, Some(Nanos(100)));
    assert_eq!(report.trust.throttled, 0);
    assert_eq!(numbers(&report.total).0, [0, 40, 0, 10, 50]);
}

#[test]
fn what_the_kernel_throttles_is_told_apart() {
    let report = apart(|s| {
        s.throttle(3, at(150, 0, 7)).begin(at(160, 0, 7), LOCK, WRITE, WAIT);
    });
    assert_eq!((report.trust.throttled, report.trust.sched_until), (1, None));
}
