//! The sideband: which tasks and kernel symbols come and go.
//!
//! In: what of it is wanted. Out: one dummy event, which never takes a sample. Always the last event
//! of a plan. What it costs: a record for each fork, exit, exec and rename of a task; and, with
//! [`Sideband::mmaps`], one of about 110 bytes for each executable mapping that is made or changed. That record is written while `mmap_lock` is held and
//! makes an mprotect(2) of 1.8 us one of 2.6 us; and the kernel prepares it for every other mapping
//! of every process on the machine too (0.2 us). So maps are read from `/proc` at the start and after
//! each exec, and `mmaps` is for recordings whose user frames matter.

use crate::Collector;
use crate::perf::attr::{event_type, flag, software};
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// Records tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sideband {
    /// Executable mappings as they are made. Without it maps are known from `/proc` only.
    pub mmaps: bool,
}

impl Collector for Sideband {
    fn name(&self) -> &'static str {
        "sideband"
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        &[]
    }

    fn events(&self, _: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let mut spec = EventSpec::new("dummy", event_type::SOFTWARE, software::DUMMY);
        // A period, so that perf does not take it for an event whose period is unknown.
        spec.attr.sample_period = 1;
        spec.attr.flags |= flag::COMM | flag::COMM_EXEC | flag::TASK | flag::KSYMBOL;
        // mmap2 is an option of mmap: it says in which form. Never mmap_data, which adds every
        // anonymous mapping.
        spec.attr.flags |= if self.mmaps { flag::MMAP | flag::MMAP2 } else { 0 };
        Ok(vec![spec])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_recorded_only_when_wanted() {
        let flags =
            |mmaps| Sideband { mmaps }.events(&Tracepoints::default()).unwrap()[0].attr.flags;
        assert_eq!(flags(true) & !flags(false), flag::MMAP | flag::MMAP2);
        assert_eq!(flags(true) & flag::MMAP_DATA, 0);
    }
}
