//! The struct of a report. Public fields, no behaviour beyond what is derived from them.
//!
//! Names are raw words from the machine: renderers escape them.

use crate::model::{
    GroupBy, HandOverKind, LockAddr, LockKind, LockType, Nanos, QueueStat, SortKey, Stat,
    Uncharged, WaitStat,
};
use crate::report::blame_stacks::BlameStack;
use crate::report::chains::WaitChains;
use crate::report::thread_time::ThreadTime;
use crate::report::trust::Trust;
use crate::report::user_locks::UserLock;

/// What was recorded, for the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The command, the pids or "the whole machine"; empty when the file does not say.
    pub target: String,
    /// Kernel release; empty when the file does not say.
    pub kernel: String,
    /// CPUs online; 0 when the file does not say.
    pub cpus: u32,
    /// First to last event.
    pub elapsed: Nanos,
    /// Tasks seen waiting or running.
    pub threads: u64,
    /// The command's, as a shell gives it; `None` without a command, and where it outlived the recording.
    pub exit_status: Option<i32>,
    /// CPU time of the target by samples; `None` when CPUs were not sampled.
    pub cpu_time: Option<Nanos>,
}

/// Why a lock has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameEvidence {
    /// The address lies in a kernel data symbol.
    Symbol,
    /// `mmap_lock` events: its address lies in an `mm_struct` where that lock does.
    Events,
    /// Waited for at a call path that takes no other lock of this kind.
    Path,
    /// Embedded in another lock.
    Embedded,
    /// Waited for at a call path that takes one of a few locks of this kind.
    Class,
    /// Nothing but the place where it is taken.
    Caller,
}

/// A lock's name, never blank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName {
    /// `mmap_lock`, `tasklist_lock`, `rwsem @ xfs_ilock`.
    pub name: String,
    /// Why.
    pub evidence: NameEvidence,
}

/// A task in words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskName {
    /// Its name; `[softirq]` and `[hardirq]` are pseudo-tasks.
    pub comm: String,
    /// Process; 0 when unknown.
    pub pid: i32,
    /// Thread, as in `common_pid`; several threads of one name may be folded into tid 0.
    pub tid: i32,
}

/// Stands for wrappers that are not the same in all waits of a row.
pub const SEVERAL: &str = "\u{2026}";

/// What a row stands for. Which fields are present follows from [`Report::by`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// By site: the type with its mode. By lock: the kind alone is shared by all waits.
    pub lock_type: Option<LockType>,
    /// By lock.
    pub lock_kind: Option<LockKind>,
    /// By site: the function that is neither lock code nor a wrapper; `None` when the stack has
    /// none or no symbols.
    pub caller: Option<String>,
    /// By site: wrappers between lock code and caller, innermost first; [`SEVERAL`] where the row's
    /// waits came by several chains of them.
    pub wrappers: Vec<String>,
    /// By site and by lock.
    pub lock: Option<LockName>,
    /// By lock: its address.
    pub lock_addr: Option<LockAddr>,
    /// By lock: the process whose lock it is, of locks that processes own; tid 0.
    pub lock_owner: Option<TaskName>,
    /// By task.
    pub task: Option<TaskName>,
    /// By cgroup: its path from the mount of the hierarchy on.
    pub cgroup: Option<String>,
    /// By releaser, and in blame: who is charged.
    pub releaser: Option<ChargedName>,
}

/// Who is charged with a part of the waiting, in words. Nobody comes last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChargedName {
    /// A task that handed the lock over.
    Releaser {
        /// Who.
        task: TaskName,
        /// Where: the function above the release code; `None` when no frame has a symbol.
        caller: Option<String>,
        /// Wrappers between release code and caller, innermost first.
        wrappers: Vec<String>,
        /// Released, or passed on by another waiter.
        kind: HandOverKind,
    },
    /// Nobody, and why.
    Nobody(Uncharged),
}

/// The part of a row with one lock type: R and W stand side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The type.
    pub lock_type: LockType,
    /// Its waits.
    pub stat: WaitStat,
    /// By lock: how long it was held in this mode; `None` where holds were not recorded.
    pub hold: Option<Stat>,
    /// Waiting by slice of time, as in the row.
    pub history: Vec<Nanos>,
}

impl Split {
    /// The part of a row with this type.
    pub fn new(lock_type: LockType, stat: WaitStat) -> Split {
        Split { lock_type, stat, hold: None, history: Vec::new() }
    }
}

/// One full stack of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackShare {
    /// Kernel frames, innermost first, with offsets: `down_read+0x43`.
    pub kernel: Vec<String>,
    /// User frames, innermost first.
    pub user: Vec<String>,
    /// The type of its waits.
    pub lock_type: LockType,
    /// Name of the lock.
    pub lock: LockName,
    /// Its waits.
    pub stat: WaitStat,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What it stands for.
    pub key: RowKey,
    /// All its waits.
    pub stat: WaitStat,
    /// The same by lock type; one entry by site.
    pub splits: Vec<Split>,
    /// Full stacks, largest first; empty unless the query asked for them.
    pub stacks: Vec<StackShare>,
    /// By releaser, and in blame: how long the releaser kept these locks while others waited; by lock:
    /// how long it was held, where that was recorded. `None` where no hold was seen.
    pub hold: Option<Stat>,
    /// By lock: what its queue did; `None` for locks without readers and writers.
    pub queue: Option<QueueStat>,
    /// By releaser, and in blame: in what the releaser slept before it let go, and how much of the waiting
    /// that was; largest first.
    pub holder_slept: Vec<(String, Nanos)>,
    /// By releaser, and in blame: how much of it goes through the releaser to another, for which it waited
    /// itself.
    pub via: Nanos,
    /// Who waited, most first; empty unless the query asked for stacks, and in blame.
    pub tasks: Vec<(TaskName, Nanos)>,
    /// Waiting by slice of time; empty where waits are not kept by time, and in rows with little of it.
    pub history: Vec<Nanos>,
}

impl Row {
    /// Whether it is waiting that nobody is charged with.
    pub fn is_uncharged(&self) -> bool {
        matches!(self.key.releaser, Some(ChargedName::Nobody(_)))
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was recorded.
    pub header: Header,
    /// What a row stands for.
    pub by: GroupBy,
    /// What rows are sorted by.
    pub sort: SortKey,
    /// How many rows the user wants to see; 0 for all. All rows are here.
    pub top: usize,
    /// Where the time of the threads went; `None` in a recording without context switches.
    pub thread_time: Option<ThreadTime>,
    /// All waits that passed the filter.
    pub total: WaitStat,
    /// Every row, sorted.
    pub rows: Vec<Row>,
    /// Waits for locks of user space, which are in no row and no total.
    pub user_locks: Vec<UserLock>,
    /// By releaser, and in blame: releasers who waited themselves. Empty otherwise.
    pub chains: WaitChains,
    /// In blame: waiters with their releasers as stacks; empty unless asked for.
    pub blame_stacks: Vec<BlameStack>,
    /// Who let whom wait, whatever rows stand for: a row for each waiter's site and releaser, in order of
    /// their words. Empty where wakings were not recorded.
    pub charged: Vec<Row>,
    /// CPU samples as stacks, root first: for flame graphs by CPU time; empty unless asked for.
    pub cpu_stacks: Vec<CpuStack>,
    /// How far all this can be trusted.
    pub trust: Trust,
}

/// CPU time of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuStack {
    /// The lock type, when the stack is in lock code.
    pub lock_type: Option<LockType>,
    /// Kernel frames, innermost first.
    pub kernel: Vec<String>,
    /// User frames, innermost first.
    pub user: Vec<String>,
    /// The task's name.
    pub comm: String,
    /// Samples.
    pub samples: u64,
    /// Samples times period.
    pub time: Nanos,
}

impl Report {
    /// The share of all waiting that `stat` has, 0 to 1; of all waits where no times are known.
    pub fn share(&self, stat: &WaitStat) -> f64 {
        stat.share_of(&self.total)
    }
}
