//! perf.data: what stands before, around and behind the records.
//!
//! In: bytes of a file. Out: an [`Origin`], and where the records are.

mod block;
mod build_id;
mod bytes;
mod error;
mod event_name;
mod features;
mod header;
mod origin;
mod reader;
mod tracing_data;

pub use error::{ReadError, RepairError, WriteError};
pub use origin::{BuildId, Clock, End, EventDesc, Host, Origin, RecordedTarget, Settings};
pub use reader::{DataRange, Reader};
pub use tracing_data::TracingData;
