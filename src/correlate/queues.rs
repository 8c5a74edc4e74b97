//! The queues of locks that know readers and writers: who waits for them at the same time.
//!
//! ```text
//!   begin: last in the queue        writer ahead?  R1: no -> a writer holds the lock
//!     W1 R1 W2 R2 R3                               R2: W1, W2 -> behind a queued writer
//!   end: taken out of the queue     W2 leaves: nothing but readers ahead of R2, R3 -> W2 holds it
//!   empty -> a stretch is over: from the first begin to the last end
//! ```
//!
//! A reader has to wait for nobody but a writer: one that holds the lock, or one that was queued
//! before it while readers hold the lock. What stands ahead of it in the queue tells which.
//!
//! In: waits that begin ([`Begun`]) and end. Out: until when a writer stood ahead of a wait, and each
//! [`Busy`] of time in which a queue was not empty. Bounded: of too many waits at a time the later
//! ones are not followed, and counted.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::wakeups::LockId;
use crate::model::{Cpu, Mode, Outcome, TaskRef, Timestamp, Wait};

/// Waits followed at a time.
const WAITERS_KEPT: usize = 1 << 16;
/// Locks remembered before those are forgotten that nobody waits for.
const LOCKS_KEPT: usize = 1 << 12;

/// A wait for a lock with readers and writers begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Who waits.
    pub task: TaskRef,
    /// Where.
    pub cpu: Cpu,
    /// For which lock.
    pub lock: LockId,
    /// For what: read or write.
    pub mode: Mode,
    /// Since when.
    pub begin: Timestamp,
}

/// The time from the first begin to the last end of waits that overlap, for one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Which lock.
    pub lock: LockId,
    /// Begin of the first wait.
    pub from: Timestamp,
    /// End of the last one.
    pub to: Timestamp,
    /// Waits that got the lock.
    pub waits: u64,
    /// How often they took it over: readers that follow one another take it together.
    pub hand_overs: u64,
    /// The most readers at a time.
    pub most_readers: u64,
    /// The most writers.
    pub most_writers: u64,
    /// Lost records may have cut or joined one of the waits.
    pub doubtful: bool,
}

/// What the queue says of a wait that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Until when a writer stood ahead of it: its begin when none did. `None`: not known.
    pub writer_ahead: Option<Timestamp>,
    /// The queue is empty now: what it was.
    pub stretch: Option<Busy>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskRef,
    cpu: Cpu,
    begin: Timestamp,
    mode: Mode,
    /// Since when no writer stands ahead of it.
    no_writer_since: Option<Timestamp>,
}

/// Waits for one lock, in the order in which they began.
#[derive(Debug)]
struct Queue {
    waiters: VecDeque<Waiter>,
    writers: usize,
    stretch: Busy,
    /// Who got the lock last in this stretch.
    taken: Option<Mode>,
}

/// The queues of all locks.
#[derive(Debug)]
pub struct Queues {
    locks: HashMap<LockId, Queue>,
    locks_limit: usize,
    /// Waits in all queues.
    waiting: usize,
    untracked: u64,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues { locks: HashMap::new(), locks_limit: LOCKS_KEPT, waiting: 0, untracked: 0 }
    }
}

impl Queues {
    /// Waits that were not followed, because too many waited at a time.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// A wait begins.
    pub fn begin(&mut self, begun: &Begun) {
        if self.waiting >= WAITERS_KEPT {
            self.untracked += 1;
            return;
        }
        if self.locks.len() >= self.locks_limit {
            self.locks.retain(|_, queue| !queue.waiters.is_empty());
            self.locks_limit = LOCKS_KEPT.max(2 * self.locks.len());
        }
        self.waiting += 1;
        self.locks.entry(begun.lock).or_insert_with(|| Queue::new(begun)).push(begun);
    }

    /// A wait ended, or is over for us.
    pub fn end(&mut self, wait: &Wait) -> Left {
        let lock = LockId { addr: wait.lock, kind: wait.lock_type.kind };
        let Some(queue) = self.locks.get_mut(&lock) else { return Left::default() };
        let Some(waiter) = queue.take(wait) else { return Left::default() };
        self.waiting -= 1;
        queue.count(wait);
        let until = waiter.no_writer_since.unwrap_or(wait.end).clamp(wait.begin, wait.end);
        let stretch = queue.waiters.is_empty().then_some(queue.stretch);
        Left { writer_ahead: Some(until), stretch }
    }
}

impl Queue {
    fn new(first: &Begun) -> Queue {
        let stretch = Busy::new(first);
        Queue { waiters: VecDeque::new(), writers: 0, stretch, taken: None }
    }

    fn push(&mut self, begun: &Begun) {
        let Begun { task, cpu, mode, begin, .. } = *begun;
        if self.waiters.is_empty() {
            self.stretch = Busy::new(begun);
            self.taken = None;
        }
        let no_writer_since = (self.writers == 0).then_some(begin);
        self.waiters.push_back(Waiter { task, cpu, begin, mode, no_writer_since });
        self.writers += usize::from(mode == Mode::Write);
        let readers = (self.waiters.len() - self.writers) as u64;
        self.stretch.most_readers = self.stretch.most_readers.max(readers);
        self.stretch.most_writers = self.stretch.most_writers.max(self.writers as u64);
    }

    /// Takes the waiter of this wait out of the queue.
    fn take(&mut self, wait: &Wait) -> Option<Waiter> {
        let is_it = |waiter: &Waiter| {
            (waiter.begin, waiter.task, waiter.cpu) == (wait.begin, wait.task, wait.cpu)
                && waiter.mode == wait.lock_type.mode
        };
        let at = self.waiters.iter().position(is_it)?;
        let waiter = self.waiters.remove(at)?;
        if waiter.mode == Mode::Write {
            self.writers -= 1;
            if waiter.no_writer_since.is_some() {
                self.pass_writer(at, wait.end);
            }
        }
        Some(waiter)
    }

    /// The first writer of the queue left it at `time`: no writer stands ahead of those behind it, up
    /// to the next writer.
    fn pass_writer(&mut self, at: usize, time: Timestamp) {
        for waiter in self.waiters.iter_mut().skip(at) {
            waiter.no_writer_since.get_or_insert(time);
            if waiter.mode == Mode::Write {
                break;
            }
        }
    }

    /// Adds a wait that left to the stretch.
    fn count(&mut self, wait: &Wait) {
        let mode = wait.lock_type.mode;
        self.stretch.to = self.stretch.to.max(wait.end);
        if wait.outcome == Outcome::Uncertain {
            self.stretch.doubtful = true;
            return;
        }
        if wait.outcome == Outcome::Acquired {
            self.stretch.waits += 1;
            let shared = mode == Mode::Read && self.taken == Some(Mode::Read);
            self.stretch.hand_overs += u64::from(!shared);
            self.taken = Some(mode);
        }
    }
}

impl Busy {
    fn new(first: &Begun) -> Busy {
        Busy {
            lock: first.lock,
            from: first.begin,
            to: first.begin,
            waits: 0,
            hand_overs: 0,
            most_readers: 0,
            most_writers: 0,
            doubtful: false,
        }
    }

    /// Whether the lock went from hand to hand while others waited for it.
    pub fn is_convoy(&self) -> bool {
        self.hand_overs >= 2 && !self.doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Context, LockAddr, LockKind, LockType, Nanos, StackId};

    const LOCK: LockId = LockId { addr: LockAddr(0xa), kind: LockKind::Rwsem };

    fn begin(queues: &mut Queues, task: u32, mode: Mode, at: u64) {
        let begin = Timestamp(at);
        queues.begin(&Begun { task: TaskRef(task), cpu: Cpu(0), lock: LOCK, mode, begin });
    }

    fn end(queues: &mut Queues, task: u32, mode: Mode, (begin, end): (u64, u64)) -> Left {
        queues.end(&Wait {
            task: TaskRef(task),
            context: Context::Task,
            cpu: Cpu(0),
            lock_type: LockType::new(LOCK.kind, mode),
            lock: LOCK.addr,
            begin: Timestamp(begin),
            end: Timestamp(end),
            nested: Nanos::ZERO,
            spun: Nanos::ZERO,
            writer_ahead: None,
            outcome: Outcome::Acquired,
            kernel_stack: StackId::EMPTY,
            user_stack: StackId::EMPTY,
        })
    }

    #[test]
    fn a_reader_stands_behind_a_queued_writer_until_the_last_of_them_has_the_lock() {
        let mut queues = Queues::default();
        begin(&mut queues, 1, Mode::Write, 10);
        begin(&mut queues, 2, Mode::Read, 20);
        begin(&mut queues, 3, Mode::Write, 30);
        begin(&mut queues, 4, Mode::Read, 40);
        let until = |left: Left| left.writer_ahead.map(|at| at.0);
        assert_eq!(until(end(&mut queues, 1, Mode::Write, (10, 50))), Some(10), "none ahead of it");
        assert_eq!(until(end(&mut queues, 2, Mode::Read, (20, 60))), Some(50));
        assert_eq!(until(end(&mut queues, 3, Mode::Write, (30, 70))), Some(50));
        assert_eq!(until(end(&mut queues, 4, Mode::Read, (40, 80))), Some(70));
    }

    #[test]
    fn a_writer_that_leaves_from_the_middle_clears_nobody_behind_an_earlier_one() {
        let mut queues = Queues::default();
        begin(&mut queues, 1, Mode::Write, 10);
        begin(&mut queues, 2, Mode::Write, 20);
        begin(&mut queues, 3, Mode::Read, 30);
        end(&mut queues, 2, Mode::Write, (20, 40));
        let left = end(&mut queues, 3, Mode::Read, (30, 50));
        assert_eq!(left.writer_ahead, Some(Timestamp(50)), "the first writer is still there");
    }

    #[test]
    fn a_stretch_lasts_until_the_queue_is_empty_and_readers_in_a_row_share_a_hand_over() {
        let mut queues = Queues::default();
        begin(&mut queues, 1, Mode::Read, 10);
        begin(&mut queues, 2, Mode::Read, 20);
        begin(&mut queues, 3, Mode::Write, 30);
        assert_eq!(end(&mut queues, 1, Mode::Read, (10, 40)).stretch, None);
        assert_eq!(end(&mut queues, 2, Mode::Read, (20, 41)).stretch, None);
        let stretch = end(&mut queues, 3, Mode::Write, (30, 60)).stretch.unwrap();
        assert_eq!((stretch.waits, stretch.hand_overs), (3, 2));
        assert_eq!((stretch.from, stretch.to), (Timestamp(10), Timestamp(60)));
        assert_eq!((stretch.most_readers, stretch.most_writers), (2, 1));
        assert!(stretch.is_convoy());
        begin(&mut queues, 1, Mode::Write, 100);
        let alone = end(&mut queues, 1, Mode::Write, (100, 110)).stretch.unwrap();
        assert!(!alone.is_convoy() && alone.from == Timestamp(100));
    }

    #[test]
    fn of_too_many_waits_the_later_ones_are_counted_and_their_place_is_unknown() {
        let mut queues = Queues::default();
        let last = WAITERS_KEPT as u32;
        (0..=last).for_each(|task| begin(&mut queues, task, Mode::Read, 1 + u64::from(task)));
        assert_eq!((queues.untracked(), queues.waiting), (1, WAITERS_KEPT));
        let place = 1 + u64::from(last);
        assert_eq!(end(&mut queues, last, Mode::Read, (place, place + 9)), Left::default());
        assert_eq!(end(&mut queues, 0, Mode::Read, (1, 99)).writer_ahead, Some(Timestamp(1)));
        assert_eq!(queues.waiting, WAITERS_KEPT - 1);
    }

    #[test]
    fn locks_that_nobody_waits_for_are_forgotten() {
        let mut queues = Queues::default();
        for addr in 0..3 * LOCKS_KEPT as u64 {
            let lock = LockId { addr: LockAddr(addr), ..LOCK };
            let begun = Begun {
                task: TaskRef(1),
                cpu: Cpu(0),
                lock,
                mode: Mode::Read,
                begin: Timestamp(1),
            };
            queues.begin(&begun);
            let wait = Wait { lock: lock.addr, ..wait_of(&begun) };
            queues.end(&wait);
        }
        assert!(queues.locks.len() <= LOCKS_KEPT, "{}", queues.locks.len());
    }

    fn wait_of(begun: &Begun) -> Wait {
        Wait {
            task: begun.task,
            context: Context::Task,
            cpu: begun.cpu,
            lock_type: LockType::new(begun.lock.kind, begun.mode),
            lock: begun.lock.addr,
            begin: begun.begin,
            end: begun.begin,
            nested: Nanos::ZERO,
            spun: Nanos::ZERO,
            writer_ahead: None,
            outcome: Outcome::Acquired,
            kernel_stack: StackId::EMPTY,
            user_stack: StackId::EMPTY,
        }
    }
}
