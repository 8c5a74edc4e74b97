//! Recordings as files: what perf wrote is read, what lockprof writes is read by perf, what was cut,
//! damaged or made to harm gives the records in front of the damage or a clear error.

// clippy.toml allows it in tests; it does not count the functions around them.
#![allow(clippy::unwrap_used)]

#[path = "../aloud/mod.rs"]
mod aloud;
mod full_disk;
mod hostile;
mod killed;
mod made;
mod perf_reads;
mod reading;
mod writing;
