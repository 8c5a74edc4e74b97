//! Who is charged with waiting: sums by waiter and releaser, how long each releaser held locks, and where
//! it slept meanwhile.
//!
//! In: the pieces of waits, and their parts that go on to another releaser. Out: bounded tables. When
//! one is full the keys that count least are merged into their parents; what is charged to anybody at
//! all stays exact.
//!
//! ```text
//!   waiter's user stack -> none   waiter -> any   releaser -> any   waiter's lock, stack, context as
//!   in the table of waits   releaser's stack -> its site -> none
//!
//!   where a releaser slept: stack -> any, then as its hold
//! ```

use hashbrown::HashMap;

use super::key::{CellKey, StackKey, TaskKey};
use crate::correlate::{ChainId, LockId};
use crate::model::{FunctionId, HandOverKind, Nanos, StackId, Stat, Uncharged, WaitStat};

/// Whom a piece of a wait is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChargedTo {
    /// A task that handed the lock over.
    Releaser(ReleaserKey),
    /// Nobody.
    Nobody(Uncharged),
}

/// A releaser at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaserKey {
    /// Who.
    pub task: TaskKey,
    /// Where.
    pub stack: StackKey,
    /// What it did to the lock.
    pub kind: HandOverKind,
}

/// What one cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlameKey {
    /// The waits whose pieces these are.
    pub waiter: CellKey,
    /// Who is charged.
    pub to: ChargedTo,
}

/// Whose holds of which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldKey {
    /// The lock; `None` for those without an address, and folded ones.
    pub lock: Option<LockId>,
    /// Who held it, and where it was let go.
    pub by: ReleaserKey,
}

/// Where somebody slept while others waited for a lock that it let go later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SleepKey {
    /// Whose hold of which lock.
    pub hold: HoldKey,
    /// Kernel stack of the switch-out.
    pub stack: StackKey,
}

/// Whose waiting went through to another than its releaser, along which chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThroughKey {
    /// The waits whose parts these are.
    pub waiter: CellKey,
    /// From the releaser to the root; `None` for folded ones.
    pub chain: Option<ChainId>,
}

/// Finds the site of a releaser's stack, or of a waiter's.
pub(super) type SiteOf<'a> = &'a dyn Fn(StackId) -> Option<FunctionId>;

impl BlameKey {
    fn parent(self, waiter_site: SiteOf<'_>, releaser_site: SiteOf<'_>) -> Option<BlameKey> {
        let mut key = self;
        match (self.waiter, self.to) {
            (CellKey { user, .. }, _) if user != StackId::EMPTY => {
                key.waiter.user = StackId::EMPTY;
            }
            (CellKey { task: TaskKey::Task(_), .. }, _) => key.waiter.task = TaskKey::Folded,
            (_, ChargedTo::Releaser(by)) if by.task != TaskKey::Folded => {
                key.to = ChargedTo::Releaser(ReleaserKey { task: TaskKey::Folded, ..by });
            }
            _ => match self.waiter.parent(waiter_site) {
                Some(waiter) => key.waiter = waiter,
                None => key.to = ChargedTo::Releaser(self.releaser()?.parent(releaser_site)?),
            },
        }
        Some(key)
    }

    /// The holds that the pieces of this key were cut by; a folded key has lost its lock.
    pub fn hold(self) -> Option<HoldKey> {
        let CellKey { lock, lock_type, .. } = self.waiter;
        let lock = lock.map(|addr| LockId { addr, kind: lock_type.kind });
        Some(HoldKey { lock, by: self.releaser()? })
    }

    fn releaser(self) -> Option<ReleaserKey> {
        match self.to {
            ChargedTo::Releaser(by) => Some(by),
            ChargedTo::Nobody(_) => None,
        }
    }
}

impl ReleaserKey {
    fn parent(self, site: SiteOf<'_>) -> Option<ReleaserKey> {
        let mut key = self;
        match self {
            ReleaserKey { task: TaskKey::Task(_), .. } => key.task = TaskKey::Folded,
            ReleaserKey { stack: StackKey::Stack(stack), .. } => {
                key.stack = StackKey::Site(site(stack));
            }
            ReleaserKey { stack: StackKey::Site(_), .. } => key.stack = StackKey::Folded,
            _ => return None,
        }
        Some(key)
    }
}

impl HoldKey {
    fn parent(self, site: SiteOf<'_>) -> Option<HoldKey> {
        match self.lock {
            Some(_) => Some(HoldKey { lock: None, ..self }),
            None => Some(HoldKey { by: self.by.parent(site)?, ..self }),
        }
    }
}

impl SleepKey {
    fn parent(self, site: SiteOf<'_>) -> Option<SleepKey> {
        match self.stack {
            StackKey::Stack(_) => Some(SleepKey { stack: StackKey::Folded, ..self }),
            _ => Some(SleepKey { hold: self.hold.parent(site)?, ..self }),
        }
    }
}

impl ThroughKey {
    fn parent(self, site: SiteOf<'_>) -> Option<ThroughKey> {
        let mut key = self;
        match self.waiter {
            CellKey { user, .. } if user != StackId::EMPTY => key.waiter.user = StackId::EMPTY,
            CellKey { task: TaskKey::Task(_), .. } => key.waiter.task = TaskKey::Folded,
            _ if self.chain.is_some() => key.chain = None,
            waiter => key.waiter = waiter.parent(site)?,
        }
        Some(key)
    }
}

/// The tables.
#[derive(Debug, Default)]
pub(super) struct Blame {
    pub(super) pieces: HashMap<BlameKey, WaitStat>,
    pub(super) holds: HashMap<HoldKey, Stat>,
    /// Waiting that passed while its holder slept.
    pub(super) sleeps: HashMap<SleepKey, Nanos>,
    pub(super) through: HashMap<ThroughKey, Stat>,
    /// Charged time that may go on to another unseen, because a limit was reached.
    pub(super) cut: Nanos,
    /// Keys that were merged into their parents.
    pub(super) folded: u64,
}

impl Blame {
    /// Merges keys into their parents while there are more than `limit`.
    pub(super) fn make_room(&mut self, limit: usize, waiter: SiteOf<'_>, releaser: SiteOf<'_>) {
        if self.pieces.len() > limit {
            let parent = |key: BlameKey| key.parent(waiter, releaser);
            self.folded += fold(&mut self.pieces, limit, parent, WaitStat::wait, WaitStat::merge);
        }
        if self.holds.len() > limit {
            let parent = |key: HoldKey| key.parent(releaser);
            self.folded += fold(&mut self.holds, limit, parent, |stat| stat.total, Stat::merge);
        }
        if self.sleeps.len() > limit {
            let parent = |key: SleepKey| key.parent(releaser);
            let add = |sum: &mut Nanos, time: &Nanos| *sum += *time;
            self.folded += fold(&mut self.sleeps, limit, parent, |time| *time, add);
        }
        if self.through.len() > limit {
            let parent = |key: ThroughKey| key.parent(waiter);
            self.folded += fold(&mut self.through, limit, parent, |stat| stat.own, Stat::merge);
        }
    }
}

/// Merges the entries that weigh least into their parents until half of `limit` is left, or nothing
/// has a parent any more. Gives how many were merged.
pub(super) fn fold<K: Copy + Ord + std::hash::Hash, S: Default>(
    table: &mut HashMap<K, S>,
    limit: usize,
    parent: impl Fn(K) -> Option<K>,
    weight: impl Fn(&S) -> Nanos,
    merge: impl Fn(&mut S, &S),
) -> u64 {
    let mut folded = 0;
    while table.len() > limit / 2 {
        let mut order: Vec<(Nanos, K)> =
            table.iter().map(|(key, stat)| (weight(stat), *key)).collect();
        // By key among equals: the same recording folds the same keys.
        order.sort_unstable();
        let excess = order.len() - limit / 2;
        let before = folded;
        for (_, key) in &order[..excess] {
            let Some(parent) = parent(*key) else { continue };
            if let Some(stat) = table.remove(key) {
                merge(table.entry(parent).or_default(), &stat);
                folded += 1;
            }
        }
        if folded == before {
            break;
        }
    }
    folded
}
