//! Readers against writers of a row: the two sides, and the queues of its locks.
//!
//! In: cells, or a row that is made of them. Out: what each side waited and behind whom ([`Sides`]), and
//! what the queues of the row's locks did, each lock once.

use std::collections::BTreeSet;

use super::report::Row;
use super::sources::Sources;
use crate::analyse::{CellKey, QueueKey};
use crate::model::{Behind, LockKind, Mode, Nanos, QueueStat, WaitStat};

/// What one side of a lock waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Waits begun.
    pub contended: u64,
    /// Time inside waits that the tracepoints saw: what [`Side::behind`] adds up to.
    pub traced: Nanos,
    /// The same, and what was spun unseen.
    pub wait: Nanos,
    /// Whom the traced waits stood behind.
    pub behind: Behind,
}

impl Side {
    fn add(&mut self, stat: &WaitStat) {
        self.contended += stat.contended();
        self.traced += stat.traced();
        self.wait += stat.wait();
        self.behind.merge(stat.behind);
    }
}

/// Readers and writers of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// Who asked for read.
    pub readers: Option<Side>,
    /// Who asked for write.
    pub writers: Option<Side>,
}

impl Row {
    /// Its readers and writers; `None` when it has neither, and for pieces of waits.
    pub fn sides(&self) -> Option<Sides> {
        if self.key.releaser.is_some() {
            return None;
        }
        let mut sides = Sides::default();
        for split in &self.splits {
            let side = match split.lock_type.mode {
                Mode::Read => &mut sides.readers,
                Mode::Write => &mut sides.writers,
                Mode::Exclusive => continue,
            };
            side.get_or_insert_default().add(&split.stat);
        }
        (sides != Sides::default()).then_some(sides)
    }
}

/// What the queues of the locks of these cells did; `None` where no queue was followed.
pub(super) fn queue_of<'a>(
    sources: &Sources<'_>,
    cells: impl Iterator<Item = &'a CellKey>,
) -> Option<QueueStat> {
    let shared = cells.filter(|key| key.lock_type.mode != Mode::Exclusive);
    let locks: BTreeSet<(LockKind, _)> =
        shared.filter_map(|key| Some((key.lock_type.kind, key.lock?))).collect();
    let keys = locks.into_iter().map(|(kind, lock)| QueueKey { kind, lock: Some(lock) });
    let mut found = keys.filter_map(|key| sources.sums.queue(&key)).peekable();
    found.peek()?;
    let mut all = QueueStat::default();
    found.for_each(|queue| all.merge(queue));
    Some(all)
}
