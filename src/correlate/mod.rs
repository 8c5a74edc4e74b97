//! Events -> Waits.
//!
//! In: decoded events in order of time, their stacks interned. Out: [`Observation`]s: waits with an
//! outcome, and CPU samples with what their task was waiting for. State: the open waits, the book of
//! tasks, and what was lost where.

mod copies;
mod counts;
mod losses;
mod open;
mod pairing;
mod rwbase;
mod stack;
mod tasks;

pub use copies::Copies;
pub use counts::Counts;
pub use open::KindSet;
pub use pairing::{Correlate, Moment, Observation, Recorded, Sample, StackPair};
pub use tasks::{TaskInfo, Tasks};
