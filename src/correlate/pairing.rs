//! Begins and ends -> waits.
//!
//! ```text
//!   begin ──> open ──end──────────────────> acquired | failed | backed off
//!              │ ├──begin of the other phase (SPIN|MUTEX <-> MUTEX)──> still open
//!              │ ├──any other begin for the lock──> uncertain (its end was lost), and a new one opens
//!              │ └──records lost where the task ran──> ends as uncertain
//!              └──exit of the task, end of the recording──> open: "at least"
//! ```
//!
//! An end carries no flags. It is looked for among the spinning waits of its CPU first, then among
//! the waits of its task: `struct semaphore` begins with its own spinlock, so that a wait for the
//! spinlock has the address of the semaphore that the same task waits for.

use hashbrown::HashMap;

use super::losses::{Losses, Seen};
use super::open::{KindSet, Open, Part};
use super::rwbase::Rwbase;
use super::{Counts, Tasks};
use crate::decode::{Begin, CpuSample, End};
use crate::kernel::Kernel;
use crate::model::{
    Cpu, LockAddr, LockType, Mode, Nanos, Outcome, StackId, TaskId, TaskRef, Timestamp, Wait,
};
use crate::stacks::Stacks;

/// `ret` of a ww_mutex that backed off.
const EDEADLK: i32 = 35;

/// CPU number of records that do not say where they come from.
const UNKNOWN_CPU: Cpu = Cpu(u32::MAX);

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A wait, with its outcome.
    Wait(Wait),
    /// A CPU sample.
    Sample(Sample),
}

/// A CPU sample and what its task was waiting for meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whom the CPU ran.
    pub task: TaskRef,
    /// The idle task.
    pub idle: bool,
    /// Where.
    pub cpu: Cpu,
    /// When.
    pub time: Timestamp,
    /// How much time it stands for.
    pub weight: Nanos,
    /// Kernel part of its stack.
    pub kernel_stack: StackId,
    /// User part.
    pub user_stack: StackId,
    /// Locks that the task, or its CPU, has open waits for.
    pub waiting: KindSet,
}

/// An interned callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackPair {
    /// Kernel part.
    pub kernel: StackId,
    /// User part.
    pub user: StackId,
}

/// When, where and who in the recorder's words.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// When.
    pub time: Timestamp,
    /// Where.
    pub cpu: Option<Cpu>,
    /// Process in the recorder's namespace.
    pub pid: i32,
    /// Thread in the recorder's namespace.
    pub tid: i32,
}

/// What is remembered of a task while it waits.
#[derive(Debug, Default)]
struct TaskState {
    opens: Vec<Open>,
    last: Option<Seen>,
    /// A writer's first half, ended; the begin of the second half may follow.
    half: Option<(Open, Timestamp, Outcome)>,
}

/// Pairs begins with ends.
#[derive(Debug, Default)]
pub struct Correlate {
    cpus: HashMap<Cpu, Vec<Open>>,
    tasks: HashMap<TaskId, TaskState>,
    losses: Losses,
    rwbase: Rwbase,
    counts: Counts,
    last: Timestamp,
}

impl Correlate {
    /// `has_switches`: the recording tells when tasks come to a CPU and leave it.
    pub fn new(has_switches: bool) -> Correlate {
        Correlate { losses: Losses::new(has_switches), ..Correlate::default() }
    }

    /// How begins and ends were paired so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The youngest moment seen.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// A begin or an end that is not the target's.
    pub fn outside(&mut self) {
        self.counts.outside += 1;
    }

    /// `lock:contention_begin`.
    #[inline]
    pub fn begin(
        &mut self,
        at: Moment,
        begin: &Begin<'_>,
        stack: StackPair,
        books: (&mut Tasks, &Kernel, &Stacks),
        out: &mut impl FnMut(Observation),
    ) {
        let (tasks, kernel, stacks) = books;
        self.last = self.last.max(at.time);
        self.counts.begins += 1;
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        let rw = self.rwbase.of(begin.lock, begin.flags, stack.kernel, (kernel, stacks));
        let (lock, lock_type) = rw.unwrap_or((begin.lock, LockType::from_flags(begin.flags)));
        let mut open = Open {
            task: tasks.refer(begin.who.task, at.pid, at.tid),
            id: begin.who.task,
            context: begin.who.context,
            cpu,
            addr: begin.lock,
            lock,
            lock_type,
            flags: begin.flags,
            begin: at.time,
            nested: Nanos::ZERO,
            kernel_stack: stack.kernel,
            user_stack: stack.user,
            given: Nanos::ZERO,
            touched: false,
            part: Part::Whole,
        };
        if begin.flags.spins() || open.id == TaskId::IDLE {
            let opens = self.cpus.entry(cpu).or_default();
            begin_in(opens, open, &mut self.counts, out);
            return;
        }
        let state = self.tasks.entry(open.id).or_default();
        touch(state, &self.losses, Seen { cpu, time: at.time }, false);
        open.part = part_of(state, &open, rw.is_some());
        open = join_halves(state, open, &mut self.counts, out);
        drop_touched(&mut state.opens, &open, &mut self.counts, out);
        begin_in(&mut state.opens, open, &mut self.counts, out);
    }

    /// `lock:contention_end`.
    #[inline]
    pub fn end(&mut self, at: Moment, end: &End<'_>, out: &mut impl FnMut(Observation)) {
        self.last = self.last.max(at.time);
        self.counts.ends += 1;
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        let outcome = match end.ret {
            0.. => Outcome::Acquired,
            ret if ret == -EDEADLK => Outcome::BackedOff,
            _ => Outcome::Failed,
        };
        if let Some(open) = self.cpus.get_mut(&cpu).and_then(|opens| take(opens, end.lock)) {
            return self.close(open, at.time, outcome, out);
        }
        let Some(state) = self.tasks.get_mut(&end.who.task) else {
            self.counts.unmatched += 1;
            return;
        };
        touch(state, &self.losses, Seen { cpu, time: at.time }, false);
        match take(&mut state.opens, end.lock) {
            Some(open) => self.close(open, at.time, outcome, out),
            None => self.counts.unmatched += 1,
        }
    }

    /// A CPU sample of `who`.
    pub fn sample(
        &mut self,
        at: Moment,
        sample: &CpuSample<'_>,
        stack: StackPair,
        tasks: &mut Tasks,
        out: &mut impl FnMut(Observation),
    ) {
        self.last = self.last.max(at.time);
        let id = tasks.id_of(at.tid);
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        let mut waiting = KindSet::default();
        let of_task = self.tasks.get(&id).map_or(&[][..], |state| &state.opens);
        let of_cpu = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        of_task.iter().chain(of_cpu).for_each(|open| waiting.insert(open.lock_type.kind));
        out(Observation::Sample(Sample {
            task: tasks.refer(id, at.pid, at.tid),
            idle: id == TaskId::IDLE,
            cpu,
            time: at.time,
            weight: sample.weight,
            kernel_stack: stack.kernel,
            user_stack: stack.user,
            waiting,
        }));
    }

    /// A task was seen on a CPU: it came to it (`came`), left it, or did something there.
    pub fn seen(&mut self, id: TaskId, cpu: Option<Cpu>, time: Timestamp, came: bool) {
        self.last = self.last.max(time);
        if let Some(state) = self.tasks.get_mut(&id) {
            let cpu = cpu.unwrap_or(UNKNOWN_CPU);
            touch(state, &self.losses, Seen { cpu, time }, came);
        }
    }

    /// LOST: the ring of `cpu` dropped records before `time`.
    pub fn lost(&mut self, cpu: Option<Cpu>, time: Timestamp, out: &mut impl FnMut(Observation)) {
        self.losses.add(cpu, time);
        // A spinning wait cannot outlive what its own CPU did meanwhile by much: it ends here.
        for (&of, opens) in &mut self.cpus {
            if cpu.is_none_or(|cpu| cpu == of) {
                for open in opens.drain(..) {
                    self.counts.uncertain += 1;
                    out(Observation::Wait(open.close(time, Outcome::Uncertain)));
                }
            }
        }
    }

    /// EXIT: what the task still waits for stays open.
    pub fn exit(&mut self, id: TaskId, time: Timestamp, out: &mut impl FnMut(Observation)) {
        self.last = self.last.max(time);
        if let Some(mut state) = self.tasks.remove(&id) {
            if let Some(last) = state.last
                && self.losses.touched(last, None)
            {
                state.opens.iter_mut().for_each(|open| open.touched = true);
            }
            finish_task(state, time, &mut self.counts, out);
        }
    }

    /// The end of the recording: what is still waited for stays open.
    pub fn finish(&mut self, out: &mut impl FnMut(Observation)) {
        let tasks: Vec<TaskId> = sorted(self.tasks.keys());
        for id in tasks {
            self.exit(id, self.last, out);
        }
        for cpu in sorted(self.cpus.keys()) {
            for open in self.cpus.remove(&cpu).unwrap_or_default() {
                leave_open(&open, self.last, &mut self.counts, out);
            }
        }
    }

    /// Locks that `id` waits for right now, with the time since when: `(begin, type, lock)`.
    pub fn open_waits(
        &self,
    ) -> impl Iterator<Item = (TaskRef, Timestamp, LockType, LockAddr)> + '_ {
        let of_tasks = self.tasks.values().flat_map(|state| &state.opens);
        of_tasks
            .chain(self.cpus.values().flatten())
            .filter(|open| open.part != Part::Joined)
            .map(|open| (open.task, open.begin, open.lock_type, open.lock))
    }

    /// Ends an open wait that was taken out of its stack.
    fn close(
        &mut self,
        mut open: Open,
        time: Timestamp,
        outcome: Outcome,
        out: &mut impl FnMut(Observation),
    ) {
        if open.part == Part::Joined {
            self.counts.joined_ends += 1;
            return;
        }
        self.settle_nesting(&mut open, time);
        if open.part == Part::FirstHalf
            && !open.touched
            && let Some(state) = self.tasks.get_mut(&open.id)
        {
            state.half = Some((open, time, outcome));
            return;
        }
        emit_ended(&open.close(time, outcome), &mut self.counts, out);
    }

    /// Takes this wait's time out of the one around it, and out of it the time of a wait inside it
    /// that is still open: no second of a thread may count twice.
    fn settle_nesting(&mut self, open: &mut Open, time: Timestamp) {
        let mut inner: Option<Timestamp> = None;
        let mut outer: Option<&mut Open> = None;
        let of_task = self.tasks.get_mut(&open.id).filter(|_| open.id != TaskId::IDLE);
        let spinning = self.cpus.get_mut(&open.cpu).into_iter().flatten();
        let same_thread = |other: &Open| other.id == open.id || open.flags.spins();
        for other in of_task.into_iter().flat_map(|state| &mut state.opens).chain(spinning) {
            if other.part == Part::Joined || !same_thread(other) {
                continue;
            }
            if other.begin > open.begin {
                inner = Some(inner.map_or(other.begin, |earliest| earliest.min(other.begin)));
            } else if outer.as_ref().is_none_or(|latest| latest.begin <= other.begin) {
                outer = Some(other);
            }
        }
        let overlap = inner.map_or(Nanos::ZERO, |inner| time.since(inner));
        open.nested += overlap;
        if let Some(outer) = outer {
            let given = time.since(open.begin).saturating_sub(overlap);
            outer.nested += given.saturating_sub(open.given);
            open.given = given;
        }
    }
}

/// Marks what the task waits for when records that it may have emitted were lost since it was last
/// seen.
fn touch(state: &mut TaskState, losses: &Losses, now: Seen, came: bool) {
    // A task that comes to a CPU was not running there before.
    let again = (!came).then_some(now.cpu);
    if let Some(last) = state.last
        && losses.touched(last, again)
    {
        state.opens.iter_mut().for_each(|open| open.touched = true);
    }
    state.last = Some(now);
}

/// What the wait that begins is of a longer one.
fn part_of(state: &TaskState, open: &Open, in_rw_lock: bool) -> Part {
    if !in_rw_lock || open.addr == open.lock {
        return Part::Whole;
    }
    let is_outer = |other: &Open| other.lock == open.lock && other.addr == open.lock;
    match open.lock_type.mode {
        _ if state.opens.iter().any(is_outer) => Part::Joined,
        Mode::Write => Part::FirstHalf,
        _ => Part::Whole,
    }
}

/// Lets the begin that follows a writer's first half go on with it; any other begin shows that the
/// first half was all.
fn join_halves(
    state: &mut TaskState,
    open: Open,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) -> Open {
    let Some((half, end, outcome)) = state.half.take() else { return open };
    let goes_on = half.lock == open.lock && half.lock_type == open.lock_type;
    if goes_on && open.addr == open.lock {
        counts.joined_ends += 1;
        return Open { addr: open.addr, flags: open.flags, part: Part::SecondHalf, ..half };
    }
    emit_ended(&half.close(end, outcome), counts, out);
    open
}

/// A task sleeps in one lock at a time: what was touched by a loss and is not waited for any more
/// when it begins to wait for another lock ended unseen.
fn drop_touched(
    opens: &mut Vec<Open>,
    next: &Open,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    opens.retain(|open| {
        let stale = open.touched && open.addr != next.addr;
        if stale && open.part != Part::Joined {
            counts.uncertain += 1;
            out(Observation::Wait(open.close(next.begin, Outcome::Uncertain)));
        }
        !stale
    });
}

fn begin_in(
    opens: &mut Vec<Open>,
    open: Open,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    let joins = matches!(open.part, Part::Joined | Part::SecondHalf);
    match opens.iter().position(|other| other.addr == open.addr) {
        Some(at) if opens[at].changes_phase(open.flags) => {
            opens[at].flags = open.flags;
            counts.phases += 1;
            return;
        }
        Some(at) => {
            let old = opens.remove(at);
            if old.part != Part::Joined {
                counts.uncertain += 1;
                let old = Open { touched: true, ..old };
                out(Observation::Wait(old.close(open.begin.max(old.begin), Outcome::Uncertain)));
            }
            *if joins { &mut counts.joined } else { &mut counts.restarts } += 1;
        }
        None => *if joins { &mut counts.joined } else { &mut counts.begun } += 1,
    }
    opens.push(open);
}

/// Takes the wait for the lock at `addr` out of its stack: the innermost of them.
#[inline]
fn take(opens: &mut Vec<Open>, addr: LockAddr) -> Option<Open> {
    let at = opens.iter().rposition(|open| open.addr == addr)?;
    Some(opens.remove(at))
}

fn emit_ended(wait: &Wait, counts: &mut Counts, out: &mut impl FnMut(Observation)) {
    match wait.outcome {
        Outcome::Uncertain => {
            counts.uncertain += 1;
            counts.uncertain_ended += 1;
        }
        outcome => {
            counts.ended += 1;
            counts.failed += u64::from(outcome == Outcome::Failed);
            counts.backed_off += u64::from(outcome == Outcome::BackedOff);
        }
    }
    out(Observation::Wait(*wait));
}

fn leave_open(
    open: &Open,
    time: Timestamp,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    if open.part == Part::Joined {
        return;
    }
    *if open.touched { &mut counts.uncertain } else { &mut counts.open } += 1;
    out(Observation::Wait(open.close(time, Outcome::Open)));
}

fn finish_task(
    state: TaskState,
    time: Timestamp,
    counts: &mut Counts,
    out: &mut impl FnMut(Observation),
) {
    if let Some((half, end, outcome)) = state.half {
        emit_ended(&half.close(end, outcome), counts, out);
    }
    let mut inner = Nanos::ZERO;
    for open in state.opens.iter().rev() {
        // Waits left open nest as ended ones do.
        let open = Open { nested: open.nested + inner, ..*open };
        if open.part != Part::Joined {
            inner = time.since(open.begin);
        }
        leave_open(&open, time, counts, out);
    }
}

fn sorted<'a, T: Copy + Ord + 'a>(keys: impl Iterator<Item = &'a T>) -> Vec<T> {
    let mut keys: Vec<T> = keys.copied().collect();
    keys.sort_unstable();
    keys
}
