//! The answer while a recording runs: as if it had ended with the last event, or of a part of its time.
//!
//! ```text
//!   books, tables ──now──> slices of a part added up, waits that last ──report_at, paths_at──> answers
//! ```
//!
//! In: a part of the time, and questions. Out: reports in which waits that last are open, as long as they
//! have come to be.

use hashbrown::HashMap;

use super::Pipeline;
use crate::analyse::{CellKey, Sums};
use crate::correlate::{Observation, phases};
use crate::model::{Outcome, PathQuery, Query, TimeRange, Wait, WaitStat, When};
use crate::report::{self, Paths, Report};

/// What there is to say at a moment of a recording that runs.
#[derive(Debug)]
pub struct Now {
    /// Slices added up; `None` where it is about all of the time.
    pub(super) sums: Option<Sums>,
    /// All waits, with those that last.
    pub(super) waits: HashMap<CellKey, WaitStat>,
    /// The time that it is about, where that is not all: whole slices.
    pub range: Option<TimeRange>,
}

impl Pipeline {
    /// What there is to say as of the last event. Of a part of the time only where time is kept apart.
    pub fn now(&mut self, when: When) -> Now {
        let lasting = self.lasting();
        self.stages.tables.advance(&self.stages.attribution);
        let stages = &self.stages;
        let tables = &stages.tables;
        let part = self.range(when).and_then(|range| tables.part(range, &stages.attribution));
        let (sums, range) = part.unzip();
        let waits = sums.as_ref().unwrap_or(tables.whole()).waits();
        let mut waits = waits.map(|(key, stat)| (*key, stat.clone())).collect();
        for wait in &lasting {
            self.add_lasting(wait, range.unwrap_or(TimeRange::ALL), &mut waits);
        }
        Now { sums, waits, range }
    }

    /// The answer to `query`.
    pub fn report_at(&self, now: &Now, query: &Query) -> Report {
        report::build(&self.sources(Some(now)), query)
    }

    /// On which lock paths CPU time went.
    pub fn paths_at(&self, now: &Now, query: &PathQuery) -> Paths {
        report::paths(&self.sources(Some(now)), query)
    }

    /// Forgets what was counted; goes on counting.
    pub fn restart(&mut self) {
        if let Some((_, last)) = self.stages.tables.span() {
            self.stages.tables.restart(last);
        }
    }

    /// As a range of time; `None` for all of it.
    fn range(&self, when: When) -> Option<TimeRange> {
        let first = self.span().from;
        match when {
            When::Always => None,
            When::Last(length) => self.stages.tables.timeline()?.last(length),
            When::Between(from, to) => Some(TimeRange { from: first + from, to: first + to }),
        }
    }

    /// Waits that would be left if the recording ended now.
    fn lasting(&mut self) -> Vec<Wait> {
        let mut lasting = Vec::new();
        self.stages.correlate.clone().finish(&mut |observation| {
            if let Observation::Wait(wait) = observation {
                lasting.push(wait);
            }
        });
        let stages = &mut self.stages;
        for wait in &lasting {
            stages.attribution.facts(wait.kernel_stack, &stages.kernel, &stages.stacks);
        }
        lasting
    }

    fn add_lasting(&self, wait: &Wait, inside: TimeRange, waits: &mut HashMap<CellKey, WaitStat>) {
        let stages = &self.stages;
        let states = stages.lives.as_ref().map(super::Lives::states);
        let waiter = stages.tasks.info(wait.task).id;
        let phases = |range| phases(states, (wait, waiter), range);
        if let Some((key, mut stat)) = stages.tables.cell_of(wait, inside, &phases) {
            if wait.outcome == Outcome::Open {
                (stat.waiting, stat.oldest) = (1, wait.full());
            }
            waits.entry(key).or_default().merge(&stat);
        }
    }
}
