//! When each ring was last read from.
//!
//! In: the records of all rings. Out: since when a ring that lost records may have lost them. Wakings and
//! switches may have rings of their own. Bounded: CPUs of higher numbers than any kernel has are not
//! remembered, and may have lost records since ever.

use crate::model::{Cpu, Timestamp};

/// CPUs of the largest kernels: `NR_CPUS` with MAXSMP.
const CPUS_KEPT: usize = 1 << 13;

/// Which ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RingId {
    /// That of a CPU; `None`: one that does not say whose it is.
    pub cpu: Option<Cpu>,
    /// Its second one.
    pub apart: bool,
}

impl RingId {
    /// Its place among the rings; those that do not say whose they are come first.
    #[inline]
    fn place(self) -> usize {
        let cpu = self.cpu.map_or(0, |cpu| (cpu.0 as usize).saturating_add(1));
        cpu.saturating_mul(2).saturating_add(usize::from(self.apart))
    }
}

/// The latest record of each ring.
#[derive(Debug, Default)]
pub struct Rings {
    latest: Vec<Timestamp>,
}

impl Rings {
    /// A record of a ring was read. Records that are made up for the reader have no time, and are none
    /// of the ring.
    #[inline]
    pub fn read(&mut self, ring: RingId, time: Timestamp) {
        let place = ring.place();
        if place >= self.latest.len() {
            if place > 2 * CPUS_KEPT {
                return;
            }
            self.latest.resize(place + 1, Timestamp(0));
        }
        if let Some(latest) = self.latest.get_mut(place) {
            *latest = time.max(*latest);
        }
    }

    /// The ring dropped records since then.
    pub fn last_read(&self, ring: RingId) -> Timestamp {
        self.latest.get(ring.place()).copied().unwrap_or(Timestamp(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_may_have_lost_records_since_its_latest_one_that_has_a_time() {
        let ring = |cpu, apart| RingId { cpu, apart };
        let mut rings = Rings::default();
        for (cpu, apart, time) in
            [(Some(Cpu(1)), false, 5), (Some(Cpu(1)), true, 7), (None, false, 9)]
        {
            rings.read(ring(cpu, apart), Timestamp(time));
            rings.read(ring(cpu, apart), Timestamp(0));
        }
        assert_eq!(rings.last_read(ring(Some(Cpu(1)), false)), Timestamp(5));
        assert_eq!(rings.last_read(ring(Some(Cpu(1)), true)), Timestamp(7));
        assert_eq!(rings.last_read(ring(None, false)), Timestamp(9));
        assert_eq!(rings.last_read(ring(Some(Cpu(0)), false)), Timestamp(0));
    }

    #[test]
    fn numbers_that_no_cpu_has_take_no_memory() {
        let mut rings = Rings::default();
        for cpu in [u32::MAX, 1 << 20, CPUS_KEPT as u32] {
            rings.read(RingId { cpu: Some(Cpu(cpu)), apart: true }, Timestamp(5));
        }
        assert!(rings.latest.is_empty());
    }
}
