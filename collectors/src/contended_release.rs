//! The contended_release collector: who lets go of a lock that others wait for, and when.
//!
//! In: the format of `lock:contended_release` (Linux 7.2+). Out: one event spec. What it costs: a record
//! of 80 bytes each time; every reader that leaves while somebody waits writes one, about ten for each
//! wait. A callchain would be taken in the releaser, before it wakes anybody: without
//! [`ContendedRelease::stacks`] there is none, and the stack of the waking that follows says where it was.

use crate::Collector;
use crate::perf::attr::flag;
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// The tracepoint.
pub const RELEASE: &str = "lock:contended_release";

/// Records releases of locks that are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContendedRelease {
    /// With a kernel callchain each.
    pub stacks: bool,
}

impl Collector for ContendedRelease {
    fn name(&self) -> &'static str {
        "contended-release"
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        &[RELEASE]
    }

    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let release = EventSpec::tracepoint(formats.get(RELEASE)?);
        if !self.stacks {
            return Ok(vec![release]);
        }
        let mut release = release.with_callchain();
        release.attr.flags |= flag::EXCLUDE_CALLCHAIN_USER;
        Ok(vec![release])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::attr::sample;

    const FORMAT: &str = "name: contended_release\nID: 348\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n";

    fn event(stacks: bool) -> EventSpec {
        let formats: Tracepoints =
            Tracepoints::parse("lock", FORMAT.as_bytes()).into_iter().collect();
        let events = ContendedRelease { stacks }.events(&formats).unwrap();
        let [release] = events.as_slice() else { panic!("{events:?}") };
        release.clone()
    }

    #[test]
    fn a_release_has_a_stack_only_where_it_was_asked_for() {
        let plain = event(false);
        assert_eq!((plain.name.as_str(), plain.attr.config), (RELEASE, 348));
        assert!(plain.attr.samples(sample::RAW) && !plain.attr.samples(sample::CALLCHAIN));
        let with_stack = event(true);
        assert!(with_stack.attr.samples(sample::CALLCHAIN | sample::RAW));
        assert!(with_stack.attr.has(flag::EXCLUDE_CALLCHAIN_USER));
    }

    #[test]
    fn a_kernel_without_the_tracepoint_is_told_by_name() {
        let error = ContendedRelease::default().events(&Tracepoints::default()).unwrap_err();
        assert!(error.to_string().contains(RELEASE), "{error}");
    }
}
