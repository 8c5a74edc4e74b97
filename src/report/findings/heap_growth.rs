//! Many threads of one process change the protection of its memory: malloc does so for its arenas.

use std::collections::BTreeMap;

use super::{WORTH_SAYING, share};
use crate::model::Nanos;
use crate::report::{ChargedName, Report};

/// Fewer threads than this make no arenas worth speaking of.
const THREADS: usize = 4;

/// With this share of it one thread is the cause, and not that they are many.
const ALONE: f64 = 0.5;

/// mprotect(2) over the eras; glibc grows the heap of an arena by it (malloc/arena.c, `grow_heap`).
const MPROTECT: [&str; 5] = [
    "do_mprotect_pkey",
    "__x64_sys_mprotect",
    "__arm64_sys_mprotect",
    "SyS_mprotect",
    "sys_mprotect",
];

/// Threads that grow their heaps hold up each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeapGrowth {
    /// Of this process.
    pub pid: i32,
    /// That let the lock go in mprotect.
    pub threads: usize,
    /// Their share of all waiting.
    pub share: f64,
}

impl HeapGrowth {
    pub(super) fn check(report: &Report) -> Option<HeapGrowth> {
        let mut processes: BTreeMap<i32, BTreeMap<i32, Nanos>> = BTreeMap::new();
        for row in &report.charged {
            if let Some(ChargedName::Releaser { task, caller: Some(caller), .. }) =
                &row.key.releaser
                && MPROTECT.contains(&caller.as_str())
            {
                let threads = processes.entry(task.pid).or_default();
                *threads.entry(task.tid).or_default() += row.stat.wait();
            }
        }
        let all = |threads: &BTreeMap<i32, Nanos>| threads.values().copied().sum::<Nanos>();
        let (pid, threads) = processes.into_iter().max_by_key(|(_, threads)| all(threads))?;
        let wait = all(&threads);
        let most = share(threads.values().copied().max()?, wait);
        let share = share(wait, report.total.wait());
        (threads.len() >= THREADS && most < ALONE && share > WORTH_SAYING).then_some(HeapGrowth {
            pid,
            threads: threads.len(),
            share,
        })
    }
}
