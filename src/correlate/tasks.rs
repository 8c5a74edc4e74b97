//! The book of tasks: who has which name, which process, and whether it belongs to the target.
//!
//! Raw records name a task by its global pid ([`TaskId`]); sideband records (COMM, FORK, EXIT) use
//! the pids of the recorder's namespace. Which is which is learnt from samples, which carry both.
//! Each life of a task under one name, and in one cgroup, is one [`TaskRef`].
//!
//! Bounded: the first entries are kept, later ones take turns in as many places. Those are tasks like any
//! other until others have their place, but no name of theirs is promised to last: tables fold them.

use std::sync::LazyLock;

use hashbrown::{HashMap, HashSet};

use crate::decode::TaskChange;
use crate::model::{TaskId, TaskRef};

/// Names of ended tasks are kept for late events until this many have gathered.
const ENDED_LIMIT: usize = 1 << 16;

/// Entries that are kept for good, and as many again that take turns.
const KEPT: u32 = TaskRef::KEPT;

/// Tasks known at a time, by what events and what sideband records say.
const KNOWN: usize = 1 << 18;

/// Who had an entry that another has now.
static FORGOTTEN: LazyLock<TaskInfo> =
    LazyLock::new(|| TaskInfo { id: TaskId(-1), pid: 0, comm: Box::default(), cgroup: None });

/// A generation that no name has: the entry of such a task is no longer its own.
const MOVED: u32 = u32::MAX;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its global pid.
    pub id: TaskId,
    /// Process in the recorder's namespace; 0 when unknown.
    pub pid: i32,
    /// Its name; empty when no record gave one.
    pub comm: Box<str>,
    /// Its cgroup; `None` when no sample said.
    pub cgroup: Option<u64>,
}

/// What sideband records said of a thread of the recorder's namespace.
#[derive(Clone, Debug)]
struct Named {
    pid: i32,
    comm: Box<str>,
    in_target: bool,
    /// Changes with every new name and every new life.
    generation: u32,
    ended: bool,
}

/// A task that events spoke of.
#[derive(Clone, Copy, Debug)]
struct Known {
    tid: i32,
    task: TaskRef,
    generation: u32,
}

/// The book of tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    entries: Vec<TaskInfo>,
    /// Entries ever made.
    entered: u32,
    /// Which of them waited or ran; others only woke somebody.
    acted: Vec<bool>,
    known: HashMap<TaskId, Known>,
    /// Where samples that say so saw it last.
    cgroups: HashMap<TaskId, u64>,
    by_tid: HashMap<i32, TaskId>,
    named: HashMap<i32, Named>,
    /// How many names there may be before the old ones are forgotten, when that is more than [`KNOWN`].
    names_limit: usize,
    generations: u32,
    ended: usize,
    /// Pids of the target; `None`: everything is.
    roots: Option<HashSet<i32>>,
    /// Processes of the recorder: no part of any target.
    own: Vec<i32>,
    /// Some task has another pid in the recorder's namespace than in the kernel.
    namespaced: bool,
}

impl Tasks {
    /// A book that tells the tasks of these processes and of all that they start from others.
    pub fn following(roots: &[i32]) -> Tasks {
        Tasks { roots: Some(roots.iter().copied().collect()), ..Tasks::default() }
    }

    /// The same book, in which the recorder's own processes belong to no target.
    pub fn leaving_out(self, own: &[i32]) -> Tasks {
        Tasks { own: own.to_vec(), ..self }
    }

    /// Everything known of an entry of this book.
    pub fn info(&self, task: TaskRef) -> &TaskInfo {
        let is_there = task.0 < KEPT || self.entered.wrapping_sub(task.0) <= KEPT;
        let entry = self.entries.get(place(task)).filter(|_| is_there);
        entry.unwrap_or(&FORGOTTEN)
    }

    /// Tasks whose names are not kept.
    pub fn folded(&self) -> u64 {
        u64::from(self.entered.saturating_sub(KEPT))
    }

    /// The name of a process: that of its main thread, as the last record gave it.
    pub fn process_name(&self, pid: i32) -> Option<&str> {
        self.named.get(&pid).map(|named| named.comm.as_ref()).filter(|comm| !comm.is_empty())
    }

    /// Entries so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Threads that waited or ran, whatever names and lives they had; the idle tasks left out.
    pub fn threads(&self) -> u64 {
        let acted = self.entries.iter().zip(&self.acted).filter(|(_, acted)| **acted);
        let ids: HashSet<TaskId> = acted.map(|(entry, _)| entry.id).collect();
        ids.iter().filter(|id| **id != TaskId::IDLE).count() as u64
    }

    /// Whether no task was seen yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of `id`, whose sample carried `pid` and `tid` of the recorder's namespace (0 or -1
    /// when the record does not say).
    #[inline]
    pub fn refer(&mut self, id: TaskId, pid: i32, tid: i32) -> TaskRef {
        let task = self.mention(id, pid, tid);
        if let Some(acted) = self.acted.get_mut(place(task)) {
            *acted = true;
        }
        task
    }

    /// The same for a task that may be no part of the target: it is named and not counted.
    #[inline]
    pub fn mention(&mut self, id: TaskId, pid: i32, tid: i32) -> TaskRef {
        let tid = self.learn(id, tid);
        let generation = self.named.get(&tid).map_or(0, |named| named.generation);
        match self.known.get(&id) {
            Some(known) if known.generation == generation && known.tid == tid => {
                let task = known.task;
                self.learn_process(task, pid);
                task
            }
            _ => self.enter(id, pid, tid, generation),
        }
    }

    /// A sample saw the task in this cgroup: another one than before is another entry.
    #[inline]
    pub fn in_cgroup(&mut self, id: TaskId, cgroup: u64) {
        if self.cgroups.insert(id, cgroup) != Some(cgroup)
            && let Some(known) = self.known.get_mut(&id)
        {
            known.generation = MOVED;
        }
    }

    /// The task behind a thread id of the recorder's namespace. `None`: that namespace is not the
    /// kernel's, and no sample told yet; another task may have this number there.
    pub fn id_of(&self, tid: i32) -> Option<TaskId> {
        let known = self.by_tid.get(&tid).copied();
        known.or((!self.namespaced || tid == 0).then_some(TaskId(tid)))
    }

    /// Whether the task belongs to the target.
    pub fn in_target(&self, id: TaskId, pid: i32, tid: i32) -> bool {
        if self.own.contains(&pid) {
            return false;
        }
        let Some(roots) = &self.roots else { return true };
        let tid = if tid > 0 { tid } else { self.known.get(&id).map_or(id.0, |known| known.tid) };
        self.named.get(&tid).is_some_and(|named| named.in_target)
            || roots.contains(&tid)
            || roots.contains(&pid)
    }

    /// COMM: the thread has a new name.
    pub fn comm(&mut self, pid: i32, tid: i32, name: &[u8]) {
        let in_target = self.is_root(pid, tid) || self.named.get(&tid).is_some_and(|n| n.in_target);
        let comm = String::from_utf8_lossy(name).into_owned().into_boxed_str();
        // The same name again (perf synthesizes them) is no new life.
        let same = |named: &Named| named.comm == comm && named.pid == pid && !named.ended;
        if !self.named.get(&tid).is_some_and(same) {
            self.name(tid, pid, comm, in_target);
        }
    }

    /// FORK: a thread began, with its parent's name.
    pub fn fork(&mut self, change: TaskChange) {
        let parent = self.named.get(&change.parent_tid).or(self.named.get(&change.parent_pid));
        let comm = parent.map(|parent| parent.comm.clone()).unwrap_or_default();
        let in_target = parent.is_some_and(|parent| parent.in_target)
            || self.is_root(change.pid, change.tid)
            || self.is_root(change.parent_pid, change.parent_tid);
        self.name(change.tid, change.pid, comm, in_target);
    }

    /// EXIT: the thread ended; late events still find its name. Gives the task, if it is known.
    pub fn exit(&mut self, change: TaskChange) -> Option<TaskId> {
        if let Some(named) = self.named.get_mut(&change.tid) {
            named.ended = true;
            self.ended += 1;
        }
        let task = self.id_of(change.tid);
        if self.ended > ENDED_LIMIT {
            self.forget_ended();
        }
        task
    }

    fn is_root(&self, pid: i32, tid: i32) -> bool {
        self.roots.as_ref().is_some_and(|roots| roots.contains(&pid) || roots.contains(&tid))
    }

    fn name(&mut self, tid: i32, pid: i32, comm: Box<str>, in_target: bool) {
        self.generations += 1;
        let generation = self.generations;
        self.named.insert(tid, Named { pid, comm, in_target, generation, ended: false });
        if self.named.len() > KNOWN.max(self.names_limit) {
            self.forget_old_names();
        }
    }

    /// The thread id under which sideband records speak of `id`.
    #[inline]
    fn learn(&mut self, id: TaskId, tid: i32) -> i32 {
        if tid > 0 {
            // A thread id may be used again, by a task with another global pid.
            if tid != id.0 && self.by_tid.get(&tid) != Some(&id) {
                self.namespaced = true;
                self.by_tid.insert(tid, id);
            }
            return tid;
        }
        match self.known.get(&id) {
            Some(known) => known.tid,
            // Outside the recorder's namespace, where another task has this number.
            None if self.namespaced => 0,
            None => id.0,
        }
    }

    /// Who was spoken of before it did anything has no process until it does.
    #[inline]
    fn learn_process(&mut self, task: TaskRef, pid: i32) {
        if let Some(info) = self.entries.get_mut(place(task)).filter(|info| info.pid == 0) {
            info.pid = pid.max(0);
        }
    }

    fn enter(&mut self, id: TaskId, pid: i32, tid: i32, generation: u32) -> TaskRef {
        let named = self.named.get(&tid);
        let info = TaskInfo {
            id,
            pid: named.map_or(pid, |named| named.pid).max(0),
            comm: named.map(|named| named.comm.clone()).unwrap_or_default(),
            cgroup: self.cgroups.get(&id).copied(),
        };
        let task = TaskRef(self.entered);
        // Numbers that were used up go on behind those that are kept.
        self.entered = self.entered.checked_add(1).unwrap_or(KEPT);
        let place = place(task);
        if place < self.entries.len() {
            (self.entries[place], self.acted[place]) = (info, false);
        } else {
            self.entries.push(info);
            self.acted.push(false);
        }
        self.known.insert(id, Known { tid, task, generation });
        if self.known.len() > KNOWN {
            self.forget_old();
        }
        task
    }

    /// Forgets the older half of the names, but who belongs to the target must stay known: where that are
    /// many, it takes as many again until they are looked through once more.
    fn forget_old_names(&mut self) {
        let middle = middle(self.named.values().map(|named| named.generation));
        self.named.retain(|_, named| named.in_target || named.generation > middle);
        self.names_limit = 2 * self.named.len();
    }

    /// Forgets the older half of the tasks: one that is heard of again has another entry.
    fn forget_old(&mut self) {
        let middle = middle(self.known.values().map(|known| known.task.0));
        self.known.retain(|_, known| known.task.0 > middle);
        let known = &self.known;
        self.cgroups.retain(|id, _| known.contains_key(id));
        self.by_tid.retain(|_, id| known.contains_key(id));
    }

    fn forget_ended(&mut self) {
        self.named.retain(|_, named| !named.ended);
        let named = &self.named;
        self.known.retain(|_, known| named.contains_key(&known.tid));
        let known = &self.known;
        self.cgroups.retain(|id, _| known.contains_key(id));
        self.by_tid.retain(|tid, _| named.contains_key(tid));
        self.ended = 0;
    }
}

/// Where the entry of a task is.
fn place(task: TaskRef) -> usize {
    let turn = task.0.checked_sub(KEPT).map(|later| KEPT + later % KEPT);
    turn.unwrap_or(task.0) as usize
}

/// A number that half of them are below or equal to.
fn middle(numbers: impl Iterator<Item = u32>) -> u32 {
    let mut numbers: Vec<u32> = numbers.collect();
    let at = numbers.len() / 2;
    numbers.select_nth_unstable(at).1.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_beyond_those_that_are_kept_take_turns() {
        let mut tasks = Tasks::default();
        let many = 3 * KEPT as i32;
        let refs: Vec<TaskRef> = (1..=many).map(|id| tasks.refer(TaskId(id), id, id)).collect();
        assert_eq!(tasks.len(), 2 * KEPT as usize);
        assert_eq!(tasks.folded(), u64::from(2 * KEPT));
        let id = |at: u32| tasks.info(refs[at as usize]).id.0;
        assert_eq!((id(0), id(KEPT - 1)), (1, KEPT as i32));
        // Another has its place: nobody is taken for somebody else.
        assert_eq!((id(KEPT), id(2 * KEPT - 1)), (-1, -1));
        assert_eq!((id(2 * KEPT), id(3 * KEPT - 1)), (2 * KEPT as i32 + 1, many));
        assert!(tasks.known.len() <= KNOWN);
    }

    #[test]
    fn names_of_the_target_stay_known_among_too_many() {
        let mut tasks = Tasks::following(&[7]);
        tasks.comm(7, 7, b"target");
        let others = 1000..1000 + 2 * KNOWN as i32;
        others.for_each(|tid| tasks.comm(tid, tid, b"other"));
        assert!(tasks.named.len() <= KNOWN && tasks.in_target(TaskId(7), 7, 7));
        assert_eq!(tasks.process_name(7), Some("target"));
    }

    #[test]
    fn a_target_of_too_many_tasks_stays_known_and_is_not_looked_through_for_each_of_them() {
        let mut tasks = Tasks::following(&[7]);
        let looked_through = |tasks: &mut Tasks, tid: i32| {
            let before = tasks.names_limit;
            tasks.comm(7, tid, b"target");
            tasks.names_limit != before
        };
        let many = 1000..1000 + 3 * KNOWN as i32;
        let times = many.clone().filter(|&tid| looked_through(&mut tasks, tid)).count();
        assert_eq!(times, 2);
        assert!(many.clone().all(|tid| tasks.in_target(TaskId(tid), 7, tid)));
    }
}
