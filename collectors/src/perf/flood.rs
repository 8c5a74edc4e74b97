//! Whether records of one kind come faster than anyone can take them.
//!
//! In: how full each look at the rings of the lane `Flood` found them. Out: that their events are to be
//! stopped. Real-time tasks that yield to each other all the time switch some hundred thousand times a
//! second and CPU, and keep the recorder from its CPU meanwhile: it finds a full ring each time. A burst
//! that fills a ring once loses some records, and goes on.

/// Bytes at the end of a ring that may have no room for one more record.
const ONE_RECORD: usize = 1024;

/// What a look that finds a full ring adds; one that finds none takes away 1.
const FULL: u32 = 3;

/// From here on it is a flood and no burst: the third full ring in a row, or every third over time.
const FLOOD: u32 = 7;

/// Looks at rings so far.
#[derive(Debug, Default)]
pub(crate) struct Flood {
    full: bool,
    level: u32,
    told: bool,
}

impl Flood {
    /// A ring of `size` bytes had `bytes` of them filled.
    pub(crate) fn drained(&mut self, bytes: usize, size: usize) {
        self.full |= bytes + ONE_RECORD > size;
    }

    /// All rings were looked at: whether to stop the events now. Once.
    pub(crate) fn is_due(&mut self) -> bool {
        self.level = match std::mem::take(&mut self.full) {
            true => self.level + FULL,
            false => self.level.saturating_sub(1),
        };
        let due = self.level >= FLOOD && !self.told;
        self.told |= due;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1 << 20;

    fn looks(flood: &mut Flood, bytes: &[usize]) -> Vec<bool> {
        let look = |bytes: &usize| {
            flood.drained(0, SIZE);
            flood.drained(*bytes, SIZE);
            flood.is_due()
        };
        bytes.iter().map(look).collect()
    }

    #[test]
    fn a_ring_that_is_full_again_and_again_is_a_flood_once() {
        let mut flood = Flood::default();
        let full = [SIZE, SIZE - 1000, SIZE, SIZE];
        assert_eq!(looks(&mut flood, &full), [false, false, true, false]);
    }

    #[test]
    fn bursts_now_and_then_are_none() {
        let burst = [SIZE, SIZE, 100, 100, 100, SIZE - 2000, 100, 100];
        let mut flood = Flood::default();
        assert!(!looks(&mut flood, &burst.repeat(100)).contains(&true));
    }
}
