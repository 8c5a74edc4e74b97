//! Whether it matters how the target is followed: by inheritance, or by picking it out of everything.

use std::collections::BTreeMap;

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, say};

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

fn was_followed(report: &Value) -> bool {
    let notes = report["trust"]["notes"].as_array().unwrap();
    notes.iter().any(|note| note.as_str().unwrap().contains("followed system-wide"))
}

#[test]
fn a_target_that_is_followed_system_wide_looks_as_one_that_inherits_its_events() {
    let Some(machine) = Machine::with_tools_or_skip(&["taskset"]) else { return };
    let hammer = ["--", "taskset", "-c", "0", LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"];
    // On one CPU there are few enough events to be inherited.
    machine.record(["-C", "0"].iter().chain(&hammer));
    let inherited = machine.report(&[]);
    assert!(!was_followed(&inherited), "{}", inherited["trust"]);
    assert_eq!(inherited["trust"]["outside"], 0);
    machine.record(hammer);
    let followed = machine.report(&[]);
    if !was_followed(&followed) {
        return say("SKIPPED: this machine has so few CPUs that nothing is followed");
    }
    let (inherited, followed) = (shares(&inherited), shares(&followed));
    say(&format!("{inherited:.2?} by inheritance, {followed:.2?} followed"));
    let keys =
        |shares: &BTreeMap<(String, String), f64>| shares.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&inherited), keys(&followed), "{inherited:?} {followed:?}");
}
