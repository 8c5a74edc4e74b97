//! Where observations go: attribute, then analyse.
//!
//! In: waits and CPU samples from correlate. Out: counted in the tables, each wait with its phases, and
//! cut into pieces that are charged to who ended them; of locks with readers and writers also whom it
//! stood behind.

use crate::analyse::Tables;
use crate::attribute::{Attribution, standings};
use crate::correlate::{
    Charge, Identity, Observation, Piece, PieceEnd, Queues, RunStates, Tasks, Wakeups, holder,
    phases,
};
use crate::kernel::Kernel;
use crate::model::{HolderTimes, Mode, Timestamp, Wait};
use crate::stacks::Stacks;

/// Where observations go, with the books they need.
pub(super) struct Sink<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) stacks: &'a Stacks,
    pub(super) tasks: &'a Tasks,
    pub(super) states: Option<&'a RunStates>,
    pub(super) attribution: &'a mut Attribution,
    pub(super) wakeups: &'a mut Option<Wakeups>,
    pub(super) queues: &'a mut Queues,
    pub(super) tables: &'a mut Tables,
}

impl Sink<'_> {
    #[inline]
    pub(super) fn take(&mut self, observation: Observation) {
        match observation {
            Observation::Begun(begun) => self.queues.begin(&begun),
            Observation::Wait(wait) => self.take_wait(&wait, None),
            Observation::Slept(wait, lock) => self.take_wait(&wait, Some(lock)),
            Observation::Sample(sample) => {
                let Sink { kernel, stacks, attribution, tables, .. } = self;
                attribution.facts(sample.kernel_stack, kernel, stacks);
                if let Some(facts) = attribution.known(sample.kernel_stack) {
                    tables.add_sample(&sample, facts, attribution);
                }
            }
        }
    }

    /// `slept_for`: of a wait that is known by sleeps alone, which lock it is for.
    fn take_wait(&mut self, wait: &Wait, slept_for: Option<Identity>) {
        let Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables } = self;
        attribution.facts(wait.kernel_stack, kernel, stacks);
        let waiter = tasks.info(wait.task).id;
        tables.add_wait(wait, |inside| phases(*states, (wait, waiter), inside), attribution);
        let wait = match wait.lock_type.mode {
            Mode::Exclusive => *wait,
            Mode::Read | Mode::Write => {
                let left = queues.end(wait);
                if left.writer_ahead.is_some() {
                    tables.add_queued(wait, attribution);
                }
                left.stretch.iter().for_each(|busy| tables.add_stretch(busy, attribution));
                Wait { writer_ahead: left.writer_ahead, ..*wait }
            }
        };
        let mut counter = Counter { tables, attribution, tasks, states: *states };
        match (wakeups, slept_for) {
            (Some(wakeups), None) => wakeups.charge(&wait, &mut |charge| counter.count(charge)),
            (Some(wakeups), Some(lock)) => {
                wakeups.charge_now(&wait, lock, &mut |charge| counter.count(charge));
            }
            (None, _) => counter.count(Charge::Whole(&wait, &[])),
        }
    }

    /// Counts the waits of whose hand-overs all is known at `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Timestamp) {
        self.charge(|wakeups, counter| wakeups.settle(now, &mut |charge| counter.count(charge)));
    }

    /// Counts the waits that are left.
    pub(super) fn finish(&mut self) {
        self.charge(|wakeups, counter| wakeups.finish(&mut |charge| counter.count(charge)));
    }

    #[inline]
    fn charge(&mut self, charge: impl FnOnce(&mut Wakeups, &mut Counter<'_>)) {
        let Sink { tasks, states, attribution, wakeups, tables, .. } = self;
        if let Some(wakeups) = wakeups {
            charge(wakeups, &mut Counter { tables, attribution, tasks, states: *states });
        }
    }
}

/// Counts what is charged, with what its holder did meanwhile, and whom the waiter stood behind.
struct Counter<'a> {
    tables: &'a mut Tables,
    attribution: &'a Attribution,
    tasks: &'a Tasks,
    states: Option<&'a RunStates>,
}

impl Counter<'_> {
    fn count(&mut self, charge: Charge<'_>) {
        let Counter { tables, attribution, .. } = self;
        match charge {
            Charge::Piece(wait, piece) => self.count_piece(wait, &piece),
            Charge::Through(wait, part) => tables.add_through(wait, part, attribution),
            Charge::Hold(hold) => tables.add_hold(&hold, attribution),
            Charge::Whole(wait, _) if wait.lock_type.mode == Mode::Exclusive => {}
            Charge::Whole(wait, pieces) => {
                let parts = standings(wait, pieces, attribution);
                tables.add_standings(wait, &parts, attribution);
            }
        }
    }

    fn count_piece(&mut self, wait: &Wait, piece: &Piece) {
        let Counter { tables, attribution, tasks, states } = self;
        let charged = (wait, piece);
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
    }
}
