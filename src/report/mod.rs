//! The answer, in words: Tables -> [`Report`].
//!
//! In: the id tables of analyse and the books. Out: an immutable [`Report`] that renderers print,
//! screens show, and other reports merge with.

mod blame;
mod blame_stacks;
mod build;
mod catalogue;
mod chains;
mod cpu_stacks;
mod findings;
mod lock_name;
mod merge;
mod paths;
mod quality;
#[allow(clippy::module_inception)]
mod report;
mod thread_time;
mod tree;
mod trust;
mod unnamed_kind;
mod user_locks;

pub use blame_stacks::BlameStack;
pub use build::{Sources, build};
pub use chains::{ChainLink, ChainRow, WaitChains};
pub use findings::{Finding, HeapGrowth, LostWaits, OneReleaser, ShortWaits, UnseenSpin};
pub use merge::MergeError;
pub use paths::{NO_SYMBOL, PathPart, PathRow, PathSkid, Paths, SkidMoved, SkidPoint, paths};
pub use report::{
    ChargedName, CpuStack, Header, LockName, NameEvidence, Report, Row, RowKey, Split, StackShare,
    TaskName,
};
pub use thread_time::{Instead, SleepTime, ThreadTime, Verdict};
pub use tree::{Node, Tree, tree};
pub use trust::Trust;
pub use user_locks::{UserLock, waited};
