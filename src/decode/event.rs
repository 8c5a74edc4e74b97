//! Decoded records. Names and callchains borrow the record's bytes.

use super::RawChain;
use crate::model::{Context, Cpu, LockAddr, LockFlags, Nanos, TaskId, Timestamp};

/// One decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When; 0 for records without a time.
    pub time: Timestamp,
    /// On which CPU, when the record says so.
    pub cpu: Option<Cpu>,
    /// Process in the recorder's pid namespace; 0 when the record does not say.
    pub pid: i32,
    /// Thread in the recorder's pid namespace: 0 outside it, -1 while exiting.
    pub tid: i32,
    /// The id of the event's instance that wrote the record, one for each CPU and thread that it was
    /// opened on; of LOST and THROTTLE records the one that they speak of; 0 when a sample does not say,
    /// and in all other records.
    pub instance: u64,
    /// The cgroup in which a sample was taken; `None` when it does not say.
    pub cgroup: Option<u64>,
    /// Where the record stands in the file.
    pub offset: u64,
    /// What happened.
    pub body: Body<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// `lock:contention_begin`.
    ContentionBegin(Begin<'a>),
    /// `lock:contention_end`.
    ContentionEnd(End<'a>),
    /// `lock:contended_release`.
    ContendedRelease(Release<'a>),
    /// `sched:sched_waking`.
    SchedWaking(SchedWaking<'a>),
    /// `sched:sched_switch`.
    SchedSwitch(SchedSwitch<'a>),
    /// `mmap_lock:mmap_lock_*`.
    MmapLock(MmapLock<'a>),
    /// Another tracepoint; the index of its event in the recording.
    Tracepoint(usize, RawTask, RawChain<'a>),
    /// A sample of a clock or a counter.
    CpuSample(CpuSample<'a>),
    /// A file was mapped.
    Mmap(Mmap<'a>),
    /// A task has a new name.
    Comm(Comm<'a>),
    /// A task began.
    Fork(TaskChange),
    /// A task ended.
    Exit(TaskChange),
    /// A task was switched in or out, without a callchain.
    Switch(Switch),
    /// Kernel text came or went.
    Ksymbol(Ksymbol<'a>),
    /// A cgroup is there.
    Cgroup(Cgroup<'a>),
    /// Records were lost: the ring was full.
    Lost(u64),
    /// Samples were lost.
    LostSamples(u64),
    /// An event was stopped: for a moment by the kernel, which throttles what comes too often, or for
    /// good by the recorder.
    Throttle,
    /// A kind that is of no use here, or that nobody here knows.
    Other(u32),
}

impl Body<'_> {
    /// Who the raw record of a tracepoint says ran.
    #[inline]
    pub fn who(&self) -> Option<RawTask> {
        match self {
            Body::ContentionBegin(begin) => Some(begin.who),
            Body::ContentionEnd(end) => Some(end.who),
            Body::SchedWaking(waking) => Some(waking.who),
            // The task that leaves is the one that ran; its record is always of task context.
            Body::SchedSwitch(switch) => {
                Some(RawTask { task: switch.prev, context: Context::default() })
            }
            Body::Tracepoint(_, who, _) => Some(*who),
            _ => None,
        }
    }
}

/// Who a raw tracepoint record says ran, and in which context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawTask {
    /// `common_pid`.
    pub task: TaskId,
    /// From `common_flags`.
    pub context: Context,
}

/// `lock:contention_begin`: `void *lock_addr; unsigned int flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin<'a> {
    /// Who waits.
    pub who: RawTask,
    /// For which lock.
    pub lock: LockAddr,
    /// What kind of wait.
    pub flags: LockFlags,
    /// Where; empty for events opened without callchain.
    pub chain: RawChain<'a>,
}

/// `lock:contention_end`: `void *lock_addr; int ret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// Who waited.
    pub who: RawTask,
    /// For which lock.
    pub lock: LockAddr,
    /// 0, or a negative errno.
    pub ret: i32,
    /// Where; usually empty.
    pub chain: RawChain<'a>,
}

/// `lock:contended_release` (Linux 7.2 and later): `void *lock_addr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release<'a> {
    /// Who lets go.
    pub who: RawTask,
    /// Of which lock.
    pub lock: LockAddr,
    /// Where; empty for events opened without callchain.
    pub chain: RawChain<'a>,
}

/// `sched:sched_waking`: the waker's own record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedWaking<'a> {
    /// Who wakes.
    pub who: RawTask,
    /// Who is woken.
    pub woken: TaskId,
    /// The waker's stack.
    pub chain: RawChain<'a>,
}

/// `sched:sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedSwitch<'a> {
    /// Who leaves the CPU.
    pub prev: TaskId,
    /// In which state: 0 running, 256 preempted.
    pub prev_state: u64,
    /// Who comes.
    pub next: TaskId,
    /// The leaving task's stack.
    pub chain: RawChain<'a>,
}

/// `mmap_lock:mmap_lock_start_locking`, `_acquire_returned` and `_released`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapLock<'a> {
    /// Who locks.
    pub who: RawTask,
    /// Address of the `struct mm_struct`.
    pub mm: u64,
    /// What was done.
    pub step: MmapLockStep,
    /// For writing.
    pub write: bool,
    /// Where; usually empty.
    pub chain: RawChain<'a>,
}

/// What a task does with an mmap_lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmapLockStep {
    /// It asks for it.
    StartLocking,
    /// It has it.
    Acquired,
    /// It did not get it: a trylock, or a signal.
    NotAcquired,
    /// It gives it back.
    Released,
}

/// A sample of a clock or a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSample<'a> {
    /// The index of its event in the recording.
    pub event: usize,
    /// The instruction that was interrupted.
    pub ip: u64,
    /// How much time it stands for.
    pub weight: Nanos,
    /// The stack.
    pub chain: RawChain<'a>,
}

/// MMAP and MMAP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Process; -1 for the kernel.
    pub pid: i32,
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// Whether it maps kernel text.
    pub kernel: bool,
    /// Path, or `[vdso]`, `//anon`.
    pub name: &'a [u8],
    /// The file's build id, when the record carries it.
    pub build_id: Option<&'a [u8]>,
}

/// COMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Whether exec set it.
    pub exec: bool,
    /// The new name.
    pub name: &'a [u8],
}

/// FORK and EXIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskChange {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Parent's process.
    pub parent_pid: i32,
    /// Parent's thread.
    pub parent_tid: i32,
}

/// SWITCH and SWITCH_CPU_WIDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Whether the record's task leaves the CPU.
    pub out: bool,
    /// Whether it was preempted.
    pub preempted: bool,
}

/// CGROUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// As in samples.
    pub id: u64,
    /// From the mount of the hierarchy on.
    pub path: &'a [u8],
}

/// KSYMBOL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Whether it went away.
    pub unregister: bool,
    /// The symbol.
    pub name: &'a [u8],
}
