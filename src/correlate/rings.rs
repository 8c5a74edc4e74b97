//! When each ring was last read from.
//!
//! In: the records of all rings. Out: since when a ring that lost records may have lost them. Wakings and
//! switches may have rings of their own.

use hashbrown::HashMap;

use crate::model::{Cpu, Timestamp};

/// Which ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RingId {
    /// That of a CPU; `None`: one that does not say whose it is.
    pub cpu: Option<Cpu>,
    /// Its second one.
    pub apart: bool,
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
