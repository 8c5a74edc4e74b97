//! perf.data: what stands before, around and behind the records.
//!
//! In: bytes of a file. Out: an [`Origin`], and where the records are.

mod origin;

pub use origin::{BuildId, Clock, End, EventDesc, Host, Origin, RecordedTarget, Settings};
