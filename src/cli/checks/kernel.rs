//! What the kernel has: version and rung, tracepoints, counters, types.
//!
//! In: [`Facts`]. Out: [`Check`]s.

use lockprof_collectors::cpu::CpuEvent;

use super::{Check, Facts};

/// The kernel that brought `lock:contention_begin` and `_end`.
pub(super) const CONTENTION_EVENTS: (u32, u32) = (5, 19);
/// The kernel that brought `lock:contended_release`.
const RELEASE_EVENT: (u32, u32) = (7, 2);

/// Shows whether a kernel that is young enough was built without the tracepoints.
pub(super) const LOOK_AT_CONFIG: &str =
    "grep -E 'CONFIG_(PERF_EVENTS|FTRACE|EVENT_TRACING)=' /boot/config-$(uname -r)";

const NEWER: &str = "boot Linux 5.19 or later";

pub(super) fn version(facts: &Facts) -> Check {
    let release = &facts.release;
    match facts.version() {
        Some(version) if version >= RELEASE_EVENT || facts.release_event == Some(true) => {
            Check::ok(
                "kernel",
                format!("{release}: contention events, contended_release (Linux 7.2 and later)"),
            )
        }
        Some(version) if version >= CONTENTION_EVENTS || facts.contention == Some(true) => {
            Check::ok("kernel", format!("{release}: contention events (Linux 5.19 and later)"))
        }
        Some(_) => Check::warn(
            "kernel",
            format!(
                "{release}: no contention events, which came with Linux 5.19; waits are told by \
                 sleeps in lock code and by CPU samples, without addresses of locks"
            ),
            NEWER,
        ),
        None => Check::warn("kernel", format!("{release:?} is no version that is known"), NEWER),
    }
}

pub(super) fn tracepoints(facts: &Facts) -> Check {
    const NAME: &str = "tracepoints";
    match facts.contention {
        Some(true) => Check::ok(NAME, "lock:contention_begin and lock:contention_end"),
        Some(false) if facts.version().is_some_and(|version| version < CONTENTION_EVENTS) => {
            let found = "no lock:contention_begin: this kernel is older than Linux 5.19; \
                         sched:sched_switch is recorded in its place";
            Check::warn(NAME, found, NEWER)
        }
        Some(false) => {
            let found = "no lock:contention_begin: this kernel was built without \
                         CONFIG_EVENT_TRACING; its configuration tells";
            Check::fail(NAME, found, LOOK_AT_CONFIG)
        }
        None => {
            let found = "unknown: they are looked up in tracefs, which cannot be read";
            Check::warn(NAME, found, "see tracefs")
        }
    }
}

pub(super) fn pmu(facts: &Facts) -> Check {
    const NAME: &str = "pmu";
    match facts.cpu_event {
        Some(CpuEvent::Cycles) => Check::ok(NAME, "hardware cycles count: CPU samples are exact"),
        Some(CpuEvent::CpuClock) => Check::warn(
            NAME,
            "no hardware cycles that count; CPU samples come from cpu-clock, a timer: where \
             interrupts are off they come late, when these are turned on again (skid)",
            "in a virtual machine, give it the host's counters: qemu -cpu host,pmu=on",
        ),
        None => {
            Check::warn(NAME, "unknown: no event may be opened to try it", "see perf_event_open")
        }
    }
}

pub(super) fn btf(facts: &Facts) -> Check {
    let found = if facts.btf {
        "/sys/kernel/btf/vmlinux"
    } else {
        "none (CONFIG_DEBUG_INFO_BTF); recording does not need it"
    };
    Check::ok("btf", found)
}
