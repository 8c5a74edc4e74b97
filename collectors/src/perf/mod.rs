//! `perf_event_open(2)`: the attribute, the record constants, the rings, the session.

pub mod attr;
pub mod record;
