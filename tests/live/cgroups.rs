//! Two cgroups with a hammer in each, and who waits in which.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockprof_collectors::procfs::cgroup::Hierarchy;
use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, Running, is_installed, skip, text};

/// A cgroup of its own, removed with the test, after those who run in it.
struct Group {
    directory: PathBuf,
    name: String,
}

impl Group {
    /// `None`, said aloud, where none can be made.
    fn or_skip(name: &str) -> Option<Group> {
        let hierarchy = match Hierarchy::find() {
            Ok(hierarchy) => hierarchy,
            Err(error) => return skip(&error.to_string()),
        };
        let name = format!("lockprof-{name}-{}", std::process::id());
        let directory = hierarchy.root().join(&name);
        match fs::create_dir(&directory) {
            Ok(()) => Some(Group { directory, name: format!("/{name}") }),
            Err(error) => skip(&format!("cannot make {}: {error}", directory.display())),
        }
    }

    /// A hammer in it, whose threads are all there.
    fn hammer(&self, machine: &Machine) -> Running {
        let enter = format!(
            "echo $$ > {}/cgroup.procs && exec {LOCKPROF} hammer schedule --waiters 3 --hold 5ms \
             --every 50ms --seconds 900s",
            self.directory.display()
        );
        let running = Running::start(
            machine.command(["sh", "-c", &enter]).stdout(std::process::Stdio::null()),
        );
        wait_until(|| threads(&self.directory) == 5);
        running
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that was ended a moment ago may still be leaving.
        wait_until(|| fs::remove_dir(&self.directory).is_ok());
    }
}

fn threads(directory: &Path) -> usize {
    fs::read_to_string(directory.join("cgroup.threads"))
        .or_else(|_| fs::read_to_string(directory.join("tasks")))
        .map_or(0, |tids| tids.lines().count())
}

/// Looks until it is so, or for a minute.
fn wait_until(so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `(cgroup, waits of the mmap_lock)` of each row.
fn rows(report: &Value) -> Vec<(&str, u64)> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["cgroup"].as_str().unwrap(), row["contended"].as_u64().unwrap())).collect()
}

fn waits_in(report: &Value, group: &Group) -> u64 {
    let rows = rows(report).into_iter().filter(|(name, _)| *name == group.name);
    rows.map(|(_, waits)| waits).sum()
}

/// Records until all groups have waited for the mmap_lock: on a busy machine one second may not be
/// enough.
fn record_until_all_wait(machine: &Machine, args: &[&str], groups: &[&Group]) -> Value {
    let by_cgroup = ["--by", "cgroup", "--lock", "mmap_lock"];
    for seconds in ["1s", "4s", "16s"] {
        machine.record(args.iter().chain(&["-d", seconds]));
        let report = machine.report(&by_cgroup);
        if groups.iter().all(|group| waits_in(&report, group) > 2) {
            return report;
        }
    }
    panic!("no waits in one of the cgroups: {:?}", rows(&machine.report(&by_cgroup)));
}

#[test]
fn waits_are_told_apart_by_cgroup_and_one_of_them_can_be_recorded_alone() {
    let Some(machine) = Machine::or_skip() else { return };
    let (Some(a), Some(b)) = (Group::or_skip("a"), Group::or_skip("b")) else { return };
    let _running = [&a, &b].map(|group| group.hammer(&machine));
    let report = record_until_all_wait(&machine, &["-a", "--cgroups"], &[&a, &b]);
    let only = machine.report(&["--by", "cgroup", "--lock", "mmap_lock", "--cgroup", &a.name]);
    assert_eq!(rows(&only), [(a.name.as_str(), waits_in(&report, &a))]);
    if is_installed("perf") {
        perf_reads_the_cgroups(&machine, &[&a, &b]);
    }
    // Nobody of the other group is in a recording of one.
    record_until_all_wait(&machine, &["-G", &a.name], &[&a]);
    let report = machine.report(&["--by", "cgroup"]);
    let names: Vec<&str> = rows(&report).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [a.name.as_str()]);
    assert_eq!(report["header"]["target"], format!("cgroup {}", a.name));
    let comms = machine.report(&["--by", "task"]);
    let comms = comms["rows"].as_array().unwrap().iter().map(|row| &row["task"]["comm"]);
    assert!(
        comms
            .map(|comm| comm.as_str().unwrap())
            .all(|c| c.starts_with("hammer") || c.starts_with('['))
    );
}

fn perf_reads_the_cgroups(machine: &Machine, groups: &[&Group; 2]) {
    let perf = |words: &[&str]| {
        let output = machine.command(["perf"]).args(words).args(["-i", FILE]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "perf {words:?}");
        text(&output.stdout)
    };
    assert!(perf(&["script"]).contains("lock:contention_begin"));
    let report = perf(&["report", "--stdio", "-q", "--no-children", "-g", "none", "-s", "cgroup"]);
    for group in groups {
        assert!(report.contains(&group.name), "{} is not in {report}", group.name);
    }
}

#[test]
fn a_cgroup_that_is_not_there_is_said_by_name() {
    let Some(machine) = Machine::or_skip() else { return };
    let output = machine.lockprof(["record", "-G", "/lockprof-none", "-d", "1s"]).output().unwrap();
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    assert!(stderr.contains("no cgroup /lockprof-none") || stderr.contains("mounted"), "{stderr}");
}
