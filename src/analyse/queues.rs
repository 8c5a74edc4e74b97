//! What the queues of locks did: sums by lock.
//!
//! In: waits that stood in a queue, and stretches of time in which a queue was not empty. Out: sums.
//! When their table is full, the locks that were waited for least merge into one for each kind.

use super::sums::Sums;
use super::table::Key;
use crate::attribute::Attribution;
use crate::correlate::{Busy, LockId};
use crate::model::{LockAddr, LockKind, Mode, Nanos, QueueStat, TimeRange, Wait};

/// Whose queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey {
    /// The kind of lock.
    pub kind: LockKind,
    /// The lock; `None` for folded ones.
    pub lock: Option<LockAddr>,
}

impl QueueKey {
    fn of(lock: LockId) -> QueueKey {
        QueueKey { kind: lock.kind, lock: Some(lock.addr) }
    }
}

impl Key for QueueKey {
    fn parent(self, _: &Attribution) -> Option<QueueKey> {
        self.lock.map(|_| QueueKey { lock: None, ..self })
    }
}

impl Sums {
    /// Adds the waiting of one that stood in a queue.
    pub(super) fn add_queued(&mut self, wait: &Wait, range: TimeRange) {
        let time = range.clip(wait.begin, wait.end);
        if time == Nanos::ZERO {
            return;
        }
        let lock = LockId { addr: wait.lock, kind: wait.lock_type.kind };
        let stat = self.queues.cell(QueueKey::of(lock));
        match wait.lock_type.mode {
            Mode::Write => stat.writers += time,
            Mode::Read | Mode::Exclusive => stat.readers += time,
        }
    }

    /// Adds a stretch; its convoy counts where it ends.
    pub(super) fn add_stretch(&mut self, stretch: &Busy, range: TimeRange) {
        let time = range.clip(stretch.from, stretch.to);
        let ends_inside = range.contains(stretch.to);
        if time == Nanos::ZERO && !ends_inside {
            return;
        }
        let is_convoy = stretch.is_convoy();
        let mut stat = QueueStat {
            busy: time,
            most_readers: stretch.most_readers,
            most_writers: stretch.most_writers,
            convoy_time: if is_convoy { time } else { Nanos::ZERO },
            doubtful: u64::from(stretch.doubtful && ends_inside),
            ..QueueStat::default()
        };
        if is_convoy && ends_inside {
            stat.convoys = 1;
            stat.convoy_waits = stretch.waits;
            stat.convoy_hand_overs = stretch.hand_overs;
            stat.longest_waits = stretch.waits;
            stat.longest_time = stretch.to.since(stretch.from);
        }
        self.queues.cell(QueueKey::of(stretch.lock)).merge(&stat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn stretch(addr: u64, from: u64, to: u64) -> Busy {
        Busy {
            lock: LockId { addr: LockAddr(addr), kind: LockKind::Rwsem },
            from: Timestamp(from),
            to: Timestamp(to),
            waits: 3,
            hand_overs: 2,
            most_readers: 0,
            most_writers: 2,
            doubtful: false,
        }
    }

    #[test]
    fn a_convoy_counts_where_it_ends_and_its_time_is_clipped() {
        let mut sums = Sums::default();
        let range = TimeRange { from: Timestamp(100), to: Timestamp(200) };
        for (from, to) in [(50, 120), (150, 250), (10, 20)] {
            sums.add_stretch(&stretch(1, from, to), range);
        }
        let stat = sums.queue(&QueueKey::of(stretch(1, 0, 0).lock)).unwrap();
        assert_eq!((stat.convoys, stat.convoy_time, stat.busy), (1, Nanos(70), Nanos(70)));
        assert_eq!((stat.longest_waits, stat.longest_time), (3, Nanos(70)));
    }

    #[test]
    fn a_full_table_folds_locks_into_their_kind_and_keeps_the_sums() {
        let mut sums = Sums::default();
        for n in 0..100 {
            sums.add_stretch(&stretch(n, 0, 10 + n), TimeRange::ALL);
            sums.make_room(8, &Attribution::default());
        }
        assert!(sums.queues.iter().count() <= 8 && sums.folded() > 0);
        let mut all = QueueStat::default();
        sums.queues.iter().for_each(|(_, stat)| all.merge(stat));
        assert_eq!((all.convoys, all.convoy_waits), (100, 300));
        assert_eq!(all.busy, Nanos((0..100).map(|n| 10 + n).sum()));
    }
}
