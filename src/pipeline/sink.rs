//! Where observations go: attribute, then analyse.
//!
//! In: waits and CPU samples from correlate. Out: counted in the tables, each wait cut into pieces that
//! are charged to who ended them; of locks with readers and writers also whom it stood behind.

use crate::analyse::Tables;
use crate::attribute::{Attribution, standings};
use crate::correlate::{Observation, Piece, Queues, Wakeups};
use crate::kernel::Kernel;
use crate::model::{Mode, Wait};
use crate::stacks::Stacks;

/// Where observations go, with the books they need.
pub(super) struct Sink<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) stacks: &'a Stacks,
    pub(super) attribution: &'a mut Attribution,
    pub(super) wakeups: &'a Option<Wakeups>,
    pub(super) queues: &'a mut Queues,
    pub(super) tables: &'a mut Tables,
}

impl Sink<'_> {
    #[inline]
    pub(super) fn take(&mut self, observation: Observation) {
        let Sink { kernel, stacks, attribution, tables, .. } = self;
        match observation {
            Observation::Begun(begun) => self.queues.begin(&begun),
            Observation::Wait(wait) => {
                attribution.facts(wait.kernel_stack, kernel, stacks);
                let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
                tables.add_wait(&wait, known);
                let shared = wait.lock_type.mode != Mode::Exclusive;
                if shared { self.shared_lock(&wait) } else { self.charge(&wait, &mut |_| ()) }
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

    /// Charges each piece of a wait to who ended it.
    fn charge(&mut self, wait: &Wait, each: &mut impl FnMut(Piece)) {
        let Sink { wakeups, tables, attribution, .. } = self;
        if let Some(wakeups) = wakeups {
            wakeups.cut(wait, &mut |piece| {
                tables.add_piece(wait, &piece, attribution);
                each(piece);
            });
        }
    }

    /// The same for a lock with readers and writers, whose queue says more.
    fn shared_lock(&mut self, wait: &Wait) {
        let mut pieces = Vec::new();
        self.charge(wait, &mut |piece| pieces.push(piece));
        let left = self.queues.end(wait);
        let parts = standings(wait, &pieces, left.writer_ahead, self.attribution);
        self.tables.add_standings(wait, &parts);
        if let Some(stretch) = left.stretch {
            self.tables.add_stretch(&stretch);
        }
    }
}
