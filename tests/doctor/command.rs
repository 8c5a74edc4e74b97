//! The command itself, on this machine, with rights and mounts taken away.

use std::path::Path;
use std::process::{Command, Output};

use lockprof::cli::checks::mount_tracefs;
use lockprof_collectors::procfs::sysctl::Sysctls;
use lockprof_collectors::procfs::tracefs::Tracefs;
use serde_json::Value;

fn lockprof() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockprof"));
    command.arg("doctor").env("NO_COLOR", "1");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn doctor_prints_aligned_lines_and_json_that_agree() {
    let text = lockprof().output().unwrap();
    let json = lockprof().arg("--json").output().unwrap();
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["schema_version"], 1);
    let checks = document["checks"].as_array().unwrap();
    let lines = stdout(&text);
    let of = |level: &str| {
        let in_json = checks.iter().filter(|check| check["level"] == level).count();
        let in_text =
            lines.lines().filter(|line| line.starts_with(&format!("{level:4}  "))).count();
        assert_eq!(in_json, in_text, "{level}: {lines}");
        in_json
    };
    assert_eq!(of("ok") + of("warn") + of("fail"), checks.len());
    for output in [&text, &json] {
        assert_eq!(output.status.code(), Some(i32::from(of("fail") > 0)), "{lines}");
        assert!(output.stderr.is_empty());
    }
    assert!(lines.lines().last().unwrap().len() <= 100);
    assert!(lines.contains("\nverdict: "), "{lines}");
}

#[test]
fn every_line_is_in_place_for_a_program_too() {
    let output = lockprof().arg(env!("CARGO_BIN_EXE_lockprof")).output().unwrap();
    let lines = stdout(&output);
    assert!(lines.contains("\nok    debug file           "), "{lines}");
    for line in lines.lines().filter(|line| !line.starts_with("verdict")) {
        let column = line.char_indices().nth(27).map_or("", |(at, _)| &line[at..]);
        assert!(
            !column.starts_with(' ') && line.len() <= 100 || line.starts_with("        "),
            "{line}"
        );
    }
}

/// Skips aloud without root, which it takes to become somebody else.
fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        crate::aloud::skipped("only root can take rights and mounts away");
    }
    root
}

#[test]
fn an_ordinary_user_is_told_each_missing_right_and_its_command() {
    let paranoid = Sysctls::read().perf_event_paranoid;
    if !root() || paranoid.is_none_or(|level| level < 0) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("lockprof");
    std::fs::copy(env!("CARGO_BIN_EXE_lockprof"), &program).unwrap();
    open_to_all(dir.path());
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"])
        .arg(&program)
        .args(["doctor", "--json"])
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"], "fail");
    let checks = document["checks"].as_array().unwrap();
    let remedy = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        assert_eq!(check["level"], "fail", "{check}");
        check["remedy"].as_str().unwrap_or_default().to_owned()
    };
    for name in ["perf_event_paranoid", "perf_event_open"] {
        assert!(remedy(name).contains("sudo sysctl kernel.perf_event_paranoid=-1"), "{name}");
    }
    assert!(remedy("capabilities").contains("sudo lockprof"));
    assert!(remedy("disk space").contains("-o "), "nobody writes into /");
}

fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a shell script in mounts of its own; `$0` is what it should become.
fn in_own_mounts(script: &str, become_this: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script]).arg(become_this);
    command
}

#[test]
fn doctor_answers_without_proc_and_sys() {
    if !root() {
        return;
    }
    let hide = "mount -t tmpfs none /sys; mount -t tmpfs none /proc; exec \"$0\" doctor";
    let output = in_own_mounts(hide, Path::new(env!("CARGO_BIN_EXE_lockprof"))).output().unwrap();
    let lines = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for line in ["fail  tracefs", "warn  capabilities", "fail  kallsyms", "verdict: not ready"] {
        assert!(lines.contains(line), "{lines}\nlacks {line:?}");
    }
}

const INNER: &str = "MOUNT_TRACEFS_INNER";

#[test]
fn tracefs_is_mounted_once_when_it_is_missing() {
    if std::env::var_os(INNER).is_some() {
        return mount_in_here();
    }
    if !root() {
        return;
    }
    let name = "command::tracefs_is_mounted_once_when_it_is_missing";
    let hide = format!(
        "for place in /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/tracing; do
           umount $place 2>/dev/null || :
         done
         {INNER}=1 exec \"$0\" --exact {name} --nocapture"
    );
    let output = in_own_mounts(&hide, &std::env::current_exe().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", stdout(&output));
    assert!(stdout(&output).contains("mounted twice: no") || stdout(&output).contains("skipped"));
}

fn mount_in_here() {
    if Tracefs::find().is_ok() || !Path::new("/sys/kernel/tracing").is_dir() {
        crate::aloud::skipped(format_args!(
            "tracefs is mounted elsewhere, or this kernel has none"
        ));
        return;
    }
    let place = mount_tracefs().unwrap();
    assert_eq!(place, Some(Path::new("/sys/kernel/tracing")));
    assert_eq!(Tracefs::find().unwrap().root(), Path::new("/sys/kernel/tracing"));
    assert_eq!(mount_tracefs().unwrap(), None);
    println!("mounted twice: no");
}
