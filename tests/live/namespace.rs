//! Recording inside a pid namespace: tasks have other numbers there, or none.

use std::collections::HashSet;
use std::process::Stdio;

use lockprof::decode::{Body, Event};
use lockprof::pipeline::EventStream;
use lockprof::source::{Replay, Round};
use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, Running, say, skip, text};

/// Records the whole machine from inside a namespace, again when records were lost. `None`, said aloud,
/// where that cannot be done.
fn report_without_losses(machine: &Machine) -> Option<Value> {
    for _ in 0..5 {
        let unshare = ["unshare", "--pid", "--fork", "--mount-proc", LOCKPROF];
        let mut record = machine.command(unshare);
        let output = record.args(["record", "-a", "-d", "1s"]).output().unwrap();
        let said = text(&output.stderr);
        if !output.status.success() && said.starts_with("unshare:") {
            return skip(said.trim());
        }
        assert!(output.status.success(), "{said}");
        let report = machine.report(&[]);
        if report["trust"]["lost"] == serde_json::json!([]) {
            return Some(report);
        }
    }
    skip("this machine is too busy: records were lost in each of five recordings")
}

/// Ends of waits that had begun before the recording did: a task's for a lock that it did not begin to
/// wait for so far.
fn ends_of_waits_begun_before(machine: &Machine) -> u64 {
    let mut replay = Replay::open(&machine.place(FILE)).unwrap();
    let mut events = EventStream::new(replay.origin()).unwrap();
    let (mut round, mut began, mut ends) = (Round::default(), HashSet::new(), 0);
    let mut more = true;
    while more {
        more = replay.next_round(&mut round).unwrap();
        let mut look = |event: &Event<'_>| match event.body {
            Body::ContentionBegin(begin) => drop(began.insert((begin.who.task, begin.lock))),
            Body::ContentionEnd(end) => {
                ends += u64::from(!began.contains(&(end.who.task, end.lock)));
            }
            _ => {}
        };
        match more {
            true => events.push(std::mem::take(&mut round), &mut look),
            false => events.finish(&mut look),
        }
    }
    ends
}

#[test]
fn in_a_pid_namespace_the_whole_machine_is_recorded_and_ends_find_their_begins() {
    let Some(machine) = Machine::with_tools_or_skip(&["unshare"]) else { return };
    let hammer = [LOCKPROF, "hammer", "mmap-sem", "--seconds", "60s"];
    // Outside the namespace, where its threads have no number.
    let _outside = Running::start(machine.command(hammer).stdout(Stdio::null()));
    let Some(report) = report_without_losses(&machine) else { return };
    let trust = &report["trust"];
    let n = |name: &str| trust[name].as_u64().unwrap();
    assert!(n("ended") > 20, "{trust}");
    // Keyed by the namespace's numbers, of which all tasks outside have the same, 9 % of a recording's
    // ends found no begin and as many begins no end.
    assert_eq!(n("restarts"), 0, "{trust}");
    let before = ends_of_waits_begun_before(&machine);
    say(&format!("{} ends found no begin, {before} waits had begun before", n("unmatched")));
    assert!(n("unmatched") <= before, "{before} waits had begun before: {trust}");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows[0]["lock"]["name"], "mmap_lock", "{}", rows[0]);
}
