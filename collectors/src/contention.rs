//! The contention collector: where a task began to wait for a kernel lock, and where it was done.
//!
//! In: the formats of `lock:contention_begin` and `lock:contention_end` (Linux 5.19+). Out: three
//! event specs. What it costs: one record of 80 bytes and a callchain for each wait begun, one of 80
//! bytes for each wait ended. Uncontended locks cost nothing: the tracepoints are in the slow paths.
//!
//! * `contention_end` has no callchain: a wait ends in the function in which it began. That is one
//!   unwind less for each wait, and a quarter less data. perf takes a wait's caller from its end, so
//!   [`Contention::perf_compat`] brings it back.
//! * A begin whose flags are exactly LCB_F_MUTEX (32) follows another begin of the same wait: the
//!   task gave up spinning and goes to sleep. It is an event of its own, without callchain: one
//!   unwind less while the mutex's `wait_lock` is held.
//! * The end comes first, so that it is enabled first: an end without a begin is recognised as such,
//!   a begin without an end would look like a wait that goes on.

use crate::Collector;
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// The begin tracepoint.
pub const BEGIN: &str = "lock:contention_begin";
/// The end tracepoint.
pub const END: &str = "lock:contention_end";

/// Bits of `contention_begin.flags`; source: `include/trace/events/lock.h`.
pub mod begin_flag {
    #![allow(missing_docs)]
    pub const SPIN: u32 = 1 << 0;
    pub const READ: u32 = 1 << 1;
    pub const WRITE: u32 = 1 << 2;
    pub const RT: u32 = 1 << 3;
    pub const PERCPU: u32 = 1 << 4;
    pub const MUTEX: u32 = 1 << 5;
}

/// First begins of a wait.
const FIRST_BEGIN: &str = "flags != 32";
/// Begins at which a mutex waiter stops spinning and goes to sleep.
const MUTEX_SLEEPS: &str = "flags == 32";
/// First begins of a wait, less those of spinlocks and rwlocks: SPIN, SPIN|READ, SPIN|WRITE. A mutex
/// that spins is SPIN|MUTEX and stays.
const FIRST_BEGIN_NO_SPIN: &str = "flags != 32 && flags != 1 && flags != 3 && flags != 5";

/// Records contention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Leaves spinlocks and rwlocks out in the kernel. Their ends still come, because
    /// `contention_end` carries no flags.
    pub no_spin: bool,
    /// Puts a callchain on `contention_end`, for `perf lock contention`.
    pub perf_compat: bool,
}

impl Collector for Contention {
    fn name(&self) -> &'static str {
        "contention"
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        &[BEGIN, END]
    }

    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let (begin, end) = (formats.get(BEGIN)?, formats.get(END)?);
        let end = EventSpec::tracepoint(end);
        let first = if self.no_spin { FIRST_BEGIN_NO_SPIN } else { FIRST_BEGIN };
        Ok(vec![
            if self.perf_compat { end.with_callchain() } else { end },
            EventSpec::tracepoint(begin).with_callchain().with_filter(first),
            EventSpec::tracepoint(begin).with_filter(MUTEX_SLEEPS),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::attr::{event_type, sample};

    const BEGIN_FORMAT: &str = "name: contention_begin\nID: 408\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n";
    const END_FORMAT: &str = "name: contention_end\nID: 407\nformat:\n\
        \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n";

    fn formats() -> Tracepoints {
        [("lock", BEGIN_FORMAT), ("lock", END_FORMAT)]
            .into_iter()
            .filter_map(|(system, text)| Tracepoints::parse(system, text.as_bytes()))
            .collect()
    }

    fn has_callchain(spec: &EventSpec) -> bool {
        spec.attr.samples(sample::CALLCHAIN)
    }

    #[test]
    fn only_the_first_begin_of_a_wait_has_a_callchain() {
        let events = Contention::default().events(&formats()).unwrap();
        let rows: Vec<_> =
            events.iter().map(|e| (e.attr.config, e.filter.as_deref(), has_callchain(e))).collect();
        assert_eq!(
            rows,
            [
                (407, None, false),
                (408, Some("flags != 32"), true),
                (408, Some("flags == 32"), false)
            ]
        );
        for event in &events {
            assert_eq!((event.attr.kind, event.attr.sample_period), (event_type::TRACEPOINT, 1));
            assert!(event.attr.samples(sample::RAW));
        }
    }

    #[test]
    fn perf_compat_adds_the_callchain_of_the_end() {
        let compat = Contention { perf_compat: true, ..Contention::default() };
        assert!(has_callchain(&compat.events(&formats()).unwrap()[0]));
    }

    #[test]
    fn no_spin_leaves_out_every_spinning_lock_and_no_mutex() {
        let spec = Contention { no_spin: true, ..Contention::default() };
        let events = spec.events(&formats()).unwrap();
        let filter = events[1].filter.clone().unwrap();
        let left_out: Vec<u32> = filter
            .split(" && ")
            .map(|term| term.trim_start_matches("flags != ").parse().unwrap())
            .collect();
        use begin_flag::{MUTEX, READ, SPIN, WRITE};
        assert_eq!(left_out, [MUTEX, SPIN, SPIN | READ, SPIN | WRITE]);
        assert_eq!(events[2].filter.as_deref(), Some("flags == 32"));
    }

    #[test]
    fn a_kernel_without_the_tracepoints_is_told_by_name() {
        let error = Contention::default().events(&Tracepoints::default()).unwrap_err();
        assert!(error.to_string().contains("lock:contention_begin"), "{error}");
    }
}
