//! Whether it matters how the target is followed: by inheritance, or by picking it out of everything.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, Running, say, text};

/// Shares of the waiting by row, of rows that have any to speak of.
fn shares(report: &Value) -> BTreeMap<(String, String), f64> {
    let rows = report["rows"].as_array().unwrap();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let share = |row: &Value| row["share"].as_f64().unwrap();
    rows.iter()
        .filter(|row| share(row) >= 0.05)
        .map(|row| ((word(row, "lock_type"), word(row, "caller")), share(row)))
        .collect()
}

/// Why the target was followed system-wide, if it was.
fn followed(report: &Value) -> Option<&str> {
    let notes = report["trust"]["notes"].as_array().unwrap();
    let reasons = notes.iter().filter_map(Value::as_str);
    let mut reasons = reasons.filter_map(|note| note.split("followed system-wide: ").nth(1));
    reasons.next()
}

/// The target's tasks, and no others.
fn assert_hammer_only(report: &Value) {
    for row in report["rows"].as_array().unwrap() {
        // The main thread has the program's own name.
        let name = row["task"]["comm"].as_str().unwrap();
        let expected = ["hammer-", "lockprof", "taskset", "[softirq]", "[hardirq]"];
        assert!(expected.iter().any(|start| name.starts_with(start)), "{row}");
    }
}

#[test]
fn a_target_that_is_followed_system_wide_looks_as_one_that_inherits_its_events() {
    let Some(machine) = Machine::with_tools_or_skip(&["taskset", "prlimit"]) else { return };
    let hammer = ["taskset", "-c", "0", LOCKPROF, "hammer", "mmap-sem", "--seconds", "60s"];
    let hammer = Running::start(machine.command(hammer).stdout(Stdio::null()));
    let pid = hammer.pid();
    // Other tasks that wait, to be told apart.
    let other = [LOCKPROF, "hammer", "pipe-mutex", "--seconds", "60s"];
    let _other = Running::start(machine.command(other).stdout(Stdio::null()));
    machine.record(["-C", "0", "-p", &pid, "-d", "1s"]);
    let inherited = machine.report(&[]);
    assert_eq!(followed(&inherited), None);
    assert_eq!(inherited["trust"]["outside"], 0);
    assert_hammer_only(&machine.report(&["--by", "task"]));
    // Too few files for the events of nine threads.
    let mut record = machine.command(["prlimit", "--nofile=40:40", LOCKPROF, "record"]);
    let output = record.args(["-C", "0", "-p", &pid, "-d", "1s"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let picked_out = machine.report(&[]);
    assert_eq!(followed(&picked_out), Some("its events need more than 40 open files"));
    assert!(picked_out["trust"]["outside"].as_u64().unwrap() > 0, "{}", picked_out["trust"]);
    assert_hammer_only(&machine.report(&["--by", "task"]));
    let (inherited, picked_out) = (shares(&inherited), shares(&picked_out));
    say(&format!("{inherited:.2?} by inheritance, {picked_out:.2?} picked out"));
    assert!(inherited.keys().eq(picked_out.keys()), "{inherited:?} {picked_out:?}");
}
