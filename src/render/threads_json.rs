//! Thread time and user locks for programs: parts of the report's JSON.
//!
//! In: a report's thread time and user locks. Out: the structs that `schema/report-v1.json` promises.

use serde::Serialize;

use crate::render::json::{TaskOut, task};
use crate::report::{SleepTime, ThreadTime, UserLock};

/// Every number is in ns.
#[derive(Serialize)]
pub(super) struct ThreadTimeOut {
    total: u64,
    on_cpu: u64,
    runnable: u64,
    kernel_locks: u64,
    futex: u64,
    other_sleep: u64,
    unknown: u64,
}

#[derive(Serialize)]
pub(super) struct SleepOut<'a> {
    function: Option<&'a str>,
    time_ns: u64,
    count: u64,
}

#[derive(Serialize)]
pub(super) struct UserLockOut<'a> {
    task: TaskOut<'a>,
    caller: Option<&'a str>,
    wrappers: &'a [String],
    entry: Option<&'a str>,
    wait_own_ns: u64,
    ended: u64,
    wait_min_ns: Option<u64>,
    wait_max_ns: Option<u64>,
    avg_wait_ns: Option<u64>,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

pub(super) fn thread_time(spent: &ThreadTime) -> ThreadTimeOut {
    ThreadTimeOut {
        total: spent.total().0,
        on_cpu: spent.on_cpu.0,
        runnable: spent.runnable.0,
        kernel_locks: spent.kernel_locks.0,
        futex: spent.user_locks.0,
        other_sleep: spent.other_sleep().0,
        unknown: spent.unknown.0,
    }
}

pub(super) fn sleep(slept: &SleepTime) -> SleepOut<'_> {
    let (time_ns, count) = (slept.sum.time.0, slept.sum.count);
    SleepOut { function: slept.function.as_deref(), time_ns, count }
}

pub(super) fn user_lock(lock: &UserLock) -> UserLockOut<'_> {
    let stat = &lock.stat;
    UserLockOut {
        task: task(&lock.task),
        caller: lock.caller.as_deref(),
        wrappers: &lock.wrappers,
        entry: lock.entry.as_deref(),
        wait_own_ns: stat.own.0,
        ended: stat.count,
        wait_min_ns: (stat.count > 0).then_some(stat.min.0),
        wait_max_ns: (stat.count > 0).then_some(stat.max.0),
        avg_wait_ns: stat.avg().map(|t| t.0),
        p50_ns: stat.quantile(0.5).map(|t| t.0),
        p99_ns: stat.quantile(0.99).map(|t| t.0),
    }
}
