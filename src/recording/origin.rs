//! All that is known before the first record, live and from a file alike.

use std::sync::Arc;

use lockprof_collectors::perf::attr::{Attr, sample};
use lockprof_collectors::procfs::tracefs::Format;
use serde::{Deserialize, Serialize};

use crate::model::Nanos;

/// One event of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDesc {
    /// What was asked of the kernel.
    pub attr: Attr,
    /// perf's name: `lock:contention_begin`, `cpu-clock`; empty when the file has none.
    pub name: String,
    /// Ids of its instances, one for each CPU or thread.
    pub ids: Vec<u64>,
    /// The layout of its raw record, for tracepoints.
    pub format: Option<Arc<Format>>,
}

/// The machine that was recorded. Unknown strings are empty, unknown numbers zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Host {
    pub hostname: String,
    /// Kernel release, `uname -r`.
    pub release: String,
    pub arch: String,
    pub cpu_desc: String,
    pub cpus_online: u32,
    pub cpus_available: u32,
    pub total_mem_kb: u64,
    pub page_size: u32,
}

/// The clock of the recording's timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// A `clockid_t`; `None` is perf's own clock.
    pub clockid: Option<i32>,
    /// The same moment in ns since 1970 and on the recording's clock.
    pub wall: Option<(u64, u64)>,
}

/// A file that was mapped while recording, or the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId {
    /// Up to 20 bytes.
    pub id: Vec<u8>,
    /// Path, or `[kernel.kallsyms]`.
    pub name: String,
    /// The kernel itself.
    pub kernel: bool,
}

/// Whom lockprof recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RecordedTarget {
    /// A command and everything it started.
    Command {
        /// Program and arguments.
        command: Vec<String>,
        /// Its process.
        pid: i32,
    },
    /// Processes that ran already.
    Processes {
        /// Their pids.
        pids: Vec<i32>,
    },
    /// The tasks of a cgroup and of those below it.
    Cgroup {
        /// From the mount of the hierarchy on.
        path: String,
    },
    /// Everything on these CPUs (`None`: on all).
    #[default]
    System,
}

/// What lockprof's recorder was told and found: the `origin` section, JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Version of lockprof that recorded.
    pub lockprof_version: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Whom it recorded.
    pub target: RecordedTarget,
    /// Recorded system-wide although a target was given: the target's tasks are picked out later.
    pub followed_system_wide: bool,
    /// CPUs of `-C`; empty for all.
    pub cpus: Vec<u32>,
    /// Names of the collectors.
    pub collectors: Vec<String>,
    /// Events, by their place among the attrs, whose records came through rings of their own.
    pub own_ring: Vec<u32>,
    /// Spinlocks were left out at record time.
    pub no_spin: bool,
    /// What measuring adds to a wait on this machine, in ns; `None` when it could not be measured.
    pub floor_ns: Option<u64>,
    /// Threads of the recorder itself.
    pub own_pids: Vec<i32>,
    /// sysctls that matter for reading the numbers.
    pub perf_event_paranoid: Option<i32>,
    /// See `perf_event_paranoid`.
    pub kptr_restrict: Option<i32>,
    /// What had to be done differently than asked or by default, in words for the user.
    pub notes: Vec<String>,
}

/// What is known when recording has ended: the `end` section, JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The command's exit status; 128 + signal when it was killed; `None` without a command or
    /// when it still ran.
    pub exit_status: Option<i32>,
    /// Records that the kernel counted as lost, by the fds' `PERF_FORMAT_LOST`.
    pub lost: u64,
    /// Bytes of records that a full disk had no room for: the recording ends before them.
    pub cut_bytes: u64,
    /// CPU time of the recorder's threads, in ns.
    pub recorder_cpu_ns: u64,
    /// CPUs online at the start and at the end differ: these came or went.
    pub cpus_changed: Vec<u32>,
    /// Wall time of the recording, in ns.
    pub elapsed_ns: u64,
}

/// All that is known before the first record. Live sources and files hand over the same struct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Events, in the order of the file's attrs.
    pub events: Vec<EventDesc>,
    /// The machine.
    pub host: Host,
    /// The clock.
    pub clock: Clock,
    /// The recorder's command line.
    pub command_line: Vec<String>,
    /// `/proc/kallsyms` of the recorded kernel, when the file carries it.
    pub kallsyms: Option<Vec<u8>>,
    /// Build ids of the kernel and of mapped files.
    pub build_ids: Vec<BuildId>,
    /// `(first, last)` sample time, when the file says so.
    pub sample_time: Option<(u64, u64)>,
    /// Present in lockprof's own recordings.
    pub settings: Option<Settings>,
    /// Present in lockprof's own recordings that were finished.
    pub end: Option<End>,
    /// Faults of the file that could be worked around, in words for the user.
    pub warnings: Vec<String>,
}

impl Origin {
    /// The recorded kernel's build id.
    pub fn kernel_build_id(&self) -> Option<&[u8]> {
        self.build_ids.iter().find(|b| b.kernel).map(|b| b.id.as_slice())
    }

    /// Whether samples say in which cgroup they were taken.
    pub fn has_cgroups(&self) -> bool {
        self.events.iter().any(|event| event.attr.samples(sample::CGROUP))
    }

    /// What measuring adds to each wait.
    pub fn floor(&self) -> Option<Nanos> {
        self.settings.as_ref()?.floor_ns.map(Nanos)
    }
}
