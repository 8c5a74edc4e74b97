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

use super::losses::Losses;
use super::observation::{Observation, Sample};
use super::open::{KindSet, Open, Part, UNKNOWN_CPU};
use super::rwbase::Rwbase;
use super::stack::{TaskState, begin_in, emit_cut, emit_ended, emit_open, take};
use super::{Counts, Tasks};
use crate::decode::{Begin, CpuSample, End};
use crate::kernel::Kernel;
use crate::model::{Cpu, LockFlags, LockType, Mode, Nanos, Outcome, StackId, TaskId, Timestamp};
use crate::stacks::Stacks;

/// `ret` of a ww_mutex that backed off.
const EDEADLK: i32 = 35;

/// States of tasks that wait for nothing are kept until there are so many; then they are forgotten.
const STATES_KEPT: usize = 1 << 14;

/// What the recording can tell of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When tasks leave their CPUs: it has records of context switches.
    pub switches: bool,
    /// When tasks come to a CPU: it has records of all switches.
    pub switch_ins: bool,
    /// Where tasks go to sleep: it has `sched:sched_switch` with callchains.
    pub sleeps: bool,
    /// When waits begin: it has `lock:contention_begin`.
    pub begins: bool,
    /// When waits end: it has `lock:contention_end`.
    pub ends: bool,
    /// Who wakes whom, and where: it has `sched:sched_waking` with callchains.
    pub wakings: bool,
    /// Waits for spinlocks begin unseen: `record --no-spin`.
    pub no_spin: bool,
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

/// Pairs begins with ends.
#[derive(Clone, Debug)]
pub struct Correlate {
    pub(super) cpus: HashMap<Cpu, Vec<Open>>,
    pub(super) tasks: HashMap<TaskId, TaskState>,
    /// How many states of tasks there may be before the idle ones are forgotten.
    states_limit: usize,
    has_ends: bool,
    no_spin: bool,
    losses: Losses,
    rwbase: Rwbase,
    counts: Counts,
    last: Timestamp,
}

impl Correlate {
    /// For a recording that has these records. Without ends a wait is counted where it begins and
    /// has no time.
    pub fn new(recorded: Recorded) -> Correlate {
        Correlate {
            cpus: HashMap::new(),
            tasks: HashMap::new(),
            states_limit: STATES_KEPT,
            has_ends: recorded.ends,
            no_spin: recorded.no_spin,
            losses: Losses::new(recorded.switch_ins),
            rwbase: Rwbase::default(),
            counts: Counts::default(),
            last: Timestamp(0),
        }
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
        let open = Open {
            task: tasks.refer(begin.who.task, at.pid, at.tid),
            id: begin.who.task,
            context: begin.who.context,
            cpu,
            addr: begin.lock,
            lock,
            lock_type,
            flags: begin.flags,
            begin: at.time,
            phase_since: at.time,
            spun: Nanos::ZERO,
            nested: Nanos::ZERO,
            kernel_stack: stack.kernel,
            user_stack: stack.user,
            given: Nanos::ZERO,
            touched: false,
            part: Part::Whole,
        };
        if !self.has_ends {
            self.begin_without_end(&open, out);
        } else if open.belongs_to_cpu() {
            let opens = self.cpus.entry(cpu).or_default();
            begin_in(opens, open, &mut self.counts, out);
        } else {
            if self.tasks.len() >= self.states_limit {
                self.forget_idle_states();
            }
            let state = self.tasks.entry(open.id).or_default();
            state.touch(&self.losses, cpu, false);
            state.begin(open, rw.is_some(), &mut self.counts, out);
        }
    }

    /// A begin-only recording: how often and where, not how long. Flags of exactly MUTEX always follow
    /// another begin of the same wait, and a reader of an rw lock of PREEMPT_RT begins with the rw lock
    /// before it waits for the rt-mutex in it.
    fn begin_without_end(&mut self, open: &Open, out: &mut impl FnMut(Observation)) {
        let of_reader = open.addr != open.lock && open.lock_type.mode == Mode::Read;
        if open.flags == LockFlags(LockFlags::MUTEX) {
            self.counts.phases += 1;
        } else if of_reader {
            self.counts.joined += 1;
        } else {
            self.counts.begun += 1;
            emit_open(open, open.begin, &mut self.counts, out);
        }
    }

    /// The state of a task that waits for nothing says nothing.
    fn forget_idle_states(&mut self) {
        self.tasks.retain(|_, state| !state.is_idle());
        self.states_limit = STATES_KEPT.max(2 * self.tasks.len());
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
        let open = self.tasks.get_mut(&end.who.task).and_then(|state| {
            state.touch(&self.losses, cpu, false);
            take(&mut state.opens, end.lock)
        });
        match open {
            Some(open) => self.close(open, at.time, outcome, out),
            None if self.no_spin => self.counts.not_asked_for += 1,
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
        let id = tasks.id_of(at.tid).unwrap_or(TaskId(at.tid));
        let cpu = at.cpu.unwrap_or(UNKNOWN_CPU);
        let mut waiting = KindSet::default();
        let of_task = self.tasks.get(&id).map_or(&[][..], |state| &state.opens);
        let of_cpu = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        for open in of_task.iter().chain(of_cpu) {
            waiting.merge(open.kinds());
        }
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
            state.touch(&self.losses, cpu.unwrap_or(UNKNOWN_CPU), came);
        }
    }

    /// LOST: the ring of `cpu` dropped records before `time`.
    pub fn lost(&mut self, cpu: Option<Cpu>, time: Timestamp, out: &mut impl FnMut(Observation)) {
        self.last = self.last.max(time);
        self.losses.add(cpu);
        let rings = match cpu {
            Some(cpu) => vec![cpu, UNKNOWN_CPU],
            None => sorted(self.cpus.keys()),
        };
        // A spinning wait cannot outlive what its own CPU did meanwhile by much: it ends here.
        for open in rings.iter().filter_map(|ring| self.cpus.remove(ring)).flatten() {
            emit_cut(&open, time, &mut self.counts, out);
        }
    }

    /// Records of switches are missing: every later loss may touch every wait.
    pub fn doubt_switches(&mut self) {
        self.losses.doubt_switches();
    }

    /// EXIT: what the task still waits for stays open. `cpu`: where it ended, when that is known.
    pub fn exit(
        &mut self,
        id: TaskId,
        cpu: Option<Cpu>,
        time: Timestamp,
        out: &mut impl FnMut(Observation),
    ) {
        self.last = self.last.max(time);
        let Some(state) = self.tasks.get_mut(&id) else { return };
        state.mark_touched(&self.losses, cpu);
        state.end_half(&mut self.counts, out);
        while let Some(open) = self.tasks.get_mut(&id).and_then(|state| state.opens.pop()) {
            self.leave_open(open, time, out);
        }
        self.tasks.remove(&id);
    }

    /// The end of the recording: what is still waited for stays open.
    pub fn finish(&mut self, out: &mut impl FnMut(Observation)) {
        let last = self.last;
        for cpu in sorted(self.cpus.keys()) {
            while let Some(open) = self.cpus.get_mut(&cpu).and_then(Vec::pop) {
                self.leave_open(open, last, out);
            }
        }
        for id in sorted(self.tasks.keys()) {
            self.exit(id, None, last, out);
        }
    }

    /// Waits left open nest as ended ones do.
    fn leave_open(&mut self, mut open: Open, time: Timestamp, out: &mut impl FnMut(Observation)) {
        self.settle_nesting(&mut open, time);
        emit_open(&open, time, &mut self.counts, out);
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
            state.end_half(&mut self.counts, out);
            state.half = Some((open, time, outcome));
            return;
        }
        emit_ended(&open.close(time, outcome), &mut self.counts, out);
    }

    /// Takes this wait's time out of the one around it, and out of it the time of a wait inside it
    /// that is still open: no second of a thread may count twice.
    fn settle_nesting(&mut self, open: &mut Open, time: Timestamp) {
        if open.part == Part::Joined {
            return;
        }
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

fn sorted<'a, T: Copy + Ord + 'a>(keys: impl Iterator<Item = &'a T>) -> Vec<T> {
    let mut keys: Vec<T> = keys.copied().collect();
    keys.sort_unstable();
    keys
}
