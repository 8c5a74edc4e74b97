//! What correlate hands on.

use super::identity::Identity;
use super::open::KindSet;
use super::queues::Begun;
use crate::model::{Cpu, Nanos, StackId, TaskRef, Timestamp, Wait};

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A wait for a lock with readers and writers begins: a [`Observation::Wait`] follows.
    Begun(Begun),
    /// A wait, with its outcome.
    Wait(Wait),
    /// The same, known by sleeps alone, for this lock.
    Slept(Wait, Identity),
    /// A CPU sample.
    Sample(Sample),
}

/// A CPU sample and what its task was waiting for meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whom the CPU ran.
    pub task: TaskRef,
    /// The idle task.
    pub idle: bool,
    /// Where.
    pub cpu: Cpu,
    /// When.
    pub time: Timestamp,
    /// How much time it stands for.
    pub weight: Nanos,
    /// Kernel part of its stack.
    pub kernel_stack: StackId,
    /// User part.
    pub user_stack: StackId,
    /// Locks that the task, or its CPU, has open waits for.
    pub waiting: KindSet,
}
