//! The answer, in words: Tables -> [`Report`].
//!
//! In: the id tables of analyse and the books. Out: an immutable [`Report`] that renderers print,
//! screens show, and other reports merge with.

mod blame;
mod blame_stacks;
mod build;
mod chains;
mod cpu_stacks;
mod findings;
mod history;
mod path_history;
mod lock_life;
mod lock_name;
mod lock_row;
mod merge;
mod namer;
mod paths;
mod quality;
mod readers_writers;
#[allow(clippy::module_inception)]
mod report;
mod sources;
mod thread_time;
mod tree;
mod trust;
mod unnamed_kind;
mod user_locks;

pub use blame_stacks::BlameStack;
pub use build::build;
pub use chains::{ChainLink, ChainRow, WaitChains};
pub use findings::{
    Finding, HeapGrowth, HolderAsleep, HolderWithoutCpu, LostWaits, OneReleaser, QueuedWriter,
    ShortWaits, UnseenSpin,
};
pub use merge::MergeError;
pub use paths::{NO_SYMBOL, PathPart, PathRow, PathSkid, Paths, SkidMoved, SkidPoint, paths};
pub use readers_writers::{Side, Sides};
pub use report::{
    ChargedName, CpuStack, Header, LockName, NameEvidence, Report, Row, RowKey, SEVERAL, Split,
    StackShare, TaskName,
};
pub use sources::Sources;
pub use thread_time::{Instead, SleepTime, ThreadTime, Verdict};
pub use tree::{Node, Tree, tree};
pub use trust::Trust;
pub use user_locks::{UserLock, waited};
