//! Where observations go: attribute, then analyse.
//!
//! In: waits and CPU samples from correlate. Out: counted in the tables, each wait cut into pieces that
//! are charged to who ended them; of locks with readers and writers also whom it stood behind.

use crate::analyse::Tables;
use crate::attribute::{Attribution, Standing, standings};
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
        match observation {
            Observation::Begun(begun) => self.queues.begin(&begun),
            Observation::Wait(wait) => {
                let Sink { kernel, stacks, attribution, .. } = self;
                attribution.facts(wait.kernel_stack, kernel, stacks);
                let shared = wait.lock_type.mode != Mode::Exclusive;
                if shared { self.shared_lock(&wait) } else { self.exclusive_lock(&wait) }
            }
            Observation::Sample(sample) => {
                let Sink { kernel, stacks, attribution, tables, .. } = self;
                attribution.facts(sample.kernel_stack, kernel, stacks);
                let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
                if let Some(facts) = attribution.known(sample.kernel_stack) {
                    tables.add_sample(&sample, facts, known);
                }
            }
        }
    }

    fn exclusive_lock(&mut self, wait: &Wait) {
        self.count(wait, &[]);
        self.charge(wait, &mut |_| ());
    }

    /// The queue of a lock with readers and writers says more than who ended the pieces of a wait.
    fn shared_lock(&mut self, wait: &Wait) {
        let mut pieces = Vec::new();
        self.charge(wait, &mut |piece| pieces.push(piece));
        let left = self.queues.end(wait);
        let parts = standings(wait, &pieces, left.writer_ahead, self.attribution);
        self.count(wait, &parts);
        if let Some(stretch) = left.stretch {
            self.tables.add_stretch(&stretch);
        }
    }

    fn count(&mut self, wait: &Wait, parts: &[Standing]) {
        let Sink { tables, attribution, .. } = self;
        let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
        tables.add_wait(wait, parts, known);
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
}
