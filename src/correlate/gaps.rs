//! Where records of rings are missing, for those who look at it later.
//!
//! In: losses, in the order in which they are read. Out: the first one that touches somebody who was
//! last heard of before it. So no loss walks the tasks. Bounded: the oldest are forgotten, and counted.

use std::collections::VecDeque;

use crate::model::{Cpu, Timestamp};

/// Losses remembered.
const KEPT: usize = 1 << 10;

/// A ring dropped records after `from`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Whose ring; `None`: not known.
    pub(super) cpu: Option<Cpu>,
    pub(super) from: Timestamp,
}

/// The latest losses.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    latest: VecDeque<Gap>,
    /// How many there were before these.
    before: u64,
}

impl Gaps {
    pub(super) fn add(&mut self, gap: Gap) {
        if self.latest.len() >= KEPT {
            self.latest.pop_front();
            self.before += 1;
        }
        self.latest.push_back(gap);
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.before + self.latest.len() as u64
    }

    /// When the first one after `read` others began, of those that touch somebody: with a CPU only losses
    /// there do.
    pub(super) fn first_after(&self, read: u64, cpu: Option<Cpu>) -> Option<Timestamp> {
        if read >= self.count() {
            return None;
        }
        let Some(read) = read.checked_sub(self.before) else { return Some(Timestamp(0)) };
        let touches = |gap: &&Gap| cpu.is_none_or(|cpu| gap.cpu.is_none_or(|lost| lost == cpu));
        self.latest.range(read as usize..).find(touches).map(|gap| gap.from)
    }
}
