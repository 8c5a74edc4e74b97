//! What waiters did while they waited, and those who let them wait meanwhile.

use super::Nanos;

/// What waiters did. The five add up to the waiting that they are phases of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Spun: all of a wait for a spinlock, and the spinning phases of a mutex.
    pub spin: Nanos,
    /// Slept.
    pub asleep: Nanos,
    /// Could have run and had no CPU: woken or preempted.
    pub runnable: Nanos,
    /// Ran in the slow path.
    pub rest: Nanos,
    /// Not known: switches were not recorded, or records are missing.
    pub unknown: Nanos,
}

impl PhaseTimes {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &PhaseTimes) {
        let PhaseTimes { spin, asleep, runnable, rest, unknown } = *other;
        self.spin += spin;
        self.asleep += asleep;
        self.runnable += runnable;
        self.rest += rest;
        self.unknown += unknown;
    }

    /// All five.
    pub fn total(&self) -> Nanos {
        self.spin + self.asleep + self.runnable + self.rest + self.unknown
    }
}

/// What those did who are charged with waiting, while others waited. The four add up to what they are
/// charged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderTimes {
    /// Ran.
    pub running: Nanos,
    /// Could have run and had no CPU, while they held the lock.
    pub runnable: Nanos,
    /// Slept.
    pub asleep: Nanos,
    /// Not known: not recorded, records are missing, or the lock was passed on by somebody who waited
    /// too, so that the holder is another.
    pub unknown: Nanos,
}

impl HolderTimes {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &HolderTimes) {
        let HolderTimes { running, runnable, asleep, unknown } = *other;
        self.running += running;
        self.runnable += runnable;
        self.asleep += asleep;
        self.unknown += unknown;
    }

    /// All four.
    pub fn total(&self) -> Nanos {
        self.known() + self.unknown
    }

    /// Without what is not known.
    pub fn known(&self) -> Nanos {
        self.running + self.runnable + self.asleep
    }
}
