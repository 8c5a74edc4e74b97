//! What a session is to open: events, on which tasks or CPUs, with rings of which size.
//!
//! In: event specs from the collectors, and the target. Out: a [`Plan`], which
//! [`Session::open`](super::session::Session::open) carries out.

use std::path::PathBuf;
use std::sync::Arc;

use super::attr::{Attr, event_type, flag, read_format, sample};
use crate::procfs::tracefs::Tracepoint;

/// Fields that every sample of every event starts with, so that id, task, time and CPU stand at the
/// same offsets whatever the event is.
pub const COMMON_SAMPLE: u64 =
    sample::IDENTIFIER | sample::IP | sample::TID | sample::TIME | sample::CPU;

/// An event to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// perf's name for it: `lock:contention_begin`, `cpu-clock`.
    pub name: String,
    /// What is asked of the kernel. Scope, clock and what the kernel does not know are put in when
    /// the session is opened.
    pub attr: Attr,
    /// A tracepoint's filter, in the language of ftrace.
    pub filter: Option<String>,
    /// The tracepoint.
    pub tracepoint: Option<Arc<Tracepoint>>,
    /// Into which of the rings of its CPU it writes.
    pub lane: Lane,
    /// It counts all that runs on the CPUs, whosever events the scope asks for, where that is allowed.
    pub everywhere: bool,
}

/// Which of the rings of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lane {
    /// The ring of all events but those of the other lane.
    #[default]
    Main,
    /// A ring of its own, for records that a workload can make come faster than anyone can read them:
    /// when it runs full, nothing else is lost.
    Flood,
}

impl EventSpec {
    /// An event with the common sample fields, disabled, with ids and lost samples counted.
    pub fn new(name: &str, kind: u32, config: u64) -> EventSpec {
        let attr = Attr {
            kind,
            config,
            sample_type: COMMON_SAMPLE,
            read_format: read_format::ID | read_format::LOST,
            flags: flag::DISABLED | flag::SAMPLE_ID_ALL | flag::WATERMARK,
            ..Attr::default()
        };
        let (lane, everywhere) = (Lane::Main, false);
        EventSpec { name: name.to_owned(), attr, filter: None, tracepoint: None, lane, everywhere }
    }

    /// Every hit of a tracepoint, with its raw record.
    pub fn tracepoint(tracepoint: &Arc<Tracepoint>) -> EventSpec {
        let config = tracepoint.format.id;
        let mut spec = EventSpec::new(&tracepoint.name(), event_type::TRACEPOINT, config);
        spec.attr.sample_period = 1;
        spec.attr.sample_type |= sample::RAW;
        spec.tracepoint = Some(Arc::clone(tracepoint));
        spec
    }

    /// The same with kernel and user callchain, as deep as `perf_event_max_stack` allows.
    pub fn with_callchain(mut self) -> EventSpec {
        self.attr.sample_type |= sample::CALLCHAIN;
        self
    }

    /// The same with a filter.
    pub fn with_filter(mut self, filter: &str) -> EventSpec {
        self.filter = Some(filter.to_owned());
        self
    }

    /// The same, counting everything where that is allowed.
    pub fn everywhere(mut self) -> EventSpec {
        self.everywhere = true;
        self
    }

    /// Whether it tells of tasks that come and go rather than taking samples.
    pub(crate) fn is_sideband(&self) -> bool {
        self.attr.has(flag::TASK)
    }
}

/// Lets each sample say in which cgroup it was taken, 8 bytes a sample, and the sideband which cgroups
/// are made.
pub fn record_cgroups(events: &mut [EventSpec]) {
    for event in events {
        event.attr.sample_type |= sample::CGROUP;
        event.attr.flags |= if event.is_sideband() { flag::CGROUP } else { 0 };
    }
}

/// Whose events are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that runs on these CPUs.
    SystemWide {
        /// CPU numbers.
        cpus: Vec<u32>,
    },
    /// The tasks of a cgroup and of those below it, on these CPUs.
    Cgroup {
        /// Its directory.
        directory: PathBuf,
        /// CPU numbers.
        cpus: Vec<u32>,
    },
    /// These tasks, wherever they run among these CPUs. Inherited, they cost about 9 us of CPU time
    /// for each event, CPU and thread that is created (a thread alone costs 30), where system-wide
    /// events cost nothing.
    Tasks {
        /// Task ids; a process is the id of each of its threads.
        tasks: Vec<i32>,
        /// CPU numbers.
        cpus: Vec<u32>,
        /// Threads and children that they create are counted too.
        inherit: bool,
        /// The kernel enables the events when the task executes its program.
        enable_on_exec: bool,
    },
}

impl Scope {
    /// CPUs that get a ring.
    pub fn cpus(&self) -> &[u32] {
        match self {
            Scope::SystemWide { cpus } | Scope::Cgroup { cpus, .. } | Scope::Tasks { cpus, .. } => {
                cpus
            }
        }
    }
}

/// Pages of a ring when nothing else is asked for: 2 MiB of 4 KiB pages.
///
/// A wake-up comes when half of it is full, or when the recorder's timeout passes. Measured at 6 MB/s
/// a CPU, on two CPUs with eighteen runnable tasks: 32 pages lost records, 128 did not; four times
/// that is room for bursts. Users without CAP_IPC_LOCK get no more than `perf_event_mlock_kb` for each
/// CPU (128 pages and the state page by default), and RLIMIT_MEMLOCK beyond it.
pub const DEFAULT_RING_PAGES: usize = 512;

/// What is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The events, in the order in which ids and attrs are listed. The sideband comes last: a task
    /// whose FORK is seen then has every event.
    pub events: Vec<EventSpec>,
    /// Whose.
    pub scope: Scope,
    /// Data pages of each ring; rounded up to a power of two.
    pub ring_pages: usize,
    /// The clock of all timestamps, a `clockid_t`; `None` is perf's own.
    pub clockid: Option<i32>,
}

impl Plan {
    /// The event as the scope and the clock want it.
    pub(crate) fn effective(&self, spec: &EventSpec) -> EventSpec {
        let mut spec = spec.clone();
        if let Scope::Tasks { inherit, enable_on_exec, .. } = self.scope
            && !spec.everywhere
        {
            spec.attr.flags |= if inherit { flag::INHERIT } else { 0 };
            spec.attr.flags |= if enable_on_exec { flag::ENABLE_ON_EXEC } else { 0 };
        }
        if let Some(clockid) = self.clockid {
            spec.attr.flags |= flag::USE_CLOCKID;
            spec.attr.clockid = clockid;
        }
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_and_clock_enter_every_attr() {
        let mut plan = Plan {
            events: Vec::new(),
            scope: Scope::Tasks {
                tasks: vec![1],
                cpus: vec![0],
                inherit: true,
                enable_on_exec: true,
            },
            ring_pages: 1,
            clockid: Some(libc::CLOCK_MONOTONIC),
        };
        let spec = EventSpec::new("dummy", event_type::SOFTWARE, 9);
        let attr = plan.effective(&spec).attr;
        assert!(attr.has(flag::INHERIT) && attr.has(flag::ENABLE_ON_EXEC));
        assert!(attr.has(flag::USE_CLOCKID));
        assert_eq!(attr.clockid, libc::CLOCK_MONOTONIC);
        let everywhere = plan.effective(&spec.clone().everywhere()).attr;
        assert!(!everywhere.has(flag::INHERIT) && !everywhere.has(flag::ENABLE_ON_EXEC));
        plan.scope = Scope::SystemWide { cpus: vec![0] };
        plan.clockid = None;
        assert_eq!(plan.effective(&spec), spec, "system-wide on perf's clock adds nothing");
    }
}
