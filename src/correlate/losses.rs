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

use crate::model::{Cpu, Timestamp};

/// When rings lost records.
#[derive(Debug, Default)]
pub(super) struct Losses {
    by_cpu: HashMap<Cpu, Timestamp>,
    anywhere: Option<Timestamp>,
    unknown_cpu: Option<Timestamp>,
    /// Whether the recording tells where tasks ran.
    has_switches: bool,
}

/// What is known of where a task was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) cpu: Cpu,
    pub(super) time: Timestamp,
}

impl Losses {
    pub(super) fn new(has_switches: bool) -> Losses {
        Losses { has_switches, ..Losses::default() }
    }

    pub(super) fn add(&mut self, cpu: Option<Cpu>, time: Timestamp) {
        self.anywhere = Some(time);
        match cpu {
            Some(cpu) => {
                self.by_cpu.insert(cpu, time);
            }
            None => self.unknown_cpu = Some(time),
        }
    }

    /// Whether a task last seen at `last` may have emitted something that was lost, given that it is
    /// heard of again on `cpu`. `None`: it is not heard of again.
    pub(super) fn touched(&self, last: Seen, again: Option<Cpu>) -> bool {
        let after = |lost: Option<Timestamp>| lost.is_some_and(|lost| lost >= last.time);
        if !self.has_switches {
            return after(self.anywhere);
        }
        let on = |cpu: Cpu| after(self.by_cpu.get(&cpu).copied());
        after(self.unknown_cpu) || on(last.cpu) || again.is_some_and(on)
    }
}
