//! Events -> Waits.
//!
//! In: decoded events in order of time, their stacks interned. Out: [`Observation`]s: waits with an
//! outcome, and CPU samples with what their task was waiting for; and the [`Piece`]s of a wait, each
//! with who let it end. State: the open waits, the book of tasks, what was lost where, and the
//! hand-overs and queues of the locks that are waited for.

mod cgroups;
mod copies;
mod counts;
mod losses;
mod open;
mod pairing;
mod queues;
mod rwbase;
mod stack;
mod tasks;
mod waiting;
mod wakeups;

pub use cgroups::Cgroups;
pub use copies::Copies;
pub use counts::Counts;
pub use open::KindSet;
pub use pairing::{Correlate, Moment, Observation, Recorded, Sample, StackPair};
pub use queues::{Begun, Left, Queues, Stretch};
pub use tasks::{TaskInfo, Tasks};
pub use waiting::OpenWait;
pub use wakeups::{Hold, LockId, Piece, PieceEnd, Releaser, Wakeups, Waking};
