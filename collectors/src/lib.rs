//! What lockprof asks of the kernel.
//!
//! In this crate: the event specs of each collector (one file a collector), `perf_event_open(2)`
//! with its rings ([`perf`]), and the kernel's text files turned into plain structs ([`procfs`]).
//! Nothing here knows what a wait is.
//!
//! # Unsafe policy
//!
//! `unsafe` lives in `perf/` only, behind one syscall gate with a fake beside it. Every block has
//! a `SAFETY:` note that names the fact it relies on.

pub mod perf;
pub mod procfs;
