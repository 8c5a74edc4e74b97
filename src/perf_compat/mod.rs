//! What `perf lock contention` makes of the same events, for comparison. Nobody imports this room.
//!
//! In: decoded events in order of time, and the book of the recorded kernel. Out: perf's rows and
//! numbers, and why and how often our own numbers differ ([`Differences`]). It is perf's state
//! machine as its manual page and its output on many recordings show it, with `--stack-skip 0`:
//! the default skip is made for stacks that begin inside a BPF program, those of a file do not.
//!
//! The tables grow with the recording, as perf's own do: a key or a lock costs an event.

mod caller;
mod differences;
mod machine;
mod report;
mod row;

pub use caller::Walk;
pub use differences::{Difference, Differences, Tally};
pub use machine::PerfCompat;
pub use report::{CompatKey, CompatReport, CompatRow, perf_time};
