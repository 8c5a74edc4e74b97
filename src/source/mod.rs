//! Where records come from: live rings, a file, or a test.
//!
//! Out: an [`Origin`](crate::recording::Origin) once, then [`Round`]s.

mod cut;
mod live;
mod mappings;
mod replay;
mod synthetic;

pub use live::{LiveError, Recorded, Recorder, Rings};
pub use mappings::Mappings;
pub use replay::Replay;
pub use synthetic::{At, Synthetic};

/// Whole records, back to back, as they stand in rings and files.
///
/// A round is what one pass over all rings found. No record of a later round is older than every
/// record of the round before the last: that is what lets [`order`](crate::order) work in bounded
/// memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The records.
    pub bytes: Vec<u8>,
    /// Where `bytes` starts in the file, for messages.
    pub offset: u64,
    /// Whether the pass over the rings ends here; a long round comes in several pieces.
    pub finished: bool,
}
