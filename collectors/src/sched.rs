//! The sched collector: who wakes whom, for the question who lets a waiter go.
//!
//! In: the format of `sched:sched_waking`. Out: one event spec with kernel callchain; the waker's
//! stack says whether it released a lock. What it costs: a record of about 250 bytes for each waking
//! on the machine, and an unwind under the `pi_lock` of the task that is woken.
//!
//! Only a system-wide event sees wakers outside the target: kworkers let go of locks that the target
//! waits for. `sched_waking` fires in the waker, always; `sched_wakeup` on the CPU of the task that is
//! woken, where the waker's stack is gone.

use crate::Collector;
use crate::perf::attr::flag;
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// The tracepoint.
pub const WAKING: &str = "sched:sched_waking";

/// Records wakings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sched;

impl Collector for Sched {
    fn name(&self) -> &'static str {
        "sched"
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        &[WAKING]
    }

    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let mut waking = EventSpec::tracepoint(formats.get(WAKING)?).with_callchain();
        waking.attr.flags |= flag::EXCLUDE_CALLCHAIN_USER;
        Ok(vec![waking])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::attr::sample;

    #[test]
    fn a_waking_carries_the_wakers_kernel_stack_and_no_more() {
        let text = "name: sched_waking\nID: 320\nformat:\n\
            \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        let formats: Tracepoints =
            Tracepoints::parse("sched", text.as_bytes()).into_iter().collect();
        let events = Sched.events(&formats).unwrap();
        let [waking] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((waking.name.as_str(), waking.attr.config), (WAKING, 320));
        assert!(waking.attr.samples(sample::CALLCHAIN | sample::RAW));
        assert!(waking.attr.has(flag::EXCLUDE_CALLCHAIN_USER));
    }

    #[test]
    fn a_kernel_without_the_tracepoint_is_told_by_name() {
        let error = Sched.events(&Tracepoints::default()).unwrap_err();
        assert!(error.to_string().contains(WAKING), "{error}");
    }
}
