//! A name for every lock, with its evidence; never a blank.
//!
//! In order: a kernel data symbol holds the address; `mmap_lock` events prove it; the address is
//! waited for at paths that take no other lock of its kind; it lies inside another lock; else the
//! place where it is taken: `rwsem @ caller`. An address is used again, so a name lasts for one of its
//! lives (`lock_life.rs`).
//!
//! In: what all waits of a recording tell ([`Evidence`]), and the book of address spaces. Out: [`Named`].

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::lock_life::{Life, LifeName, at, lives};
use super::{LockName, NameEvidence};
use crate::attribute::catalogue::{self, Claim, Entry, Scope};
use crate::correlate::AddressSpaces;
use crate::kernel::Kernel;
use crate::model::{LockAddr, LockKind, LockType, TimeRange};

/// No `mmap_lock` lies further inside its `mm_struct`.
const MM_REACH: u64 = 8192;

/// What a wait tells about the lock at its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) lock: Option<LockAddr>,
    pub(super) lock_type: LockType,
    pub(super) caller: Option<&'a str>,
    /// What its call path says.
    pub(super) claim: Claim,
    /// Whose task waited; 0 when unknown.
    pub(super) pid: i32,
    /// From the first begin to the last end; `None` when unknown.
    pub(super) seen: Option<TimeRange>,
}

/// What a lock is called, and which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: LockName,
    /// Its address; samples have none, and get that of the only lock that they can be about.
    pub(super) addr: Option<LockAddr>,
    /// The process whose lock it is, of locks that processes own.
    pub(super) owner: Option<i32>,
}

type LockKey = (LockAddr, LockKind);

/// Names of the locks of one report.
#[derive(Debug, Default)]
pub(super) struct LockNames {
    release: String,
    lives: BTreeMap<LockKey, Vec<Life>>,
    /// The only lock that a process has of an entry; `None` when there are several.
    of_process: HashMap<(&'static str, i32), Option<LockAddr>>,
    /// The same for locks of which the kernel has one.
    of_kernel: HashMap<&'static str, Option<LockAddr>>,
    /// Where the `mmap_lock` lies in an `mm_struct`, where events told.
    offset: Option<u64>,
}

impl LockNames {
    /// Learns from all waits of the recording; names follow from all of them together.
    pub(super) fn learn<'a>(
        evidence: impl Iterator<Item = Evidence<'a>>,
        spaces: &AddressSpaces,
        release: &str,
    ) -> LockNames {
        let mut by_lock: BTreeMap<LockKey, Vec<Evidence<'a>>> = BTreeMap::new();
        for wait in evidence {
            if let Some(lock) = wait.lock {
                by_lock.entry((lock, wait.lock_type.kind)).or_default().push(wait);
            }
        }
        let offset = offset_in_mm(by_lock.values().flatten(), spaces);
        let mut names = LockNames { release: release.to_owned(), offset, ..LockNames::default() };
        for (key, mut waits) in by_lock {
            waits.sort_by_key(|wait| (wait.seen.map(|seen| (seen.from, seen.to)), wait.caller));
            names.lives.insert(key, lives(&waits, spaces));
        }
        names.prove(spaces);
        names.find_only_ones();
        names
    }

    /// What the lock that was waited for is called.
    pub(super) fn name(&self, wait: &Evidence<'_>, kernel: &Kernel) -> Named {
        let found = match wait.lock {
            Some(lock) => self.of_address(lock, wait, kernel),
            None => self.of_path(wait),
        };
        let sort = || match wait.claim {
            Claim::Sort(entry) => {
                let life = self.life(wait);
                let named = life.is_none_or(|life| !matches!(life.name, LifeName::Conflict));
                self.of_sort(entry, wait.lock).filter(|_| named)
            }
            _ => None,
        };
        let caller = || Named {
            name: of_caller(wait.lock_type.kind, wait.caller),
            addr: wait.lock,
            owner: None,
        };
        found.or_else(sort).unwrap_or_else(caller)
    }

    /// The `mm_struct` that holds this lock, where events told the offset.
    pub(super) fn mm_of(&self, lock: LockAddr) -> Option<u64> {
        lock.0.checked_sub(self.offset?)
    }

    fn of_address(&self, lock: LockAddr, wait: &Evidence<'_>, kernel: &Kernel) -> Option<Named> {
        let named = |name, evidence| Named {
            name: LockName { name, evidence },
            addr: Some(lock),
            owner: None,
        };
        if let Some((symbol, offset)) = kernel.symbol(lock.0) {
            let name =
                if offset == 0 { symbol.to_owned() } else { format!("{symbol}+{offset:#x}") };
            return Some(named(name, NameEvidence::Symbol));
        }
        if let Some(life) = self.life(wait) {
            match life.name {
                LifeName::Lock(entry) => {
                    let evidence =
                        if life.by_events { NameEvidence::Events } else { NameEvidence::Path };
                    let name = entry.name_on(&self.release).to_owned();
                    let owner = life.owners.first().copied();
                    return Some(Named { owner, ..named(name, evidence) });
                }
                LifeName::Sort(entry) if entry.scope != Scope::Other => {
                    return self.of_sort(entry, Some(lock));
                }
                _ => {}
            }
        }
        let (around, owner) = self.around(lock, wait)?;
        Some(Named { owner, ..named(around, NameEvidence::Embedded) })
    }

    /// The lock that this one is the `wait_lock` of.
    fn around(&self, lock: LockAddr, wait: &Evidence<'_>) -> Option<(String, Option<i32>)> {
        let spins = matches!(wait.lock_type.kind, LockKind::Spinlock | LockKind::RtMutex);
        let mut places = WAIT_LOCKS.iter().filter(|_| spins);
        places.find_map(|(kind, offsets)| {
            offsets.iter().find_map(|offset| {
                let outer = LockAddr(lock.0.checked_sub(*offset)?);
                let life = at(self.lives.get(&(outer, *kind))?, wait.seen)?;
                let whole = match life.name {
                    LifeName::Lock(entry) => entry.name_on(&self.release),
                    LifeName::Sort(entry) if entry.scope != Scope::Other => entry.name,
                    _ => return None,
                };
                Some((format!("{whole}.wait_lock"), life.owners.first().copied()))
            })
        })
    }

    /// Waits without an address (CPU samples) at a path that takes one lock only.
    fn of_path(&self, wait: &Evidence<'_>) -> Option<Named> {
        let Claim::Lock { entry, of_another } = wait.claim else { return None };
        let addr = match entry.scope {
            Scope::Process if !of_another => {
                self.of_process.get(&(entry.name, wait.pid)).copied().flatten()
            }
            Scope::Global => self.of_kernel.get(entry.name).copied().flatten(),
            _ => None,
        };
        let evidence = match addr.and_then(|addr| self.lives.get(&(addr, wait.lock_type.kind))) {
            Some(lives) if lives.iter().all(|life| life.by_events) => NameEvidence::Events,
            _ => NameEvidence::Path,
        };
        let owner =
            (entry.scope == Scope::Process && !of_another && wait.pid > 0).then_some(wait.pid);
        let name = entry.name_on(&self.release).to_owned();
        Some(Named { name: LockName { name, evidence }, addr, owner })
    }

    fn of_sort(&self, entry: &'static Entry, addr: Option<LockAddr>) -> Option<Named> {
        let evidence = match entry.scope {
            Scope::Other => return None,
            Scope::Class => NameEvidence::Class,
            _ => NameEvidence::Path,
        };
        let name = entry.name_on(&self.release).to_owned();
        Some(Named { name: LockName { name, evidence }, addr, owner: None })
    }

    fn life(&self, wait: &Evidence<'_>) -> Option<&Life> {
        at(self.lives.get(&(wait.lock?, wait.lock_type.kind))?, wait.seen)
    }

    /// Marks what `mmap_lock` events prove: rwsems at their offset in an `mm_struct` that was seen.
    fn prove(&mut self, spaces: &AddressSpaces) {
        let (Some(offset), Some(entry)) = (self.offset, catalogue::entry("mmap_lock")) else {
            return;
        };
        let mut users: Vec<(u64, i32)> = spaces.users().collect();
        users.sort_unstable();
        for (mm, pid) in users {
            let key = (LockAddr(mm.saturating_add(offset)), LockKind::Rwsem);
            for life in self.lives.get_mut(&key).into_iter().flatten() {
                match life.name {
                    LifeName::Lock(known) if !std::ptr::eq(known, entry) => {}
                    LifeName::Conflict => {}
                    _ => {
                        life.name = LifeName::Lock(entry);
                        life.by_events = true;
                        if life.owners.is_empty() {
                            life.owners.push(pid);
                        }
                    }
                }
            }
        }
    }

    fn find_only_ones(&mut self) {
        for ((addr, _), lives) in &self.lives {
            for life in lives {
                let LifeName::Lock(entry) = life.name else { continue };
                let one = |known: &mut Option<LockAddr>| {
                    if *known != Some(*addr) {
                        *known = None;
                    }
                };
                for owner in &life.owners {
                    let key = (entry.name, *owner);
                    self.of_process.entry(key).and_modify(one).or_insert(Some(*addr));
                }
                if entry.scope == Scope::Global {
                    self.of_kernel.entry(entry.name).and_modify(one).or_insert(Some(*addr));
                }
            }
        }
    }
}

/// Where the `wait_lock` lies in a lock, for kernels with contention events (5.19 and later): after
/// count, owner and osq (`struct rw_semaphore`), after the owner (`struct mutex`), first
/// (`struct semaphore`, `struct rt_mutex_base`). Sources: `include/linux/{rwsem,mutex_types,mutex,
/// semaphore,rtmutex}.h`.
const WAIT_LOCKS: [(LockKind, &[u64]); 3] =
    [(LockKind::Rwsem, &[0x10, 0x14]), (LockKind::Mutex, &[0x8]), (LockKind::Semaphore, &[0x0])];

/// The distance from an `mm_struct` to its `mmap_lock`: where a process waits for its mmap_lock, by
/// path, less where its `mm_struct` is, by event; the one that most processes agree on.
fn offset_in_mm<'e, 'a: 'e>(
    waits: impl Iterator<Item = &'e Evidence<'a>>,
    spaces: &AddressSpaces,
) -> Option<u64> {
    let mut mms: HashMap<i32, Vec<u64>> = HashMap::new();
    spaces.users().for_each(|(mm, pid)| mms.entry(pid).or_default().push(mm));
    let mut votes: BTreeMap<u64, u64> = BTreeMap::new();
    for wait in waits {
        let own = matches!(wait.claim, Claim::Lock { entry, of_another: false } if entry.scope == Scope::Process);
        let Some(lock) = wait.lock.filter(|_| own) else { continue };
        for mm in mms.get(&wait.pid).into_iter().flatten() {
            let distance = lock.0.checked_sub(*mm);
            if let Some(distance) = distance.filter(|distance| (1..MM_REACH).contains(distance)) {
                *votes.entry(distance).or_default() += 1;
            }
        }
    }
    let most = votes.values().copied().max()?;
    let mut best = votes.into_iter().filter(|(_, count)| *count == most);
    let (offset, _) = best.next()?;
    // Two that are as good prove nothing.
    best.next().is_none().then_some(offset)
}

fn of_caller(kind: LockKind, caller: Option<&str>) -> LockName {
    let kind = kind.name();
    let name = match caller {
        Some(caller) => format!("{kind} @ {caller}"),
        None => format!("{kind} @ [unknown]"),
    };
    LockName { name, evidence: NameEvidence::Caller }
}

#[cfg(test)]
mod tests;
