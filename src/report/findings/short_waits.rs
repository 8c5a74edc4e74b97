//! Most of the waiting is as short as measuring it takes.

use super::share;
use crate::model::Nanos;
use crate::report::Report;

/// Waiting of this share in rows near the floor makes the whole table one of measuring.
const MOST_OF_IT: f64 = 0.5;

/// Rows whose median is near the cost of measuring hold most of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortWaits {
    /// Their share of all waiting.
    pub share: f64,
    /// What measuring adds to each wait.
    pub floor: Nanos,
}

impl ShortWaits {
    pub(super) fn check(report: &Report) -> Option<ShortWaits> {
        let floor = report.trust.floor?;
        let near = report.rows.iter().filter(|row| row.stat.is_near(floor));
        let wait: Nanos = near.map(|row| row.stat.wait()).sum();
        let share = share(wait, report.total.wait());
        (share > MOST_OF_IT).then_some(ShortWaits { share, floor })
    }
}
