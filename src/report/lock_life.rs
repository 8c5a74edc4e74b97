//! Addresses are used again: the lives of an address, in each of which it is one lock.
//!
//! ```text
//!   address  --- mmap_lock of P ------------------|X    --- i_rwsem ---
//!                P waits at paths of mm          exit   waits at paths of inodes
//! ```
//!
//! In: the waits for one address, in order of time, and when processes gave up address spaces. Out: its
//! lives. A path that contradicts the name ends a life when its owner is gone (a process by exec or exit,
//! another object when its last wait is over), otherwise the address stays without a name of its own.

use super::lock_name::Evidence;
use crate::attribute::catalogue::{Claim, Entry, Scope};
use crate::correlate::AddressSpaces;
use crate::model::{TimeRange, Timestamp};

/// An address for as long as it is one lock.
#[derive(Clone, Debug)]
pub(super) struct Life {
    from: Timestamp,
    to: Timestamp,
    pub(super) name: LifeName,
    /// Processes that it belongs to, of locks that processes own.
    pub(super) owners: Vec<i32>,
    /// `mmap_lock` events prove it.
    pub(super) by_events: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LifeName {
    /// No path has said anything.
    Unknown,
    /// Of that sort.
    Sort(&'static Entry),
    /// This lock.
    Lock(&'static Entry),
    /// Paths contradict each other.
    Conflict,
}

/// The life that a moment lies in, or the nearest before it.
pub(super) fn at(lives: &[Life], seen: Option<TimeRange>) -> Option<&Life> {
    match (lives, seen) {
        ([only], _) => Some(only),
        (_, None) => None,
        (_, Some(seen)) => lives.iter().rev().find(|life| life.from <= seen.from).or(lives.first()),
    }
}

/// Cuts the waits for one address, in order of time, into lives.
pub(super) fn lives(waits: &[Evidence<'_>], spaces: &AddressSpaces) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    for wait in waits {
        match lives.last_mut() {
            Some(life) if life.goes_on(wait, spaces) => life.learn(wait),
            _ => lives.push(Life::new(wait)),
        }
    }
    lives
}

impl Life {
    fn new(wait: &Evidence<'_>) -> Life {
        let seen = wait.seen.unwrap_or(TimeRange { from: Timestamp(0), to: Timestamp(0) });
        let mut life = Life {
            from: seen.from,
            to: seen.to,
            name: LifeName::Unknown,
            owners: Vec::new(),
            by_events: false,
        };
        life.learn(wait);
        life
    }

    /// Whether the lock is still the one it was when somebody waits for it again.
    fn goes_on(&self, wait: &Evidence<'_>, spaces: &AddressSpaces) -> bool {
        let (LifeName::Lock(known), Claim::Lock { entry, of_another }) = (self.name, wait.claim)
        else {
            return true;
        };
        let from = wait.seen.map_or(self.to, |seen| seen.from);
        let gone = |owner: &i32| spaces.ended(*owner, self.from, from);
        let same = std::ptr::eq(known, entry);
        if known.scope == Scope::Process {
            let shared = same && (of_another || self.owners.contains(&wait.pid));
            return shared || self.owners.is_empty() || !self.owners.iter().all(gone);
        }
        // A lock that is waited for at both kinds of paths at a time is one lock, of no known name.
        same || known.scope == Scope::Global || from <= self.to
    }

    fn learn(&mut self, wait: &Evidence<'_>) {
        self.to = self.to.max(wait.seen.map_or(self.to, |seen| seen.to));
        self.name = match (self.name, wait.claim) {
            (LifeName::Conflict, _) => LifeName::Conflict,
            (name, Claim::Unknown) => name,
            (LifeName::Lock(known), Claim::Lock { entry, .. }) if !std::ptr::eq(known, entry) => {
                LifeName::Conflict
            }
            // Sorts of locks are other locks than those of processes.
            (LifeName::Lock(known), Claim::Sort(_)) if known.scope == Scope::Process => {
                LifeName::Conflict
            }
            (LifeName::Sort(known), Claim::Lock { entry, .. }) => match entry.scope {
                Scope::Process => LifeName::Conflict,
                _ if known.kinds == entry.kinds => LifeName::Lock(entry),
                _ => LifeName::Conflict,
            },
            (_, Claim::Lock { entry, .. }) => LifeName::Lock(entry),
            (LifeName::Lock(entry), Claim::Sort(_)) => LifeName::Lock(entry),
            (_, Claim::Sort(entry)) => LifeName::Sort(entry),
        };
        if let Claim::Lock { entry, of_another: false } = wait.claim
            && entry.scope == Scope::Process
            && wait.pid > 0
            && !self.owners.contains(&wait.pid)
        {
            self.owners.push(wait.pid);
        }
    }
}
