//! Sleeps in lock code that no contention event spoke of -> waits.
//!
//! In: what tasks did, stretch by stretch, and for which lock they slept. Out: waits without a lock's
//! address. This is all that kernels before 5.19 tell of waiting, and on later ones what their contention
//! events leave out: writers of a percpu-rwsem, the locks of VMAs and sockets.
//!
//! ```text
//!            asleep in S   runnable  CPU 40 us  asleep in S   runnable   CPU 2 ms
//!   ────────|=============|─────────|──────────|=============|──────────|────────
//!           |------------------------- one wait -------------------------|
//! ```
//!
//! A slow path goes to sleep again when it is woken and does not get the lock. So sleeps of a task on
//! one stack with less than [`LOOP`] on a CPU between them are one wait: a run of sleeps, unless the
//! task let such a lock go between them. Preemption in the same lock code, where stacks of preempted
//! tasks were recorded, is no sleep, but part of the run that it adjoins. Bounded: one run a task.

use hashbrown::HashMap;

use super::Observation;
use super::identity::Identity;
use super::open::{KindSet, UNKNOWN_CPU};
use super::stretch::{RunState, Stretch};
use super::waiting::OpenWait;
use crate::model::{
    Context, FunctionId, LockAddr, LockType, Nanos, Outcome, StackId, TaskId, TaskRef, Timestamp,
    Wait,
};

/// CPU time after which a task that was woken in a slow path is believed to have its lock.
const LOOP: Nanos = Nanos(100_000);

/// Tasks remembered at the most.
const TASKS_KEPT: usize = 1 << 16;

/// A task left its CPU in lock code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSleep {
    /// Who.
    pub task: TaskRef,
    /// What it asked for.
    pub lock_type: LockType,
    /// Which one, as far as its stack tells.
    pub lock: Identity,
    /// Kinds of the lock code on its stack.
    pub kinds: KindSet,
    /// The function that asked for it.
    pub caller: Option<FunctionId>,
    /// Kernel part of the stack with which it left its CPU.
    pub kernel_stack: StackId,
    /// User part.
    pub user_stack: StackId,
    /// It went to sleep, as opposed to being preempted.
    pub asleep: bool,
}

/// How many sleeps made how many waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SleepCounts {
    /// Waits.
    pub waits: u64,
    /// Sleeps in them.
    pub sleeps: u64,
}

impl SleepCounts {
    /// Adds what another recording counted.
    pub fn merge(&mut self, other: SleepCounts) {
        let SleepCounts { waits, sleeps } = other;
        self.waits += waits;
        self.sleeps += sleeps;
    }
}

/// Sleeps of one task that make up one wait so far.
#[derive(Clone, Copy, Debug)]
struct Run {
    of: LockSleep,
    begin: Timestamp,
    /// The end of the latest stretch that is part of it.
    end: Timestamp,
    /// The end of the latest stretch.
    heard: Timestamp,
    /// On a CPU since the latest sleep.
    on_cpu: Nanos,
    /// On a CPU between sleeps: not the wait's own time, as CPU samples see it.
    between: Nanos,
    /// None in a run that began with a preemption, so far.
    sleeps: u64,
}

/// Makes waits from sleeps.
#[derive(Debug)]
pub struct Sleeps {
    runs: HashMap<TaskId, Run>,
    /// Whether it is known when a woken task goes on.
    switch_ins: bool,
    counts: SleepCounts,
}

impl Sleeps {
    /// For a recording with or without records of all switches.
    pub fn new(switch_ins: bool) -> Sleeps {
        Sleeps { runs: HashMap::new(), switch_ins, counts: SleepCounts::default() }
    }

    /// How many there were so far.
    pub fn counts(&self) -> SleepCounts {
        self.counts
    }

    /// What a task did next. `lock`: in which lock code it slept, or was preempted.
    pub fn stretch(
        &mut self,
        stretch: &Stretch,
        lock: Option<LockSleep>,
        out: &mut impl FnMut(Observation),
    ) {
        if self.runs.get(&stretch.task).is_some_and(|run| run.heard != stretch.from) {
            self.lose(stretch.task, stretch.from, out);
        }
        match stretch.state {
            RunState::Running => self.ran(stretch, out),
            RunState::Runnable => self.stood(stretch, lock, out),
            RunState::Asleep(_) => self.slept(stretch, lock, out),
        }
    }

    /// The wait of a task that sleeps, or was woken and has not run since, and the kinds of its lock code.
    pub fn open_wait(&self, task: TaskId) -> Option<(OpenWait, KindSet)> {
        let run = self.runs.get(&task).filter(|run| run.on_cpu == Nanos::ZERO)?;
        Some((run.open_wait(), run.of.kinds))
    }

    /// All waits that go on, or may.
    pub fn open_waits(&self) -> impl Iterator<Item = OpenWait> + '_ {
        self.runs.values().map(Run::open_wait)
    }

    /// Whether the task may have a wait that is over without our knowing.
    #[inline]
    pub fn has_run(&self, task: TaskId) -> bool {
        self.runs.contains_key(&task)
    }

    /// The task lets such a lock go: it is not in the slow path of one any more. Its wait is over, and
    /// counted before those of whom it lets go.
    pub fn let_go(&mut self, task: TaskId, kinds: KindSet, out: &mut impl FnMut(Observation)) {
        if self.runs.get(&task).is_some_and(|run| run.of.kinds.intersects(kinds))
            && let Some(run) = self.runs.remove(&task)
        {
            self.emit(&run, Outcome::Acquired, out);
        }
    }

    /// The task ended, or the recording.
    pub fn end(&mut self, task: TaskId, out: &mut impl FnMut(Observation)) {
        if let Some(run) = self.runs.remove(&task) {
            let outcome = if run.on_cpu > Nanos::ZERO { Outcome::Acquired } else { Outcome::Open };
            self.emit(&run, outcome, out);
        }
    }

    /// The end of the recording.
    pub fn finish(&mut self, out: &mut impl FnMut(Observation)) {
        let mut tasks: Vec<TaskId> = self.runs.keys().copied().collect();
        tasks.sort_unstable();
        tasks.into_iter().for_each(|task| self.end(task, out));
    }

    /// What the task did until `again` was not recorded.
    fn lose(&mut self, task: TaskId, again: Timestamp, out: &mut impl FnMut(Observation)) {
        let Some(mut run) = self.runs.remove(&task) else { return };
        let over = run.on_cpu > Nanos::ZERO || !self.switch_ins;
        if !over {
            run.end = again;
        }
        self.emit(&run, if over { Outcome::Acquired } else { Outcome::Uncertain }, out);
    }

    fn ran(&mut self, stretch: &Stretch, out: &mut impl FnMut(Observation)) {
        let Some(run) = self.runs.get_mut(&stretch.task) else { return };
        run.on_cpu += stretch.to.since(stretch.from);
        run.heard = stretch.to;
        if run.on_cpu >= LOOP {
            self.end(stretch.task, out);
        }
    }

    /// Woken and without a CPU: the wait goes on. Preempted: it does in the code of its lock. A task whose
    /// waking was in flight when it went to sleep stands as well.
    fn stood(
        &mut self,
        stretch: &Stretch,
        lock: Option<LockSleep>,
        out: &mut impl FnMut(Observation),
    ) {
        let run = self.runs.get_mut(&stretch.task);
        let was_asleep = |run: &Run| run.on_cpu == Nanos::ZERO;
        match (run, lock) {
            (Some(run), _) if was_asleep(run) => run.go_on(stretch),
            (_, Some(lock)) if lock.asleep => self.slept(stretch, Some(lock), out),
            (Some(run), Some(lock)) if run.is_in(lock) => run.go_on(stretch),
            // Between two sleeps, as the next one will tell.
            (Some(run), None) => run.heard = stretch.to,
            (_, Some(lock)) => self.begin(stretch, lock, 0, out),
            (None, None) => {}
        }
    }

    fn slept(
        &mut self,
        stretch: &Stretch,
        lock: Option<LockSleep>,
        out: &mut impl FnMut(Observation),
    ) {
        let Some(lock) = lock else { return self.end(stretch.task, out) };
        match self.runs.get_mut(&stretch.task) {
            Some(run) if run.goes_on_with(lock) => {
                run.of = lock;
                run.sleeps += 1;
                run.go_on(stretch);
            }
            _ => self.begin(stretch, lock, 1, out),
        }
    }

    fn begin(
        &mut self,
        stretch: &Stretch,
        of: LockSleep,
        sleeps: u64,
        out: &mut impl FnMut(Observation),
    ) {
        self.end(stretch.task, out);
        if self.runs.len() >= TASKS_KEPT {
            self.end_oldest(out);
        }
        let Stretch { from, to, .. } = *stretch;
        let (on_cpu, between) = (Nanos::ZERO, Nanos::ZERO);
        let run = Run { of, begin: from, end: to, heard: to, on_cpu, between, sleeps };
        self.runs.insert(stretch.task, run);
    }

    /// Ends the half of the runs that nothing was heard of for longest.
    fn end_oldest(&mut self, out: &mut impl FnMut(Observation)) {
        let mut heard: Vec<(Timestamp, TaskId)> =
            self.runs.iter().map(|(&task, run)| (run.heard, task)).collect();
        heard.sort_unstable();
        heard.truncate(heard.len().div_ceil(2));
        heard.into_iter().for_each(|(_, task)| self.end(task, out));
    }

    fn emit(&mut self, run: &Run, outcome: Outcome, out: &mut impl FnMut(Observation)) {
        if run.sleeps == 0 {
            return;
        }
        self.counts.waits += 1;
        self.counts.sleeps += run.sleeps;
        let wait = Wait {
            task: run.of.task,
            context: Context::Task,
            cpu: UNKNOWN_CPU,
            lock_type: run.of.lock_type,
            lock: LockAddr::UNKNOWN,
            begin: run.begin,
            end: run.end,
            nested: run.between,
            spun: Nanos::ZERO,
            writer_ahead: None,
            outcome,
            kernel_stack: run.of.kernel_stack,
            user_stack: run.of.user_stack,
        };
        out(Observation::Slept(wait, run.of.lock));
    }
}

impl Run {
    fn open_wait(&self) -> OpenWait {
        OpenWait { lock: self.of.lock, begin: self.begin }
    }

    fn go_on(&mut self, stretch: &Stretch) {
        self.between += std::mem::take(&mut self.on_cpu);
        self.end = stretch.to;
        self.heard = stretch.to;
    }

    /// Whether it is in the same code of the same kind of lock.
    fn is_in(&self, lock: LockSleep) -> bool {
        (self.of.lock_type, self.of.caller) == (lock.lock_type, lock.caller)
    }

    /// Whether a sleep is another one of the same wait. The stack of a preemption differs in how the
    /// scheduler was called.
    fn goes_on_with(&self, lock: LockSleep) -> bool {
        match self.sleeps {
            0 => self.is_in(lock),
            _ => self.of.kernel_stack == lock.kernel_stack,
        }
    }
}

#[cfg(test)]
mod tests;
