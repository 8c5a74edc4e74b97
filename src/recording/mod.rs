//! perf.data: what stands before, around and behind the records.
//!
//! In: bytes of a file, of perf or of lockprof ([`Reader`]). Out: an [`Origin`], and where the
//! records are. The other way round: an [`Origin`] and the bytes of the rings ([`Writer`]) become a
//! file that perf reads too, also when the recorder was killed ([`repair()`]).

mod block;
mod build_id;
mod bytes;
mod error;
mod event_name;
mod features;
mod header;
mod layout;
mod old;
mod origin;
mod reader;
mod repair;
mod sections;
mod synthesize;
mod tracing_data;
mod walk;
mod writer;

pub use error::{ReadError, RepairError, WriteError};
pub use old::Old;
pub use origin::{BuildId, Clock, End, EventDesc, Host, Origin, RecordedTarget, Settings};
pub use reader::{DataRange, Reader};
pub use repair::{Repaired, repair};
pub use synthesize::{KernelMap, Synthesizer, UserMap};
pub use tracing_data::TracingData;
pub(crate) use walk::{Stop, Walk};
pub use writer::{Writer, Written};
