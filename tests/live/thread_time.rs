//! Where the time of threads went: sleeps of a known kind and length, and a workload whose log waits
//! dwarf its lock waits.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, part, plays_part, say, skip, text};

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

/// For how long each thread of [`is_contended`] has its lock at a time.
const HELD: Duration = Duration::from_millis(2);

/// Takes a lock of user space that others want as well.
#[inline(never)]
fn section(lock: &Mutex<u64>) {
    let mut count = lock.lock().unwrap();
    *count += 1;
    thread::sleep(HELD);
}

/// Threads that hold up each other in a lock of user space.
#[test]
fn is_contended() {
    if !plays_part() {
        return;
    }
    let lock = Mutex::new(0);
    thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| (0..100).for_each(|_| section(&lock)))));
    });
}

#[test]
fn a_user_lock_is_told_by_the_function_that_asked_for_it() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(std::iter::once("--".to_owned()).chain(part("thread_time::is_contended")));
    let report = machine.report(&[]);
    let locks = report["user_locks"].as_array().unwrap();
    let wait = |lock: &Value| number(&lock["wait_own_ns"]);
    let all: f64 = locks.iter().map(wait).sum();
    let told = locks.iter().filter(|lock| lock["caller"].is_string());
    let told: f64 = told.map(wait).sum();
    say(&format!("{:.0} % of {:.2} s has a caller", 100.0 * told / all, all / 1e9));
    assert!(told > 0.9 * all && all > 0.1 * 1e9, "{locks:#?}");
    let most = locks.first().and_then(|lock| lock["caller"].as_str()).unwrap();
    // The standard library may have no frame pointers: then the caller of its innermost function is missing.
    assert!(most.contains("section") || most.contains("Mutex"), "{locks:#?}");
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
    let part = |part: &str| number(&report["thread_time_ns"][part]) / 1e9;
    let off_cpu = part("total") - part("on_cpu") - part("unknown");
    // A machine without a free CPU makes lock waits as well.
    let little = locks < 0.05 * off_cpu;
    assert_eq!(page.contains("waiting for kernel locks is "), little, "{page}");
}
