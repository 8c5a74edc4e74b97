//! Locks of no kind that perf has a word for, known by the code that waits for them.
//!
//! They have no contention events: waits for them are known by sleeps, without an address.

use super::LockName;
use super::report::NameEvidence;

/// What is waited for in this function; sources: `mm/mmap_lock.c`, `net/core/sock.c`.
fn lock_of(function: &str) -> Option<&'static str> {
    match function {
        "__vma_start_write" | "__vma_enter_locked" | "__vma_start_exclude_readers" => {
            Some("per-VMA lock")
        }
        "__lock_sock" => Some("socket lock"),
        _ => None,
    }
}

/// The name of a lock that `function`, the innermost lock code, waits for on behalf of `caller`.
pub(super) fn name(function: &str, caller: Option<&str>) -> Option<LockName> {
    let lock = lock_of(function)?;
    let name = format!("{lock} @ {}", caller.unwrap_or("[unknown]"));
    Some(LockName { name, evidence: NameEvidence::Caller })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Role, lock_functions};

    #[test]
    fn every_function_that_sleeps_for_a_lock_without_a_kind_has_a_name_for_it() {
        let mut kinds = 0;
        for row in lock_functions().filter(|row| row.role == Role::Block && row.kind.is_none()) {
            assert!(lock_of(row.name).is_some(), "{}", row.name);
            kinds += 1;
        }
        assert!(kinds >= 4, "{kinds}");
        assert_eq!(lock_of("down_write"), None);
    }
}
