//! A table: sums by key, in bounded memory.
//!
//! In: what is counted for a key. Out: cells, in no order. When a table is full, the cells that weigh
//! least merge into their parents until half of it is free: what they add up to stays exact, and how
//! many keys were folded is counted.

use std::hash::Hash;

use hashbrown::HashMap;

use crate::attribute::Attribution;
use crate::model::{Nanos, QueueStat, Spun, Stat, WaitStat};

/// A key that says less and less.
pub(super) trait Key: Copy + Ord + Hash {
    /// The key that this one merges into; `None` for one that has nothing left to give up.
    fn parent(self, attribution: &Attribution) -> Option<Self>;
}

/// What is counted for a key.
pub(super) trait Sum: Default {
    /// Adds everything that `other` counted.
    fn merge(&mut self, other: &Self);

    /// What weighs least is folded first.
    fn weight(&self) -> Nanos;
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Table<K, S> {
    cells: HashMap<K, S>,
    folded: u64,
}

impl<K, S> Default for Table<K, S> {
    fn default() -> Table<K, S> {
        Table { cells: HashMap::new(), folded: 0 }
    }
}

impl<K: Key, S: Sum> Table<K, S> {
    /// The cell of `key`, to count in.
    #[inline]
    pub(super) fn cell(&mut self, key: K) -> &mut S {
        self.cells.entry(key).or_default()
    }

    /// The cell of `key`, where there is one.
    pub(super) fn get(&self, key: &K) -> Option<(&K, &S)> {
        self.cells.get_key_value(key)
    }

    /// All cells, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &S)> {
        self.cells.iter()
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Keys that were merged into their parents.
    pub(super) fn folded(&self) -> u64 {
        self.folded
    }

    /// Adds everything that `other` counted.
    pub(super) fn merge(&mut self, other: &Table<K, S>) {
        other.cells.iter().for_each(|(key, sum)| self.cell(*key).merge(sum));
        self.folded += other.folded;
    }

    /// Merges cells into their parents when there are more than `limit`, until half of that is left or
    /// nothing has a parent any more.
    #[inline]
    pub(super) fn make_room(&mut self, limit: usize, attribution: &Attribution) {
        if self.cells.len() > limit {
            self.fold(limit / 2, attribution);
        }
    }

    #[cold]
    fn fold(&mut self, left: usize, attribution: &Attribution) {
        while self.cells.len() > left {
            let weighed = self.cells.iter().map(|(key, sum)| (sum.weight(), *key));
            let mut order: Vec<(Nanos, K)> = weighed.collect();
            // By key among equals: the same recording folds the same keys.
            order.sort_unstable();
            let before = self.folded;
            for (_, key) in &order[..order.len() - left] {
                let Some(parent) = key.parent(attribution) else { continue };
                if let Some(sum) = self.cells.remove(key) {
                    self.cell(parent).merge(&sum);
                    self.folded += 1;
                }
            }
            if self.folded == before {
                break;
            }
        }
    }
}

impl Sum for WaitStat {
    fn merge(&mut self, other: &WaitStat) {
        self.merge(other);
    }

    fn weight(&self) -> Nanos {
        self.wait()
    }
}

impl Sum for Stat {
    fn merge(&mut self, other: &Stat) {
        self.merge(other);
    }

    fn weight(&self) -> Nanos {
        self.own.max(self.total)
    }
}

impl Sum for Spun {
    fn merge(&mut self, other: &Spun) {
        self.merge(*other);
    }

    fn weight(&self) -> Nanos {
        self.time
    }
}

impl Sum for Nanos {
    fn merge(&mut self, other: &Nanos) {
        *self += *other;
    }

    fn weight(&self) -> Nanos {
        *self
    }
}

impl Sum for QueueStat {
    fn merge(&mut self, other: &QueueStat) {
        self.merge(other);
    }

    fn weight(&self) -> Nanos {
        self.readers + self.writers
    }
}
