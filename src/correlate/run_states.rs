//! What each task did between two switches: ran, waited for a CPU, slept.
//!
//! In: switches, wakings, births, exits, losses. Out: each [`Stretch`] when it is over; and, as long as
//! it is remembered, what a task did during any piece of time, such as the holder of a lock while
//! others waited for it. Nothing is guessed: where records are missing the state is unknown until the
//! task is heard of again. Bounded: stretches by task and in all, tasks, losses.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::Moment;
use super::gaps::{Gap, Gaps};
use super::open::UNKNOWN_CPU;
use super::stretch::{Leaving, RunState, StateTimes, Stretch};
use crate::model::{Cpu, Nanos, StackId, TaskId, Timestamp};

/// Stretches remembered of one task.
const PAST_KEPT: usize = 1 << 12;
/// Stretches remembered of all tasks.
const PAST_KEPT_IN_ALL: usize = 1 << 20;
/// Tasks remembered.
const TASKS_KEPT: usize = 1 << 16;

/// CPUs of which it is remembered who has them: as many as a kernel can have.
const CPUS_KEPT: usize = 1 << 13;

/// One switch-out comes as two records, no further apart than this: `sched:sched_switch` with a
/// callchain, then PERF_RECORD_SWITCH. A waking that is in flight while its task goes to sleep comes no
/// earlier than this before the switch-out.
const SAME_SWITCH: Nanos = Nanos(1_000_000);

/// ```text
///   unknown ──switch-in──> running ──switch-out, sleeping──> asleep ──first waking──┐
///                            │ ^                               ╎ no waking seen     │
///            preempted, or   │ └───────────switch-in───────────┴╌╌╌╌╌ runnable <────┘
///            state RUNNING   └───────────────────────────────────────────^
/// ```
///
/// A waking of a task that runs changes nothing. But when the task then goes to sleep and comes back
/// without another waking, that one was in flight: it was runnable all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    Unknown,
    In(RunState),
}

#[derive(Debug)]
struct Task {
    now: Now,
    since: Timestamp,
    /// Where it runs, or ran last.
    cpu: Cpu,
    /// Its latest switch-out.
    left: Timestamp,
    /// A waking while it ran, or the first while its state was unknown.
    woken: Option<Timestamp>,
    /// EXIT was read: what it still does until its last switch-out is nobody's time.
    ended: bool,
    /// Losses read before it was last heard of.
    losses: u64,
    /// In order of time; between them its state was unknown.
    past: VecDeque<Past>,
}

#[derive(Clone, Copy, Debug)]
struct Past {
    from: Timestamp,
    to: Timestamp,
    state: RunState,
}

/// The book of what tasks did.
#[derive(Debug)]
pub struct RunStates {
    tasks: HashMap<TaskId, Task>,
    /// Who was last seen to get each CPU; 0 is its idle task.
    on_cpu: HashMap<Cpu, TaskId>,
    gaps: Gaps,
    /// Whether switch-ins are recorded. Without them nobody knows how long a woken task was runnable.
    switch_ins: bool,
    /// Stretches in all tasks.
    kept: usize,
    /// Tasks that were forgotten.
    forgotten: u64,
}

impl RunStates {
    /// For a recording with or without records of all switches (PERF_RECORD_SWITCH, or
    /// `sched:sched_switch` without a filter).
    pub fn new(switch_ins: bool) -> RunStates {
        RunStates {
            tasks: HashMap::new(),
            on_cpu: HashMap::new(),
            gaps: Gaps::default(),
            switch_ins,
            kept: 0,
            forgotten: 0,
        }
    }

    /// FORK: the task can run, and waits for its first CPU.
    pub fn born(&mut self, task: TaskId, at: Moment, out: &mut impl FnMut(Stretch)) {
        self.hear(task, at, out, |entry| {
            entry.ended = false;
            Some(RunState::Runnable)
        });
    }

    /// COMM of an exec: the task runs. When another thread than the first of a process calls exec, the
    /// first ends, and the caller goes on under its number.
    pub fn exec(&mut self, task: TaskId, at: Moment, out: &mut impl FnMut(Stretch)) {
        self.hear(task, at, out, |entry| {
            entry.cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
            std::mem::take(&mut entry.ended).then_some(RunState::Running)
        });
    }

    /// The task got a CPU.
    pub fn switch_in(&mut self, task: TaskId, at: Moment, out: &mut impl FnMut(Stretch)) {
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        let all_recorded = self.switch_ins;
        self.take_cpu(task, cpu);
        self.hear(task, at, out, |entry| {
            if entry.now == Now::In(RunState::Running) {
                if entry.cpu == cpu {
                    return None;
                }
                // Its switch-out was not recorded.
                entry.now = Now::Unknown;
            }
            match entry.woken.take() {
                // Some switches between the waking and this one may not be recorded.
                Some(woken) if all_recorded => entry.settle_waking(woken),
                _ => {}
            }
            entry.cpu = cpu;
            Some(RunState::Running)
        });
    }

    /// Whoever had the CPU before has it no more. When that one was not seen to leave, nobody knows
    /// since when. (A guest kernel was seen that writes no records at all while threads of its init run.)
    fn take_cpu(&mut self, task: TaskId, cpu: Cpu) {
        if cpu == UNKNOWN_CPU {
            return;
        }
        if self.on_cpu.len() >= CPUS_KEPT && !self.on_cpu.contains_key(&cpu) {
            self.on_cpu.clear();
        }
        let before = self.on_cpu.insert(cpu, task).filter(|&before| before != task);
        if let Some(entry) = before.and_then(|before| self.tasks.get_mut(&before))
            && entry.now == Now::In(RunState::Running)
            && entry.cpu == cpu
        {
            entry.now = Now::Unknown;
        }
    }

    /// The task left its CPU. The second record of one switch-out changes nothing, but may bring the
    /// stack.
    pub fn switch_out(
        &mut self,
        task: TaskId,
        at: Moment,
        leaving: Leaving,
        out: &mut impl FnMut(Stretch),
    ) {
        let next = match leaving {
            Leaving::Asleep(stack) => RunState::Asleep(stack),
            Leaving::Preempted => RunState::Runnable,
            Leaving::Dead => return self.exit(task, at, out),
        };
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        self.hear(task, at, out, |entry| {
            let ran = entry.now == Now::In(RunState::Running) && entry.cpu == cpu;
            let known = matches!(entry.now, Now::In(RunState::Asleep(_) | RunState::Runnable));
            if known && entry.cpu == cpu && at.time.since(entry.left) < SAME_SWITCH {
                entry.learn_stack(next);
                return None;
            }
            if !ran {
                // It came to this CPU unseen.
                entry.now = Now::Unknown;
            }
            entry.cpu = cpu;
            entry.left = at.time;
            entry.woken = entry.woken.filter(|&woken| at.time.since(woken) < SAME_SWITCH);
            Some(next)
        });
    }

    /// The task was woken.
    pub fn waking(&mut self, task: TaskId, at: Moment, out: &mut impl FnMut(Stretch)) {
        self.hear(task, at, out, |entry| match entry.now {
            Now::In(RunState::Asleep(_)) => {
                entry.woken = None;
                Some(RunState::Runnable)
            }
            Now::In(RunState::Running) => {
                entry.woken = Some(at.time);
                None
            }
            Now::Unknown => {
                entry.woken = entry.woken.or(Some(at.time));
                None
            }
            Now::In(RunState::Runnable) => None,
        });
    }

    /// The task ended. What it did is remembered for those who waited for it.
    pub fn exit(&mut self, task: TaskId, at: Moment, out: &mut impl FnMut(Stretch)) {
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.doubt(task, &self.gaps, &mut self.kept, out);
            entry.turn(task, Now::Unknown, at.time, &mut self.kept, out);
            entry.ended = true;
        }
    }

    /// LOST: the ring of `cpu` (`None`: some ring) dropped records after `from`. Who ran on another CPU
    /// ran on. All others may have been woken by a waking that is missing: their states are unknown
    /// until they are heard of again.
    pub fn lost(&mut self, cpu: Option<Cpu>, from: Timestamp) {
        self.gaps.add(Gap { cpu, from });
    }

    /// From here on switches are not recorded any more.
    pub fn stop(&mut self, time: Timestamp) {
        self.lost(None, time);
        self.switch_ins = false;
    }

    /// The end of the recording: what is under way is over.
    pub fn finish(&mut self, time: Timestamp, out: &mut impl FnMut(Stretch)) {
        let mut ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        ids.sort_unstable();
        let at = Moment { time, cpu: None, pid: 0, tid: 0 };
        ids.iter().for_each(|&id| self.exit(id, at, out));
    }

    /// What the task did between two moments.
    pub fn during(&self, task: TaskId, from: Timestamp, to: Timestamp) -> StateTimes {
        let mut times = StateTimes::default();
        self.stretches(task, from, to, &mut |stretch| times.add(&stretch));
        let known = times.running + times.runnable + times.asleep;
        times.unknown = to.since(from).saturating_sub(known);
        times
    }

    /// What the task did between two moments, piece by piece in order of time; left out is what is not
    /// known.
    pub fn stretches(
        &self,
        task: TaskId,
        from: Timestamp,
        to: Timestamp,
        out: &mut impl FnMut(Stretch),
    ) {
        let Some(entry) = self.tasks.get(&task) else { return };
        let first = entry.past.partition_point(|past| past.to <= from);
        let over = entry.past.range(first..).take_while(|past| past.from < to).copied();
        let under_way = entry.under_way(entry.doubted_from(&self.gaps).unwrap_or(to));
        for Past { from: began, to: ended, state } in over.chain(under_way) {
            let stretch = Stretch { task, from: began.max(from), to: ended.min(to), state };
            if stretch.from < stretch.to {
                out(stretch);
            }
        }
    }

    /// Tasks that were forgotten because there were too many; their states were unknown afterwards.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A record speaks of the task: `change` says what it does from now on, or that nothing changes.
    fn hear(
        &mut self,
        task: TaskId,
        at: Moment,
        out: &mut impl FnMut(Stretch),
        change: impl FnOnce(&mut Task) -> Option<RunState>,
    ) {
        if task.0 <= 0 {
            return;
        }
        if self.tasks.len() >= TASKS_KEPT && !self.tasks.contains_key(&task) {
            self.forget_silent(at.time, out);
        }
        let losses = self.gaps.count();
        let entry = self.tasks.entry(task).or_insert_with(|| Task::new(at, losses));
        entry.doubt(task, &self.gaps, &mut self.kept, out);
        if let Some(state) = change(entry).filter(|_| !entry.ended) {
            let asleep = matches!(state, RunState::Asleep(_));
            let now = if self.switch_ins || asleep { Now::In(state) } else { Now::Unknown };
            entry.turn(task, now, at.time, &mut self.kept, out);
        }
        if self.kept > PAST_KEPT_IN_ALL {
            self.tasks.values_mut().for_each(|entry| {
                self.kept -= entry.past.len().div_ceil(2);
                entry.past.drain(..entry.past.len().div_ceil(2));
            });
        }
    }

    /// Forgets the half of the tasks that did not change for longest.
    fn forget_silent(&mut self, time: Timestamp, out: &mut impl FnMut(Stretch)) {
        let mut since: Vec<(Timestamp, TaskId)> =
            self.tasks.iter().map(|(&id, entry)| (entry.since, id)).collect();
        since.sort_unstable();
        for &(_, id) in since.iter().take(since.len().div_ceil(2)) {
            let Some(mut entry) = self.tasks.remove(&id) else { continue };
            entry.doubt(id, &self.gaps, &mut self.kept, out);
            entry.turn(id, Now::Unknown, time, &mut self.kept, out);
            self.kept -= entry.past.len();
            self.forgotten += 1;
        }
    }
}

impl Task {
    fn new(at: Moment, losses: u64) -> Task {
        Task {
            now: Now::Unknown,
            since: at.time,
            cpu: at.cpu.unwrap_or(UNKNOWN_CPU),
            left: Timestamp(0),
            woken: None,
            ended: false,
            losses,
            past: VecDeque::new(),
        }
    }

    /// From `time` on it does something else: what it did until then is over.
    fn turn(
        &mut self,
        task: TaskId,
        next: Now,
        time: Timestamp,
        kept: &mut usize,
        out: &mut impl FnMut(Stretch),
    ) {
        if let Some(past) = self.under_way(time) {
            let Past { from, to, state } = past;
            out(Stretch { task, from, to, state });
            if self.past.len() >= PAST_KEPT {
                self.past.pop_front();
                *kept -= 1;
            }
            self.past.push_back(past);
            *kept += 1;
        }
        self.now = next;
        self.since = self.since.max(time);
    }

    /// What it does, as a stretch that ends at `to`.
    fn under_way(&self, to: Timestamp) -> Option<Past> {
        match self.now {
            Now::In(state) if self.since < to => Some(Past { from: self.since, to, state }),
            _ => None,
        }
    }

    /// Since when nobody knows what it does, because records are missing.
    fn doubted_from(&self, gaps: &Gaps) -> Option<Timestamp> {
        let ran = self.now == Now::In(RunState::Running) && self.cpu != UNKNOWN_CPU;
        let from = gaps.first_after(self.losses, ran.then_some(self.cpu))?;
        Some(from.max(self.since))
    }

    /// Records that could speak of it are missing: what it does is unknown since then.
    fn doubt(
        &mut self,
        task: TaskId,
        gaps: &Gaps,
        kept: &mut usize,
        out: &mut impl FnMut(Stretch),
    ) {
        if let Some(since) = self.doubted_from(gaps) {
            self.turn(task, Now::Unknown, since, kept, out);
            self.woken = None;
        }
        self.losses = gaps.count();
    }

    /// It comes to a CPU without a waking since it went to sleep, or since its state was unknown: the
    /// one before counts.
    fn settle_waking(&mut self, woken: Timestamp) {
        match self.now {
            Now::In(RunState::Asleep(_)) => self.now = Now::In(RunState::Runnable),
            Now::Unknown => {
                self.now = Now::In(RunState::Runnable);
                self.since = self.since.max(woken);
            }
            Now::In(RunState::Running | RunState::Runnable) => {}
        }
    }

    fn learn_stack(&mut self, again: RunState) {
        if self.now == Now::In(RunState::Asleep(StackId::EMPTY))
            && matches!(again, RunState::Asleep(_))
        {
            self.now = Now::In(again);
        }
    }
}
