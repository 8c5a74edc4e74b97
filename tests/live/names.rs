//! Names of locks, where it is known which locks are fought for.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, say, text};

/// Types of locks that are slept for.
const SLEEPING: [&str; 5] = ["rwsem", "mutex", "semaphore", "pcpu-sem", "rt-mutex"];

/// What a site must not be: these take or release locks for others.
const WRAPPERS: [&str; 4] = ["xfs_buf_lock", "xfs_ilock", "xfs_buf_unlock", "xfs_iunlock"];

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().map_or(&[], Vec::as_slice)
}

fn wait(value: &Value) -> f64 {
    value["wait_ns"].as_f64().unwrap_or_default()
}

/// The row that waited longest, and its share of all waiting.
fn first(report: &Value) -> (&Value, f64) {
    let row = rows(report).first().unwrap_or_else(|| panic!("no rows: {report}"));
    (row, wait(row) / wait(&report["total"]))
}

/// The share of the sleeping wait whose lock is known by more than its caller.
fn named(report: &Value) -> f64 {
    let kind = |row: &&Value| {
        let lock_type = row["lock_type"].as_str().unwrap_or_default();
        SLEEPING.iter().any(|kind| lock_type.split([':', ' ']).next() == Some(kind))
    };
    let is_named = |row: &&Value| {
        !["caller", "class"].contains(&row["lock"]["evidence"].as_str().unwrap_or("caller"))
    };
    let sleeping: Vec<&Value> = rows(report).iter().filter(kind).collect();
    let all: f64 = sleeping.iter().map(|row| wait(row)).sum();
    let named: f64 = sleeping.iter().filter(|row| is_named(row)).map(|row| wait(row)).sum();
    if all > 0.0 { named / all } else { 1.0 }
}

#[test]
fn the_mmap_hammer_has_one_row_by_lock_with_readers_and_writers() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "2s"]);
    let report = machine.report(&["--by", "lock"]);
    let (row, share) = first(&report);
    say(&format!("share of the mmap_lock's row: {share:.4}"));
    assert!(share >= 0.95, "{share}: {row}");
    assert_eq!(row["lock"]["name"], "mmap_lock");
    assert_eq!(row["lock"]["evidence"], "path");
    assert!(row["lock_owner"]["pid"].as_i64().is_some_and(|pid| pid > 0), "{row}");
    let types: Vec<_> =
        row["by_type"].as_array().unwrap().iter().map(|s| &s["lock_type"]).collect();
    assert_eq!(types, ["rwsem:R", "rwsem:W"]);
}

#[test]
fn mmap_lock_events_turn_the_name_into_proof() {
    let Some(machine) = Machine::or_skip() else { return };
    let hammer = ["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "2s"];
    machine.record(["--collect", "mmap-lock"].iter().chain(&hammer));
    let report = machine.report(&["--by", "lock"]);
    let (row, share) = first(&report);
    assert_eq!(
        (&row["lock"]["name"], &row["lock"]["evidence"]),
        (&"mmap_lock".into(), &"events".into())
    );
    assert!(share >= 0.95, "{share}: {row}");
    assert!(row["hold"].is_null(), "{row}");
}

#[test]
fn holds_are_recorded_when_asked_for_and_their_price_is_said() {
    let Some(machine) = Machine::or_skip() else { return };
    let hammer = ["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"];
    machine.record(["--collect", "mmap-lock-holds"].iter().chain(&hammer));
    let report = machine.report(&["--by", "lock"]);
    let (row, _) = first(&report);
    assert_eq!(row["lock"]["evidence"], "events");
    for split in row["by_type"].as_array().unwrap() {
        assert!(split["hold"]["count"].as_u64().is_some_and(|count| count > 10), "{split}");
    }
    let notes = report["trust"]["notes"].to_string();
    assert!(notes.contains("half its speed"), "{notes}");
}

/// Runs a recipe of `examples` and gives the report of what it recorded.
fn example(machine: &Machine, recipe: &str, variables: &[(&str, &str)], data: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(recipe).join("run.sh");
    let mut command = machine.command(["bash"]);
    command.arg(script).env("LOCKPROF", LOCKPROF).env("OUT", machine.place("."));
    command.env("SIZE", "8G").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{recipe}: {}", text(&output.stderr));
    fs::rename(machine.place(data), machine.place(FILE)).unwrap();
    machine.report(&[])
}

fn check(recipe: &str, report: &Value) {
    let share = named(report);
    say(&format!("{recipe}: named locks hold {share:.4} of the sleeping wait"));
    assert!(share >= 0.9, "{recipe}: {share}");
    for row in rows(report) {
        let caller = row["caller"].as_str().unwrap_or_default();
        assert!(!WRAPPERS.contains(&caller), "{recipe}: {row}");
    }
}

#[test]
fn fio_on_xfs_waits_for_locks_with_names_at_sites_that_are_no_wrappers() {
    let tools = ["mkfs.xfs", "fio", "losetup"];
    let Some(machine) = Machine::with_tools_or_skip(&tools) else { return };
    let variables = [("JOB", "wo"), ("FIO_SECONDS", "2"), ("FIO_SIZE", "64M")];
    let report = example(&machine, "fio", &variables, "fio-wo.data");
    check("fio", &report);
    assert!(rows(&report).iter().any(|row| row["lock"]["name"] == "i_rwsem"), "{report}");
}

#[test]
fn fs_mark_on_xfs_waits_for_locks_with_names_at_sites_that_are_no_wrappers() {
    let tools = ["mkfs.xfs", "fs_mark", "losetup"];
    let Some(machine) = Machine::with_tools_or_skip(&tools) else { return };
    check("fs_mark", &example(&machine, "fs_mark", &[("SCALE", "1")], "fs_mark.data"));
}

#[test]
fn xfs_repair_waits_for_its_mmap_lock() {
    let tools = ["mkfs.xfs", "fs_mark", "losetup", "xfs_repair"];
    let Some(machine) = Machine::with_tools_or_skip(&tools) else { return };
    check("xfs_repair", &example(&machine, "xfs_repair", &[("SCALE", "4")], "xfs_repair.data"));
}
