//! Where a process may count its own tasks and not all of a CPU: only the target is recorded, and the
//! report says what that leaves out.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, Running, say, skip, text};
use crate::seccomp;

const EACCES: i32 = 13;

fn machine() -> Option<Machine> {
    if !seccomp::is_possible() {
        return skip("this needs perl and the system call numbers of x86_64");
    }
    Machine::or_skip()
}

/// `lockprof record ARGS` of a process that may not record the whole machine.
fn record(machine: &Machine, args: &[&str]) {
    let words = seccomp::without_system_wide(EACCES);
    let words = words.iter().map(String::as_str).chain([LOCKPROF, "record"]);
    let output = machine.command(words.chain(args.iter().copied())).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Waits of the target, charged to tasks of the target; what is left out is said.
fn only_the_target_is_seen(machine: &Machine) {
    let report = machine.report(&["--by", "releaser"]);
    let rows = report["rows"].as_array().unwrap();
    let releasers = rows.iter().filter(|row| row["releaser"].is_object());
    let charged: f64 = releasers.clone().map(|row| number(&row["share"])).sum();
    say(&format!("{:.0} % of the waiting charged", charged * 100.0));
    assert!(charged > 0.1, "{report}");
    let pid = |row: &Value| row["releaser"]["task"]["pid"].as_i64();
    let pids: BTreeSet<Option<i64>> = releasers.map(pid).collect();
    assert_eq!(pids.len(), 1, "{report}");
    assert!(number(&report["thread_time_ns"]["on_cpu"]) > 0.0, "{report}");
    let page = machine.lockprof(["report", FILE]).output().unwrap();
    let page = text(&page.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["wakers outside the target are not seen", "states of holders outside it are unknown"]
    {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("followed system-wide"), "{page}");
}

#[test]
fn a_command_is_recorded_thread_by_thread() {
    let Some(machine) = machine() else { return };
    let hammer = [LOCKPROF, "hammer", "mmap-sem", "--readers", "2", "--writers", "2"];
    record(&machine, &[&["--"], &hammer[..], &["--seconds", "1"]].concat());
    only_the_target_is_seen(&machine);
}

#[test]
fn a_process_is_recorded_thread_by_thread() {
    let Some(machine) = machine() else { return };
    let hammer = ["hammer", "mmap-sem", "--readers", "2", "--writers", "2", "--seconds", "60"];
    let mut hammer = machine.lockprof(hammer);
    let hammer = Running::start(hammer.stdout(Stdio::null()));
    record(&machine, &["-p", &hammer.pid(), "-d", "1s"]);
    only_the_target_is_seen(&machine);
}
