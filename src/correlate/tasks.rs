//! The book of tasks: who has which name, which process, and whether it belongs to the target.
//!
//! Raw records name a task by its global pid ([`TaskId`]); sideband records (COMM, FORK, EXIT) use
//! the pids of the recorder's namespace. Which is which is learnt from samples, which carry both.
//! Each life of a task under one name, and in one cgroup, is one [`TaskRef`].

use hashbrown::{HashMap, HashSet};

use crate::decode::TaskChange;
use crate::model::{TaskId, TaskRef};

/// Names of ended tasks are kept for late events until this many have gathered.
const ENDED_LIMIT: usize = 1 << 16;

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
    /// Which of them waited or ran; others only woke somebody.
    acted: Vec<bool>,
    known: HashMap<TaskId, Known>,
    /// Where samples that say so saw it last.
    cgroups: HashMap<TaskId, u64>,
    by_tid: HashMap<i32, TaskId>,
    named: HashMap<i32, Named>,
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
        &self.entries[task.0 as usize]
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
        if let Some(acted) = self.acted.get_mut(task.0 as usize) {
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
        if let Some(info) = self.entries.get_mut(task.0 as usize).filter(|info| info.pid == 0) {
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
        let task = TaskRef(self.entries.len() as u32);
        self.entries.push(info);
        self.acted.push(false);
        self.known.insert(id, Known { tid, task, generation });
        task
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
