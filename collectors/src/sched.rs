//! The sched collector: who wakes whom, who sleeps where, and who has a CPU.
//!
//! In: which of its questions are asked. Out: up to three event specs.
//!
//! | event | answers | a record costs |
//! |---|---|---|
//! | `sched:sched_waking` with kernel callchain | who lets a waiter go, and where | 250 bytes, an unwind under `pi_lock` |
//! | `sched:sched_switch` of sleeping tasks, with both callchains | where tasks sleep | 300 bytes, an unwind |
//! | a dummy event for PERF_RECORD_SWITCH | who runs, who is runnable | 48 bytes, two for each switch |
//!
//! Only a system-wide event sees wakers outside the target: kworkers let go of locks that the target
//! waits for. `sched_waking` fires in the waker, always; `sched_wakeup` on the CPU of the task that is
//! woken, where the waker's stack is gone. Holders of locks may be anybody, too: so switches are recorded
//! system-wide. All go to rings of their own, because workloads that sleep and wake, or yield, all the
//! time can fill any ring.
//!
//! Who sleeps for a lock of user space is told by its user callchain alone: in the kernel all futexes look
//! alike. Walking it by frame pointers takes 1 us: `perf bench sched pipe`, which does nothing but sleep and
//! wake, keeps 91 % of what it does with kernel callchains, `hammer mmap-sem` all of it.

use crate::Collector;
use crate::perf::attr::{event_type, flag, software};
use crate::perf::plan::{EventSpec, Lane};
use crate::procfs::tracefs::{TracefsError, Tracepoints};

/// The tracepoint of wakings.
pub const WAKING: &str = "sched:sched_waking";

/// The tracepoint of switches.
pub const SWITCH: &str = "sched:sched_switch";

/// Not running and not preempted (`prev_state` of `include/trace/events/sched.h`): the task sleeps.
const SLEEPS: &str = "prev_state != 0 && prev_state != 256";

/// Records wakings and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sched {
    /// Who lets a waiter go: wakings carry the waker's kernel stack.
    pub blame: bool,
    /// Who has a CPU, who is runnable, who sleeps: all context switches, and wakings.
    pub phases: bool,
    /// Where tasks sleep: the stack of each that goes to sleep, user part included.
    pub sleeps: bool,
}

impl Sched {
    /// Its name.
    pub const NAME: &'static str = "sched";

    /// Whether it asks anything.
    pub fn is_empty(self) -> bool {
        !(self.blame || self.phases || self.sleeps)
    }
}

impl Collector for Sched {
    fn name(&self) -> &'static str {
        Sched::NAME
    }

    fn tracepoints(&self) -> &'static [&'static str] {
        match (self.blame || self.phases, self.sleeps) {
            (true, true) => &[WAKING, SWITCH],
            (true, false) => &[WAKING],
            (false, true) => &[SWITCH],
            (false, false) => &[],
        }
    }

    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError> {
        let mut events = Vec::new();
        if self.blame || self.phases {
            let waking = EventSpec::tracepoint(formats.get(WAKING)?).everywhere();
            events.push(if self.blame { with_kernel_stack(waking) } else { waking });
        }
        if self.sleeps {
            let sleep = EventSpec::tracepoint(formats.get(SWITCH)?).with_filter(SLEEPS);
            events.push(sleep.with_callchain());
        }
        if self.phases {
            events.push(switches());
        }
        events.iter_mut().for_each(|event| event.lane = Lane::Flood);
        Ok(events)
    }
}

fn with_kernel_stack(event: EventSpec) -> EventSpec {
    let mut event = event.with_callchain();
    event.attr.flags |= flag::EXCLUDE_CALLCHAIN_USER;
    event
}

fn switches() -> EventSpec {
    let mut spec = EventSpec::new("dummy", event_type::SOFTWARE, software::DUMMY).everywhere();
    // A period, so that perf does not take it for an event whose period is unknown.
    spec.attr.sample_period = 1;
    spec.attr.flags |= flag::CONTEXT_SWITCH;
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::attr::sample;

    const ALL: Sched = Sched { blame: true, phases: true, sleeps: true };

    fn formats() -> Tracepoints {
        let format = |(name, id)| {
            let text = format!(
                "name: {name}\nID: {id}\nformat:\n\
                 \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
            );
            Tracepoints::parse("sched", text.as_bytes())
        };
        [("sched_waking", 320), ("sched_switch", 321)].into_iter().flat_map(format).collect()
    }

    #[test]
    fn each_question_opens_its_events() {
        let words = |sched: Sched| {
            let events = sched.events(&formats()).unwrap();
            let word = |event: &EventSpec| {
                let stack = if event.attr.samples(sample::CALLCHAIN) { "+stack" } else { "" };
                format!("{}{stack}", event.name.trim_start_matches("sched:"))
            };
            events.iter().map(word).collect::<Vec<_>>().join(" ")
        };
        let asked = |blame, phases, sleeps| Sched { blame, phases, sleeps };
        for (sched, expected) in [
            (ALL, "sched_waking+stack sched_switch+stack dummy"),
            (asked(false, true, true), "sched_waking sched_switch+stack dummy"),
            (asked(true, false, false), "sched_waking+stack"),
            (asked(false, true, false), "sched_waking dummy"),
            (asked(false, false, true), "sched_switch+stack"),
            (asked(false, false, false), ""),
        ] {
            assert_eq!(words(sched), expected, "{sched:?}");
            assert_eq!(sched.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn wakers_and_switches_are_seen_everywhere_and_sleeps_of_the_target() {
        let events = ALL.events(&formats()).unwrap();
        let [waking, sleep, switches] = events.as_slice() else { panic!("{events:?}") };
        assert!(waking.everywhere && switches.everywhere && !sleep.everywhere);
        assert_eq!((waking.attr.config, sleep.attr.config), (320, 321));
        assert_eq!(sleep.filter.as_deref(), Some(SLEEPS));
        assert!(waking.attr.has(flag::EXCLUDE_CALLCHAIN_USER));
        assert!(!sleep.attr.has(flag::EXCLUDE_CALLCHAIN_USER));
        assert!(switches.attr.has(flag::CONTEXT_SWITCH) && !switches.attr.has(flag::TASK));
        assert!(events.iter().all(|event| event.lane == Lane::Flood));
    }

    #[test]
    fn a_kernel_without_the_tracepoint_is_told_by_name() {
        let error = ALL.events(&Tracepoints::default()).unwrap_err();
        assert!(error.to_string().contains(WAKING), "{error}");
    }
}
