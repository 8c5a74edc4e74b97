//! From facts to checks: a table for each.

use std::path::Path;

use lockprof::cli::checks::{
    Addresses, Check, Debug, Facts, Level, Program, Space, Tracing, checks,
};
use lockprof_collectors::cpu::CpuEvent;
use lockprof_collectors::procfs::sysctl::{Capabilities, Sysctls};

use crate::machine::{IPC_LOCK, PERFMON, ROOT, SYS_ADMIN, SYSLOG, machine, user};

fn check(facts: &Facts, name: &str) -> Check {
    let all = checks(facts);
    all.into_iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

/// Name, level, part of what was found, part of the remedy.
type Case<'a> = (Facts, &'a str, Level, &'a str, &'a str);

fn assert_cases(cases: impl IntoIterator<Item = Case<'static>>) {
    for (at, (facts, name, level, found, remedy)) in cases.into_iter().enumerate() {
        let check = check(&facts, name);
        assert_eq!(check.level, level, "case {at}: {check:?}");
        assert!(check.found.contains(found), "case {at}: {check:?} lacks {found:?}");
        let mends = check.remedy.unwrap_or_default();
        assert!(mends.contains(remedy), "case {at}: {mends:?} lacks {remedy:?}");
        assert_eq!(level == Level::Ok, mends.is_empty(), "case {at}: {mends:?}");
    }
}

#[test]
fn a_machine_that_has_everything_passes_every_check() {
    for check in checks(&machine()) {
        assert_eq!(
            (check.level, check.remedy),
            (Level::Ok, None),
            "{}: {}",
            check.name,
            check.found
        );
    }
}

#[test]
fn the_kernel_line_names_the_rung_of_every_version() {
    let kernel = |release: &str, contention, release_event| Facts {
        release: release.into(),
        contention,
        release_event,
        ..machine()
    };
    use Level::{Fail, Ok, Warn};
    assert_cases([
        (kernel("7.2.0", Some(true), Some(true)), "kernel", Ok, "contended_release", ""),
        (kernel("7.2.8-rt1", None, None), "kernel", Ok, "Linux 7.2", ""),
        (kernel("10.0.1", None, None), "kernel", Ok, "Linux 7.2", ""),
        (kernel("6.1.0-32-amd64", Some(true), Some(false)), "kernel", Ok, "5.19 and later", ""),
        (kernel("5.19.0", None, None), "kernel", Ok, "contention events", ""),
        (kernel("5.14.0-503.el9", Some(true), Some(false)), "kernel", Ok, "contention", ""),
        (
            kernel("5.10.0-33", Some(false), Some(false)),
            "kernel",
            Warn,
            "came with Linux 5.19",
            "5.19",
        ),
        (kernel("5.18.19", None, None), "kernel", Warn, "by sleeps in lock code", "boot"),
        (kernel("weird", None, None), "kernel", Warn, "weird", "boot"),
        (
            kernel("5.10.0-33", Some(false), None),
            "tracepoints",
            Warn,
            "sched_switch is recorded in its place",
            "boot",
        ),
        (kernel("6.1.0", Some(false), None), "tracepoints", Fail, "CONFIG_EVENT_TRACING", "grep"),
        (kernel("6.1.0", None, None), "tracepoints", Warn, "unknown", "tracefs"),
    ]);
}

#[test]
fn perf_event_paranoid_binds_those_without_cap_perfmon() {
    let facts = |paranoid, capabilities| Facts {
        sysctls: Sysctls { perf_event_paranoid: paranoid, ..machine().sysctls },
        capabilities: Some(Capabilities(capabilities)),
        ..user()
    };
    const MEND: &str = "sudo sysctl kernel.perf_event_paranoid=-1";
    use Level::{Fail, Ok};
    let bound = [
        (0, "no data of tracepoints"),
        (1, "only their own processes, and no data"),
        (2, "outside the kernel"),
        (3, "nothing"),
        (4, "nothing"),
    ];
    assert_cases(bound.map(|(level, found)| {
        (facts(Some(level), SYSLOG | IPC_LOCK), "perf_event_paranoid", Fail, found, MEND)
    }));
    assert_cases([(facts(Some(-1), 0), "perf_event_paranoid", Ok, "every user", "")]);
    for rights in [PERFMON, SYS_ADMIN, ROOT] {
        let found = "does not bind this user";
        assert_cases([(facts(Some(4), rights), "perf_event_paranoid", Ok, found, "")]);
    }
    assert_cases([(facts(None, ROOT), "perf_event_paranoid", Fail, "CONFIG_PERF_EVENTS", "grep")]);
}

#[test]
fn capabilities_are_named_and_missed_only_when_settings_do_not_give_the_right() {
    let facts = |paranoid, capabilities: Option<u64>, root| Facts {
        sysctls: Sysctls { perf_event_paranoid: Some(paranoid), ..machine().sysctls },
        capabilities: capabilities.map(Capabilities),
        root,
        ..user()
    };
    const NAME: &str = "capabilities";
    let all = Some(PERFMON | SYSLOG | IPC_LOCK);
    use Level::{Fail, Ok, Warn};
    assert_cases([
        (facts(2, all, false), NAME, Ok, "CAP_PERFMON, CAP_SYSLOG, CAP_IPC_LOCK", ""),
        (facts(2, Some(ROOT), true), NAME, Ok, "CAP_SYS_ADMIN, CAP_SYSLOG", ""),
        (facts(2, Some(PERFMON), false), NAME, Ok, "no CAP_SYSLOG", ""),
        (facts(2, Some(0), false), NAME, Fail, "no CAP_PERFMON", "sudo lockprof record"),
        (facts(2, Some(SYSLOG), false), NAME, Fail, "no CAP_PERFMON", "sudo lockprof record"),
        (facts(2, Some(SYSLOG), true), NAME, Fail, "no CAP_PERFMON", "--cap-add PERFMON"),
        (facts(-1, Some(0), false), NAME, Ok, "none is needed", ""),
        (facts(2, None, false), NAME, Warn, "/proc/self/status", "mount -t proc"),
    ]);
}

#[test]
fn tracefs_is_mounted_opened_or_lacking() {
    let facts = |tracefs, capabilities| Facts {
        tracefs,
        capabilities: Some(Capabilities(capabilities)),
        ..machine()
    };
    const MOUNT: &str = "sudo mount -t tracefs nodev /sys/kernel/tracing";
    let closed = || Tracing::NoPermission("/sys/kernel/tracing/events/lock".into());
    use Level::{Fail, Ok, Warn};
    assert_cases([
        (facts(Tracing::Readable("/t".into()), 0), "tracefs", Ok, "/t, readable", ""),
        (
            facts(closed(), 0),
            "tracefs",
            Fail,
            "may not read /sys/kernel/tracing/events/lock",
            "gid=$(id -g)",
        ),
        (facts(Tracing::NotMounted { known: true }, ROOT), "tracefs", Warn, "will mount it", MOUNT),
        (
            facts(Tracing::NotMounted { known: true }, PERFMON),
            "tracefs",
            Fail,
            "not mounted",
            MOUNT,
        ),
        (
            facts(Tracing::NotMounted { known: false }, ROOT),
            "tracefs",
            Fail,
            "CONFIG_TRACING",
            "grep",
        ),
        (
            facts(Tracing::Broken("cannot read x".into()), ROOT),
            "tracefs",
            Fail,
            "cannot read x",
            "ls",
        ),
    ]);
}

#[test]
fn hidden_symbols_are_mended_by_what_hides_them() {
    let facts = |kptr, paranoid, capabilities| Facts {
        kallsyms: Addresses::Hidden,
        sysctls: Sysctls {
            kptr_restrict: Some(kptr),
            perf_event_paranoid: Some(paranoid),
            ..machine().sysctls
        },
        capabilities: Some(Capabilities(capabilities)),
        ..user()
    };
    let remedy = |facts: Facts| check(&facts, "kallsyms").remedy.unwrap();
    let kptr = |value: i32| format!("sudo sysctl kernel.kptr_restrict={value}");
    let paranoid = "sudo sysctl kernel.perf_event_paranoid=-1".to_owned();
    assert_eq!(remedy(facts(0, 2, 0)), paranoid, "0 shows addresses to all who may sample");
    assert_eq!(remedy(facts(1, 1, 0)), kptr(0));
    assert_eq!(remedy(facts(1, 2, 0)), format!("{}\n{paranoid}", kptr(0)));
    assert_eq!(remedy(facts(2, 2, ROOT)), kptr(1), "1 shows them to CAP_SYSLOG");
    assert_eq!(remedy(facts(2, -1, 0)), kptr(0));
    let missing = Facts { kallsyms: Addresses::Missing, ..machine() };
    assert_cases([(missing, "kallsyms", Level::Fail, "without names", "CONFIG_KALLSYMS")]);
}

#[test]
fn counters_rings_files_and_disk() {
    let mib = 1 << 20;
    let space = |free, writable| Facts {
        space: Space { directory: "/d".into(), free, writable },
        ..machine()
    };
    let small = |memlock, mlock_kb, paranoid| Facts {
        memlock,
        sysctls: Sysctls {
            perf_event_mlock_kb: mlock_kb,
            perf_event_paranoid: Some(paranoid),
            ..machine().sysctls
        },
        ..user()
    };
    let files = |nofile, cpus| Facts { nofile, cpus: (0..cpus).collect(), ..machine() };
    use Level::{Fail, Ok, Warn};
    assert_cases([
        (Facts { cpu_event: Some(CpuEvent::CpuClock), ..machine() }, "pmu", Warn, "skid", "pmu=on"),
        (Facts { cpu_event: None, ..machine() }, "pmu", Warn, "unknown", "perf_event_open"),
        // Two rings of 512 pages and a state page of 4 KiB on each of four CPUs.
        (
            small(Some(16 * mib), Some(516), 2),
            "locked memory",
            Ok,
            "16,416 KiB, 18,448 KiB allowed",
            "",
        ),
        (small(Some(mib), Some(516), 2), "locked memory", Warn, "3,088 KiB allowed", "-m 64"),
        (
            small(Some(0), Some(516), 2),
            "locked memory",
            Warn,
            "2,064 KiB",
            "perf_event_mlock_kb=4104",
        ),
        (small(Some(0), None, 2), "locked memory", Warn, "0 KiB allowed", "perf_event_mlock_kb"),
        (small(Some(0), None, -1), "locked memory", Ok, "without limit", ""),
        (small(None, None, 2), "locked memory", Ok, "without limit", ""),
        (files(Some(1024), 64), "open files", Ok, "672 are needed on 64 CPUs, 1,024 allowed", ""),
        (files(Some(1024), 256), "open files", Fail, "2,592 are needed", "--nofile=4096"),
        (files(Some(20), 1), "open files", Fail, "on 1 CPU,", "sudo prlimit --pid $$ --nofile=64"),
        (files(None, 4096), "open files", Ok, "without limit", ""),
        (space(Some(1024 * mib), true), "disk space", Ok, "1,024 MiB free in /d", ""),
        (space(Some(1024 * mib - 1), true), "disk space", Warn, "only 1,023 MiB", "-o /var/tmp"),
        (space(Some(mib), true), "disk space", Fail, "only 1 MiB", "-o /var/tmp"),
        (space(Some(1024 * mib), false), "disk space", Fail, "may not write into /d", "-o"),
        (space(None, true), "disk space", Warn, "unknown", "-o"),
        (Facts { btf: false, ..machine() }, "btf", Ok, "does not need it", ""),
    ]);
}

#[test]
fn symbols_of_a_program_are_found_or_it_is_said_how_to_get_them() {
    let program = |debug| Facts {
        program: Some(Program { path: "/usr/bin/my prog".into(), debug }),
        ..machine()
    };
    let id = || Some("c59f0d26".to_owned());
    const NAME: &str = "debug file";
    use Level::{Fail, Ok, Warn};
    assert_cases([
        (program(Debug::Inside), NAME, Ok, "in itself", ""),
        (program(Debug::File("/usr/lib/debug/x".into())), NAME, Ok, "/usr/lib/debug/x", ""),
        (
            program(Debug::Missing { build_id: id() }),
            NAME,
            Warn,
            "build id c59f0d26",
            "find-dbgsym-packages '/usr/bin/my prog'",
        ),
        (
            program(Debug::Missing { build_id: id() }),
            NAME,
            Warn,
            "exported",
            "debuginfod-find debuginfo c59f0d26",
        ),
        (program(Debug::Missing { build_id: None }), NAME, Warn, "neither", "--build-id"),
        (program(Debug::NotElf), NAME, Warn, "no ELF file", "head -n 1 '/usr/bin/my prog'"),
        (program(Debug::Unreadable("gone".into())), NAME, Fail, "gone", "ls -ld"),
    ]);
}

#[test]
fn programs_are_looked_for_in_path_and_any_file_gives_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Program::find(&path).debug
    };
    assert_eq!(file("empty", b""), Debug::NotElf);
    assert_eq!(file("script", b"#!/bin/sh\n"), Debug::NotElf);
    let own = std::fs::read(env!("CARGO_BIN_EXE_lockprof")).unwrap();
    assert_eq!(file("own", &own), Debug::Inside);
    for cut in [4, 16, 63, 64, 65, 4096] {
        let debug = file("cut", &own[..cut]);
        assert!(matches!(debug, Debug::NotElf | Debug::Missing { .. }), "{cut}: {debug:?}");
    }
    assert!(matches!(Program::find(dir.path()).debug, Debug::Unreadable(_)));
    assert!(matches!(Program::find(Path::new("")).debug, Debug::Unreadable(_)));
    assert!(matches!(Program::find(Path::new("no-such-program")).debug, Debug::Unreadable(_)));
    assert!(Program::find(Path::new("sh")).path.is_absolute(), "found in PATH");
}
