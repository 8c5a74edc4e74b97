//! Streams with everything in them at once: waits, wakings, releases, switches with stacks, losses of either
//! ring, cgroups, forks and exits. Whatever happens, all that is counted adds up, in every grouping, for
//! every range of time and in tables of any width.

mod streams;

use lockprof::analyse::{Detail, Slicing};
use lockprof::model::{Filter, GroupBy, Mode, Nanos, PathQuery, Query, WaitStat, When};
use lockprof::pipeline::Pipeline;
use lockprof::report::{ChargedName, Report, Row};
use lockprof::source::{At, Round, Synthetic};
use proptest::collection::vec;
use proptest::prelude::*;
use streams::symbols::Symbols;
use streams::{MUTEX, READ, Reading, SPIN, WRITE, ask, at, in_softirq};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "rwsem_down_write_slowpath",
    "rwsem_down_read_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "try_to_wake_up",
    "rwsem_wake",
    "up_write",
    "up_read",
    "__mutex_lock",
    "__mutex_unlock_slowpath",
    "pipe_read",
    "__schedule",
    "schedule",
    "futex_do_wait",
    "__x64_sys_futex",
    "_etext",
]);
const STACKS: [&[&str]; 10] = [
    &[],
    &["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"],
    &["__mutex_lock", "pipe_read"],
    &["try_to_wake_up", "rwsem_wake", "up_write", "do_mprotect_pkey"],
    &["try_to_wake_up", "rwsem_wake", "up_read", "do_mprotect_pkey"],
    &["try_to_wake_up", "__mutex_unlock_slowpath", "pipe_read"],
    &["try_to_wake_up", "rwsem_down_read_slowpath", "do_mprotect_pkey"],
    &["__schedule", "schedule", "rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"],
    &["__schedule", "schedule", "futex_do_wait", "__x64_sys_futex"],
    &["__schedule", "schedule", "pipe_read"],
];
const LOCKS: [u64; 3] = [0x1000, 0x1008, 0x2000];
const FLAGS: [u32; 6] = [READ, WRITE, WRITE, MUTEX, SPIN | MUTEX, SPIN | READ];

/// Running, asleep in two ways, preempted, dead.
const STATES: [u64; 5] = [0, 1, 2, 256, 0x20];
const CGROUPS: [u64; 2] = [25, 26];

/// An id of the events of switches, whose records come through a ring of their own.
const OF_SWITCHES: u64 = 5;

/// What, and four numbers that say with whom.
type Choice = (u8, u8, u8, u8, u8);

fn stack(names: &[&str]) -> Vec<u64> {
    FUNCTIONS.stack(names)
}

fn reading(filter: Filter, cells: usize) -> Reading {
    Reading {
        wakings: true,
        sleeps: true,
        releases: true,
        cgroups: true,
        own_rings: true,
        kallsyms: FUNCTIONS.kallsyms(),
        detail: Detail { user_stacks: true, cpu_stacks: true, cells, ..Detail::default() },
        filter,
        ..Reading::with_switches()
    }
}

/// The records of these choices, in one round.
fn written(choices: &[Choice]) -> Round {
    written_from(1000, choices)
}

fn written_from(begin: u64, choices: &[Choice]) -> Round {
    let mut synthetic = Synthetic::new();
    synthetic.in_cgroup(CGROUPS[0]).cgroup(at(1, 0, 0), CGROUPS[0], "/a");
    let mut time = begin;
    for choice in choices {
        // From nothing to more than the longest release takes.
        time += 1 + u64::from(choice.4).pow(3);
        write(&mut synthetic, time, *choice);
    }
    synthetic.take_round()
}

fn write(s: &mut Synthetic, time: u64, (what, a, b, c, d): Choice) {
    let pick = |by: u8| stack(STACKS[usize::from(by) % STACKS.len()]);
    let (cpu, tid) = (u32::from(a) % 3, 1 + i32::from(b) % 5);
    let at = if c & 0xf0 == 0xf0 { in_softirq(time, cpu, tid) } else { at(time, cpu, tid) };
    let (lock, other) = (LOCKS[usize::from(c) % LOCKS.len()], 1 + i32::from(d) % 5);
    match what % 24 {
        0..=4 => s.begin(at, lock, FLAGS[usize::from(d) % FLAGS.len()], &pick(1 + (d >> 4) % 2)),
        5..=8 => s.end(at, lock, [0, 0, 0, -4, -35][usize::from(d) % 5]),
        9 => s.cpu_sample(at, &pick(d), &[]),
        10..=13 => s.waking(at, other, &pick(3 + (c >> 4) % 4)),
        14..=15 => s.sched_switch(at, STATES[usize::from(d) % 5], other, (&pick(c >> 4), &[])),
        16..=17 => s.release(at, lock, &pick([0, 3, 4, 5][usize::from(d) % 4])),
        18 => s.switch(at, d & 1 != 0),
        19 => s.preempt(at),
        20 if d & 1 != 0 => s.lost(at, u64::from(d)),
        20 if d & 0x70 == 0 => s.throttle(OF_SWITCHES, at),
        20 => s.lost_of(OF_SWITCHES, at, u64::from(d)),
        21 => s.in_cgroup(CGROUPS[usize::from(d) % 2]),
        22 if d & 1 != 0 => s.fork(At { pid: other, tid: other, ..at }, tid, tid),
        22 => s.comm(time, tid, tid, ["a", "b"][usize::from(d >> 1) % 2], true),
        _ => s.exit(at),
    };
}

fn pipeline(round: &Round, filter: Filter, cells: usize) -> Pipeline {
    reading(filter, cells).pipeline([round.clone()])
}

fn sum(report: &Report) -> WaitStat {
    let mut sum = WaitStat::default();
    report.rows.iter().for_each(|row| sum.merge(&row.stat));
    sum
}

/// What holds for the waits of any report.
fn check_waits(report: &Report) -> Result<(), TestCaseError> {
    let total = &report.total;
    prop_assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
    prop_assert_eq!(total.phases.total(), total.traced());
    prop_assert_eq!(&sum(report), total);
    for split in report.rows.iter().flat_map(|row| &row.splits) {
        let behind = split.stat.behind.all();
        match split.lock_type.mode {
            Mode::Exclusive => prop_assert_eq!(behind, Nanos::ZERO),
            Mode::Read | Mode::Write => prop_assert_eq!(behind, split.stat.traced()),
        }
    }
    Ok(())
}

/// What holds for pieces of waits: all are charged to somebody or nobody, and what those did who are
/// charged adds up to it.
fn check_charges(report: &Report) -> Result<(), TestCaseError> {
    let sum = sum(report);
    prop_assert_eq!(sum.traced(), report.total.traced());
    prop_assert_eq!(sum.wait(), report.total.wait());
    for row in &report.rows {
        match row.key.releaser {
            Some(ChargedName::Releaser { .. }) => {
                prop_assert_eq!(row.stat.holder.total(), row.stat.traced());
            }
            _ => prop_assert_eq!(row.stat.holder.total(), Nanos::ZERO),
        }
        let slept: Nanos = row.holder_slept.iter().map(|(_, time)| *time).sum();
        prop_assert!(report.by != GroupBy::Releaser || slept == row.stat.holder.asleep);
    }
    Ok(())
}

/// What holds for chains: time by roots is the time that is charged.
fn check_chains(report: &Report) -> Result<(), TestCaseError> {
    let charged = report.rows.iter().filter(|row| !row.is_uncharged());
    let charged: Nanos = charged.map(|row| row.stat.wait()).sum();
    let roots: Nanos = report.chains.roots.iter().map(|(_, time)| *time).sum();
    prop_assert_eq!(roots, charged);
    Ok(())
}

fn check(pipeline: &Pipeline) -> Result<(), TestCaseError> {
    for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task, GroupBy::Cgroup] {
        check_waits(&pipeline.report(&ask(by)))?;
    }
    for by in [GroupBy::Releaser, GroupBy::Blame] {
        let report = pipeline.report(&ask(by));
        check_charges(&report)?;
        check_chains(&report)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn all_that_is_counted_adds_up(
        choices in vec(any::<Choice>(), 0..250),
        from in any::<u8>(),
        min_wait in any::<u8>(),
    ) {
        let round = written(&choices);
        let from = Nanos(u64::from(from).pow(3) * 50);
        let part = Filter { time: Some((from, from + from)), ..Filter::default() };
        let min_wait = Nanos(u64::from(min_wait).pow(3));
        for filter in [Filter::default(), part, Filter { min_wait, ..Filter::default() }] {
            check(&pipeline(&round, filter, 1 << 16))?;
        }
    }

    #[test]
    fn at_the_end_of_time_it_adds_up_as_well(choices in vec(any::<Choice>(), 0..100)) {
        let end: u64 = choices.iter().map(|choice| 1 + u64::from(choice.4).pow(3)).sum();
        let round = written_from(u64::MAX - end, &choices);
        check(&pipeline(&round, Filter::default(), 1 << 16))?;
    }

    #[test]
    fn neighbouring_ranges_of_time_add_up_to_the_whole(
        choices in vec(any::<Choice>(), 0..250),
        cut in any::<u8>(),
    ) {
        let round = written(&choices);
        let cut = Nanos(u64::from(cut).pow(3) * 50);
        let of = |time| pipeline(&round, Filter { time, ..Filter::default() }, 1 << 16);
        let (before, after) = (of(Some((Nanos::ZERO, cut))), of(Some((cut, Nanos(u64::MAX)))));
        let whole = of(None);
        for by in [GroupBy::Site, GroupBy::Blame] {
            let mut sum = before.report(&ask(by)).total;
            sum.merge(&after.report(&ask(by)).total);
            let whole = whole.report(&ask(by)).total;
            prop_assert_eq!((sum.wait(), sum.contended()), (whole.wait(), whole.contended()));
            prop_assert_eq!(sum.behind.all(), whole.behind.all());
            prop_assert_eq!(sum.phases.total(), whole.phases.total());
        }
        let life = |pipeline: &Pipeline| {
            let time = pipeline.report(&ask(GroupBy::Site)).thread_time.unwrap_or_default();
            [time.on_cpu, time.runnable, time.kernel_locks, time.other_sleep(), time.unknown]
        };
        let (first, last) = (life(&before), life(&after));
        let both: Vec<Nanos> = first.iter().zip(last).map(|(a, b)| *a + b).collect();
        prop_assert_eq!(both, life(&whole));
    }

    #[test]
    fn slices_of_any_width_add_up_to_the_whole(
        choices in vec(any::<Choice>(), 0..250),
        width in any::<u8>(),
        from in any::<u8>(),
    ) {
        let round = written(&choices);
        let slicing = Slicing { width: Nanos(1 + u64::from(width).pow(4)), recent: Nanos::ZERO };
        let from = Nanos(u64::from(from).pow(3));
        let part = Filter { time: Some((from, Nanos(u64::MAX))), ..Filter::default() };
        for filter in [Filter::default(), part] {
            let whole = pipeline(&round, filter.clone(), 1 << 16);
            let detail = Detail { slicing: Some(slicing), ..reading(filter.clone(), 1 << 16).detail };
            let reading = Reading { detail, ..reading(filter, 1 << 16) };
            let mut sliced = reading.pipeline([round.clone()]);
            let now = sliced.now(When::Between(Nanos::ZERO, Nanos(u64::MAX)));
            prop_assert_eq!(now.range.is_some(), !sliced.slices().is_empty());
            for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task, GroupBy::Releaser, GroupBy::Blame] {
                let query = Query { stacks: true, ..ask(by) };
                let mut sum = sliced.report_at(&now, &query);
                sum.rows.iter_mut().for_each(Row::forget_when);
                prop_assert_eq!(sum, whole.report(&query));
            }
            for raw in [true, false] {
                let query = PathQuery { raw, ..PathQuery::default() };
                let mut sum = sliced.paths_at(&now, &query);
                for row in &mut sum.rows {
                    let slices: Nanos = std::mem::take(&mut row.history).into_iter().sum();
                    prop_assert_eq!(slices, row.spun.time);
                }
                prop_assert_eq!(sum, whole.paths(&query));
            }
        }
    }

    #[test]
    fn narrow_tables_keep_the_totals(choices in vec(any::<Choice>(), 0..250)) {
        let round = written(&choices);
        let (wide, narrow) = (1 << 16, 8);
        let of = |cells| pipeline(&round, Filter::default(), cells);
        for by in [GroupBy::Site, GroupBy::Task, GroupBy::Releaser] {
            let (wide, narrow) = (of(wide).report(&ask(by)), of(narrow).report(&ask(by)));
            // Pieces that were folded further than their waits are in no row.
            prop_assert!(narrow.total.holder.total() <= wide.total.holder.total());
            let total = WaitStat { holder: wide.total.holder, ..narrow.total.clone() };
            prop_assert_eq!(&total, &wide.total);
            prop_assert_eq!(sum(&narrow).wait(), sum(&wide).wait());
            prop_assert_eq!(narrow.trust.charged, wide.trust.charged);
        }
    }

    #[test]
    fn the_same_records_give_the_same_report(choices in vec(any::<Choice>(), 0..250)) {
        let round = written(&choices);
        let of = || pipeline(&round, Filter::default(), 16);
        let (one, again) = (of(), of());
        for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Cgroup, GroupBy::Blame] {
            prop_assert_eq!(one.report(&ask(by)), again.report(&ask(by)));
        }
    }
}
