//! Observations -> [`Tables`]: sums by key, ids only.
//!
//! In: waits, their pieces, CPU samples with the facts of their stacks. Out: bounded tables whose totals are
//! exact whatever was folded, ready to be grouped and put into words.

mod blame;
mod charges;
mod key;
mod queues;
mod tables;
mod thread_time;
mod timeline;

pub use blame::{BlameKey, ChargedTo, HoldKey, ReleaserKey, SleepKey, ThroughKey};
pub use key::{CellKey, StackKey, TaskKey};
pub use queues::QueueKey;
pub use tables::{CpuKey, Detail, Tables, WaitFilter};
pub use thread_time::{LifePiece, PartTime, ThreadKey, ThreadPart, ThreadTimes, UserLockKey};
pub use timeline::{Slice, Slicing, Timeline};
