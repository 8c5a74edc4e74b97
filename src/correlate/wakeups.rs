//! Who let a waiter go: the hand-overs of every lock that tasks wait for.
//!
//! A hand-over is a `sched_waking` by release code of a lock, of a task that waits for that very
//! lock. The queue of a lock is long, and whoever is woken holds it next: so all waits for the lock
//! are cut there, not only that of the task that was woken.
//!
//! ```text
//!   H holds ------------> up_write: wakes A     A: -> wakes B
//!   A waits |=============|                                       charged to H
//!   B waits    |==========|----------------------|                charged to H, then to A
//!   B's last waker alone  |======== all of it to A, who held the lock for 10 us =======|
//! ```
//!
//! In: wakings of waiting tasks, switch-outs, losses, waits that ended. Out: the [`Piece`]s of a wait
//! and how long each releaser kept a lock that others waited for. Bounded: hand-overs that are older
//! than all open waits are forgotten, and of too many the oldest.

use hashbrown::HashMap;

use super::chains::Chains;
use super::charging::Late;
use super::identity::Identity;
use super::releases::Releases;
use super::waiting::OpenWait;
use crate::model::{
    HandOverKind, LockAddr, LockKind, Nanos, Outcome, StackId, TaskId, TaskRef, Timestamp,
    Uncharged, Wait,
};

/// Wakings of one batch (`wake_q`) follow each other more closely than this. Whoever wakes the next
/// waiter later, with the same stack, has released the lock once more.
const BATCH_GAP: Nanos = Nanos(100_000);

/// Hand-overs kept before it is looked for those that nobody needs any more.
const KEPT: usize = 1 << 14;
/// Hand-overs kept at the most, but for one of each lock that is waited for.
const KEPT_AT_MOST: usize = 1 << 20;
/// Losses of records kept; the oldest are forgotten.
const GAPS_KEPT: usize = 64;
/// Tasks whose last waking is remembered.
const WOKEN_KEPT: usize = 1 << 16;

/// Which lock. A semaphore and the spinlock inside it have one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    /// Where it is.
    pub addr: LockAddr,
    /// What it is.
    pub kind: LockKind,
}

/// Who handed a lock over, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Releaser {
    /// The waker.
    pub task: TaskRef,
    /// Kernel part of its stack.
    pub stack: StackId,
    /// What it did to the lock.
    pub kind: HandOverKind,
}

/// A waking of a task that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waking {
    /// When.
    pub time: Timestamp,
    /// Who wakes.
    pub waker: TaskId,
    /// The same with its name, and where it wakes.
    pub by: Releaser,
    /// What the woken task waits for.
    pub wait: OpenWait,
}

/// How long a releaser kept a lock while others waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which lock; `None`: it has no address.
    pub lock: Option<LockId>,
    /// Who kept it.
    pub by: Releaser,
    /// When it was let go.
    pub time: Timestamp,
    /// Since the hand-over before, or since the first of those who waited began to.
    pub length: Nanos,
}

/// What ended a piece of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceEnd {
    /// A hand-over of the lock.
    HandOver(Releaser),
    /// Nothing that a task is charged with.
    Uncharged(Uncharged),
}

/// A piece of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first moment.
    pub from: Timestamp,
    /// The moment after it.
    pub to: Timestamp,
    /// What ended it.
    pub end: PieceEnd,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HandOver {
    pub(super) time: Timestamp,
    pub(super) by: Releaser,
}

/// The hand-overs of one lock, in order of time.
#[derive(Debug, Default)]
pub(super) struct Lock {
    hand_overs: Vec<HandOver>,
    /// Hand-overs up to here were too many to keep.
    forgotten: Timestamp,
    /// The latest waking of the latest batch.
    batch_until: Timestamp,
    /// The latest release; passing the lock on does not end a hold.
    released: Timestamp,
}

/// The latest waking of a task.
#[derive(Clone, Copy, Debug)]
struct Woken {
    waker: TaskId,
    /// Begin of the wait in which it was woken.
    begin: Timestamp,
    time: Timestamp,
    /// It left its CPU since: the next waking is another one.
    left: bool,
}

/// Records are missing between these moments.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Timestamp,
    to: Timestamp,
}

/// The hand-overs of all locks.
#[derive(Debug)]
pub struct Wakeups {
    pub(super) locks: HashMap<Identity, Lock>,
    woken: HashMap<TaskId, Woken>,
    /// Hand-overs in all locks.
    pub(super) kept: usize,
    limit: usize,
    gaps: Vec<Gap>,
    /// Whether switch-outs are recorded, by which a waking that came twice is told from two.
    switches: bool,
    pub(super) chains: Chains,
    pub(super) releases: Releases,
    pub(super) late: Late,
    /// The pieces of the wait at hand.
    pub(super) pieces: Vec<Piece>,
}

impl Wakeups {
    /// For a recording with or without records of context switches.
    pub fn new(switches: bool) -> Wakeups {
        Wakeups {
            locks: HashMap::new(),
            woken: HashMap::new(),
            kept: 0,
            limit: KEPT,
            gaps: Vec::new(),
            switches,
            chains: Chains::default(),
            releases: Releases::default(),
            late: Late::default(),
            pieces: Vec::new(),
        }
    }

    /// The chains that waits were charged along.
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// LOST: a ring dropped records between its record before and the one that says so.
    pub fn lost(&mut self, from: Timestamp, to: Timestamp) {
        if self.gaps.len() >= GAPS_KEPT {
            self.gaps.remove(0);
        }
        self.gaps.push(Gap { from, to });
    }

    /// The task left its CPU.
    #[inline]
    pub fn left(&mut self, task: TaskId) {
        if let Some(woken) = self.woken.get_mut(&task) {
            woken.left = true;
        }
    }

    /// A waiting task was woken by release code of the lock that it waits for. Gives the hold that
    /// ended, unless the waking belongs to a hand-over that is known already.
    pub fn hand_over(&mut self, woken: TaskId, waking: &Waking) -> Option<Hold> {
        let Waking { time, by, wait, .. } = *waking;
        let earlier = self.remember(woken, waking);
        if self.switches && earlier.is_some_and(|earlier| is_copy(&earlier, waking)) {
            return None;
        }
        if by.kind == HandOverKind::Release
            && let Some(id) = wait.lock.id()
            && let Some((released, known)) = self.releases.of_waking(id, by, time)
        {
            return match known {
                true => self.name(id, HandOver { time: released, by }),
                false => Some(self.insert(id, HandOver { time: released, by }, wait.begin)),
            };
        }
        let lock = self.locks.entry(wait.lock).or_default();
        let batch_until = std::mem::replace(&mut lock.batch_until, time);
        if let Some(last) = lock.hand_overs.last()
            && last.by == by
            && time.since(batch_until) < BATCH_GAP
            && earlier.is_none_or(|earlier| earlier.time < last.time)
        {
            return None;
        }
        // Records that come out of order are no reason for pieces that overlap.
        lock.hand_overs.insert(lock.after(time), HandOver { time, by });
        self.kept += 1;
        if by.kind == HandOverKind::PassOn {
            return None;
        }
        let since = std::mem::replace(&mut lock.released, time).max(wait.begin);
        Some(Hold { lock: wait.lock.id(), by, time, length: time.since(since) })
    }

    fn remember(&mut self, woken: TaskId, waking: &Waking) -> Option<Woken> {
        if self.woken.len() >= WOKEN_KEPT {
            self.woken.clear();
        }
        let Waking { time, waker, wait, .. } = *waking;
        self.woken.insert(woken, Woken { waker, begin: wait.begin, time, left: false })
    }

    /// The pieces of a wait for `identity`, in order of time; none for a wait during which nothing was seen,
    /// and for one that is in no total.
    pub fn cut(&self, wait: &Wait, identity: Identity, out: &mut impl FnMut(Piece)) {
        let tail = match wait.outcome {
            Outcome::Uncertain => return,
            Outcome::Failed => Some(Uncharged::Signal),
            Outcome::Open => Some(Uncharged::Open),
            Outcome::Acquired | Outcome::BackedOff => None,
        };
        let lock = self.locks.get(&identity);
        let inside = lock.map_or(&[][..], |lock| lock.inside(wait.begin, wait.end));
        let mut from = wait.begin;
        if let Some(to) = lock.map(|lock| lock.forgotten.min(wait.end)).filter(|&to| to > from) {
            out(Piece { from, to, end: PieceEnd::Uncharged(Uncharged::NoWaking) });
            from = to;
        }
        for hand_over in inside {
            let to = hand_over.time;
            if let Some(since) = self.held_since(identity, hand_over.by, (from, to)) {
                let end = PieceEnd::Uncharged(Uncharged::WaitedItself);
                out(Piece { from, to: since, end });
                from = since;
            }
            out(Piece { from, to, end: self.end_of(wait, (from, to), hand_over.by) });
            from = to;
        }
        let own = || if self.is_gap(from, wait.end) { Uncharged::Lost } else { Uncharged::Own };
        if let Some(why) = tail.or_else(|| (!inside.is_empty()).then(own)) {
            out(Piece { from, to: wait.end, end: PieceEnd::Uncharged(why) });
        }
    }

    /// Other hand-overs of a lock without name or address are not known, but that its releaser waited for
    /// such a lock itself: until that wait was over, another one may have held this lock.
    fn held_since(
        &self,
        lock: Identity,
        by: Releaser,
        (from, to): (Timestamp, Timestamp),
    ) -> Option<Timestamp> {
        let Identity::SleptForBy(_, kind) = lock else { return None };
        self.chains.waited_until(by.task, kind, (from, to))
    }

    /// What ended the piece before a hand-over. A waiter that passes the lock on has been let in already.
    fn end_of(&self, wait: &Wait, (from, to): (Timestamp, Timestamp), by: Releaser) -> PieceEnd {
        match self.is_gap(from, to) {
            true => PieceEnd::Uncharged(Uncharged::Lost),
            false if by.task == wait.task => PieceEnd::Uncharged(Uncharged::Own),
            false => PieceEnd::HandOver(by),
        }
    }

    /// Whether hand-overs may be missing.
    fn is_gap(&self, from: Timestamp, to: Timestamp) -> bool {
        self.gaps.iter().any(|gap| gap.from < to && from < gap.to)
    }

    /// Whether it is time to [`Wakeups::forget`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.kept >= self.limit || self.chains.is_full() || self.releases.is_full()
    }

    /// Forgets hand-overs that are older than every open wait for their lock, and waits that are older
    /// than all. `open`: all open waits.
    pub fn forget(&mut self, open: impl Iterator<Item = OpenWait>) {
        let mut oldest: HashMap<Identity, Timestamp> = HashMap::new();
        let open: Vec<OpenWait> = open.collect();
        self.releases.forget(open.iter());
        for wait in open.into_iter().chain(self.late.waits()) {
            let begin = oldest.entry(wait.lock).or_insert(wait.begin);
            *begin = wait.begin.min(*begin);
        }
        let of_all = oldest.values().min().copied();
        self.chains.forget(of_all.unwrap_or(Timestamp(u64::MAX)));
        self.locks.retain(|id, lock| {
            oldest.get(id).is_some_and(|&oldest| {
                lock.hand_overs.drain(..lock.after(oldest));
                !lock.hand_overs.is_empty()
            })
        });
        self.count();
        if self.kept > KEPT_AT_MOST / 2 {
            self.locks.values_mut().for_each(Lock::halve);
            self.count();
        }
        self.limit = KEPT.max(2 * self.kept);
    }

    fn count(&mut self) {
        self.kept = self.locks.values().map(|lock| lock.hand_overs.len()).sum();
    }
}

/// The same waking delivered twice (Linux 5.10 does so to events of a task): by the same waker, in the
/// same wait, while the task had not left its CPU since.
fn is_copy(earlier: &Woken, waking: &Waking) -> bool {
    earlier.waker == waking.waker && earlier.begin == waking.wait.begin && !earlier.left
}

impl Lock {
    /// How many hand-overs are not after `moment`.
    fn after(&self, moment: Timestamp) -> usize {
        self.hand_overs.partition_point(|hand_over| hand_over.time <= moment)
    }

    /// Forgets the older half.
    fn halve(&mut self) {
        let half = self.hand_overs.len() / 2;
        if let Some(last) = self.hand_overs.drain(..half).next_back() {
            self.forgotten = last.time;
        }
    }

    /// Adds a hand-over that may be older than others; gives the latest release before it.
    pub(super) fn insert(&mut self, hand_over: HandOver) -> Timestamp {
        let at = self.after(hand_over.time);
        let earlier = self.hand_overs.get(..at).unwrap_or_default().iter().rev();
        let mut releases = earlier.filter(|earlier| earlier.by.kind == HandOverKind::Release);
        let before = releases.next().map_or(self.forgotten, |release| release.time);
        self.hand_overs.insert(at, hand_over);
        self.released = self.released.max(hand_over.time);
        before
    }

    /// The hand-over by this task at this time.
    pub(super) fn at(&mut self, time: Timestamp, task: TaskRef) -> Option<&mut HandOver> {
        let of_task = |known: &&mut HandOver| known.time == time && known.by.task == task;
        self.hand_overs.iter_mut().rev().find(of_task)
    }

    pub(super) fn inside(&self, begin: Timestamp, end: Timestamp) -> &[HandOver] {
        let (from, to) = (self.after(begin), self.after(end));
        self.hand_overs.get(from..to).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
