//! Waits for locks of user space (futex), by call site, apart from all waits for locks of the kernel.
//!
//! In: the table of them. Out: [`UserLock`]s, most waited for first. The call site is the first frame
//! outside the libraries that locks are made of, whether linked or compiled in, where user stacks were
//! recorded; else only the function through which the kernel was entered is known.

use std::collections::BTreeMap;

use super::TaskName;
use super::build::{caller_of, task_name};
use super::sources::Sources;
use super::thread_time::is_wanted;
use crate::analyse::UserLockKey;
use crate::model::{Context, Filter, Nanos, StackId, Stat};
use crate::unwind::Object;

/// Beginnings of the names of libraries whose code lies between a futex and who asked for a lock.
const LOCK_LIBRARIES: [&str; 7] =
    ["libc.so", "libc-2", "libpthread", "libstdc++", "libc++", "ld-linux", "ld-musl"];

/// The same of functions that compilers put into the program itself.
const LOCK_FUNCTIONS: [&str; 8] = [
    "std::sync::",
    "std::sys::",
    "std::thread::",
    "parking_lot",
    "std::mutex::",
    "std::unique_lock",
    "std::condition_variable",
    "__gthread_",
];

/// Waits for locks of user space at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserLock {
    /// Who waited; threads of one process and name together, with tid 0.
    pub task: TaskName,
    /// The function that asked for the lock; `None` where user stacks were not recorded.
    pub caller: Option<String>,
    /// Functions of libraries between the system call and the caller, innermost first.
    pub wrappers: Vec<String>,
    /// The function through which the kernel was entered; `None` without symbols.
    pub entry: Option<String>,
    /// The waits.
    pub stat: Stat,
}

/// What tells one from another.
type Place = (TaskName, Option<String>, Vec<String>, Option<String>);

impl UserLock {
    fn place(&self) -> Place {
        (self.task.clone(), self.caller.clone(), self.wrappers.clone(), self.entry.clone())
    }
}

/// Waits of the tasks that pass the filter.
pub(super) fn user_locks(sources: &Sources<'_>, filter: &Filter) -> Vec<UserLock> {
    let waits = sources.sums.user_locks();
    let waits = waits.filter_map(|(key, stat)| {
        let task = task_name(sources, Context::Task, key.task);
        is_wanted(&task, filter).then(|| (place(sources, key, task), stat))
    });
    sum(waits)
}

/// Adds what another recording counted.
pub(super) fn merge(own: &mut Vec<UserLock>, other: &[UserLock]) {
    let both = own.iter().chain(other).map(|lock| (lock.place(), &lock.stat));
    *own = sum(both);
}

/// How long was waited in all of them.
pub fn waited(locks: &[UserLock]) -> Nanos {
    locks.iter().map(|lock| lock.stat.own).sum()
}

fn sum<'a>(waits: impl Iterator<Item = (Place, &'a Stat)>) -> Vec<UserLock> {
    let mut sums: BTreeMap<Place, Stat> = BTreeMap::new();
    waits.for_each(|(place, stat)| sums.entry(place).or_default().merge(stat));
    let lock =
        |((task, caller, wrappers, entry), stat)| UserLock { task, caller, wrappers, entry, stat };
    let mut locks: Vec<UserLock> = sums.into_iter().map(lock).collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.stat.own));
    locks
}

fn place(sources: &Sources<'_>, key: &UserLockKey, task: TaskName) -> Place {
    let (caller, wrappers) = call_site(sources, key.user);
    let entry = caller_of(sources, key.entry).map(str::to_owned);
    (TaskName { tid: 0, ..task }, caller, wrappers, entry)
}

fn call_site(sources: &Sources<'_>, user: StackId) -> (Option<String>, Vec<String>) {
    let frames = sources.stacks.user(user);
    let is_library = |object: &Object| match object {
        Object::File { path, .. } => is_lock_library(path),
        _ => false,
    };
    let linked = |at: &usize| {
        frames.get(*at).is_some_and(|frame| is_library(sources.objects.get(frame.object)))
    };
    let mut symbolizer = sources.symbolizer.borrow_mut();
    let mut name = |at: usize| {
        let frame = frames.get(at).copied();
        frame.map(|frame| symbolizer.frame(sources.objects, frame).to_owned())
    };
    let mut of_lock =
        |at: &usize| linked(at) || name(*at).is_some_and(|name| is_lock_function(&name));
    // Where the callchain breaks off, or skips to the start of the thread, there is no better answer than
    // the outermost function of the program itself.
    let site = (0..frames.len()).find(|at| !of_lock(at));
    let site = site.or_else(|| (0..frames.len()).rfind(|at| !linked(at)));
    let site = site.unwrap_or(frames.len().saturating_sub(1));
    let caller = name(site);
    (caller, (0..site).filter_map(name).collect())
}

fn is_lock_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    LOCK_LIBRARIES.iter().any(|library| name.starts_with(library.as_bytes()))
}

fn is_lock_function(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    LOCK_FUNCTIONS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_made_of_functions_that_are_compiled_in_as_well() {
        for (name, wanted) in [
            ("std::sync::poison::mutex::Mutex<T>::lock", true),
            ("<std::sync::mpmc::list::Channel<T>>::recv", true),
            ("std::mutex::lock()", true),
            ("parking_lot_core::parking_lot::park", true),
            ("my::std::sync::lock", false),
            ("section", false),
        ] {
            assert_eq!(is_lock_function(name), wanted, "{name}");
        }
    }

    #[test]
    fn locks_are_made_of_code_in_the_c_library_and_its_like() {
        for (path, wanted) in [
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", true),
            ("/lib64/libpthread-2.17.so", true),
            ("/lib/ld-musl-x86_64.so.1", true),
            ("/usr/sbin/xfs_repair", false),
            ("/opt/libc.so.d/app", false),
            ("", false),
        ] {
            assert_eq!(is_lock_library(path.as_bytes()), wanted, "{path}");
        }
    }
}
