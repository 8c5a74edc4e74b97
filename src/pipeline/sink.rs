//! Where observations go: attribute, then analyse.
//!
//! In: waits and CPU samples from correlate. Out: counted in the tables, each wait cut into pieces that
//! are charged to who ended them.

use crate::analyse::Tables;
use crate::attribute::Attribution;
use crate::correlate::{Charge, Observation, Wakeups};
use crate::kernel::Kernel;
use crate::model::Timestamp;
use crate::stacks::Stacks;

/// Where observations go, with the books they need.
pub(super) struct Sink<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) stacks: &'a Stacks,
    pub(super) attribution: &'a mut Attribution,
    pub(super) wakeups: &'a mut Option<Wakeups>,
    pub(super) tables: &'a mut Tables,
}

impl Sink<'_> {
    #[inline]
    pub(super) fn take(&mut self, observation: Observation) {
        let Sink { kernel, stacks, attribution, wakeups, tables } = self;
        match observation {
            Observation::Wait(wait) => {
                attribution.facts(wait.kernel_stack, kernel, stacks);
                let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
                tables.add_wait(&wait, known);
                if let Some(wakeups) = wakeups {
                    wakeups.charge(&wait, &mut |charge| count(tables, attribution, charge));
                }
            }
            Observation::Sample(sample) => {
                attribution.facts(sample.kernel_stack, kernel, stacks);
                let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
                if let Some(facts) = attribution.known(sample.kernel_stack) {
                    tables.add_sample(&sample, facts, known);
                }
            }
        }
    }
    /// Counts the waits of whose hand-overs all is known at `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Timestamp) {
        let Sink { attribution, wakeups, tables, .. } = self;
        if let Some(wakeups) = wakeups {
            wakeups.settle(now, &mut |charge| count(tables, attribution, charge));
        }
    }
}

fn count(tables: &mut Tables, attribution: &Attribution, charge: Charge<'_>) {
    match charge {
        Charge::Piece(wait, piece) => tables.add_piece(wait, &piece, attribution),
        Charge::Through(wait, part) => tables.add_through(wait, part, attribution),
        Charge::Hold(hold) => tables.add_hold(&hold, attribution),
    }
}
