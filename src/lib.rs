//! lockprof: which kernel lock a program waits for, who makes it wait, what changed.
//!
//! The rooms, in the order in which they may import each other: a room imports only rooms above it
//! (`tests/layering.rs` checks it). ARCHITECTURE.md tells the story of one wait through them.

pub mod model;
pub mod kernel;
pub mod recording;
pub mod source;
pub mod decode;
pub mod stacks;
pub mod order;
pub mod unwind;
pub mod correlate;
pub mod attribute;
pub mod analyse;
pub mod symbolize;
pub mod report;
pub mod render;
pub mod tui;
pub mod perf_compat;
pub mod pipeline;
pub mod cli;
pub mod commands;
