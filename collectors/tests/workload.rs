//! The exec stub, as a process of its own: this test binary, called again.
//!
//! In: `EXE --exact --nocapture -- stub FD COMMAND...`, which libtest takes for names of tests to
//! run; only `stub` is one.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;

use lockprof_collectors::workload::{Workload, WorkloadError, exec_stub};

fn stub_command() -> Vec<OsString> {
    let exe = std::env::current_exe().unwrap().into_os_string();
    let mut command = vec![exe];
    command.extend(["--exact", "--nocapture", "--", "stub"].map(OsString::from));
    command
}

fn start(words: &[&str]) -> Workload {
    let command: Vec<OsString> = words.iter().map(OsString::from).collect();
    Workload::start(&stub_command(), &command).unwrap()
}

/// The fd that stands on the stub's command line.
fn gate_fd(workload: &Workload) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", workload.pid())).unwrap();
    let mut words = line.split(|byte| *byte == 0).skip_while(|word| *word != b"stub");
    String::from_utf8(words.nth(1).unwrap().to_vec()).unwrap()
}

#[test]
fn stub() {
    let mut args = std::env::args_os().skip_while(|arg| arg != "--").skip(2);
    if let Some(fd) = args.next() {
        let command: Vec<OsString> = args.collect();
        exec_stub(fd.to_str().unwrap().parse().unwrap(), &command);
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_told_with_its_name_and_the_shells_status() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    let cases = [
        ("no-such-command-anywhere", 127, "No such file or directory"),
        (plain.to_str().unwrap(), 126, "Permission denied"),
        ("/", 126, "Permission denied"),
    ];
    for (program, status, reason) in cases {
        let error = start(&[program, "argument"]).release().unwrap_err();
        assert!(matches!(error, WorkloadError::Exec { .. }), "{program}: {error:?}");
        assert_eq!(error.exit_status(), status, "{program}");
        let text = error.to_string();
        assert!(text.contains(program) && text.contains(reason), "{text}");
    }
}

#[test]
fn the_command_runs_under_the_pid_that_was_told_with_its_arguments_and_no_fd_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let script = r#"echo "$$ $1" >"$2"; ls -l /proc/$$/fd >>"$2""#;
    let mut workload = start(&["sh", "-c", script, "sh", "a b", out.to_str().unwrap()]);
    assert!(!out.exists(), "it waits for its release");
    let gate =
        fs::read_link(format!("/proc/{}/fd/{}", workload.pid(), gate_fd(&workload))).unwrap();
    let gate = gate.into_os_string().into_string().unwrap();
    workload.release().unwrap();
    assert_eq!(workload.wait().unwrap(), 0);
    let said = fs::read_to_string(out).unwrap();
    let (first, fds) = said.split_once('\n').unwrap();
    assert_eq!(first, format!("{} a b", workload.pid()));
    let ours: Vec<&str> =
        fds.lines().filter(|fd| fd.contains(&gate) || fd.contains("pidfd")).collect();
    assert!(fds.contains(" -> ") && ours.is_empty(), "{ours:?}");
}

#[test]
fn a_stub_whose_recorder_dies_does_not_run_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let workload = start(&["touch", mark.to_str().unwrap()]);
    drop(workload);
    assert!(!mark.exists());
}
