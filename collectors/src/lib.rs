//! What lockprof asks of the kernel.
//!
//! In this crate: the event specs of each [`Collector`] (one file a collector), `perf_event_open(2)`
//! with its rings ([`perf`]), the kernel's text files turned into plain structs ([`procfs`]), and
//! the ways to a target: a command that is started ([`workload`]), processes that run already
//! ([`attach`]). Nothing here knows what a wait is.
//!
//! # Unsafe policy
//!
//! `unsafe` lives in `perf/` only, behind one syscall gate with a fake beside it. Every block has
//! a `SAFETY:` note that names the fact it relies on.

#![deny(missing_docs)]

pub mod perf;
pub mod procfs;
pub mod contention;
pub mod contended_release;
pub mod cpu;
pub mod mmap_lock;
pub mod sched;
pub mod sideband;
pub mod workload;
pub mod attach;
pub mod floor;

use perf::plan::EventSpec;
use procfs::tracefs::{TracefsError, Tracepoints};

/// A set of events that answers one question.
pub trait Collector {
    /// Its name in `record --collect` and in the recording's origin.
    fn name(&self) -> &'static str;

    /// Tracepoints that [`Collector::events`] looks up, as `system:name`.
    fn tracepoints(&self) -> &'static [&'static str];

    /// The events to open.
    ///
    /// # Errors
    ///
    /// When `formats` lacks one of [`Collector::tracepoints`].
    fn events(&self, formats: &Tracepoints) -> Result<Vec<EventSpec>, TracefsError>;
}
