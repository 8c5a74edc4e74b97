//! The name of an event when the file has none: what perf calls it, by its attr.
//!
//! In: an attr. Out: the name in perf's list of events, or nothing for PMUs whose numbers differ
//! from machine to machine. Tracepoints are named by their formats, in `reader`.

use lockprof_collectors::perf::attr::{Attr, event_type};

/// `enum perf_hw_id` in its order.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// `enum perf_sw_ids` in its order.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// perf's name of a hardware or software event.
pub(super) fn of_attr(attr: &Attr) -> Option<&'static str> {
    let names: &[&str] = match attr.kind {
        event_type::HARDWARE => &HARDWARE,
        event_type::SOFTWARE => &SOFTWARE,
        _ => return None,
    };
    names.get(usize::try_from(attr.config).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockprof_collectors::perf::attr::software;

    #[test]
    fn software_and_hardware_events_have_perfs_names() {
        let name = |kind, config| of_attr(&Attr { kind, config, ..Attr::default() });
        assert_eq!(name(event_type::SOFTWARE, software::CPU_CLOCK), Some("cpu-clock"));
        assert_eq!(name(event_type::SOFTWARE, software::TASK_CLOCK), Some("task-clock"));
        assert_eq!(name(event_type::SOFTWARE, software::DUMMY), Some("dummy"));
        assert_eq!(name(event_type::HARDWARE, 0), Some("cycles"));
        assert_eq!(name(event_type::HARDWARE, u64::MAX), None);
        assert_eq!(name(event_type::TRACEPOINT, 0), None);
    }
}
