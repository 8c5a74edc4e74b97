//! Keys of who is charged with waiting: waiter and releaser, whose holds of which lock, and where a
//! releaser slept meanwhile. What each merges into when its table is full:
//!
//! ```text
//!   waiter's user stack -> none   waiter -> any   releaser -> any   waiter's lock, stack, context as
//!   in the table of waits   releaser's stack -> its site -> none
//!
//!   where a releaser slept: stack -> any, then as its hold
//! ```

use super::key::{CellKey, StackKey, TaskKey};
use super::table::Key;
use crate::attribute::Attribution;
use crate::correlate::{ChainId, LockId};
use crate::model::{HandOverKind, StackId, Uncharged};

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

impl Key for BlameKey {
    fn parent(self, attribution: &Attribution) -> Option<BlameKey> {
        let mut key = self;
        match (self.waiter, self.to) {
            (CellKey { user, .. }, _) if user != StackId::EMPTY => {
                key.waiter.user = StackId::EMPTY;
            }
            (CellKey { task: TaskKey::Task(_), .. }, _) => key.waiter.task = TaskKey::Folded,
            (_, ChargedTo::Releaser(by)) if by.task != TaskKey::Folded => {
                key.to = ChargedTo::Releaser(ReleaserKey { task: TaskKey::Folded, ..by });
            }
            _ => match self.waiter.parent(attribution) {
                Some(waiter) => key.waiter = waiter,
                None => key.to = ChargedTo::Releaser(self.releaser()?.parent(attribution)?),
            },
        }
        Some(key)
    }
}

impl BlameKey {
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
    fn parent(self, attribution: &Attribution) -> Option<ReleaserKey> {
        let site = |stack| attribution.known(stack)?.release.as_ref()?.site.caller;
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

impl Key for HoldKey {
    fn parent(self, attribution: &Attribution) -> Option<HoldKey> {
        match self.lock {
            Some(_) => Some(HoldKey { lock: None, ..self }),
            None => Some(HoldKey { by: self.by.parent(attribution)?, ..self }),
        }
    }
}

impl Key for SleepKey {
    fn parent(self, attribution: &Attribution) -> Option<SleepKey> {
        match self.stack {
            StackKey::Stack(_) => Some(SleepKey { stack: StackKey::Folded, ..self }),
            _ => Some(SleepKey { hold: self.hold.parent(attribution)?, ..self }),
        }
    }
}

impl Key for ThroughKey {
    fn parent(self, attribution: &Attribution) -> Option<ThroughKey> {
        let mut key = self;
        match self.waiter {
            CellKey { user, .. } if user != StackId::EMPTY => key.waiter.user = StackId::EMPTY,
            CellKey { task: TaskKey::Task(_), .. } => key.waiter.task = TaskKey::Folded,
            _ if self.chain.is_some() => key.chain = None,
            waiter => key.waiter = waiter.parent(attribution)?,
        }
        Some(key)
    }
}
