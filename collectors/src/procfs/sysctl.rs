//! What this process may do: sysctls of perf, capabilities.
//!
//! In: `/proc/sys/kernel/*` and `/proc/self/status`. Out: [`Sysctls`], [`Capabilities`]. Sources:
//! `Documentation/admin-guide/sysctl/kernel.rst`, `capabilities(7)`.

use super::{ProcError, number, read_as};

/// Settings of the kernel that decide what may be recorded; `None` where this kernel has no such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sysctls {
    /// What users without CAP_PERFMON may do: 2 only their own user code, -1 everything; Debian adds
    /// 3 (nothing).
    pub perf_event_paranoid: Option<i32>,
    /// Who sees kernel addresses: 0 with `perf_event_paranoid` below 2 all, 1 CAP_SYSLOG, 2 nobody.
    pub kptr_restrict: Option<i32>,
    /// KiB of rings that each CPU allows a user in addition to RLIMIT_MEMLOCK.
    pub perf_event_mlock_kb: Option<i64>,
    /// Samples a second above which the kernel throttles.
    pub perf_event_max_sample_rate: Option<i64>,
    /// Frames of a callchain.
    pub perf_event_max_stack: Option<i64>,
}

impl Sysctls {
    /// Reads all.
    pub fn read() -> Sysctls {
        Sysctls {
            perf_event_paranoid: sysctl("perf_event_paranoid"),
            kptr_restrict: sysctl("kptr_restrict"),
            perf_event_mlock_kb: sysctl("perf_event_mlock_kb"),
            perf_event_max_sample_rate: sysctl("perf_event_max_sample_rate"),
            perf_event_max_stack: sysctl("perf_event_max_stack"),
        }
    }
}

fn sysctl<T: std::str::FromStr>(name: &str) -> Option<T> {
    read_as(format!("/proc/sys/kernel/{name}"), number).ok()
}

/// The effective capabilities of a task, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Those of this process.
    pub fn own() -> Result<Capabilities, ProcError> {
        read_as("/proc/self/status", Capabilities::parse)
    }

    /// Reads `/proc/PID/status`.
    pub fn parse(status: &[u8]) -> Option<Capabilities> {
        let mut lines = status.split(|byte| *byte == b'\n');
        let mask = lines.find_map(|line| line.strip_prefix(b"CapEff:"))?.trim_ascii();
        u64::from_str_radix(std::str::from_utf8(mask).ok()?, 16).ok().map(Capabilities)
    }

    /// May use perf events as it likes: CAP_PERFMON (Linux 5.8), or CAP_SYS_ADMIN.
    pub fn perfmon(self) -> bool {
        self.has(CAP_PERFMON) || self.has(CAP_SYS_ADMIN)
    }

    /// May see kernel addresses.
    pub fn syslog(self) -> bool {
        self.has(CAP_SYSLOG)
    }

    /// May do what root may, in most places.
    pub fn sys_admin(self) -> bool {
        self.has(CAP_SYS_ADMIN)
    }

    /// May lock memory without limit.
    pub fn ipc_lock(self) -> bool {
        self.has(CAP_IPC_LOCK)
    }

    fn has(self, capability: u32) -> bool {
        self.0 & 1 << capability != 0
    }
}

// include/uapi/linux/capability.h
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(mask: &str) -> Capabilities {
        let status = format!("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t{mask}\nCapBnd:\t0\n");
        Capabilities::parse(status.as_bytes()).unwrap()
    }

    #[test]
    fn capabilities_are_bits_of_the_effective_mask() {
        let rights = |mask| {
            let own = capabilities(mask);
            [own.perfmon(), own.syslog(), own.sys_admin(), own.ipc_lock()]
        };
        assert_eq!(rights("0000000000000000"), [false; 4]);
        assert_eq!(rights("000001ffffffffff"), [true; 4]);
        assert_eq!(rights("0000004000000000"), [true, false, false, false], "CAP_PERFMON alone");
        assert_eq!(rights("0000000000200000"), [true, false, true, false], "CAP_SYS_ADMIN alone");
        assert_eq!(rights("0000000400000000"), [false, true, false, false], "CAP_SYSLOG alone");
    }

    #[test]
    fn a_status_without_the_mask_has_no_answer() {
        assert_eq!(Capabilities::parse(b"Name:\tx\nCapEff:\tmany\n"), None);
        assert_eq!(Capabilities::parse(b""), None);
        assert!(Capabilities::own().is_ok());
    }
}
