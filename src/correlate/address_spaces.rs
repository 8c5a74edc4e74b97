//! The book of address spaces: when a process gave its own up, which `mm_struct` it has, how long its
//! mmap_lock was held.
//!
//! In: COMM(exec), FORK and EXIT, and the `mmap_lock:*` events where they were recorded. Out: what
//! proves which rwsem is whose mmap_lock, and how long that proof lasts: an `mm_struct` is used again
//! after exit and exec. Processes are those of the recorder's namespace, as in the book of tasks.
//!
//! ```text
//!            acquired              released
//!   [free] ------------> [held R|W] ------> [free], the time between is a hold
//!             ^                |
//!             +--- acquired ---+  the release was not seen: the older hold is forgotten
//! ```

use hashbrown::HashMap;

use crate::decode::{Body, Event, MmapLock, MmapLockStep, TaskChange};
use crate::model::{Mode, Stat, TaskId, Timestamp};

/// Processes whose ends are known; beyond it nothing more is learnt, and names last longer than they
/// should.
const PROCESS_LIMIT: usize = 1 << 16;
/// Ends known of one process: one that execs all the time keeps its last ones.
const ENDS_LIMIT: usize = 64;
/// Pairs of an `mm_struct` and a process that locked it.
const USER_LIMIT: usize = 1 << 13;
/// Holds open at once, at the most.
const HOLD_LIMIT: usize = 1 << 16;

/// When a process gave up address spaces, in order of time.
#[derive(Debug, Default)]
struct Ends {
    past: Vec<Timestamp>,
    /// Its main thread is gone; the last of its threads so far went then.
    leader_exited: bool,
    last_exit: Option<Timestamp>,
}

/// One process's use of one `mm_struct`.
#[derive(Debug, Default)]
struct User {
    /// `mmap_lock` events.
    events: u64,
    /// How long it held the mmap_lock: reading, writing.
    holds: [Stat; 2],
}

/// A lock that somebody holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    since: Timestamp,
    write: bool,
}

/// The book of address spaces.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    ends: HashMap<i32, Ends>,
    users: HashMap<(u64, i32), User>,
    held: HashMap<(TaskId, u64), Held>,
    refused: u64,
}

impl AddressSpaces {
    /// Learns from sideband records.
    pub fn apply(&mut self, event: &Event<'_>) {
        match event.body {
            Body::Comm(comm) if comm.exec => self.exec(comm.pid, event.time),
            Body::Fork(change) => self.fork(change),
            Body::Exit(change) => self.exit(change, event.time),
            Body::Lost(_) => self.lost(),
            _ => {}
        }
    }

    /// COMM(exec): the process has a new address space.
    fn exec(&mut self, pid: i32, time: Timestamp) {
        if let Some(ends) = self.ends_of(pid) {
            ends.end(time);
        }
    }

    /// FORK: a new process may have the number of one that is gone.
    fn fork(&mut self, change: TaskChange) {
        if change.pid == change.tid
            && let Some(ends) = self.ends.get_mut(&change.pid)
        {
            ends.leader_exited = false;
            if let Some(exit) = ends.last_exit.take() {
                ends.end(exit);
            }
        }
    }

    /// EXIT: the address space goes with the last thread.
    fn exit(&mut self, change: TaskChange, time: Timestamp) {
        if let Some(ends) = self.ends_of(change.pid) {
            ends.leader_exited |= change.pid == change.tid;
            ends.last_exit = Some(time);
        }
    }

    /// An event of a task of process `pid`.
    pub fn mmap_lock(&mut self, time: Timestamp, pid: i32, event: &MmapLock<'_>) {
        let key = (event.who.task, event.mm);
        match event.step {
            MmapLockStep::StartLocking | MmapLockStep::NotAcquired => self.count(event.mm, pid),
            MmapLockStep::Acquired => {
                if self.held.len() >= HOLD_LIMIT && !self.held.contains_key(&key) {
                    self.held.clear();
                }
                self.held.insert(key, Held { since: time, write: event.write });
            }
            MmapLockStep::Released => {
                let Some(held) = self.held.remove(&key) else { return };
                if let Some(user) = self.user(event.mm, pid)
                    && let Some(holds) = user.holds.get_mut(usize::from(held.write))
                {
                    holds.add(time.since(held.since));
                }
            }
        }
    }

    /// Records were lost: a release may be among them.
    fn lost(&mut self) {
        self.held.clear();
    }

    /// Whether the process gave up an address space after `from` and not later than `to`.
    pub fn ended(&self, pid: i32, from: Timestamp, to: Timestamp) -> bool {
        let Some(ends) = self.ends.get(&pid) else { return false };
        let exit = ends.last_exit.filter(|_| ends.leader_exited);
        let mut all = ends.past.iter().copied().chain(exit);
        all.any(|end| from < end && end <= to)
    }

    /// Each `mm_struct` with a process that locked it, in no order.
    pub fn users(&self) -> impl Iterator<Item = (u64, i32)> {
        self.users.keys().copied()
    }

    /// How long the mmap_lock of `mm` was held in this mode by processes that pass; `None` when no
    /// hold was seen.
    pub fn holds(&self, mm: u64, mode: Mode, passes: impl Fn(i32) -> bool) -> Option<Stat> {
        let wanted = self.users.iter().filter(|((of, pid), _)| *of == mm && passes(*pid));
        let mut sum = Stat::default();
        for (_, user) in wanted {
            sum.merge(&user.holds[usize::from(mode == Mode::Write)]);
        }
        (sum.count > 0).then_some(sum)
    }

    /// Uses of address spaces that there was no room for.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn ends_of(&mut self, pid: i32) -> Option<&mut Ends> {
        let room = self.ends.len() < PROCESS_LIMIT || self.ends.contains_key(&pid);
        (room && pid > 0).then(|| self.ends.entry(pid).or_default())
    }

    fn count(&mut self, mm: u64, pid: i32) {
        if let Some(user) = self.user(mm, pid) {
            user.events += 1;
        }
    }

    fn user(&mut self, mm: u64, pid: i32) -> Option<&mut User> {
        let key = (mm, pid);
        if self.users.len() >= USER_LIMIT && !self.users.contains_key(&key) {
            self.refused += 1;
            return None;
        }
        Some(self.users.entry(key).or_default())
    }
}

impl Ends {
    fn end(&mut self, time: Timestamp) {
        if self.past.len() >= ENDS_LIMIT {
            self.past.remove(0);
        }
        self.past.push(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{RawChain, RawTask};
    use crate::model::Nanos;

    fn change(pid: i32, tid: i32) -> TaskChange {
        TaskChange { pid, tid, parent_pid: 1, parent_tid: 1 }
    }

    fn event(task: i32, mm: u64, step: MmapLockStep, write: bool) -> MmapLock<'static> {
        let who = RawTask { task: TaskId(task), ..RawTask::default() };
        MmapLock { who, mm, step, write, chain: RawChain::default() }
    }

    #[test]
    fn an_address_space_ends_with_its_last_thread_or_an_exec() {
        let mut spaces = AddressSpaces::default();
        let ended =
            |spaces: &AddressSpaces, from, to| spaces.ended(7, Timestamp(from), Timestamp(to));
        spaces.exec(7, Timestamp(10));
        assert!(ended(&spaces, 9, 10) && !ended(&spaces, 10, 99));
        // The main thread may go first.
        spaces.exit(change(7, 7), Timestamp(20));
        spaces.exit(change(7, 8), Timestamp(30));
        assert!(!ended(&spaces, 10, 29) && ended(&spaces, 10, 30));
        // Threads that go alone end nothing.
        spaces.fork(change(7, 7));
        spaces.exit(change(7, 9), Timestamp(40));
        assert!(ended(&spaces, 10, 30) && !ended(&spaces, 30, 99));
    }

    #[test]
    fn a_hold_lasts_from_acquired_to_released_of_one_task() {
        let mut spaces = AddressSpaces::default();
        use MmapLockStep::{Acquired, Released, StartLocking};
        let events = [
            (10, 1, StartLocking, true),
            (20, 1, Acquired, true),
            (25, 2, Acquired, false),
            (50, 1, Released, true),
            (60, 2, Released, false),
            (70, 3, Released, false),
        ];
        for (time, task, step, write) in events {
            spaces.mmap_lock(Timestamp(time), 7, &event(task, 0x1000, step, write));
        }
        let total = |mode| spaces.holds(0x1000, mode, |pid| pid == 7).map(|stat| stat.total);
        assert_eq!(total(Mode::Write), Some(Nanos(30)));
        assert_eq!(total(Mode::Read), Some(Nanos(35)));
        assert_eq!(spaces.holds(0x1000, Mode::Read, |pid| pid == 8), None);
    }

    #[test]
    fn a_loss_forgets_what_is_held() {
        let mut spaces = AddressSpaces::default();
        spaces.mmap_lock(Timestamp(1), 7, &event(1, 0x1000, MmapLockStep::Acquired, true));
        spaces.lost();
        spaces.mmap_lock(Timestamp(9), 7, &event(1, 0x1000, MmapLockStep::Released, true));
        assert_eq!(spaces.holds(0x1000, Mode::Write, |_| true), None);
    }
}
