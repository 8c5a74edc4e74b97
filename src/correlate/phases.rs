//! What part of a wait was what.
//!
//! ```text
//!   waiter   spin ▒▒▒|asleep ·············|runnable ░░░|rest ▒|          adds up to the wait
//!   holder   running ▓▓▓|runnable ░░░░|running ▓▓▓|                      adds up to the piece
//!                                                 ^ hand-over
//! ```
//!
//! In: a wait or a piece of one, and the book of what tasks did. Out: how much of its own time its task
//! spent in each state, to the nanosecond, whatever range of time is asked for. A holder is who handed
//! the lock over at the end of the piece.

use super::{Piece, PieceEnd, RunState, RunStates, Stretch};
use crate::model::{
    HandOverKind, HolderTimes, Nanos, PhaseTimes, StackId, TaskId, TimeRange, Timestamp, Wait,
};

/// The phases of a wait of `waiter` inside a range of time.
pub fn phases(
    states: Option<&RunStates>,
    (wait, waiter): (&Wait, TaskId),
    inside: TimeRange,
) -> PhaseTimes {
    let own = wait.own_inside(inside);
    if wait.spun >= wait.full() {
        return PhaseTimes { spin: own, ..PhaseTimes::default() };
    }
    let mut phases = PhaseTimes::default();
    let mut ran = Ran::default();
    let known = |stretch: Stretch| {
        let range = TimeRange { from: stretch.from, to: stretch.to };
        let part = wait.own_inside(range.both(inside));
        match stretch.state {
            RunState::Running => ran.add(wait, range, inside),
            RunState::Runnable => phases.runnable += part,
            RunState::Asleep(_) => phases.asleep += part,
        }
    };
    stretches(states, waiter, (wait.begin, wait.end), known);
    phases.unknown = own.saturating_sub(ran.inside + phases.runnable + phases.asleep);
    match states {
        Some(_) => {
            phases.spin = ran.spinning(wait);
            phases.rest = ran.inside.saturating_sub(phases.spin);
        }
        None => {
            let mut all = Ran::default();
            all.add(wait, TimeRange::ALL, inside);
            phases.spin = all.spinning(wait);
            phases.unknown = phases.unknown.saturating_sub(phases.spin);
        }
    }
    phases
}

/// What the holder did in a piece of a wait inside a range of time; on which stacks it slept, and how
/// much of the wait that was.
pub fn holder(
    states: Option<&RunStates>,
    (wait, piece): (&Wait, &Piece),
    holder: TaskId,
    inside: TimeRange,
    sleeps: &mut dyn FnMut(StackId, Nanos),
) -> HolderTimes {
    let PieceEnd::HandOver(by) = piece.end else { return HolderTimes::default() };
    let mut times = HolderTimes::default();
    let mut known = |stretch: Stretch| {
        let range = TimeRange { from: stretch.from, to: stretch.to };
        let part = wait.own_inside(range.both(inside));
        match stretch.state {
            RunState::Running => times.running += part,
            RunState::Runnable => times.runnable += part,
            RunState::Asleep(stack) => {
                times.asleep += part;
                sleeps(stack, part);
            }
        }
    };
    // Who passes a lock on waits for it as well: another one holds it.
    if by.kind == HandOverKind::Release {
        stretches(states, holder, (piece.from, piece.to), &mut known);
    }
    let whole = TimeRange { from: piece.from, to: piece.to }.both(inside);
    times.unknown = wait.own_inside(whole).saturating_sub(times.known());
    times
}

/// Time on a CPU during a wait. Which of it was spinning is not known, only how much: each part of it
/// spins alike.
#[derive(Default)]
struct Ran {
    all: Nanos,
    before: Nanos,
    inside: Nanos,
}

impl Ran {
    fn add(&mut self, wait: &Wait, range: TimeRange, inside: TimeRange) {
        let before = TimeRange { from: Timestamp(0), to: inside.from };
        self.all += wait.own_inside(range);
        self.before += wait.own_inside(range.both(before));
        self.inside += wait.own_inside(range.both(inside));
    }

    /// Spinning inside the range: what was spun until its end without what was spun before.
    fn spinning(&self, wait: &Wait) -> Nanos {
        let spun = scaled(wait.spun, wait.own(), wait.full()).min(self.all);
        let until = |ran: Nanos| scaled(spun, ran, self.all);
        until(self.before + self.inside).saturating_sub(until(self.before))
    }
}

fn stretches(
    states: Option<&RunStates>,
    task: TaskId,
    (from, to): (Timestamp, Timestamp),
    mut out: impl FnMut(Stretch),
) {
    states.into_iter().for_each(|states| states.stretches(task, from, to, &mut out));
}

/// `time * part / whole`, rounded down.
fn scaled(time: Nanos, part: Nanos, whole: Nanos) -> Nanos {
    let product = u128::from(time.0) * u128::from(part.0);
    Nanos(product.checked_div(u128::from(whole.0)).unwrap_or(0) as u64)
}
