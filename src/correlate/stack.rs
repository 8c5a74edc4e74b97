//! The open waits of one task or one CPU: a short stack, the innermost wait last.
//!
//! In: a begin that opens, changes or replaces a wait of the stack. Out: the waits that it shows to
//! be over, counted. Every stack is short: a recording without ends must not make it grow.

use super::losses::{Losses, Seen};
use super::open::{Open, Part};
use super::{Counts, Observation};
use crate::model::{Cpu, LockAddr, Mode, Outcome, Timestamp, Wait};

/// Open waits of a task or a CPU at the most. Spinning ones nest four deep (task, softirq, hardirq,
/// NMI), sleeping ones two or three: a deeper stack is made of waits whose ends were lost.
const DEPTH: usize = 16;

/// What is remembered of a task while it waits.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskState {
    pub(super) opens: Vec<Open>,
    last: Option<Seen>,
    /// A writer's first half, ended; the begin of the second half may follow.
    pub(super) half: Option<(Open, Timestamp, Outcome)>,
}

impl TaskState {
    /// Whether nothing would be lost with it.
    pub(super) fn is_idle(&self) -> bool {
        self.opens.is_empty() && self.half.is_none()
    }

    /// The task is seen on `cpu`; `came`: it was not running there before.
    #[inline]
    pub(super) fn touch(&mut self, losses: &Losses, cpu: Cpu, came: bool) {
        self.mark_touched(losses, (!came).then_some(cpu));
        self.last = Some(losses.see(cpu));
    }

    /// Marks what the task waits for when records that it may have emitted were lost since it was last
    /// seen. `again`: where it is heard of, having run there before.
    pub(super) fn mark_touched(&mut self, losses: &Losses, again: Option<Cpu>) {
        if let Some(last) = self.last
            && losses.touched(last, again)
        {
            self.opens.iter_mut().for_each(|open| open.touched = true);
        }
    }

    /// A wait begins. `in_rw_lock`: for an rw lock of PREEMPT_RT or the rt-mutex in it.
    pub(super) fn begin(
        &mut self,
        open: Open,
        in_rw_lock: bool,
        counts: &mut Counts,
        out: &mut impl FnMut(Observation),
    ) {
        let open = Open { part: self.part_of(&open, in_rw_lock), ..open };
        let open = self.join_halves(open, counts, out);
        self.drop_touched(&open, counts, out);
        begin_in(&mut self.opens, open, counts, out);
    }

    /// No second half follows: the first half was the whole wait.
    pub(super) fn end_half(&mut self, counts: &mut Counts, out: &mut impl FnMut(Observation)) {
        if let Some((half, end, outcome)) = self.half.take() {
            emit_ended(&half.close(end, outcome), counts, out);
        }
    }

    /// What the wait that begins is of a longer one.
    fn part_of(&self, open: &Open, in_rw_lock: bool) -> Part {
        if !in_rw_lock || open.addr == open.lock {
            return Part::Whole;
        }
        let is_outer = |other: &Open| other.lock == open.lock && other.addr == open.lock;
        match open.lock_type.mode {
            _ if self.opens.iter().any(is_outer) => Part::Joined,
            Mode::Write => Part::FirstHalf,
            _ => Part::Whole,
        }
    }

    /// Lets the begin that follows a writer's first half go on with it; any other begin shows that
    /// the first half was all.
    fn join_halves(
        &mut self,
        open: Open,
        counts: &mut Counts,
        out: &mut impl FnMut(Observation),
    ) -> Open {
        let goes_on = |half: &Open| {
            half.lock == open.lock && half.lock_type == open.lock_type && open.addr == open.lock
        };
        if let Some((half, ..)) = self.half.take_if(|(half, ..)| goes_on(half)) {
            counts.joined_ends += 1;
            return Open { addr: open.addr, flags: open.flags, part: Part::SecondHalf, ..half };
        }
        self.end_half(counts, out);
        open
    }

    /// A task sleeps in one lock at a time: what was touched by a loss and is not waited for any more
    /// when it begins to wait for another lock ended unseen.
    fn drop_touched(
        &mut self,
        next: &Open,
        counts: &mut Counts,
        out: &mut impl FnMut(Observation),
    ) {
        self.opens.retain(|open| {
            let stale = open.touched && open.addr != next.addr;
            if stale {
                emit_cut(open, next.begin, counts, out);
            }
            !stale
        });
    }
}

/// Puts a wait that begins on a stack; makes place for it where an earlier one must have ended.
pub(super) fn begin_in(
    opens: &mut Vec<Open>,
    open: Open,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    let joins = matches!(open.part, Part::Joined | Part::SecondHalf);
    let same = opens.iter().rposition(|other| other.same_lock(&open));
    if let Some(at) = same
        && opens[at].changes_phase(open.flags)
    {
        opens[at].change_phase(open.flags, open.begin);
        counts.phases += 1;
        return;
    }
    *match same {
        _ if joins => &mut counts.joined,
        Some(_) => &mut counts.restarts,
        None => &mut counts.begun,
    } += 1;
    let over = same.or((opens.len() >= DEPTH).then_some(0));
    if let Some(old) = over.map(|at| opens.remove(at)) {
        emit_cut(&old, open.begin, counts, out);
    }
    if let Some(begun) = open.begun().filter(|_| !joins) {
        out(Observation::Begun(begun));
    }
    opens.push(open);
}

/// Takes the wait for the lock at `addr` out of its stack: the innermost of them.
#[inline]
pub(super) fn take(opens: &mut Vec<Open>, addr: LockAddr) -> Option<Open> {
    let at = opens.iter().rposition(|open| open.addr == addr)?;
    Some(opens.remove(at))
}

/// A wait whose own end was read.
pub(super) fn emit_ended(wait: &Wait, counts: &mut Counts, out: &mut impl FnMut(Observation)) {
    match wait.outcome {
        Outcome::Uncertain => {
            counts.uncertain += 1;
            counts.uncertain_ended += 1;
        }
        outcome => {
            counts.ended += 1;
            counts.failed += u64::from(outcome == Outcome::Failed);
            counts.backed_off += u64::from(outcome == Outcome::BackedOff);
        }
    }
    out(Observation::Wait(*wait));
}

/// A wait whose end was lost: at most until `time` it lasted.
pub(super) fn emit_cut(
    open: &Open,
    time: Timestamp,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    if open.part != Part::Joined {
        counts.uncertain += 1;
        out(Observation::Wait(open.close(time, Outcome::Uncertain)));
    }
}

/// A wait that did not end until `time`.
pub(super) fn emit_open(
    open: &Open,
    time: Timestamp,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    if open.part != Part::Joined {
        *if open.touched { &mut counts.uncertain } else { &mut counts.open } += 1;
        out(Observation::Wait(open.close(time, Outcome::Open)));
    }
}
