//! Lost records cut so much waiting that the totals say little.

use super::share;
use crate::model::Nanos;
use crate::report::Report;

/// Uncertain waiting against what is known, from which on totals say little.
const TOO_MUCH: f64 = 0.1;

/// Records were lost, and with them the ends of long waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostWaits {
    /// Waits that the loss may have cut.
    pub waits: u64,
    /// How long they lasted at the most.
    pub at_most: Nanos,
    /// What the totals say.
    pub known: Nanos,
}

impl LostWaits {
    pub(super) fn check(report: &Report) -> Option<LostWaits> {
        let total = &report.total;
        let (waits, at_most, known) = (total.uncertain, total.uncertain_time, total.wait());
        let lost = report.trust.lost.iter().any(|&(_, records)| records > 0);
        (lost && share(at_most, known + at_most) > TOO_MUCH).then_some(LostWaits {
            waits,
            at_most,
            known,
        })
    }
}
