//! The plain words that every room speaks: time, task, lock, wait, frame, statistics, query.
//!
//! Nothing in here reads, opens or prints anything, and nothing in here imports another room.

mod behind;
mod frame;
mod histogram;
mod lock;
mod phases;
mod query;
mod releaser;
mod sleep;
mod stat;
mod task;
mod time;
mod wait;

pub use behind::{Behind, BehindWhom, QueueStat};
pub use frame::{FunctionId, ObjectId, StackId, UserFrame};
pub use histogram::Histogram;
pub use lock::{LockAddr, LockFlags, LockKind, LockType, LockTypePattern, Mode};
pub use phases::{HolderTimes, PhaseTimes};
pub use query::{
    Filter, GroupBy, Order, PathQuery, Query, SortKey, TimeRange, TreeQuery, Weighed, When,
};
pub use releaser::{HandOverKind, Uncharged};
pub use sleep::SleepOn;
pub use stat::{Spun, Stat, WaitStat};
pub use task::{Context, Cpu, TaskId, TaskRef};
pub use time::{Nanos, Timestamp};
pub use wait::{Outcome, Wait};
