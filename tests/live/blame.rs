//! Who is charged with the hammer's waiting, which is known.

use std::collections::HashMap;
use std::path::Path;

use lockprof::attribute::Facts;
use lockprof::decode::{Body, Event};
use lockprof::kernel::Kernel;
use lockprof::model::{Context, LockKind, LockType, TaskId};
use lockprof::pipeline::EventStream;
use lockprof::source::{Replay, Round};
use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, median, say, text, word};

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

/// Readers and writers of one mmap_lock.
const MMAP_SEM: &[&str] =
    &["hammer", "mmap-sem", "--readers", "4", "--writers", "4", "--seconds", "5s"];

#[test]
fn the_mmap_hammers_releasers_are_mprotect_and_mincore() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut shares = Vec::new();
    for _ in 0..3 {
        machine.record(["--", LOCKPROF].iter().chain(MMAP_SEM));
        let report = machine.report(&["--blame", "--lock", "mmap_lock"]);
        let at = |row: &Value| row["releaser"]["caller"].as_str().unwrap_or_default().to_owned();
        let known = |row: &Value| at(row) == "do_mprotect_pkey" || at(row).ends_with("sys_mincore");
        // What follows the last hand-over is run-queue delay, and spinning is no sleep.
        let slept = wait(&report, |row| row["uncharged"] != "own")
            - report["total"]["spun_ns"].as_f64().unwrap_or_default();
        shares.push(wait(&report, known) / slept);
        assert!(rows(&report).iter().any(|row| row["hold"].is_object()), "{report}");
        roots_add_up(&report);
        if shares.last() > Some(&0.95) {
            break;
        }
    }
    say(&format!("charged to the two sites of the hammer: {shares:.4?}"));
    assert!(shares.last() > Some(&0.95), "{shares:?}");
}

/// What the roots are charged with is what the releasers are.
fn roots_add_up(report: &Value) {
    let roots = report["roots"].as_array().map_or(&[][..], Vec::as_slice);
    let by_root: f64 = roots.iter().filter_map(|root| root["wait_ns"].as_f64()).sum();
    let charged = wait(report, |row| row["releaser"].is_object());
    assert!((by_root - charged).abs() < 1.0, "{by_root} of {charged}: {report}");
}

/// Wakings of tasks that wait for an rwsem and get it: those by release or pass-on code of that kind of
/// lock, and all. (A signal ends waits that fail.)
fn wakings_of_waiters(file: &Path) -> (usize, usize) {
    let mut replay = Replay::open(file).unwrap();
    let kernel = Kernel::from_kallsyms(replay.origin().kallsyms.as_deref().unwrap());
    let mut stream = EventStream::new(replay.origin()).unwrap();
    // Who waits for an rwsem, and the wakings in that wait: by lock code, and all.
    let mut waits: HashMap<TaskId, (usize, usize)> = HashMap::new();
    let (mut by_lock_code, mut all) = (0, 0);
    let mut take = |event: &Event<'_>| match event.body {
        Body::ContentionBegin(begin) if begin.who.context == Context::Task => {
            let lock_type = LockType::from_flags(begin.flags);
            if lock_type.kind == LockKind::Rwsem {
                waits.entry(begin.who.task).or_default();
            }
        }
        Body::ContentionEnd(end) => {
            let wakings = waits.remove(&end.who.task).filter(|_| end.ret == 0);
            let (known, seen) = wakings.unwrap_or_default();
            by_lock_code += known;
            all += seen;
        }
        Body::SchedWaking(waking) if waking.who.context == Context::Task => {
            if let Some((known, seen)) = waits.get_mut(&waking.woken) {
                let frames = waking.chain.split().kernel.chunks_exact(8).map(|ip| word(ip, 0));
                let frames: Vec<u64> = frames.collect();
                let release = Facts::of(&kernel, &frames).release;
                let of_kind = release.is_some_and(|r| r.kinds.contains(LockKind::Rwsem));
                *known += usize::from(of_kind);
                *seen += 1;
            }
        }
        _ => {}
    };
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        stream.push(std::mem::take(&mut round), &mut take);
    }
    stream.finish(&mut take);
    (by_lock_code, all)
}

#[test]
fn who_wakes_the_mmap_hammers_waiters_releases_the_lock_or_passes_it_on() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF].iter().chain(MMAP_SEM));
    let (by_lock_code, all) = wakings_of_waiters(&machine.place(FILE));
    say(&format!("{by_lock_code} of {all} wakings of waiters are by code of the lock"));
    assert!(all > 100, "{all} wakings of tasks that wait");
    assert!(by_lock_code as f64 >= 0.99 * all as f64, "{by_lock_code} of {all}");
}

#[test]
fn the_releasers_of_the_mmap_hammer_stand_upside_down_on_its_waiters() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", LOCKPROF, "hammer", "mmap-sem"]);
    let drawn = machine.lockprof(["flamegraph", "--blame", "-o", "blame.svg"]).output().unwrap();
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let picture = std::fs::read_to_string(machine.place("blame.svg")).unwrap();
    for frame in ["-- released by --", "do_mprotect_pkey", "up_write", "mmap_lock"] {
        assert!(picture.contains(&format!("<title>{frame} (")), "{frame}");
    }
}

#[test]
fn without_wakings_the_report_says_so() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--no-blame", "--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "500ms"]);
    let report = machine.report(&["--by", "releaser"]);
    assert!(report["trust"]["charged_ns"].is_null(), "{report}");
    assert_eq!(rows(&report)[0]["uncharged"], "no_waking");
}
