//! Recording that cannot begin or go on: what is said, what is suggested, the exit status, and that
//! nothing is lost. Needs root, to take rights away from itself; without, each test says so.
//!
//! The exit status of a command that was recorded is its own; 127 and 126 as a shell gives them when
//! it cannot be run; 125 when lockprof itself fails; 2 when there is no command.

#![allow(clippy::unwrap_used)]

mod aloud;
mod seccomp;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lockprof_collectors::procfs::sysctl::{Capabilities, Sysctls};
use lockprof_collectors::procfs::tracefs::Tracefs;

const LOCKPROF: &str = env!("CARGO_BIN_EXE_lockprof");

/// Whether this process may record; otherwise says why the test is skipped.
fn may_record() -> bool {
    let root = rustix::process::geteuid().is_root();
    let perfmon = Capabilities::own().is_ok_and(Capabilities::perfmon);
    let traceable = Tracefs::find()
        .and_then(|tracefs| tracefs.tracepoints(&["lock:contention_begin"]))
        .inspect_err(|error| aloud::skipped(format_args!("{error}")));
    if !root || !perfmon {
        aloud::skipped("only root with CAP_PERFMON can record and take rights away");
    }
    root && perfmon && traceable.is_ok()
}

/// A directory to record into, that everybody may enter and write to.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    directory
}

/// `record ARGS`, started by the words of `before`.
fn record(before: &[&str], args: &[&str], directory: &Path) -> Output {
    let words: Vec<&str> = before.iter().copied().chain([LOCKPROF, "record"]).collect();
    Command::new(words[0])
        .args(&words[1..])
        .args(args)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn assert_said(output: &Output, status: i32, error: &str, hints: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(!said.contains("is not known"), "a doubt about a recording that is not made: {said}");
    let at = said.lines().position(|line| line.starts_with("error: "));
    let at = at.unwrap_or_else(|| panic!("no line starts with `error: `: {said}"));
    let said: String = said.split_inclusive('\n').skip(at).collect();
    let (first, hint) = said.split_once("\n\nhint: ").unwrap_or((&said, ""));
    assert!(first.contains(error), "{first:?} lacks {error:?}");
    assert!(!first.contains("(os error"), "{first:?}");
    for part in hints {
        assert!(hint.contains(part), "{said}\nlacks {part:?}");
    }
    assert!(hint.lines().all(|line| line.len() <= 100), "{said}");
}

fn files_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_command_that_cannot_be_run_ends_as_in_a_shell_and_leaves_no_recording() {
    if !may_record() {
        return;
    }
    let place = directory();
    let place = place.path();
    fs::write(place.join("plain"), "#!/bin/sh\n").unwrap();
    fs::write(place.join("lost"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(place.join("lost"), Permissions::from_mode(0o755)).unwrap();
    let cases: [(&str, i32, &str, &str); 5] = [
        ("no-such-command", 127, "cannot run no-such-command: No such file", "in PATH?"),
        ("./missing", 127, "cannot run ./missing: No such file", "is the path right?"),
        ("./lost", 127, "cannot run ./lost", "head -n 1 ./lost"),
        ("./plain", 126, "cannot run ./plain: Permission denied", "chmod +x ./plain"),
        ("/tmp", 126, "cannot run /tmp: Permission denied", "it is a directory"),
    ];
    for (command, status, error, hint) in cases {
        let output = record(&[], &["--no-cpu", "--", command], place);
        assert_said(&output, status, error, &[hint]);
        assert_eq!(files_in(place), ["lost", "plain"], "{command}");
    }
}

/// Root without the capabilities named, as in a container.
fn without(capabilities: &str) -> [&str; 5] {
    ["setpriv", "--bounding-set", capabilities, "--inh-caps", capabilities]
}

const NOBODY: [&str; 7] =
    ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"];

/// A copy of lockprof that anybody may execute: the build directory may be closed to them.
fn copy_for_all(directory: &Path) -> PathBuf {
    let copy = directory.join("lockprof");
    fs::copy(LOCKPROF, &copy).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    copy
}

#[test]
fn an_ordinary_user_is_told_what_is_missing_and_each_command() {
    if !may_record() {
        return;
    }
    if Sysctls::read().perf_event_paranoid.is_none_or(|level| level < 0) {
        aloud::skipped("perf_event_paranoid lets every user trace here");
        return;
    }
    let place = directory();
    let program = copy_for_all(place.path());
    let targets: [(&[&str], i32); 3] =
        [(&["--", "true"], 125), (&["-a", "-d", "10ms"], 2), (&["-p", "1", "-d", "10ms"], 2)];
    for (target, status) in targets {
        let output = Command::new(NOBODY[0])
            .args(&NOBODY[1..])
            .arg(&program)
            .arg("record")
            .args(target)
            .current_dir(place.path())
            .output()
            .unwrap();
        let level = Sysctls::read().perf_event_paranoid.unwrap_or_default();
        let reason = format!("perf_event_paranoid is {level} and this user has no CAP_PERFMON");
        let hints = [
            reason.as_str(),
            "with sudo, or:",
            "\n        sudo sysctl kernel.perf_event_paranoid=-1\n",
            "`lockprof doctor`",
        ];
        assert_said(&output, status, "cannot trace lock contention: ", &hints);
        assert_eq!(files_in(place.path()), ["lockprof"]);
    }
}

#[test]
fn root_in_a_container_without_cap_perfmon_is_told_how_to_start_it() {
    if !may_record() || Sysctls::read().perf_event_paranoid.is_none_or(|level| level < 0) {
        return;
    }
    let place = directory();
    let output = record(&without("-sys_admin,-perfmon"), &["--", "true"], place.path());
    let hints = ["no CAP_PERFMON", "--security-opt seccomp=unconfined --cap-add PERFMON"];
    assert_said(&output, 125, "cannot trace lock contention: perf_event_open(", &hints);
}

#[test]
fn processes_that_do_not_exist_are_named() {
    if !may_record() {
        return;
    }
    let place = directory();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let pid = gone.id().to_string();
    let output = record(&[], &["-p", &pid, "-d", "10ms"], place.path());
    assert_said(&output, 2, &format!("no such task: {pid}"), &["ps -e"]);
    assert_eq!(files_in(place.path()), [""; 0]);
}

#[test]
fn a_process_that_ends_while_it_is_recorded_ends_the_recording() {
    if !may_record() {
        return;
    }
    let place = directory();
    let mut target = Command::new("sleep").arg("1.5").spawn().unwrap();
    let pid = target.id().to_string();
    let output = record(&[], &["--no-cpu", "-p", &pid, "-d", "60s"], place.path());
    target.wait().unwrap();
    // A machine so slow that the process ended first answers as for one that does not exist.
    if output.status.code() == Some(2) {
        assert_said(&output, 2, "no such task", &["ps -e"]);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files_in(place.path()), ["lockprof.data"]);
}

#[test]
fn cpus_that_are_not_there_are_named() {
    if !may_record() {
        return;
    }
    let place = directory();
    let output = record(&[], &["-a", "-C", "65000"], place.path());
    assert_said(&output, 2, "CPU 65000 is not online (online: 0", &[]);
    let output = record(&[], &["-a", "-C", "all"], place.path());
    assert_said(&output, 2, "`all` is no list of CPUs; write 0-3,8", &[]);
}

#[test]
fn a_place_that_cannot_be_written_is_said_before_the_command_runs() {
    if !may_record() {
        return;
    }
    let place = directory();
    let mark = place.path().join("mark");
    let command = ["--", "touch", mark.to_str().unwrap()];
    let into = |output: &str| {
        let args: Vec<&str> = ["--no-cpu", "-o", output].into_iter().chain(command).collect();
        record(&[], &args, place.path())
    };
    assert_said(
        &into("no/such/x.data"),
        125,
        "cannot write `no/such/x.data`",
        &["mkdir -p no/such"],
    );
    assert_said(&into("/proc/x.data"), 125, "cannot write `/proc/x.data`", &[]);
    assert_said(&into("."), 125, "cannot write `.`", &["it is a directory"]);
    assert_eq!(files_in(place.path()), [""; 0], "the command has not run");
}

/// A line of such a script.
const UNMOUNT: &str = "for place in /sys/kernel/debug/tracing /sys/kernel/debug \
    /sys/kernel/tracing; do umount $place 2>/dev/null || :; done";

/// Runs `script` with lockprof as `$0` in mounts of its own; `/mnt` is its to mount over.
fn in_own_mounts(script: &str, directory: &Path) -> Output {
    Command::new("unshare")
        .args(["--mount", "sh", "-ec", script, LOCKPROF])
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[test]
fn a_read_only_file_system_is_said_before_the_command_runs() {
    if !may_record() {
        return;
    }
    let place = directory();
    let script = "mount -t tmpfs -o ro none /mnt
        exec \"$0\" record --no-cpu -o /mnt/x.data -- touch mark";
    let output = in_own_mounts(script, place.path());
    let error = "cannot write `/mnt/x.data`: cannot create the recording: Read-only file system";
    assert_said(&output, 125, error, &["-o FILE"]);
    assert_eq!(files_in(place.path()), [""; 0], "the command has not run");
}

#[test]
fn a_disk_without_room_for_the_symbols_is_said_before_the_command_runs() {
    if !may_record() {
        return;
    }
    let place = directory();
    let script = "mount -t tmpfs -o size=64k none /mnt
        status=0; \"$0\" record --no-cpu -o /mnt/x.data -- touch mark || status=$?
        cp -r /mnt left; exit $status";
    let output = in_own_mounts(script, place.path());
    assert_said(&output, 125, "no space left for the recording", &["free some space"]);
    assert_eq!(files_in(place.path()), ["left"], "the command has not run");
    assert_eq!(files_in(&place.path().join("left")), [""; 0], "and nothing is left behind");
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_and_what_fits_can_be_read() {
    if !may_record() {
        return;
    }
    let place = directory();
    // Room for the symbols and a round or two; only whole rounds stay in the file.
    let script = "mount -t tmpfs -o size=6m none /mnt
        status=0; \"$0\" record -F 5000 -o /mnt/x.data -- \
            \"$0\" hammer pipe-mutex --threads 4 --seconds 3s > out || status=$?
        cp /mnt/x.data x.data; exit $status";
    let output = in_own_mounts(script, place.path());
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        aloud::skipped("this machine wrote less than 6 MiB in 3 s");
        return;
    }
    assert_said(&output, 125, "no space left for the recording after", &["free some space"]);
    let report = Command::new(LOCKPROF)
        .args(["report", "--format", "json"])
        .arg(place.path().join("x.data"))
        .output()
        .unwrap();
    assert!(report.status.success(), "{said}\n{}", String::from_utf8_lossy(&report.stderr));
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert!(report["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{said}");
}

#[test]
fn tracefs_is_mounted_when_it_is_missing_and_the_user_is_told() {
    if !may_record() {
        return;
    }
    let place = directory();
    let may = format!("{UNMOUNT}; exec \"$0\" record --no-cpu -- true");
    let output = in_own_mounts(&may, place.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("it is mounted at /sys/kernel/tracing now"), "{said}");
    let may_not = format!(
        "{UNMOUNT}; exec setpriv --reuid 65534 --clear-groups \"{}\" record -- true",
        copy_for_all(place.path()).display()
    );
    let output = in_own_mounts(&may_not, place.path());
    let hint = "sudo mount -t tracefs nodev /sys/kernel/tracing";
    assert_said(&output, 125, "perf_event_open", &["no CAP_PERFMON"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let (warned, _) = said.split_once("error: ").unwrap();
    assert!(warned.contains("tracefs is not mounted") && warned.contains(hint), "{said}");
}

/// As in a container that has CAP_PERFMON and no tracefs.
#[test]
fn without_tracefs_cpu_samples_are_recorded_unless_more_was_asked_for() {
    if !may_record() {
        return;
    }
    let place = directory();
    let record = |args: &str| {
        let before = without("-sys_admin").join(" ");
        in_own_mounts(&format!("{UNMOUNT}; exec {before} \"$0\" record {args}"), place.path())
    };
    let hammer = format!("-o x.data -- {LOCKPROF} hammer mmap-sem --seconds 500ms");
    let output = record(&hammer);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("warning: tracefs is not mounted at /sys/kernel/tracing"), "{said}");
    assert!(said.contains("-v /sys/kernel/tracing:/sys/kernel/tracing"), "{said}");
    let report = Command::new(LOCKPROF)
        .args(["report", "--format", "json"])
        .arg(place.path().join("x.data"))
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let trust = &report["trust"];
    assert_eq!(trust["rung"], "CPU samples only: spinning is seen, sleeping is not");
    assert!(trust["notes"].to_string().contains("tracefs is not mounted: only CPU"), "{trust}");
    for asked_for in ["--no-cpu", "--release-stacks", "--no-spin", "--collect mmap-lock"] {
        let output = record(&format!("{asked_for} -- touch mark"));
        assert_said(&output, 125, "tracefs is not mounted", &["-v /sys/kernel/tracing"]);
        assert_eq!(files_in(place.path()), ["x.data"], "the command has not run");
    }
    let output = record("--cpu-only -o y.data -- true");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("tracefs"), "{said}");
}

#[test]
fn rings_that_no_machine_has_memory_for_are_refused_with_a_size_that_fits() {
    if !may_record() {
        return;
    }
    let place = directory();
    let output = record(&[], &["-a", "-d", "10ms", "-m", "1073741824"], place.path());
    assert_said(&output, 2, "ring of CPU", &["lockprof record -m "]);
}

#[test]
fn a_picture_that_cannot_be_drawn_leaves_the_recording() {
    if !may_record() {
        return;
    }
    let place = directory();
    let args = ["--no-cpu", "--svg", "no/such/x.svg", "--", "true"];
    let output = record(&[], &args, place.path());
    assert_said(&output, 125, "cannot write `no/such/x.svg`", &["mkdir -p no/such"]);
    assert_eq!(files_in(place.path()), ["lockprof.data"]);
}

#[test]
fn a_filter_that_refuses_the_system_call_is_told_from_missing_rights() {
    if !may_record() || !seccomp::is_possible() {
        return aloud::skipped("this needs perl and the system call numbers of x86_64");
    }
    const EPERM: (i32, &str) = (1, "a seccomp filter stands between this process and the kernel");
    const ENOSYS: (i32, &str) = (38, "a seccomp filter of a container hides it");
    for (errno, hint) in [EPERM, ENOSYS] {
        let place = directory();
        let before = seccomp::without_perf(errno);
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let output = record(&before, &["--no-cpu", "--", "touch", "mark"], place.path());
        let start = "--security-opt seccomp=unconfined --cap-add PERFMON";
        let error = "cannot trace lock contention: perf_event_open(";
        let said = String::from_utf8_lossy(&output.stderr).replace("\n      ", " ");
        assert!(said.contains(hint), "{said}");
        assert_said(&output, 125, error, &[start, "`lockprof doctor`"]);
        assert_eq!(files_in(place.path()), [""; 0], "the command has not run");
    }
}

/// What a chroot lacks is named one thing after the other, until it records.
#[test]
fn in_a_chroot_without_sysfs_the_user_is_told_to_mount_it() {
    if !may_record() {
        return;
    }
    let place = directory();
    // The program's own libraries are needed in there: the whole machine is bound read-only, without
    // what is mounted on it.
    let script = "mkdir root && mount --bind / root && mount -t proc proc root/proc
        mount -t tmpfs none root/tmp && cp \"$0\" root/tmp/lockprof && cd /
        exec chroot \"$OLDPWD/root\" /tmp/lockprof record -o /tmp/x.data -a -d 10ms";
    let output = in_own_mounts(script, place.path());
    let error = "cannot read /sys/devices/system/cpu/online: No such file or directory";
    let hints = ["/sys is not mounted here, as in a bare chroot", "mount -t sysfs sysfs /sys"];
    assert_said(&output, 2, error, &hints);
}

/// Whether kernel symbols are hidden from root without these capabilities: `kallsyms_show_value` in
/// `kernel/kallsyms.c`.
fn hidden(without: &str) -> bool {
    let settings = Sysctls::read();
    let open = settings.kptr_restrict == Some(0)
        && settings.perf_event_paranoid.is_some_and(|level| level <= 1);
    without == "-syslog" && !open
}

/// Each capability by itself: which of them recording needs, and that a missing one is said.
#[test]
fn root_records_with_either_right_to_trace_and_says_what_the_lack_of_others_costs() {
    if !may_record() || Sysctls::read().perf_event_paranoid.is_none_or(|level| level < 0) {
        return;
    }
    for (without_these, records) in [
        ("-sys_admin", true),
        ("-perfmon", true),
        ("-ipc_lock", true),
        ("-syslog", true),
        ("-sys_admin,-perfmon", false),
        ("-all", false),
    ] {
        let place = directory();
        let output = record(&without(without_these), &["-a", "-d", "50ms"], place.path());
        let said = String::from_utf8_lossy(&output.stderr);
        if records {
            assert_eq!(output.status.code(), Some(0), "{without_these}: {said}");
            assert_eq!(files_in(place.path()), ["lockprof.data"], "{without_these}");
            let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
            let told = words.contains("and this user has no CAP_SYSLOG (sudo sysctl");
            assert_eq!(told, hidden(without_these), "{without_these}: {said}");
        } else {
            assert!(said.contains("no CAP_PERFMON"), "{without_these}: {said}");
            assert!(!output.status.success(), "{without_these}");
        }
    }
}

#[test]
fn in_a_user_namespace_the_user_is_told_that_capabilities_do_not_reach_perf() {
    if !may_record() || Sysctls::read().perf_event_paranoid.is_none_or(|level| level < 0) {
        return;
    }
    let place = directory();
    let before =
        ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"];
    let output = record(&before, &["--no-cpu", "--", "touch", "mark"], place.path());
    if String::from_utf8_lossy(&output.stderr).starts_with("unshare:") {
        return aloud::skipped("this machine makes no user namespaces");
    }
    let hints = ["lives in a user namespace", "sudo lockprof record", "`lockprof doctor`"];
    assert_said(&output, 125, "cannot trace lock contention: perf_event_open(", &hints);
    assert_eq!(files_in(place.path()), [""; 0], "the command has not run");
}
