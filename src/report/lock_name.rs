//! A name for every lock, with its evidence; never a blank.
//!
//! In order: a kernel data symbol holds the address; `mmap_lock` events prove it; the address is
//! waited for at paths that take no other lock of its kind; it lies inside another lock; else the
//! place where it is taken: `rwsem @ caller`. Addresses are used again, so names have lives:
//!
//! ```text
//!   address  --- mmap_lock of P ------------------|X    --- i_rwsem ---
//!                P waits at paths of mm          exit   waits at paths of inodes
//! ```
//!
//! A path that contradicts the name ends it when its owner is gone (a process by exec or exit, another
//! object when its last wait is over), otherwise the address stays without a name of its own.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::catalogue::{Claim, Entry, Scope};
use super::{LockName, NameEvidence};
use crate::correlate::AddressSpaces;
use crate::kernel::Kernel;
use crate::model::{LockAddr, LockKind, LockType, TimeRange, Timestamp};

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

/// An address for as long as it is one lock.
#[derive(Clone, Debug)]
struct Life {
    from: Timestamp,
    to: Timestamp,
    name: LifeName,
    /// Processes that it belongs to, of locks that processes own.
    owners: Vec<i32>,
    /// `mmap_lock` events prove it.
    by_events: bool,
}

#[derive(Clone, Copy, Debug)]
enum LifeName {
    /// No path has said anything.
    Unknown,
    /// Of that sort.
    Sort(&'static Entry),
    /// This lock.
    Lock(&'static Entry),
    /// Paths contradict each other.
    Conflict,
}

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
        let (Some(offset), Some(entry)) = (self.offset, super::catalogue::entry("mmap_lock"))
        else {
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

/// The life that a moment lies in, or the nearest before it.
fn at(lives: &[Life], seen: Option<TimeRange>) -> Option<&Life> {
    match (lives, seen) {
        ([only], _) => Some(only),
        (_, None) => None,
        (_, Some(seen)) => lives.iter().rev().find(|life| life.from <= seen.from).or(lives.first()),
    }
}

/// Cuts the waits for one address, in order of time, into lives.
fn lives(waits: &[Evidence<'_>], spaces: &AddressSpaces) -> Vec<Life> {
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
mod tests {
    use super::*;
    use crate::decode::{Body, Callchain, Event, MmapLock, MmapLockStep, RawTask, TaskChange};
    use crate::model::Mode;
    use crate::report::call_path::CallPath;
    use crate::report::catalogue::claim;

    const RWSEM: LockType = LockType::new(LockKind::Rwsem, Mode::Write);
    const MUTEX: LockType = LockType::new(LockKind::Mutex, Mode::Exclusive);
    const SPINLOCK: LockType = LockType::new(LockKind::Spinlock, Mode::Exclusive);
    const P: i32 = 7;
    const Q: i32 = 8;

    /// A wait of process `P` at time 10.
    fn wait(lock: u64, lock_type: LockType, caller: &str) -> Evidence<'_> {
        Evidence {
            lock: Some(LockAddr(lock)),
            lock_type,
            caller: Some(caller),
            claim: claim(lock_type, &CallPath::made_up(&[caller], 1)),
            pid: P,
            seen: Some(TimeRange { from: Timestamp(10), to: Timestamp(11) }),
        }
    }

    fn later<'a>(from: u64, pid: i32, wait: Evidence<'a>) -> Evidence<'a> {
        let seen = Some(TimeRange { from: Timestamp(from), to: Timestamp(from + 1) });
        Evidence { pid, seen, ..wait }
    }

    fn exit(pid: i32, time: u64) -> Event<'static> {
        let change = TaskChange { pid, tid: pid, parent_pid: 1, parent_tid: 1 };
        Event {
            time: Timestamp(time),
            cpu: None,
            pid,
            tid: pid,
            cgroup: None,
            instance: 0,
            offset: 0,
            body: Body::Exit(change),
        }
    }

    fn named(waits: &[Evidence<'_>], spaces: &AddressSpaces) -> Vec<Named> {
        let names = LockNames::learn(waits.iter().copied(), spaces, "6.18");
        waits.iter().map(|wait| names.name(wait, &Kernel::default())).collect()
    }

    fn names(waits: &[Evidence<'_>]) -> Vec<String> {
        let named = named(waits, &AddressSpaces::default());
        named.into_iter().map(|named| named.name.name).collect()
    }

    #[test]
    fn a_path_that_takes_no_other_rwsem_names_the_mmap_lock_its_owner_and_its_wait_lock() {
        let waits = [
            wait(0x1000, RWSEM, "do_mprotect_pkey"),
            wait(0x1000, RWSEM, "exit_mmap"),
            wait(0x1014, SPINLOCK, "do_mprotect_pkey"),
            wait(0x2000, SPINLOCK, "do_mprotect_pkey"),
        ];
        assert_eq!(
            names(&waits),
            ["mmap_lock", "mmap_lock", "mmap_lock.wait_lock", "spinlock @ do_mprotect_pkey"]
        );
        let owners = named(&waits, &AddressSpaces::default());
        assert_eq!(
            owners.iter().map(|n| n.owner).collect::<Vec<_>>(),
            [Some(P), Some(P), Some(P), None]
        );
    }

    #[test]
    fn only_the_wait_lock_is_inside_a_lock() {
        let waits = [
            wait(0x1000, MUTEX, "pipe_read"),
            wait(0x1008, SPINLOCK, "pipe_read"),
            // The lock of a wait queue behind the mutex.
            wait(0x1020, SPINLOCK, "some_function"),
            wait(0x3000, MUTEX, "some_driver"),
            wait(0x3008, SPINLOCK, "some_driver"),
        ];
        assert_eq!(
            names(&waits),
            [
                "pipe mutex",
                "pipe mutex.wait_lock",
                "spinlock @ some_function",
                "mutex @ some_driver",
                "spinlock @ some_driver"
            ]
        );
    }

    #[test]
    fn a_contradiction_leaves_the_address_unnamed() {
        let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), wait(0x1000, RWSEM, "path_openat")];
        assert_eq!(names(&waits), ["rwsem @ do_mprotect_pkey", "rwsem @ path_openat"]);
        let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), wait(0x1000, RWSEM, "xfs_any")];
        assert_eq!(names(&waits), ["rwsem @ do_mprotect_pkey", "rwsem @ xfs_any"]);
    }

    #[test]
    fn a_name_ends_with_its_owner_and_not_before() {
        let waits = [
            wait(0x1000, RWSEM, "do_mprotect_pkey"),
            later(30, Q, wait(0x1000, RWSEM, "path_openat")),
            later(40, Q, wait(0x1000, RWSEM, "some_function")),
        ];
        let mut spaces = AddressSpaces::default();
        let words = |spaces: &AddressSpaces| -> Vec<String> {
            named(&waits, spaces).into_iter().map(|named| named.name.name).collect()
        };
        assert_eq!(words(&spaces)[..2], ["rwsem @ do_mprotect_pkey", "rwsem @ path_openat"]);
        spaces.apply(&exit(P, 20));
        assert_eq!(words(&spaces), ["mmap_lock", "i_rwsem", "i_rwsem"]);
    }

    #[test]
    fn an_mm_struct_that_is_used_again_has_another_owner() {
        let of_q = later(30, Q, wait(0x1000, RWSEM, "do_mprotect_pkey"));
        let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), of_q];
        let mut spaces = AddressSpaces::default();
        spaces.apply(&exit(P, 20));
        let owners: Vec<_> = named(&waits, &spaces).into_iter().map(|named| named.owner).collect();
        assert_eq!(owners, [Some(P), Some(Q)]);
    }

    #[test]
    fn an_ambiguous_path_alone_proves_nothing() {
        assert_eq!(names(&[wait(0x1000, RWSEM, "dup_mmap")]), ["rwsem @ dup_mmap"]);
    }

    #[test]
    fn a_sample_is_of_the_only_mmap_lock_of_its_process() {
        let sample = Evidence { lock: None, ..wait(0, RWSEM, "do_mprotect_pkey") };
        let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), sample];
        let addr = |waits: &[Evidence<'_>]| named(waits, &AddressSpaces::default())[1].addr;
        assert_eq!(addr(&waits), Some(LockAddr(0x1000)));
        // Of two nobody knows which; another process has another one.
        assert_eq!(addr(&[waits[0], sample, wait(0x2000, RWSEM, "do_madvise")]), None);
        assert_eq!(addr(&[waits[0], Evidence { pid: Q, ..sample }]), None);
        // A process has many inodes.
        let inode = wait(0x1000, RWSEM, "path_openat");
        assert_eq!(addr(&[inode, Evidence { lock: None, ..inode }]), None);
    }

    #[test]
    fn mmap_lock_events_prove_by_pointer_and_offset() {
        let mut spaces = AddressSpaces::default();
        let who = RawTask::default();
        let mut locks = |pid, mm| {
            let (step, chain) = (MmapLockStep::StartLocking, Callchain::default());
            spaces.mmap_lock(Timestamp(5), pid, &MmapLock { who, mm, step, write: true, chain });
        };
        locks(P, 0x10_0000);
        locks(Q, 0x20_0000);
        let waits = [
            wait(0x10_0078, RWSEM, "do_mprotect_pkey"),
            // No path of this one says what it is.
            later(10, Q, wait(0x20_0078, RWSEM, "dup_mmap")),
            wait(0x30_0078, RWSEM, "dup_mmap"),
        ];
        let named = named(&waits, &spaces);
        let words: Vec<_> =
            named.iter().map(|n| (n.name.name.as_str(), n.name.evidence, n.owner)).collect();
        assert_eq!(
            words,
            [
                ("mmap_lock", NameEvidence::Events, Some(P)),
                ("mmap_lock", NameEvidence::Events, Some(Q)),
                ("rwsem @ dup_mmap", NameEvidence::Caller, None)
            ]
        );
    }
}
