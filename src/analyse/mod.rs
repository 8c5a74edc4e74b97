//! Observations -> [`Tables`]: sums by key, ids only.
//!
//! In: waits, their pieces, CPU samples with the facts of their stacks. Out: bounded tables whose totals are
//! exact whatever was folded, ready to be grouped and put into words.

mod blame;
mod key;
mod tables;

pub use blame::{BlameKey, ChargedTo, HoldKey, ReleaserKey, ThroughKey};
pub use key::{CellKey, StackKey, TaskKey};
pub use tables::{CpuKey, Detail, Tables, WaitFilter};
