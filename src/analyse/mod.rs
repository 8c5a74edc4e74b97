//! Observations -> [`Tables`]: sums by key, ids only, of a whole recording and of slices of its time.
//!
//! In: waits, their pieces, CPU samples with the facts of their stacks. Out: bounded tables whose totals are
//! exact whatever was folded, ready to be grouped and put into words.

mod blame;
mod charges;
mod key;
mod queues;
mod sums;
mod table;
mod tables;
mod thread_time;
mod timeline;

pub use blame::{BlameKey, ChargedTo, HoldKey, ReleaserKey, SleepKey, ThroughKey};
pub use key::{CellKey, CpuKey, CpuStackKey, StackKey, TaskKey};
pub use queues::QueueKey;
pub use sums::Sums;
pub use tables::{Detail, Tables, WaitFilter};
pub use thread_time::{LifePiece, PartTime, ThreadKey, ThreadPart, UserLockKey};
pub use timeline::{Slice, Slicing, Timeline};
