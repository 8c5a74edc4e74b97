//! What is summed up under one of perf's keys.

use hashbrown::HashMap;

use super::report::{CompatKey, CompatRow};
use crate::model::{LockFlags, LockType, Nanos};

#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: CompatKey,
    /// Of the begin that made the row.
    pub(super) lock_type: LockType,
    /// Of the kernel frames alone.
    pub(super) kernel_key: u64,
    pub(super) contended: u64,
    acquired: u64,
    total: Nanos,
    max: Nanos,
    min: Nanos,
    /// An end came that fitted no wait.
    pub(super) bad: bool,
}

impl Row {
    pub(super) fn new(key: CompatKey, flags: LockFlags, kernel_key: u64) -> Row {
        Row {
            key,
            lock_type: LockType::from_flags(flags),
            kernel_key,
            contended: 0,
            acquired: 0,
            total: Nanos::ZERO,
            max: Nanos::ZERO,
            min: Nanos(u64::MAX),
            bad: false,
        }
    }

    pub(super) fn add(&mut self, wait: Nanos) {
        self.acquired += 1;
        self.total += wait;
        self.max = self.max.max(wait);
        self.min = self.min.min(wait);
    }

    pub(super) fn finish(mut self, comms: &HashMap<i32, String>) -> CompatRow {
        if let CompatKey::Task { tid, comm } = &mut self.key
            && let Some(name) = comms.get(tid)
        {
            comm.clone_from(name);
        }
        CompatRow {
            key: self.key,
            lock_type: self.lock_type.to_string(),
            contended: self.contended,
            total_ns: self.total.0,
            max_ns: self.max.0,
            min_ns: if self.acquired == 0 { 0 } else { self.min.0 },
            avg_ns: self.total.0.checked_div(self.acquired).unwrap_or(0),
        }
    }
}
