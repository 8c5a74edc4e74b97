//! Waits told by sleeps alone: on kernels that have nothing else, counted a second time from the records;
//! on kernels with contention events, beside the waits that those tell of.

use std::collections::BTreeMap;

use lockprof::decode::Body;
use lockprof::kernel::{Role, Verdict, verdict};
use lockprof::model::{GroupBy, Nanos, Query, Timestamp};
use lockprof::report::{Report, Trust};

use crate::fixtures::{events, recording, symbols, without_contention_events};

/// Sleeping switch-outs of a recording by the first function that is not the scheduler's; but for one
/// that is its very last moment.
fn sleeps_by_function(kernel: &str, name: &str) -> BTreeMap<String, u64> {
    let (symbols, _) = symbols(kernel);
    let mut last = Timestamp(0);
    events(kernel, name, |event| last = last.max(event.time));
    let mut found = BTreeMap::new();
    events(kernel, name, |event| {
        if event.time == last {
            return;
        }
        let Body::SchedSwitch(switch) = &event.body else { return };
        let states = switch.prev_state & 0xff;
        if states == 0 || states & 0x30 != 0 || switch.prev.0 == 0 {
            return;
        }
        let ips = switch.chain.split().kernel.chunks_exact(8);
        let mut functions = ips
            .filter_map(|ip| symbols.function(u64::from_le_bytes(ip.try_into().unwrap())))
            .map(|function| symbols.name(function));
        let scheduler = |name: &&str| match verdict(name) {
            Verdict::Lock(row) => matches!(row.role, Role::Schedule | Role::Recording),
            _ => false,
        };
        let first = functions.find(|name| !scheduler(name)).unwrap_or("-");
        *found.entry(first.to_owned()).or_default() += 1;
    });
    found
}

#[test]
fn every_sleep_in_lock_code_is_in_a_wait_and_no_other_sleep() {
    for (kernel, name, in_locks) in [
        ("5.10", "pairs-mmap", &["rwsem_down_read_slowpath", "rwsem_down_write_slowpath"][..]),
        ("5.10", "pairs-pipe", &["__mutex_lock"]),
        ("5.10-rt", "pairs-mmap", &["__rt_mutex_slowlock", "__down_write_common"]),
        ("5.10-rt", "pairs-pipe", &["__rt_mutex_slowlock", "__down_write_common"]),
    ] {
        let sleeps = sleeps_by_function(kernel, name);
        let wanted: u64 = in_locks.iter().filter_map(|function| sleeps.get(*function)).sum();
        let report = &recording(kernel, name).by_site;
        let counts = report.trust.sleeps.unwrap();
        assert!(wanted > 0, "{kernel}/{name}: {sleeps:?}");
        assert_eq!(counts.sleeps, wanted, "{kernel}/{name}: {sleeps:?}");
        assert_eq!(report.total.contended(), counts.waits, "{kernel}/{name}");
        assert_eq!(report.trust.rung, Trust::SLEEPS_ONLY, "{kernel}/{name}");
    }
}

fn all_sites() -> Query {
    Query { by: GroupBy::Site, top: 0, ..Query::default() }
}

/// Full time of ended waits of rwsems, on which every waiter sleeps.
fn rwsem(report: &Report) -> (u64, Nanos) {
    let of_rwsems = report.rows.iter().flat_map(|row| &row.splits);
    let of_rwsems = of_rwsems.filter(|split| split.lock_type.kind.name() == "rwsem");
    of_rwsems.fold((0, Nanos::ZERO), |(count, time), split| {
        (count + split.stat.ended.count, time + split.stat.ended.total)
    })
}

#[test]
fn the_same_waits_told_by_sleeps_and_by_contention_events_take_the_same_time() {
    for (kernel, name) in [("6.1", "pairs-mmap"), ("6.12", "pairs-mmap"), ("7.2", "pairs-mmap")] {
        let (traced, traced_time) = rwsem(&recording(kernel, name).by_site);
        let (slept, slept_time) =
            rwsem(&without_contention_events(kernel, name).report(&all_sites()));
        let ratio = slept_time.0 as f64 / traced_time.0 as f64;
        println!("{kernel}/{name}: {slept} of {traced} waits, {ratio:.3} of the time");
        assert!((0.85..1.02).contains(&ratio), "{kernel}/{name}: {slept_time:?} {traced_time:?}");
    }
}

#[test]
fn traced_waits_are_no_second_time_waits_by_sleeps() {
    for (kernel, name) in [("6.1", "pairs-mmap"), ("6.12", "pairs-pipe"), ("6.18", "convoy")] {
        let report = &recording(kernel, name).by_site;
        let counts = report.trust.sleeps.unwrap();
        assert!(counts.waits <= 1, "{kernel}/{name}: {counts:?}");
    }
}

#[test]
fn thread_time_accounts_for_all_threads_of_the_machine() {
    for name in ["pairs-mmap", "pairs-pipe"] {
        for kernel in ["5.10", "6.1", "6.12", "7.2"] {
            let time = recording(kernel, name).by_site.thread_time.as_ref().unwrap();
            let (total, unknown) = (time.total().0 as f64, time.unknown.0 as f64);
            assert!(unknown / total < 0.01, "{kernel}/{name}: {unknown} of {total}");
            // Four CPUs, and no more, run threads all the time.
            let elapsed = recording(kernel, name).by_site.header.elapsed.0 as f64;
            let cpus = time.on_cpu.0 as f64 / elapsed;
            assert!((0.5..=4.0).contains(&cpus), "{kernel}/{name}: {cpus} CPUs");
        }
    }
}
