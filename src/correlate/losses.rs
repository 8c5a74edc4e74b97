//! Which open waits a full ring may have cut or joined.
//!
//! A LOST record says that its ring dropped records since the record before it. A wait is touched by
//! the loss when its task could have emitted an event into that ring meanwhile:
//!
//! ```text
//!   CPU 1   ... begin(T)  switch-out(T) .......................... switch-in(T)  end(T)
//!   CPU 2   ...............................x LOST .......   T was not there: T is certain
//!   CPU 1   ...............................x LOST .......   T ran there last: T is uncertain
//! ```
//!
//! Losses are remembered by CPU and looked at when the task is heard of again: each event costs two
//! look-ups, however many waits are open. Without switch records nobody knows where a task ran, and
//! every loss touches every sleeping wait.

use hashbrown::HashMap;

use super::open::UNKNOWN_CPU;
use crate::model::Cpu;

/// Which rings lost records, and how long ago. Losses are numbered in the order in which they are read:
/// the record behind a loss carries the very time of the LOST record.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// How many there were.
    count: u64,
    /// The latest of each CPU.
    by_cpu: HashMap<Cpu, u64>,
    /// The latest of a ring that does not say whose it is.
    unknown_cpu: u64,
    /// Whether the recording tells where tasks ran.
    has_switches: bool,
}

/// What is known of where a task was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    cpu: Cpu,
    /// Losses read before.
    losses: u64,
}

impl Losses {
    pub(super) fn new(has_switches: bool) -> Losses {
        Losses { has_switches, ..Losses::default() }
    }

    /// From here on nobody knows where tasks run: records of switches are missing.
    pub(super) fn doubt_switches(&mut self) {
        self.has_switches = false;
    }

    pub(super) fn add(&mut self, cpu: Option<Cpu>) {
        self.count += 1;
        match cpu {
            Some(cpu) => {
                self.by_cpu.insert(cpu, self.count);
            }
            None => self.unknown_cpu = self.count,
        }
    }

    /// A task is seen on `cpu` now.
    pub(super) fn see(&self, cpu: Cpu) -> Seen {
        Seen { cpu, losses: self.count }
    }

    /// Whether a task last seen at `last` may have emitted something that was lost, given that it is
    /// heard of again on `again`. `None`: it is not heard of again, or was not there before.
    pub(super) fn touched(&self, last: Seen, again: Option<Cpu>) -> bool {
        let since = |loss: u64| loss > last.losses;
        if !since(self.count) {
            return false;
        }
        let on =
            |cpu: Cpu| cpu == UNKNOWN_CPU || self.by_cpu.get(&cpu).is_some_and(|&loss| since(loss));
        !self.has_switches || since(self.unknown_cpu) || on(last.cpu) || again.is_some_and(on)
    }
}
