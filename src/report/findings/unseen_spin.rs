//! Most of the waiting at a site is spinning that no event tells of.

use super::{WORTH_SAYING, share};
use crate::model::{LockType, Nanos, Spun};
use crate::report::Report;

/// What must be spun of the waiting at the site.
const MOST_OF_IT: f64 = 0.5;

/// A site whose waiting burns CPU time instead of sleeping.
#[derive(Clone, Debug, PartialEq)]
pub struct UnseenSpin {
    /// The type of lock.
    pub lock_type: LockType,
    /// The site.
    pub caller: String,
    /// What is spun.
    pub spun: Nanos,
    /// Its share of the waiting at the site.
    pub share: f64,
}

impl UnseenSpin {
    pub(super) fn check(report: &Report) -> Option<UnseenSpin> {
        // Without contention events nothing is seen but spinning.
        if report.trust.counts.begins == 0 {
            return None;
        }
        let sure = |spun: Spun| spun.time > spun.interval();
        let rows = report.rows.iter().filter(|row| sure(row.stat.spun));
        let row = rows.max_by_key(|row| row.stat.spun.time)?;
        let (lock_type, caller) = (row.key.lock_type?, row.key.caller.clone()?);
        let spun = row.stat.spun.time;
        let of_site = share(spun, row.stat.wait());
        (of_site > MOST_OF_IT && share(spun, report.total.wait()) > WORTH_SAYING)
            .then_some(UnseenSpin { lock_type, caller, spun, share: of_site })
    }
}
