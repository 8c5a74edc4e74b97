//! Recording inside a pid namespace: tasks have other numbers there, or none.

use std::process::Stdio;

use super::machine::{LOCKPROF, Machine, Running, text};

#[test]
fn in_a_pid_namespace_the_whole_machine_is_recorded_and_ends_find_their_begins() {
    let Some(machine) = Machine::with_tools_or_skip(&["unshare"]) else { return };
    let hammer = [LOCKPROF, "hammer", "mmap-sem", "--seconds", "60s"];
    // Outside the namespace, where its threads have no number.
    let _outside = Running::start(machine.command(hammer).stdout(Stdio::null()));
    let unshare = ["unshare", "--pid", "--fork", "--mount-proc", LOCKPROF];
    let mut record = machine.command(unshare);
    let output = record.args(["record", "-a", "-d", "1s"]).output().unwrap();
    if !output.status.success() && text(&output.stderr).starts_with("unshare:") {
        let reason = text(&output.stderr);
        return super::machine::skip(reason.trim()).unwrap_or_default();
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = machine.report(&[]);
    let trust = &report["trust"];
    let n = |name: &str| trust[name].as_u64().unwrap();
    assert!(n("ended") > 20, "{trust}");
    // Keyed by the namespace's numbers, of which all tasks outside have the same, 9 % of a recording's
    // ends found no begin and as many begins no end. What stays are waits that began before the
    // recording did: one for each thread of the machine that waited just then, so it may be many.
    assert!(n("restarts") * 100 <= n("begins"), "{trust}");
    assert!(n("unmatched") <= 16.max(n("ends") / 20), "{trust}");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows[0]["lock"]["name"], "mmap_lock", "{}", rows[0]);
}
