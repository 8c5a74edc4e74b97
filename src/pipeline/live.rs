//! The answer while a recording runs: as if it had ended with the last event, or of its last seconds.
//!
//! In: a question, and a length of time. Out: a report in which waits that last are open, as long as
//! they have come to be.

use hashbrown::HashMap;

use super::Pipeline;
use crate::analyse::CellKey;
use crate::correlate::{Observation, phases};
use crate::model::{Nanos, Outcome, Query, TimeRange, Wait, WaitStat};
use crate::report::{self, Report};

impl Pipeline {
    /// The answer to `query` as of the last event; with `last`, of the slices of time that lie in the
    /// last so much of it. Gives the time that it speaks of where that is not all of it.
    ///
    /// Releasers, thread time and CPU time are always those of all the time.
    pub fn now(&mut self, query: &Query, last: Option<Nanos>) -> (Report, Option<TimeRange>) {
        let lasting = self.lasting();
        self.advance();
        let tables = &self.stages.tables;
        let (mut waits, range) = match (last, tables.timeline()) {
            (Some(length), Some(timeline)) => timeline.last(length),
            _ => (tables.waits().map(|(key, stat)| (*key, stat.clone())).collect(), None),
        };
        for wait in &lasting {
            self.add_lasting(wait, range.unwrap_or(TimeRange::ALL), &mut waits);
        }
        (report::build(&self.sources(Some(&waits)), query), range)
    }

    /// Forgets what was counted; goes on counting.
    pub fn restart(&mut self) {
        if let Some((_, last)) = self.stages.tables.span() {
            self.stages.tables.restart(last);
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

    /// Time goes on where nobody waits, too.
    fn advance(&mut self) {
        let stages = &mut self.stages;
        let attribution = &stages.attribution;
        stages.tables.advance(|stack| attribution.known(stack).and_then(|facts| facts.site.caller));
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
