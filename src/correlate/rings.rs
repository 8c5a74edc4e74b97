//! When each ring was last read from.
//!
//! In: the records of all rings. Out: since when a ring that lost records may have lost them. Records of
//! context switches may have a ring of their own on each CPU.

use hashbrown::HashMap;

use crate::model::{Cpu, Timestamp};

/// Which ring: that of a CPU, or of one that does not say whose it is; of switches or of all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RingId {
    /// Whose.
    pub cpu: Option<Cpu>,
    /// The ring of records of context switches, where that is another one.
    pub switches: bool,
}

/// The latest record of each ring.
#[derive(Debug, Default)]
pub struct Rings {
    latest: HashMap<RingId, Timestamp>,
}

impl Rings {
    /// A record of a ring was read.
    #[inline]
    pub fn read(&mut self, ring: RingId, time: Timestamp) {
        self.latest.insert(ring, time);
    }

    /// The ring dropped records since then.
    pub fn last_read(&self, ring: RingId) -> Timestamp {
        self.latest.get(&ring).copied().unwrap_or(Timestamp(0))
    }
}
