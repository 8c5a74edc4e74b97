//! Whether records of one kind come faster than anyone can take them.
//!
//! In: how many bytes each look at the rings of the lane `Flood` found. Out: that their events are to be
//! stopped. Real-time tasks that yield to each other all the time switch some hundred thousand times a
//! second and CPU, and keep the recorder from its CPU meanwhile: what comes is a full ring each time.

/// Records at the end of a ring that may have no room for one more: a switch takes 48 to 56 bytes.
const ONE_RECORD: usize = 64;

/// Looks that found a ring full, until it is a flood and no accident: that many rings' worth of records
/// were kept, and more were lost.
const FULL_LOOKS: u32 = 3;

/// Looks at rings so far.
#[derive(Debug, Default)]
pub(crate) struct Flood {
    full: u32,
    told: bool,
}

impl Flood {
    /// A ring of `size` bytes had `bytes` of them filled.
    pub(crate) fn drained(&mut self, bytes: usize, size: usize) {
        self.full += u32::from(bytes + ONE_RECORD > size);
    }

    /// Whether to stop the events now: once.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.full >= FULL_LOOKS && !self.told;
        self.told |= due;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_is_full_again_and_again_is_a_flood_once() {
        let mut flood = Flood::default();
        flood.drained(4096, 4096);
        flood.drained(4096 - 65, 4096);
        flood.drained(4096 - 40, 4096);
        assert!(!flood.is_due(), "two full rings are an accident");
        flood.drained(4096 - 63, 4096);
        assert!(flood.is_due());
        flood.drained(4096, 4096);
        assert!(!flood.is_due(), "it is told once");
    }
}
