//! From errors and facts to hints.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use lockprof::cli::checks::{Addresses, Facts, Tracing, hint, hint_with, output_hint};
use lockprof_collectors::perf::SyscallError;
use lockprof_collectors::perf::session::SessionError;
use lockprof_collectors::procfs::sysctl::{Capabilities, Sysctls};
use lockprof_collectors::procfs::tracefs::TracefsError;
use lockprof_collectors::workload::WorkloadError;

use crate::machine::{EACCES, ENOENT, ENOSYS, EPERM, ROOT, SYSLOG, machine, refused, user};

#[test]
fn the_hint_after_a_refusal_is_the_one_of_the_sketch() {
    let mut facts = user();
    facts.tracefs = machine().tracefs;
    facts.kallsyms = Addresses::Visible;
    let expected = "\
perf_event_paranoid is 2 and this user has no CAP_PERFMON. Run with sudo, or:
        sudo sysctl kernel.perf_event_paranoid=-1
      `lockprof doctor` lists everything that recording needs.";
    for errno in [EPERM, EACCES] {
        assert_eq!(hint_with(&refused(errno), &facts).as_deref(), Some(expected));
    }
}

#[test]
fn one_hint_names_all_that_is_missing_with_every_command() {
    let mut facts = user();
    facts.sysctls.kptr_restrict = Some(1);
    let closed = TracefsError::NoPermission { path: "/sys/kernel/tracing".into() };
    let text = hint_with(&closed, &facts).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "perf_event_paranoid is 2 and this user has no CAP_PERFMON",
        "/sys/kernel/tracing is closed to this user",
        "kptr_restrict is 1",
        "Run with sudo, or:",
    ] {
        assert!(words.contains(sentence), "{text}\nlacks {sentence:?}");
    }
    for command in [
        "\n        sudo sysctl kernel.perf_event_paranoid=-1\n",
        "\n        sudo sysctl kernel.kptr_restrict=0\n",
        "\n        sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing\n",
    ] {
        assert!(text.contains(command), "{text}\nlacks {command:?}");
    }
    assert_eq!(text.matches("perf_event_paranoid=-1").count(), 1, "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn a_refusal_that_settings_do_not_explain_is_a_containers() {
    let facts = |seccomp, user_namespace, lockdown, capabilities| Facts {
        seccomp,
        user_namespace,
        lockdown,
        capabilities: Some(Capabilities(capabilities)),
        ..machine()
    };
    let text = |facts| hint_with(&refused(EPERM), &facts).unwrap();
    const DOCKER: &str = "docker run --security-opt seccomp=unconfined --cap-add PERFMON";
    for (facts, said) in [
        (facts(true, false, false, ROOT), "seccomp filter stands between"),
        (facts(false, false, false, ROOT), "likely reason"),
        (facts(true, false, false, SYSLOG), "has no CAP_PERFMON"),
    ] {
        let text = text(facts);
        assert!(text.contains(said) && text.contains(DOCKER), "{text}");
        assert!(text.contains("/sys/kernel/tracing:/sys/kernel/tracing"), "{text}");
    }
    assert!(text(facts(true, true, false, ROOT)).contains("user namespace"));
    assert!(text(facts(true, true, true, ROOT)).contains("lockdown=integrity"));
    let no_call = hint_with(&refused(ENOSYS), &machine()).unwrap();
    assert!(no_call.contains("seccomp") && no_call.contains(DOCKER), "{no_call}");
    let permissive = Facts {
        sysctls: Sysctls { perf_event_paranoid: Some(-1), ..machine().sysctls },
        tracefs: machine().tracefs,
        ..user()
    };
    let text = hint_with(&refused(EPERM), &permissive).unwrap();
    assert!(text.contains("seccomp") && !text.contains("sysctl"), "{text}");
}

#[test]
fn every_error_of_recording_that_can_be_mended_has_its_hint() {
    let old = Facts { release: "5.10.0-33-amd64".into(), ..machine() };
    let none = || TracefsError::NoTracepoint { name: "lock:contention_begin".into() };
    let source = || SyscallError { call: "perf_event_open(x)".into(), errno: 24 };
    let files = SessionError::TooManyFiles { limit: 1024, source: source() };
    let memory = SessionError::LockedMemory { kib: 2052, cpu: 0 };
    let tight = Facts { memlock: Some(0), ..user() };
    let bare = Facts { tracefs: Tracing::NotMounted { known: true }, ..user() };
    let boxed = Facts { capabilities: Some(Capabilities(0)), ..machine() };
    let unknown = Facts { tracefs: Tracing::NotMounted { known: false }, ..machine() };
    let cases: [(&(dyn Error + 'static), &Facts, &str); 11] = [
        (&none(), &old, "came with Linux 5.19, and this is 5.10.0-33-amd64"),
        (&none(), &machine(), "CONFIG_EVENT_TRACING"),
        (&refused(ENOENT), &old, "5.19"),
        (&TracefsError::NotMounted, &bare, "sudo mount -t tracefs nodev /sys/kernel/tracing"),
        (&TracefsError::NotMounted, &boxed, "-v /sys/kernel/tracing:/sys/kernel/tracing"),
        (&TracefsError::NotMounted, &unknown, "CONFIG_TRACING"),
        (&files, &machine(), "sudo prlimit --pid $$ --nofile="),
        (&memory, &tight, "lockprof record -m 32 ..."),
        (&memory, &tight, "sudo sysctl kernel.perf_event_mlock_kb=4104"),
        (&SessionError::NoSuchTask { tasks: vec![1] }, &machine(), "ps -e"),
        (&SessionError::NoSuchCpu { cpus: vec![99] }, &machine(), "/cpu/online"),
    ];
    for (error, facts, said) in cases {
        let text = hint_with(error, facts).unwrap_or_default();
        assert!(text.contains(said), "{error}: {text:?} lacks {said:?}");
    }
    assert_eq!(hint_with(&SessionError::Poll { errno: 4 }, &machine()), None);
    assert_eq!(hint_with(&io::Error::other("x"), &machine()), None);
}

#[test]
fn a_cause_within_an_error_is_found() {
    let named = Attach(SessionError::NoSuchTask { tasks: vec![7] });
    assert!(hint_with(&named, &machine()).is_some_and(|text| text.contains("ps -e")));
    let stub = WorkloadError::Stub(io::Error::other("gone"));
    assert_eq!(hint_with(&stub, &machine()), None, "a stub that fails is nothing to mend");
}

#[derive(Debug, thiserror::Error)]
#[error("cannot attach")]
struct Attach(#[source] SessionError);

#[test]
fn commands_that_cannot_be_run_get_the_hint_that_their_file_calls_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("plain"), "#!/bin/sh\n").unwrap();
    std::fs::write(path("lost"), "#!/no/such/interpreter\n").unwrap();
    let failed = |program: PathBuf, errno| {
        let source = io::Error::from_raw_os_error(errno);
        let error = WorkloadError::Exec { program: OsString::from(program), source };
        hint(&error).unwrap_or_default()
    };
    const ENOEXEC: i32 = 8;
    let plain = path("plain").display().to_string();
    assert!(failed("no-such-command".into(), ENOENT).contains("in PATH?"));
    assert_eq!(failed(path("missing"), ENOENT), "is the path right?");
    assert!(failed(path("lost"), ENOENT).contains("interpreter"));
    assert!(failed(path("plain"), EACCES).ends_with(&format!("\n        chmod +x {plain}")));
    assert_eq!(failed(dir.path().into(), EACCES), "it is a directory.");
    assert!(failed("/bin/sh".into(), EACCES).contains("ls -l /bin/sh"));
    assert!(failed(path("plain"), ENOEXEC).contains(&format!("record -- sh {plain}")));
    assert!(failed(path("missing"), EACCES).starts_with("a directory on the way"));
}

#[test]
fn an_output_that_cannot_be_written_has_a_hint() {
    let hint_of = |path: &str, errno| {
        output_hint(Path::new(path), &io::Error::from_raw_os_error(errno)).unwrap_or_default()
    };
    const EROFS: i32 = 30;
    const ENOSPC: i32 = 28;
    assert!(hint_of("/no/such dir/x.data", ENOENT).contains("\n        mkdir -p '/no/such dir'"));
    for errno in [EACCES, EROFS] {
        assert!(hint_of("/proc/x", errno).contains("-o FILE"));
    }
    assert!(hint_of("/dev/full", ENOSPC).contains("free some space"));
    assert_eq!(hint_of("/x", 5), "");
}
