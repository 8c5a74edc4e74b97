//! What the queues of locks did: sums by lock.
//!
//! In: stretches of time in which a queue was not empty. Out: a bounded table. When it is full, the
//! locks that were waited for least merge into one entry for each kind.

use hashbrown::HashMap;

use super::blame::fold;
use crate::correlate::Busy;
use crate::model::{LockAddr, LockKind, Nanos, QueueStat, TimeRange};

/// Whose queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey {
    /// The kind of lock.
    pub kind: LockKind,
    /// The lock; `None` for folded ones.
    pub lock: Option<LockAddr>,
}

impl QueueKey {
    fn parent(self) -> Option<QueueKey> {
        self.lock.map(|_| QueueKey { lock: None, ..self })
    }
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct QueueTable {
    pub(super) queues: HashMap<QueueKey, QueueStat>,
    /// Locks that were merged into their kind.
    pub(super) folded: u64,
}

impl QueueTable {
    /// Adds a stretch; its convoy counts where it ends.
    pub(super) fn add(&mut self, stretch: &Busy, range: TimeRange, limit: usize) {
        let time = range.clip(stretch.from, stretch.to);
        let ends_inside = range.contains(stretch.to);
        if time == Nanos::ZERO && !ends_inside {
            return;
        }
        let key = QueueKey { kind: stretch.lock.kind, lock: Some(stretch.lock.addr) };
        let mut stat = QueueStat {
            busy: time,
            readers: stretch.readers,
            writers: stretch.writers,
            most_readers: stretch.most_readers,
            most_writers: stretch.most_writers,
            doubtful: u64::from(stretch.doubtful),
            ..QueueStat::default()
        };
        if stretch.is_convoy() && ends_inside {
            stat.convoys = 1;
            stat.convoy_waits = stretch.waits;
            stat.convoy_hand_overs = stretch.hand_overs;
            stat.convoy_time = time;
            stat.longest_waits = stretch.waits;
            stat.longest_time = time;
        }
        self.queues.entry(key).or_default().merge(&stat);
        if self.queues.len() > limit {
            let weight = |stat: &QueueStat| stat.readers + stat.writers;
            self.folded +=
                fold(&mut self.queues, limit, QueueKey::parent, weight, QueueStat::merge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::LockId;
    use crate::model::Timestamp;

    fn stretch(addr: u64, from: u64, to: u64) -> Busy {
        Busy {
            lock: LockId { addr: LockAddr(addr), kind: LockKind::Rwsem },
            from: Timestamp(from),
            to: Timestamp(to),
            waits: 3,
            hand_overs: 2,
            readers: Nanos::ZERO,
            writers: Nanos(to - from),
            most_readers: 0,
            most_writers: 2,
            doubtful: false,
        }
    }

    #[test]
    fn a_convoy_counts_where_it_ends_and_its_time_is_clipped() {
        let mut table = QueueTable::default();
        let range = TimeRange { from: Timestamp(100), to: Timestamp(200) };
        for (from, to) in [(50, 120), (150, 250), (10, 20)] {
            table.add(&stretch(1, from, to), range, 10);
        }
        let stat = table.queues.values().next().unwrap();
        assert_eq!((stat.convoys, stat.convoy_time, stat.busy), (1, Nanos(20), Nanos(70)));
    }

    #[test]
    fn a_full_table_folds_locks_into_their_kind_and_keeps_the_sums() {
        let mut table = QueueTable::default();
        (0..100).for_each(|n| table.add(&stretch(n, 0, 10 + n), TimeRange::ALL, 8));
        assert!(table.queues.len() <= 8 && table.folded > 0);
        let mut all = QueueStat::default();
        table.queues.values().for_each(|stat| all.merge(stat));
        assert_eq!((all.convoys, all.convoy_waits), (100, 300));
        assert_eq!(all.writers, Nanos((0..100).map(|n| 10 + n).sum()));
    }
}
