//! A name for every lock, with its evidence; never a blank.
//!
//! In order: a kernel data symbol holds the address; the address is waited for at paths that take no
//! other lock of its kind; it lies inside a lock that has a name; else the place where it is taken:
//! `rwsem @ caller`. A path that contradicts the others leaves the address without a name of its own.

use hashbrown::HashMap;

use super::catalogue::{self, Proof};
use super::{LockName, NameEvidence};
use crate::kernel::Kernel;
use crate::model::{LockAddr, LockKind, LockType};

/// What `struct rw_semaphore` holds before its `wait_lock`: count, owner, osq; at most, with debugging.
const WAIT_LOCK_REACH: u64 = 0x30;

/// What a wait tells about the lock at its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) lock: Option<LockAddr>,
    pub(super) lock_type: LockType,
    pub(super) caller: Option<&'a str>,
}

/// Names of the locks of one report.
#[derive(Debug, Default)]
pub(super) struct LockNames {
    /// Addresses proven by path, and those that were contradicted.
    by_path: HashMap<LockAddr, Proof>,
    /// rwsems with a name, ascending: what a spinlock may be embedded in.
    rwsems: Vec<LockAddr>,
    mmap_lock: &'static str,
}

impl LockNames {
    /// Learns from all waits of the recording; names follow from all of them together.
    pub(super) fn learn<'a>(
        evidence: impl Iterator<Item = Evidence<'a>>,
        release: &str,
    ) -> LockNames {
        let mut by_path: HashMap<LockAddr, (bool, bool)> = HashMap::new();
        for Evidence { lock, lock_type, caller } in evidence {
            let (Some(lock), Some(caller)) = (lock, caller) else { continue };
            if lock_type.kind != LockKind::Rwsem {
                continue;
            }
            let (proven, contradicted) = by_path.entry(lock).or_default();
            match catalogue::mmap_lock(lock_type, caller) {
                Proof::MmapLock => *proven = true,
                Proof::Other => *contradicted = true,
                Proof::Perhaps => {}
            }
        }
        let proof = |(proven, contradicted)| match (proven, contradicted) {
            (true, false) => Proof::MmapLock,
            (false, false) => Proof::Perhaps,
            _ => Proof::Other,
        };
        let by_path: HashMap<_, _> = by_path.into_iter().map(|(k, v)| (k, proof(v))).collect();
        let named =
            |(lock, proof): (&LockAddr, &Proof)| (*proof == Proof::MmapLock).then_some(*lock);
        let mut rwsems: Vec<LockAddr> = by_path.iter().filter_map(named).collect();
        rwsems.sort_unstable();
        LockNames { by_path, rwsems, mmap_lock: catalogue::mmap_lock_name(release) }
    }

    /// The name of the lock that was waited for.
    pub(super) fn name(&self, wait: Evidence<'_>, kernel: &Kernel) -> LockName {
        let found = wait.lock.and_then(|lock| self.of_address(lock, wait, kernel));
        found.or_else(|| self.of_path(wait)).unwrap_or_else(|| of_caller(wait))
    }

    fn of_address(&self, lock: LockAddr, wait: Evidence<'_>, kernel: &Kernel) -> Option<LockName> {
        if let Some((symbol, offset)) = kernel.symbol(lock.0) {
            let name =
                if offset == 0 { symbol.to_owned() } else { format!("{symbol}+{offset:#x}") };
            return Some(LockName { name, evidence: NameEvidence::Symbol });
        }
        if wait.lock_type.kind == LockKind::Rwsem
            && self.by_path.get(&lock) == Some(&Proof::MmapLock)
        {
            return Some(LockName { name: self.mmap_lock.into(), evidence: NameEvidence::Path });
        }
        let before = self.rwsems.partition_point(|rwsem| *rwsem <= lock).checked_sub(1)?;
        let distance = lock.0 - self.rwsems[before].0;
        let embedded = wait.lock_type.kind == LockKind::Spinlock && distance < WAIT_LOCK_REACH;
        embedded.then(|| LockName {
            name: format!("{}.wait_lock", self.mmap_lock),
            evidence: NameEvidence::Embedded,
        })
    }

    /// Waits without an address (CPU samples) at a path that takes one lock only.
    fn of_path(&self, wait: Evidence<'_>) -> Option<LockName> {
        let proof = catalogue::mmap_lock(wait.lock_type, wait.caller?);
        let proven = wait.lock.is_none() && proof == Proof::MmapLock;
        proven.then(|| LockName { name: self.mmap_lock.into(), evidence: NameEvidence::Path })
    }
}

fn of_caller(wait: Evidence<'_>) -> LockName {
    let kind = wait.lock_type.kind.name();
    let name = match wait.caller {
        Some(caller) => format!("{kind} @ {caller}"),
        None => format!("{kind} @ [unknown]"),
    };
    LockName { name, evidence: NameEvidence::Caller }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mode;

    const RWSEM: LockType = LockType::new(LockKind::Rwsem, Mode::Write);
    const SPINLOCK: LockType = LockType::new(LockKind::Spinlock, Mode::Exclusive);

    fn wait(lock: u64, lock_type: LockType, caller: &str) -> Evidence<'_> {
        Evidence { lock: Some(LockAddr(lock)), lock_type, caller: Some(caller) }
    }

    fn names(waits: &[Evidence<'_>]) -> Vec<String> {
        let names = LockNames::learn(waits.iter().copied(), "6.18");
        waits.iter().map(|w| names.name(*w, &Kernel::default()).name).collect()
    }

    #[test]
    fn a_path_that_takes_no_other_rwsem_names_the_mmap_lock_and_its_wait_lock() {
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
    }

    #[test]
    fn a_contradiction_leaves_the_address_unnamed() {
        let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), wait(0x1000, RWSEM, "path_openat")];
        assert_eq!(names(&waits), ["rwsem @ do_mprotect_pkey", "rwsem @ path_openat"]);
    }

    #[test]
    fn an_ambiguous_path_alone_proves_nothing_and_a_sample_is_named_by_its_path() {
        let sample = Evidence { lock: None, ..wait(0, RWSEM, "do_mprotect_pkey") };
        assert_eq!(
            names(&[wait(0x1000, RWSEM, "dup_mmap"), sample]),
            ["rwsem @ dup_mmap", "mmap_lock"]
        );
    }
}
