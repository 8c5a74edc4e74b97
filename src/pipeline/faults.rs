//! What the kernel could not record, counted over a whole recording.
//!
//! In: LOST, LOST_SAMPLES and THROTTLE records. Out: lost records by CPU, each counted once.

use std::collections::BTreeMap;

use crate::model::Cpu;

/// What was lost or could not be read. Counts that come from the file saturate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Records that LOST records tell of, by CPU.
    pub lost: BTreeMap<Option<Cpu>, u64>,
    /// What LOST_SAMPLES records tell of.
    pub lost_samples: u64,
    /// THROTTLE records.
    pub throttled: u64,
}

impl Faults {
    /// LOST: the ring of `cpu` dropped records.
    pub(super) fn lose(&mut self, cpu: Option<Cpu>, lost: u64) {
        let of_cpu = self.lost.entry(cpu).or_default();
        *of_cpu = of_cpu.saturating_add(lost);
    }

    /// LOST_SAMPLES: what the counter of one event says.
    pub(super) fn lose_samples(&mut self, lost: u64) {
        self.lost_samples = self.lost_samples.saturating_add(lost);
    }

    /// Lost records by CPU, each once: LOST_SAMPLES are what the events' own counters say at the end,
    /// of the same records as LOST. Only what they have beyond those, lost when nothing came after it,
    /// counts.
    pub(super) fn all_lost(&self) -> BTreeMap<Option<Cpu>, u64> {
        let mut all = self.lost.clone();
        let told = all.values().fold(0, |sum: u64, lost| sum.saturating_add(*lost));
        let rest = self.lost_samples.saturating_sub(told);
        if rest > 0 {
            let unknown = all.entry(None).or_default();
            *unknown = unknown.saturating_add(rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_counters_say_at_the_end_is_not_lost_a_second_time() {
        let mut faults = Faults::default();
        faults.lose(Some(Cpu(0)), 30);
        faults.lose(Some(Cpu(1)), 12);
        let by_lost = faults.all_lost();
        faults.lose_samples(25);
        faults.lose_samples(17);
        assert_eq!(faults.all_lost(), by_lost);
        // Nothing came after the last three, so that no LOST record tells of them.
        faults.lose_samples(3);
        assert_eq!(faults.all_lost(), [(None, 3), (Some(Cpu(0)), 30), (Some(Cpu(1)), 12)].into());
    }
}
