//! What those did who kept a lock while others waited: they had no CPU, or slept.

use std::collections::BTreeMap;

use super::{WORTH_SAYING, share};
use crate::model::{HolderTimes, Nanos};
use crate::report::{LockName, Report};

/// The share of what is known of a lock's holders, from which on it is the reason of the waiting.
const MOST_OF_IT: f64 = 0.5;
/// Sleep of so much of it is worth a look at what is slept on.
const MUCH_OF_IT: f64 = 0.3;

/// Who held the lock could run and had no CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct HolderWithoutCpu {
    /// The lock.
    pub lock: LockName,
    /// Of the waiting for it in which it is known what its holder did.
    pub share: f64,
    /// That waiting.
    pub known: Nanos,
}

/// Who held the lock slept.
#[derive(Clone, Debug, PartialEq)]
pub struct HolderAsleep {
    /// The lock.
    pub lock: LockName,
    /// Of the waiting for it in which it is known what its holder did.
    pub share: f64,
    /// In what it slept most; `None` where that was not recorded.
    pub slept_in: Option<String>,
}

impl HolderWithoutCpu {
    pub(super) fn check(report: &Report) -> Option<HolderWithoutCpu> {
        let holders = Holders::of(report);
        let (lock, of_lock) = holders.most(|times| times.runnable)?;
        let (runnable, known) = (of_lock.times.runnable, of_lock.times.known());
        let share = share(runnable, known);
        let worth = holders.is_worth(runnable, report);
        (worth && share >= MOST_OF_IT).then(|| HolderWithoutCpu {
            lock: lock.clone(),
            share,
            known,
        })
    }
}

impl HolderAsleep {
    pub(super) fn check(report: &Report) -> Option<HolderAsleep> {
        let holders = Holders::of(report);
        let (lock, of_lock) = holders.most(|times| times.asleep)?;
        let asleep = of_lock.times.asleep;
        let share = share(asleep, of_lock.times.known());
        let most = of_lock.slept.iter().max_by_key(|(_, time)| **time);
        let slept_in = most.map(|(function, _)| (*function).to_owned());
        let worth = holders.is_worth(asleep, report);
        (worth && share >= MUCH_OF_IT).then(|| HolderAsleep { lock: lock.clone(), share, slept_in })
    }
}

/// The holders of one lock.
#[derive(Default)]
struct OfLock<'a> {
    times: HolderTimes,
    slept: BTreeMap<&'a str, Nanos>,
}

struct Holders<'a>(BTreeMap<&'a LockName, OfLock<'a>>);

impl<'a> Holders<'a> {
    fn of(report: &'a Report) -> Holders<'a> {
        let mut locks: BTreeMap<&LockName, OfLock<'_>> = BTreeMap::new();
        for row in &report.charged {
            let Some(lock) = &row.key.lock else { continue };
            let of_lock = locks.entry(lock).or_default();
            of_lock.times.merge(&row.stat.holder);
            for (function, time) in &row.holder_slept {
                *of_lock.slept.entry(function).or_default() += *time;
            }
        }
        Holders(locks)
    }

    /// The lock whose holders have most of it.
    fn most(&self, of: impl Fn(&HolderTimes) -> Nanos) -> Option<(&'a LockName, &OfLock<'a>)> {
        let most = self.0.iter().max_by_key(|(_, of_lock)| of(&of_lock.times));
        most.map(|(lock, of_lock)| (*lock, of_lock))
    }

    fn is_worth(&self, time: Nanos, report: &Report) -> bool {
        share(time, report.total.wait()) > WORTH_SAYING
    }
}
