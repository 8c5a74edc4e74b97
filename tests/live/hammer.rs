//! What is recorded of the hammer, whose locks and waits are known.

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, median};

fn caller(row: &Value) -> &str {
    row["caller"].as_str().unwrap_or_default()
}

#[test]
fn the_mmap_hammer_waits_for_mmap_lock_at_mprotect_and_at_mincore() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"]);
    let report = machine.report(&[]);
    let rows = report["rows"].as_array().unwrap();
    let mut top: Vec<(&str, &str, &str)> = rows[..2]
        .iter()
        .map(|row| {
            let name = row["lock"]["name"].as_str().unwrap();
            (row["lock_type"].as_str().unwrap(), caller(row), name)
        })
        .collect();
    top.sort_unstable();
    assert_eq!((top[0].0, top[0].2), ("rwsem:R", "mmap_lock"), "{top:?}");
    assert!(top[0].1.ends_with("sys_mincore"), "{top:?}");
    assert_eq!(top[1], ("rwsem:W", "do_mprotect_pkey", "mmap_lock"));
    for row in rows {
        assert!(!caller(row).starts_with("do_syscall_64"), "{row}");
        assert!(!caller(row).starts_with("entry_SYSCALL_64"), "{row}");
    }
}

/// What adds up.
const SUMS: [&str; 5] = ["contended", "ended", "open", "traced_ns", "spun_ns"];

#[test]
fn begins_and_ends_balance_and_every_grouping_has_one_total() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"]);
    let reports = ["site", "lock", "task"].map(|by| machine.report(&["--by", by]));
    let trust = &reports[0]["trust"];
    let n = |name: &str| trust[name].as_u64().unwrap();
    assert!(n("ended") > 20, "{trust}");
    assert_eq!(n("begins"), n("begun") + n("phases") + n("restarts") + n("joined"), "{trust}");
    assert_eq!(n("begun") + n("restarts"), n("ended") + n("open") + n("uncertain"), "{trust}");
    let ends = n("ended") + n("uncertain_ended") + n("unmatched") + n("joined_ends");
    assert_eq!(n("ends"), ends, "{trust}");
    for report in &reports {
        assert_eq!(report["total"], reports[0]["total"], "{}", report["by"]);
        for name in SUMS {
            let rows = report["rows"].as_array().unwrap();
            let sum: u64 = rows.iter().map(|row| row[name].as_u64().unwrap()).sum();
            assert_eq!(report["total"][name].as_u64(), Some(sum), "{} by {}", name, report["by"]);
        }
    }
}

/// Traced and spun time of the convoy's short threads, and the half width of its interval, in units of
/// what they themselves say that they waited.
struct Agreement {
    ratio: f64,
    interval: f64,
}

impl Agreement {
    fn measure(machine: &Machine, threads: &str, hold: &str) -> Agreement {
        let convoy = ["hammer", "convoy", "--threads", threads, "--hold", hold, "--seconds", "2s"];
        let output = machine.record(["--", LOCKPROF].iter().chain(&convoy).chain(&["--json"]));
        let truth: Value = serde_json::from_slice(&output.stdout).unwrap();
        let groups = truth["groups"].as_array().unwrap();
        let short = groups.iter().find(|group| group["name"] == "short").unwrap();
        let truth = short["waiting"]["wait_total_ns"].as_f64().unwrap();
        let report = machine.report(&["--comm", "hammer-short"]);
        let total = |name: &str| report["total"][name].as_f64().unwrap();
        Agreement {
            ratio: (total("traced_ns") + total("spun_ns")) / truth,
            interval: total("spun_interval_ns") / truth,
        }
    }

    fn holds(&self) -> bool {
        (self.ratio - 1.0).abs() <= 0.05 + self.interval
    }
}

#[test]
fn traced_and_spun_time_are_what_the_waiters_clocks_say() {
    let Some(machine) = Machine::or_skip() else { return };
    for hold in ["1ms", "10ms"] {
        for threads in ["1", "2", "8"] {
            let mut runs = vec![Agreement::measure(&machine, threads, hold)];
            if !runs[0].holds() {
                runs.extend((0..2).map(|_| Agreement::measure(&machine, threads, hold)));
            }
            let ratio = median(runs.iter().map(|run| run.ratio).collect());
            let interval = median(runs.iter().map(|run| run.interval).collect());
            let said: Vec<String> =
                runs.iter().map(|run| format!("{:.3} +- {:.3}", run.ratio, run.interval)).collect();
            super::machine::say(&format!("{threads} threads, {hold}: {}", said.join(", ")));
            let agreement = Agreement { ratio, interval };
            assert!(agreement.holds(), "{threads} threads behind {hold}: {said:?} of the truth");
        }
    }
}
