//! Events -> Waits.
//!
//! In: decoded events in order of time, their stacks interned. Out: [`Observation`]s: waits with an
//! outcome, and CPU samples with what their task was waiting for; and the [`Piece`]s of a wait, each
//! with who let it end, and for whom that one waited meanwhile ([`Chains`]). State: the open waits, the
//! book of tasks, what was lost where, the hand-overs and queues of the locks that are waited for, what
//! tasks did between two switches, and the address spaces, which prove names of locks.

mod address_spaces;
mod cgroups;
mod chains;
mod charging;
mod copies;
mod counts;
mod gaps;
mod identity;
mod losses;
mod observation;
mod open;
mod pairing;
mod phases;
mod queues;
mod releases;
mod rings;
mod run_states;
mod rwbase;
mod sleeps;
mod stack;
mod stretch;
mod tasks;
mod waiting;
mod wakeups;

pub use address_spaces::AddressSpaces;
pub use cgroups::Cgroups;
pub use chains::{ChainId, Chains, Link, Part as ChainPart, Waited};
pub use charging::Charge;
pub use copies::Copies;
pub use counts::Counts;
pub use identity::{Identity, OnlyLock};
pub use observation::{Observation, Sample};
pub use open::KindSet;
pub use pairing::{Correlate, Moment, Recorded, StackPair};
pub use phases::{holder, phases};
pub use queues::{Begun, Busy, Left, Queues};
pub use releases::ContendedRelease;
pub use rings::{RingId, Rings};
pub use run_states::RunStates;
pub use sleeps::{LockSleep, SleepCounts, Sleeps};
pub use stretch::{Leaving, RunState, StateTimes, Stretch};
pub use tasks::{TaskInfo, Tasks};
pub use waiting::OpenWait;
pub use wakeups::{Hold, LockId, Piece, PieceEnd, Releaser, Wakeups, Waking};
