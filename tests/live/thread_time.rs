//! Where the time of threads went: sleeps of a known kind and length, and a workload whose log waits
//! dwarf its lock waits.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, say, skip, text};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Seconds slept in functions of such names.
fn slept(report: &Value, wanted: impl Fn(&str) -> bool) -> f64 {
    let sleeps = report["thread_sleeps"].as_array().unwrap();
    let of = |sleep: &&Value| sleep["function"].as_str().is_some_and(&wanted);
    sleeps.iter().filter(of).map(|sleep| number(&sleep["time_ns"])).sum::<f64>() / 1e9
}

#[test]
fn a_sleep_is_told_by_its_function_and_a_join_is_a_user_lock() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", "sleep", "0.5"]);
    let report = machine.report(&[]);
    let asleep = slept(&report, |function| function.contains("nanosleep"));
    assert!((0.45..5.0).contains(&asleep), "{asleep} s: {report}");
    // A spinlock of the scheduler may be contended for some microseconds on a busy machine.
    assert!(number(&report["total"]["wait_ns"]) / 1e9 < 0.01 * asleep, "{report}");
    let hammer = ["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "500ms"];
    machine.record(hammer);
    let report = machine.report(&[]);
    // The first thread of the hammer joins the others.
    let joined = number(&report["thread_time_ns"]["futex"]) / 1e9;
    assert!(joined > 0.4, "{joined} s: {report}");
    assert!(number(&report["thread_time_ns"]["kernel_locks"]) > 0.0, "{report}");
    let user_locks = report["user_locks"].as_array().unwrap();
    assert!(user_locks.iter().all(|lock| lock["entry"].as_str().unwrap().contains("futex")));
}

/// A file system of its own, mounted while this lives.
struct Xfs(PathBuf);

impl Xfs {
    fn mount(machine: &Machine) -> Option<Xfs> {
        let (image, place) = (machine.place("xfs.img"), machine.place("xfs"));
        std::fs::create_dir(&place).unwrap();
        let did = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
        let made = did(Command::new("truncate").args(["-s", "400M"]).arg(&image))
            && did(Command::new("mkfs.xfs").arg("-q").arg(&image))
            && did(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&place));
        if made { Some(Xfs(place)) } else { skip("no XFS can be made and mounted here") }
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        // What is left mounted is said by the directory that cannot be removed.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn the_log_waits_of_fsync_dwarf_its_lock_waits_and_the_verdict_says_so() {
    let tools = ["fs_mark", "mkfs.xfs", "mount", "truncate"];
    let Some(machine) = Machine::with_tools_or_skip(&tools) else { return };
    let Some(xfs) = Xfs::mount(&machine) else { return };
    let place = xfs.0.display().to_string();
    machine.record(["--", "fs_mark", "-S1", "-t", "8", "-n", "100", "-s", "4096", "-d", &place]);
    let report = machine.report(&[]);
    let log = slept(&report, |function| function.starts_with("xlog_"));
    let locks = number(&report["total"]["wait_ns"]) / 1e9;
    say(&format!("{log:.2} s in the log, {locks:.2} s for locks"));
    assert!(log > 2.0 * locks, "{report}");
    let page = machine.lockprof(["report", FILE]).output().unwrap();
    let page = text(&page.stdout);
    assert!(page.contains("thread time ") && page.contains("xlog_"), "{page}");
    assert!(page.contains("waiting for kernel locks is "), "{page}");
}
