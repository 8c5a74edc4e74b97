//! What a report says in plain sentences.
//!
//! In: a finished report. Out: at most [`MOST`] findings, derived and never stored: two reports that are
//! merged are looked at anew. One finding is one file: what it claims, and the check that must hold
//! before it is claimed. None is better than a weak one. Sentences are made in `render`.

mod heap_growth;
mod holders;
mod lost_waits;
mod one_releaser;
mod queued_writer;
mod short_waits;
mod unseen_spin;

pub use heap_growth::HeapGrowth;
pub use holders::{HolderAsleep, HolderWithoutCpu};
pub use lost_waits::LostWaits;
pub use one_releaser::OneReleaser;
pub use queued_writer::QueuedWriter;
pub use short_waits::ShortWaits;
pub use unseen_spin::UnseenSpin;

use super::Report;
use crate::model::Nanos;

/// Findings at the most.
const MOST: usize = 5;

/// The share of all waiting that a finding must speak of.
const WORTH_SAYING: f64 = 0.2;

/// Waiting of so little of the time that passed is no problem, and needs no advice.
const LITTLE: f64 = 0.01;

/// Something that a reader should know, with its numbers.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Finding {
    LostWaits(LostWaits),
    ShortWaits(ShortWaits),
    HolderWithoutCpu(HolderWithoutCpu),
    HolderAsleep(HolderAsleep),
    OneReleaser(OneReleaser),
    HeapGrowth(HeapGrowth),
    QueuedWriter(QueuedWriter),
    UnseenSpin(UnseenSpin),
}

/// What must be known before anything else comes first.
const CHECKS: [fn(&Report) -> Option<Finding>; 8] = [
    |report| LostWaits::check(report).map(Finding::LostWaits),
    |report| ShortWaits::check(report).map(Finding::ShortWaits),
    |report| HolderWithoutCpu::check(report).map(Finding::HolderWithoutCpu),
    |report| HolderAsleep::check(report).map(Finding::HolderAsleep),
    |report| OneReleaser::check(report).map(Finding::OneReleaser),
    |report| HeapGrowth::check(report).map(Finding::HeapGrowth),
    |report| QueuedWriter::check(report).map(Finding::QueuedWriter),
    |report| UnseenSpin::check(report).map(Finding::UnseenSpin),
];

impl Report {
    /// What it says in plain sentences, the most important first.
    pub fn findings(&self) -> Vec<Finding> {
        let all = CHECKS.iter().filter_map(|check| check(self));
        if self.is_little() { Vec::new() } else { all.take(MOST).collect() }
    }

    /// Whether tasks waited for so short a time that it does not matter why.
    fn is_little(&self) -> bool {
        let wait = self.total.wait() + self.total.uncertain_time;
        wait.0 as f64 <= LITTLE * self.header.elapsed.0 as f64
    }
}

/// `part` of `whole`, 0 when there is no whole.
fn share(part: Nanos, whole: Nanos) -> f64 {
    if whole == Nanos::ZERO { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}
