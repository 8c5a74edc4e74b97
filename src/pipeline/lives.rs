//! What tasks do between two switches, on its way from the book of states to the tables.
//!
//! In: switches, wakings, births and ends of tasks. Out: each stretch of a target's life, counted as
//! time on a CPU, without one, or asleep on something; sleeps in lock code that no contention event
//! spoke of, as waits; sleeps for futexes, as waits for locks of user space.

use hashbrown::{HashMap, HashSet};

use super::stages::{Observers, Stages};
use crate::analyse::{LifePiece, TaskKey, ThreadPart, UserLockKey};
use crate::attribute::catalogue::Only;
use crate::correlate::{
    Identity, KindSet, Leaving, LockSleep, Moment, OnlyLock, Recorded, RunState, RunStates, Sleeps,
    Stretch,
};
use crate::decode::{RawChain, SchedSwitch, TaskChange};
use crate::model::{Cpu, LockType, Nanos, SleepOn, StackId, TaskId, TaskRef, Timestamp};

/// Tasks whose latest switch-out is remembered; processes that are known to be heard of.
const TASKS_KEPT: usize = 1 << 16;

/// One switch-out comes as two records no further apart than this.
const SAME_SWITCH: Nanos = Nanos(1_000_000);

/// How a task left its CPU, as far as its stretches do not tell.
#[derive(Clone, Copy, Debug)]
struct Departure {
    time: Timestamp,
    /// Whether the record carried a stack.
    has_stack: bool,
    /// User part of it, where that matters.
    user: StackId,
    /// A contention event had said that it waits for a lock.
    traced: bool,
    /// In which lock code it was.
    left_in: Option<LockSleep>,
}

impl Departure {
    /// The lock code that the stretch was spent in: asleep, or runnable from the switch-out on, because the
    /// task was preempted or its waking in flight. What follows a sleep goes on with it.
    fn lock(&self, stretch: &Stretch) -> Option<LockSleep> {
        let at_once = stretch.from == self.time;
        self.left_in.filter(|_| at_once || matches!(stretch.state, RunState::Asleep(_)))
    }
}

/// The books of what tasks do.
#[derive(Debug)]
pub(super) struct Lives {
    states: RunStates,
    /// `None` where sleeps cannot be told from waits that were traced.
    sleeps: Option<Sleeps>,
    /// Processes whose threads were attached to, and those that they started since. Of other tasks, which
    /// these switch to and wake, half is heard: they have no time of their own here. `None` where
    /// everything was recorded.
    attached: Option<HashSet<i32>>,
    departures: HashMap<TaskId, Departure>,
    /// Stretches on their way.
    over: Vec<Stretch>,
}

impl Lives {
    /// For a recording that has these records; `None` when it does not say when tasks run.
    pub(super) fn new(recorded: Recorded, attached: Option<&[i32]>) -> Option<Lives> {
        recorded.switches.then(|| Lives {
            states: RunStates::new(recorded.switch_ins),
            // Without ends it is not known which sleeps were part of a traced wait.
            sleeps: (recorded.sleeps && (recorded.ends || !recorded.begins))
                .then(|| Sleeps::new(recorded.switch_ins)),
            attached: attached.map(|pids| pids.iter().copied().collect()),
            departures: HashMap::new(),
            over: Vec::new(),
        })
    }

    /// What makes waits of sleeps; `None` where they cannot be told.
    pub(super) fn sleeps(&self) -> Option<&Sleeps> {
        self.sleeps.as_ref()
    }

    /// What tasks do between two switches.
    pub(super) fn states(&self) -> &RunStates {
        &self.states
    }

    /// What tasks did, and what makes waits of it.
    pub(super) fn parts(&mut self) -> (&RunStates, Option<&mut Sleeps>) {
        (&self.states, self.sleeps.as_mut())
    }

    /// LOST: a ring of `cpu` dropped records since then.
    pub(super) fn lost(&mut self, cpu: Option<Cpu>, from: Timestamp) {
        self.states.lost(cpu, from);
    }

    /// Switches are not recorded any more.
    pub(super) fn stop(&mut self, time: Timestamp) {
        self.states.stop(time);
    }

    /// FORK: what an attached process starts is heard of as well.
    pub(super) fn forked(&mut self, change: TaskChange) {
        if let Some(attached) = &mut self.attached
            && attached.contains(&change.parent_pid)
            && attached.len() < TASKS_KEPT
        {
            attached.insert(change.pid);
        }
    }

    /// How the task left its CPU when the stretch began.
    fn departure(&self, stretch: &Stretch) -> Option<Departure> {
        let departure = self.departures.get(&stretch.task).copied();
        departure.filter(|known| stretch.from.since(known.time) < SAME_SWITCH)
    }

    /// The task ended.
    fn forget(&mut self, task: TaskId) {
        self.departures.remove(&task);
    }

    fn depart(&mut self, task: TaskId, departure: Departure) {
        if self.departures.len() >= TASKS_KEPT {
            // What is forgotten costs a stretch its details, not its time.
            self.departures.clear();
        }
        self.departures.insert(task, departure);
    }
}

impl Stages {
    /// Lets the books hear of something, and counts the stretches that it ended.
    pub(super) fn hear(&mut self, change: impl FnOnce(&mut RunStates, &mut Vec<Stretch>)) {
        let Some(lives) = &mut self.lives else { return };
        let mut over = std::mem::take(&mut lives.over);
        change(&mut lives.states, &mut over);
        over.drain(..).for_each(|stretch| self.take_stretch(&stretch));
        if let Some(lives) = &mut self.lives {
            lives.over = over;
        }
    }

    /// PERF_RECORD_SWITCH of `task`.
    pub(super) fn switched(&mut self, task: TaskId, at: Moment, (out, preempted): (bool, bool)) {
        if !out {
            return self.hear(|states, over| states.switch_in(task, at, &mut |s| over.push(s)));
        }
        self.tasks.mention(task, at.pid, at.tid);
        let leaving = if preempted { Leaving::Preempted } else { Leaving::Asleep(StackId::EMPTY) };
        self.hear(|states, over| states.switch_out(task, at, leaving, &mut |s| over.push(s)));
        let Stages { lives: Some(lives), correlate, .. } = self else { return };
        let told = |known: &Departure| known.has_stack && at.time.since(known.time) < SAME_SWITCH;
        if preempted || !lives.departures.get(&task).is_some_and(told) {
            let traced = correlate.waits(task);
            let (user, left_in) = (StackId::EMPTY, None);
            lives
                .depart(task, Departure { time: at.time, has_stack: false, user, traced, left_in });
        }
    }

    /// `sched:sched_switch`.
    pub(super) fn sched_switched(&mut self, at: Moment, switch: &SchedSwitch<'_>) {
        let Stages { stacks, lives: Some(_), .. } = self else { return };
        let prev = switch.prev;
        if prev != TaskId::IDLE {
            self.tasks.mention(prev, at.pid, at.tid);
        }
        let kernel = stacks.kernel_of(switch.chain);
        let leaving = Leaving::from_prev_state(switch.prev_state, kernel);
        self.hear(|states, over| states.switch_out(prev, at, leaving, &mut |s| over.push(s)));
        let departure = self.departure(at, prev, (kernel, switch.chain), leaving);
        if let (Some(lives), true) = (&mut self.lives, prev != TaskId::IDLE) {
            lives.depart(prev, departure);
        }
        self.hear(|states, over| states.switch_in(switch.next, at, &mut |s| over.push(s)));
    }

    /// What the stretch that follows will want to know. A user stack is resolved only where it is shown.
    fn departure(
        &mut self,
        at: Moment,
        task: TaskId,
        (stack, chain): (StackId, RawChain<'_>),
        leaving: Leaving,
    ) -> Departure {
        let traced = self.correlate.waits(task);
        let facts = self.attribution.facts(stack, &self.kernel, &self.stacks);
        let on = facts.sleeps_on;
        let shown = matches!(on, SleepOn::Futex(_))
            || matches!(on, SleepOn::Lock(_)) && self.user_stacks && !traced;
        let user = match shown && leaving != Leaving::Dead {
            true => self.maps.resolve(at.pid, chain.split().user, &mut self.stacks),
            false => StackId::EMPTY,
        };
        let wanted = leaving != Leaving::Dead && !traced;
        let asleep = leaving != Leaving::Preempted;
        let left_in = wanted.then(|| self.lock_sleep(task, (stack, user), asleep)).flatten();
        Departure { time: at.time, has_stack: stack != StackId::EMPTY, user, traced, left_in }
    }

    /// The end of a task's life.
    pub(super) fn life_ends(&mut self, task: TaskId, at: Moment) {
        self.hear(|states, over| states.exit(task, at, &mut |s| over.push(s)));
        self.tables.end_life(task, at.time, &self.attribution);
        self.lives.iter_mut().for_each(|lives| lives.forget(task));
        let Observers { sleeps, mut sink, .. } = self.observers();
        if let Some(sleeps) = sleeps {
            sleeps.end(task, &mut |o| sink.take(o));
        }
    }

    /// The end of the recording.
    pub(super) fn lives_end(&mut self) {
        let Some((_, last)) = self.tables.span() else { return };
        self.hear(|states, over| states.finish(last, &mut |s| over.push(s)));
        self.tables.end_lives(last, &self.attribution);
        let Observers { sleeps, mut sink, .. } = self.observers();
        if let Some(sleeps) = sleeps {
            sleeps.finish(&mut |o| sink.take(o));
        }
    }

    /// The entry of a task that belongs to the target.
    fn of_target(&mut self, task: TaskId) -> Option<TaskRef> {
        let named = self.tasks.mention(task, 0, 0);
        let pid = self.tasks.info(named).pid;
        let attached = self.lives.as_ref().and_then(|lives| lives.attached.as_ref());
        if attached.is_some_and(|pids| !pids.contains(&pid)) {
            return None;
        }
        self.tasks.in_target(task, pid, 0).then(|| self.tasks.refer(task, 0, 0))
    }

    fn take_stretch(&mut self, stretch: &Stretch) {
        let Some(task) = self.of_target(stretch.task) else { return };
        let departure = self.lives.as_ref().and_then(|lives| lives.departure(stretch));
        let part = self.part(stretch, task, departure);
        let Stretch { task: id, from, to, .. } = *stretch;
        self.tables.add_life(&LifePiece { id, task, from, to, part }, &self.attribution);
        let lock = departure.and_then(|departure| departure.lock(stretch));
        let Observers { sleeps, mut sink, .. } = self.observers();
        if let Some(sleeps) = sleeps {
            sleeps.stretch(stretch, lock, &mut |o| sink.take(o));
        }
    }

    /// What the stretch was spent on; a wait for a lock of user space is counted on the way.
    fn part(
        &mut self,
        stretch: &Stretch,
        task: TaskRef,
        departure: Option<Departure>,
    ) -> ThreadPart {
        let stack = match stretch.state {
            RunState::Running => return ThreadPart::OnCpu,
            RunState::Runnable => return ThreadPart::Runnable,
            RunState::Asleep(stack) => stack,
        };
        let facts = self.attribution.facts(stack, &self.kernel, &self.stacks);
        match facts.sleeps_on {
            SleepOn::Lock(_) => ThreadPart::KernelLock,
            SleepOn::Futex(entry) => {
                let user = departure.map_or(StackId::EMPTY, |departure| departure.user);
                let key = UserLockKey { task: TaskKey::of(task), entry, user };
                let time = (stretch.from, stretch.to);
                self.tables.add_user_lock(key, time, &self.attribution);
                ThreadPart::UserLock
            }
            SleepOn::Other(function) => ThreadPart::Sleep(Some(function)),
            SleepOn::Unknown if departure.is_some_and(|d| d.traced) => ThreadPart::KernelLock,
            SleepOn::Unknown => ThreadPart::Sleep(None),
        }
    }

    /// What a task of the target that left its CPU with this stack waits for, when lock code had called
    /// the scheduler.
    fn lock_sleep(
        &mut self,
        task: TaskId,
        (stack, user): (StackId, StackId),
        asleep: bool,
    ) -> Option<LockSleep> {
        let facts = self.attribution.facts(stack, &self.kernel, &self.stacks);
        let SleepOn::Lock(lock_type) = facts.sleeps_on else { return None };
        let (caller, only) = (facts.site.caller, facts.only);
        let kinds = facts.path.map_or(KindSet::default(), |path| path.kinds);
        let (id, task) = (task, self.of_target(task)?);
        let lock = self.lock_of((id, task), lock_type, only);
        let (kernel_stack, user_stack) = (stack, user);
        Some(LockSleep { task, lock_type, lock, kinds, caller, kernel_stack, user_stack, asleep })
    }

    /// Which lock a task sleeps for. Who has no number here has no process either.
    fn lock_of(
        &self,
        (id, task): (TaskId, TaskRef),
        lock_type: LockType,
        only: Option<Only>,
    ) -> Identity {
        let pid = self.tasks.info(task).pid;
        match only {
            Some(Only { name, of_process: false }) => Identity::Only(OnlyLock { name, pid: None }),
            Some(Only { name, of_process: true }) if pid > 0 => {
                Identity::Only(OnlyLock { name, pid: Some(pid) })
            }
            _ => Identity::SleptForBy(id, lock_type.kind),
        }
    }
}
