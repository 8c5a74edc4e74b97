//! `record` through the program itself, as root on a running kernel: what it records, what it costs,
//! how it ends, what it leaves.
//!
//! One binary, one test at a time: recordings of the whole machine disturb each other. What cannot be
//! done here is skipped aloud. Nothing is asserted of absolute times; ratios are medians of runs that
//! were made side by side.

mod blame;
mod cgroups;
mod ending;
mod file;
mod hammer;
mod machine;
mod names;
mod namespace;
mod narrowed;
mod no_lock;
mod perf;
mod phases;
mod picture;
mod screen;
mod schedule;
mod thread_time;
mod threads;
