//! What a task does between two switches: the words for it.
//!
//! In: the fields of switch records. Out: states, stretches of time in one of them, sums of such.

use crate::model::{Nanos, StackId, TaskId, Timestamp};

/// What a task does between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has a CPU.
    Running,
    /// It could run and has no CPU: woken, preempted, or it yielded.
    Runnable,
    /// It sleeps, with the kernel part of the stack that it went to sleep on; [`StackId::EMPTY`] where
    /// that was not recorded.
    Asleep(StackId),
}

/// A task was in one state from `from` until just before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Who.
    pub task: TaskId,
    /// Its first moment.
    pub from: Timestamp,
    /// The moment after it.
    pub to: Timestamp,
    /// What it did.
    pub state: RunState,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// To sleep, on this stack.
    Asleep(StackId),
    /// It could go on: preempted, or `prev_state` was `TASK_RUNNING`.
    Preempted,
    /// For good.
    Dead,
}

impl Leaving {
    /// From `prev_state` of `sched:sched_switch` (`include/trace/events/sched.h`): the low bits say what
    /// the task waits for, 0 is running; `EXIT_DEAD` and `EXIT_ZOMBIE` are 0x10 and 0x20 in either
    /// order. Preempted tasks have a higher bit alone, another in every era, 0x100 since 4.14.
    pub fn from_prev_state(prev_state: u64, stack: StackId) -> Leaving {
        match prev_state & 0xff {
            0 => Leaving::Preempted,
            state if state & 0x30 != 0 => Leaving::Dead,
            _ => Leaving::Asleep(stack),
        }
    }
}

/// How much of a piece of time a task spent in each state. The four add up to the piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    /// With a CPU.
    pub running: Nanos,
    /// Without, though it could run.
    pub runnable: Nanos,
    /// Asleep.
    pub asleep: Nanos,
    /// Not recorded, lost or forgotten.
    pub unknown: Nanos,
}

impl StateTimes {
    /// Adds a stretch to the time of its state.
    pub fn add(&mut self, stretch: &Stretch) {
        *match stretch.state {
            RunState::Running => &mut self.running,
            RunState::Runnable => &mut self.runnable,
            RunState::Asleep(_) => &mut self.asleep,
        } += stretch.to.since(stretch.from);
    }
}
