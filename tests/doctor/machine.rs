//! Machines made up of facts.

use lockprof::cli::checks::{Addresses, Facts, Space, Tracing};
use lockprof_collectors::cpu::CpuEvent;
use lockprof_collectors::perf::SyscallError;
use lockprof_collectors::perf::session::SessionError;
use lockprof_collectors::procfs::sysctl::{Capabilities, Sysctls};

pub(crate) const IPC_LOCK: u64 = 1 << 14;
pub(crate) const SYS_ADMIN: u64 = 1 << 21;
pub(crate) const SYSLOG: u64 = 1 << 34;
pub(crate) const PERFMON: u64 = 1 << 38;
pub(crate) const ROOT: u64 = 0x1ff_ffff_ffff;

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const EACCES: i32 = 13;
pub(crate) const ENOSYS: i32 = 38;

/// Root on a machine that has everything.
pub(crate) fn machine() -> Facts {
    Facts {
        release: "6.12.9-amd64".into(),
        cpus: vec![0, 1, 2, 3],
        page_size: 4096,
        root: true,
        capabilities: Some(Capabilities(ROOT)),
        sysctls: Sysctls {
            perf_event_paranoid: Some(2),
            kptr_restrict: Some(0),
            perf_event_mlock_kb: Some(516),
            ..Sysctls::default()
        },
        seccomp: false,
        user_namespace: false,
        lockdown: false,
        tracefs: Tracing::Readable("/sys/kernel/tracing".into()),
        contention: Some(true),
        release_event: Some(false),
        refusal: None,
        cpu_event: Some(CpuEvent::Cycles),
        kallsyms: Addresses::Visible,
        memlock: Some(8 << 20),
        nofile: Some(1 << 20),
        btf: true,
        space: Space { directory: "/root".into(), free: Some(1 << 40), writable: true },
        program: None,
    }
}

/// An ordinary user of that machine, before an event is tried.
pub(crate) fn user() -> Facts {
    Facts {
        root: false,
        capabilities: Some(Capabilities(0)),
        tracefs: Tracing::NoPermission("/sys/kernel/tracing".into()),
        contention: None,
        release_event: None,
        refusal: Some(refused(EACCES)),
        cpu_event: None,
        kallsyms: Addresses::Hidden,
        ..machine()
    }
}

pub(crate) fn refused(errno: i32) -> SessionError {
    let call = "perf_event_open(lock:contention_begin) on CPU 0".to_owned();
    SessionError::Syscall(SyscallError { call, errno })
}
