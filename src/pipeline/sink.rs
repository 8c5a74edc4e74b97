//! Where observations go: attribute, then analyse.
//!
//! In: waits and CPU samples from correlate. Out: counted in the tables, each wait with its phases, and
//! cut into pieces that are charged to who ended them; of locks with readers and writers also whom it
//! stood behind.

use crate::analyse::Tables;
use crate::attribute::{Attribution, Standing, standings};
use crate::correlate::{
    Observation, Piece, PieceEnd, Queues, RunStates, Tasks, Wakeups, holder, phases,
};
use crate::kernel::Kernel;
use crate::model::{HolderTimes, Mode, Wait};
use crate::stacks::Stacks;

/// Where observations go, with the books they need.
pub(super) struct Sink<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) stacks: &'a Stacks,
    pub(super) tasks: &'a Tasks,
    pub(super) states: Option<&'a RunStates>,
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
            Observation::Wait(wait) => self.take_wait(&wait),
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

    fn take_wait(&mut self, wait: &Wait) {
        let Sink { kernel, stacks, attribution, .. } = self;
        attribution.facts(wait.kernel_stack, kernel, stacks);
        let shared = wait.lock_type.mode != Mode::Exclusive;
        if shared { self.shared_lock(wait) } else { self.exclusive_lock(wait) }
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
        let Sink { tasks, states, tables, attribution, .. } = self;
        let known = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
        let waiter = tasks.info(wait.task).id;
        tables.add_wait(wait, parts, |inside| phases(*states, (wait, waiter), inside), known);
    }

    /// Charges each piece of a wait to who ended it.
    fn charge(&mut self, wait: &Wait, each: &mut impl FnMut(Piece)) {
        let Sink { tasks, states, wakeups, tables, attribution, .. } = self;
        let Some(wakeups) = wakeups else { return };
        wakeups.cut(wait, &mut |piece: Piece| {
            let charged = (wait, &piece);
            tables.add_piece(
                charged,
                |inside, sleeps| match piece.end {
                    PieceEnd::HandOver(by) => {
                        let id = tasks.info(by.task).id;
                        holder(*states, charged, id, inside, sleeps)
                    }
                    PieceEnd::Uncharged(_) => HolderTimes::default(),
                },
                attribution,
            );
            each(piece);
        });
    }
}
