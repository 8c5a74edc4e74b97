//! Who is charged with the hammer's waiting, which is known.

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, median, say};

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().map_or(&[], Vec::as_slice)
}

/// Wait time of the rows that `wanted` takes.
fn wait(report: &Value, wanted: impl Fn(&Value) -> bool) -> f64 {
    let rows = rows(report).iter().filter(|row| wanted(row));
    rows.filter_map(|row| row["wait_ns"].as_f64()).sum()
}

#[test]
fn the_short_threads_of_a_convoy_wait_for_the_long_holder() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut shares = Vec::new();
    // A short holder that is preempted is to blame too: the long hold is longer than a time slice, and
    // on a busy machine the median counts.
    let convoy = ["hammer", "convoy", "--hold", "40ms", "--seconds", "3s"];
    for _ in 0..3 {
        machine.record(["--", LOCKPROF].iter().chain(&convoy));
        let report = machine.report(&["--by", "releaser", "--comm", "hammer-short"]);
        let long = wait(&report, |row| row["releaser"]["task"]["comm"] == "hammer-long");
        shares.push(long / wait(&report, |_| true));
        if shares[0] > 0.9 {
            break;
        }
    }
    say(&format!("charged to the long holder: {shares:.3?}"));
    assert!(median(shares.clone()) > 0.9, "{shares:?}");
}

#[test]
fn the_mmap_hammers_releasers_are_mprotect_and_mincore() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "2s"]);
    let report = machine.report(&["--blame", "--lock", "mmap_lock"]);
    let at = |row: &Value| row["releaser"]["caller"].as_str().unwrap_or_default().to_owned();
    let known = |row: &Value| at(row) == "do_mprotect_pkey" || at(row).ends_with("sys_mincore");
    // What follows the last hand-over is run-queue delay, and spinning is no sleep.
    let slept = wait(&report, |row| row["uncharged"] != "own")
        - report["total"]["spun_ns"].as_f64().unwrap_or_default();
    let share = wait(&report, known) / slept;
    say(&format!("charged to the two sites of the hammer: {share:.4}"));
    assert!(share > 0.95, "{share}: {report}");
    let all = rows(&report).len();
    assert!(rows(&report).iter().filter(|row| row["hold"].is_object()).count() > 0, "{all} rows");
}

#[test]
fn without_wakings_the_report_says_so() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--no-blame", "--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "500ms"]);
    let report = machine.report(&["--by", "releaser"]);
    assert!(report["trust"]["charged_ns"].is_null(), "{report}");
    assert_eq!(rows(&report)[0]["uncharged"], "no_waking");
}
