//! `lock:contended_release` (Linux 7.2 and later): a task lets go of a lock that others wait for.
//!
//! ```text
//!   event                                    who is woken        it is a hand-over
//!   mutex_unlock, up, rt_mutex_unlock        the first waiter    always: only one can have held it
//!   up_write, percpu_up_write                the first waiters   always, where its stack was recorded
//!   up_read, others still read               nobody              never: the lock is still held
//!   up_read, the last one                    the first writer    by the waking that follows, or because a
//!                                                                writer took the lock next
//!   up_write without a stack, nobody woken   (who spun took it)  because a writer took the lock next
//! ```
//!
//! The event comes for every reader that leaves while somebody waits: about ten for each wait. It has no
//! callchain unless that was asked for; its site is that of the waking which the same task does within
//! the same call. A waiter that spins may take the lock before that waking: its wait is charged when the
//! waking is seen (`charging.rs`).
//!
//! In: the events, wakings by the same tasks, waits that ended. Out: hand-overs. Bounded: the latest
//! releases of each lock, of locks that somebody waits for.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use super::open::KindSet;
use super::waiting::OpenWait;
use super::wakeups::{LockId, Releaser};
use crate::model::{LockAddr, LockKind, Mode, Nanos, Outcome, StackId, Timestamp, Wait};

/// Releases of one lock that are remembered.
const OF_LOCK: usize = 64;
/// Locks whose releases are remembered.
const LOCKS: usize = 1 << 12;
/// A waking later than this after a release is not of the same call. Whoever is preempted in between
/// stays without a site.
pub(super) const CALL: Nanos = Nanos(10_000_000);

/// A `contended_release` in task context.
#[derive(Clone, Copy, Debug)]
pub struct ContendedRelease {
    /// When.
    pub time: Timestamp,
    /// The lock.
    pub lock: LockAddr,
    /// Who lets go; the stack is empty where none was recorded.
    pub by: Releaser,
    /// Kinds of the lock code on its stack; empty without stack.
    pub kinds: KindSet,
    /// Its stack says that nobody else can have held the lock.
    pub exclusive: bool,
}

/// What is known of it.
#[derive(Clone, Copy, Debug)]
struct Known {
    release: ContendedRelease,
    hand_over: bool,
}

impl Known {
    fn become_hand_over(&mut self) -> ContendedRelease {
        self.hand_over = true;
        self.release
    }
}

/// The latest releases of all locks.
#[derive(Debug, Default)]
pub(super) struct Releases {
    locks: HashMap<LockAddr, VecDeque<Known>>,
}

impl Releases {
    /// A lock was let go.
    pub(super) fn note(&mut self, release: ContendedRelease) {
        let releases = self.locks.entry(release.lock).or_default();
        if releases.len() >= OF_LOCK {
            releases.pop_front();
        }
        releases.push_back(Known { release, hand_over: false });
    }

    /// Whether it is time to [`Releases::forget`].
    pub(super) fn is_full(&self) -> bool {
        self.locks.len() >= LOCKS
    }

    /// Forgets locks that nobody waits for; where too many are waited for, all of them.
    pub(super) fn forget<'a>(&mut self, open: impl Iterator<Item = &'a OpenWait>) {
        let waited_for: HashSet<LockAddr> = open.filter_map(|wait| wait.lock.addr()).collect();
        self.locks.retain(|lock, _| waited_for.contains(lock));
        if self.is_full() {
            self.locks.clear();
        }
    }

    /// The release that a waking belongs to: the latest by `by`'s task, shortly before. It is a hand-over
    /// now, with the waking's stack; the second value says whether it was one before.
    pub(super) fn of_waking(
        &mut self,
        lock: LockId,
        by: Releaser,
        time: Timestamp,
    ) -> Option<(Timestamp, bool)> {
        let releases = self.locks.get_mut(&lock.addr)?;
        let of_task = |known: &&mut Known| known.release.by.task == by.task;
        let known = releases.iter_mut().rev().find(of_task)?;
        if time.since(known.release.time) > CALL {
            return None;
        }
        if known.release.by.stack == StackId::EMPTY {
            known.release.by = by;
        }
        Some((known.release.time, std::mem::replace(&mut known.hand_over, true)))
    }

    /// Releases that let `wait` go on, or others that waited at the same time, and were not known to be
    /// hand-overs; in order of time. `last`: the latest hand-over that is known.
    pub(super) fn of_wait(
        &mut self,
        wait: &Wait,
        last: Option<Timestamp>,
    ) -> Vec<ContendedRelease> {
        let kind = wait.lock_type.kind;
        let Some(releases) = self.locks.get_mut(&wait.lock) else { return Vec::new() };
        let inside = |known: &&mut Known| {
            let ContendedRelease { time, by, kinds, .. } = known.release;
            let of_kind = kinds.is_empty() || kinds.contains(kind);
            time > wait.begin && time <= wait.end && by.task != wait.task && of_kind
        };
        let mut inside: Vec<&mut Known> = releases.iter_mut().filter(inside).collect();
        // A writer that goes on has the lock alone: the latest release before was the last.
        let alone = wait.lock_type.mode == Mode::Write && wait.outcome == Outcome::Acquired;
        if let Some(latest) = inside.last_mut().filter(|_| alone)
            && last.is_none_or(|last| latest.release.time > last)
        {
            latest.release.exclusive = true;
        }
        inside.retain(|known| known.release.exclusive || !is_shared(kind));
        inside.retain(|known| !known.hand_over);
        inside.into_iter().map(Known::become_hand_over).collect()
    }
}

/// Whether several can hold such a lock at once.
fn is_shared(kind: LockKind) -> bool {
    !matches!(kind, LockKind::Mutex | LockKind::RtMutex | LockKind::Semaphore | LockKind::Spinlock)
}
