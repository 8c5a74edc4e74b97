//! The one pipe: rounds in, a report out. The only room that knows every stage.
//!
//! Live rings, recordings of lockprof and of perf, and tests push the same [`Round`]s. No stage after
//! the source reads a clock or a file: what a live screen shows and what a report says later are
//! equal by construction.

mod apart;
mod events;
mod faults;
mod hand_overs;
mod lives;
mod recorded;
mod sink;

use std::cell::RefCell;

use crate::analyse::{Detail, Tables, WaitFilter};
use crate::attribute::{Attribution, Interrupted, Series, Skid};
use crate::correlate::{
    AddressSpaces, Cgroups, Copies, Correlate, Moment, Queues, StackPair, Tasks, Wakeups,
};
use crate::decode::{Body, Callchain, Event, LayoutError, Mmap, MmapLock, TaskChange};
use crate::kernel::{Anchored, Kernel};
use crate::model::{
    Filter, Nanos, PathQuery, Query, StackId, TaskId, TimeRange, Timestamp, TreeQuery,
};
use crate::order::Dated;
use crate::recording::Origin;
use crate::report::{self, Paths, Report, Sources, Tree};
use crate::source::Round;
use crate::stacks::Stacks;
use crate::symbolize::Symbolizer;
use crate::unwind::{Maps, Objects};

use apart::Apart;
pub use events::EventStream;
pub use faults::Faults;
use lives::Lives;
use recorded::{attached, recorded, tasks_of};
use sink::Sink;

/// Rounds -> report.
#[derive(Debug)]
pub struct Pipeline {
    stream: EventStream,
    stages: Stages,
}

/// The second half of the pipe and the books that it owns.
#[derive(Debug)]
struct Stages {
    origin: Origin,
    kernel: Kernel,
    kernel_symbols: String,
    stacks: Stacks,
    tasks: Tasks,
    cgroups: Cgroups,
    maps: Maps,
    /// Whether user stacks are kept apart; resolving those that are not would be for nothing.
    user_stacks: bool,
    correlate: Correlate,
    /// Hand-overs of locks; `None` in a recording without wakings.
    wakeups: Option<Wakeups>,
    /// Who waits for locks with readers and writers.
    queues: Queues,
    /// What tasks do between two switches; `None` in a recording without switches.
    lives: Option<Lives>,
    /// Records that come through rings of their own.
    apart: Apart,
    /// What proves whose mmap_lock an rwsem is.
    spaces: AddressSpaces,
    attribution: Attribution,
    tables: Tables,
    /// Names of user frames, looked up once for all reports.
    symbolizer: RefCell<Symbolizer>,
    faults: Faults,
    /// Where threads were attached to, whose samples may come twice.
    copies: Option<Copies>,
    /// Lateness of CPU samples, where their stacks are kept.
    skid: Option<Skid>,
    cpu_samples: u64,
    time: Option<(Nanos, Nanos)>,
}

impl Pipeline {
    /// A pipe for the records of `origin`. `kernel_symbols` says where `kernel` came from. The parts of
    /// `filter` that need single waits apply from here on; queries cannot change them.
    pub fn new(
        origin: Origin,
        (kernel, kernel_symbols): (Kernel, String),
        detail: Detail,
        filter: &Filter,
    ) -> Result<Pipeline, LayoutError> {
        let stream = EventStream::new(&origin)?;
        let wait_filter = WaitFilter { min_wait: filter.min_wait, ..WaitFilter::default() };
        let recorded = recorded(&origin);
        let mut objects = Objects::default();
        objects.learn(&origin.build_ids);
        let stages = Stages {
            kernel,
            kernel_symbols,
            stacks: Stacks::default(),
            tasks: tasks_of(&origin),
            cgroups: Cgroups::default(),
            maps: Maps::new(objects),
            user_stacks: detail.user_stacks,
            symbolizer: RefCell::default(),
            correlate: Correlate::new(recorded),
            wakeups: recorded.wakings.then(|| Wakeups::new(recorded.switches)),
            queues: Queues::default(),
            lives: Lives::new(recorded, attached(&origin)),
            apart: recorded::apart(&origin),
            spaces: AddressSpaces::default(),
            attribution: Attribution::default(),
            tables: Tables::new(detail, wait_filter),
            faults: Faults::default(),
            copies: attached(&origin).is_some().then(|| Copies::of(&origin.events)),
            skid: detail.cpu_stacks.then(|| Skid::new(&origin.events)),
            cpu_samples: 0,
            time: filter.time,
            origin,
        };
        Ok(Pipeline { stream, stages })
    }

    /// Takes a round.
    pub fn push(&mut self, round: Round) {
        let Pipeline { stream, stages } = self;
        stream.push(round, &mut |event| stages.take(event));
    }

    /// Takes a round that another thread has dated.
    pub fn push_dated(&mut self, round: Dated) {
        let Pipeline { stream, stages } = self;
        stream.push_dated(round, &mut |event| stages.take(event));
    }

    /// The recording is over: waits that did not end stay open.
    pub fn finish(&mut self) {
        let Pipeline { stream, stages } = self;
        stream.finish(&mut |event| stages.take(event));
        stages.finish();
    }

    /// A buffer for the next round.
    pub fn spare_buffer(&mut self) -> Vec<u8> {
        self.stream.spare_buffer()
    }

    /// Whether the recording says in which cgroups tasks were.
    pub fn has_cgroups(&self) -> bool {
        self.stages.origin.has_cgroups()
    }

    /// Waits that ended so far.
    pub fn waits(&self) -> u64 {
        self.stages.correlate.counts().ended
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.stages.faults.all_lost().values().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    /// What the end of a recording says, when it is known only later than its beginning.
    pub fn set_end(&mut self, end: crate::recording::End) {
        // In a file LOST_SAMPLES records say the same.
        self.stages.faults.lose_samples(end.lost);
        self.stages.origin.end = Some(end);
    }

    /// The answer to `query` from what was pushed so far.
    pub fn report(&self, query: &Query) -> Report {
        report::build(&self.sources(), query)
    }

    /// On which lock paths CPU time went. Wants [`Detail::cpu_stacks`].
    pub fn paths(&self, query: &PathQuery) -> Paths {
        report::paths(&self.sources(), query)
    }

    /// On which call paths lock code was entered. Wants [`Detail::cpu_stacks`] for trees over CPU time.
    pub fn tree(&self, query: &TreeQuery) -> Tree {
        report::tree(&self.sources(), query)
    }

    fn sources(&self) -> Sources<'_> {
        let stages = &self.stages;
        let unreadable =
            self.stream.unreadable().iter().map(|(e, n)| (e.to_string(), *n)).collect();
        Sources {
            origin: &stages.origin,
            kernel: &stages.kernel,
            kernel_symbols: &stages.kernel_symbols,
            stacks: &stages.stacks,
            objects: stages.maps.objects(),
            symbolizer: &stages.symbolizer,
            tasks: &stages.tasks,
            cgroups: &stages.cgroups,
            attribution: &stages.attribution,
            tables: &stages.tables,
            counts: stages.correlate.counts(),
            lost: stages.faults.all_lost(),
            throttled: stages.faults.throttled,
            unreadable,
            order: self.stream.order_faults(),
            records: self.stream.records(),
            cpu_samples: stages.cpu_samples,
            skid: stages.skid.as_ref(),
            wakings: stages.wakeups.is_some(),
            switches: stages.lives.is_some(),
            sched_missing: stages.apart.missing(),
            sleeps: stages.lives.as_ref().and_then(Lives::sleeps),
            chains: stages.wakeups.as_ref().map(Wakeups::chains),
            spaces: &stages.spaces,
            copies: stages.copies.as_ref().map_or(0, Copies::found),
            not_queued: stages.queues.untracked(),
        }
    }
}

impl Stages {
    #[inline]
    fn take(&mut self, event: &Event<'_>) {
        let speaks_of_another = matches!(event.body, Body::Lost(_) | Body::Throttle);
        if let Some(copies) = &mut self.copies
            && !speaks_of_another
            && copies.is_copy(event.tid, event.cpu, event.instance)
        {
            return;
        }
        if event.time.0 != 0 {
            self.see(event.time);
        }
        if self.apart.is_late(event) {
            return;
        }
        if let Some(cgroup) = event.cgroup {
            let id = event.body.who().map(|who| who.task).or(self.tasks.id_of(event.tid));
            id.into_iter().for_each(|id| self.tasks.in_cgroup(id, cgroup));
        }
        self.take_body(event);
        self.apart.read(event);
    }

    #[inline]
    fn take_body(&mut self, event: &Event<'_>) {
        let at = Moment { time: event.time, cpu: event.cpu, pid: event.pid, tid: event.tid };
        let Stages {
            stacks,
            tasks,
            maps,
            lives,
            correlate,
            kernel,
            attribution,
            wakeups,
            queues,
            tables,
            ..
        } = self;
        let user_stacks = self.user_stacks;
        let mut stack_of = |chain: Callchain<'_>| StackPair {
            kernel: stacks.intern_kernel(chain.kernel),
            user: match user_stacks {
                true => maps.resolve(at.pid, chain.user, stacks),
                false => StackId::EMPTY,
            },
        };
        match event.body {
            Body::ContentionBegin(begin) => {
                if !tasks.in_target(begin.who.task, at.pid, at.tid) {
                    return correlate.outside();
                }
                let stack = stack_of(begin.chain);
                let mut over = Vec::new();
                correlate.begin(at, &begin, stack, (tasks, kernel, stacks), &mut |o| over.push(o));
                let states = lives.as_ref().map(Lives::states);
                let mut sink =
                    Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
                over.into_iter().for_each(|observation| sink.take(observation));
            }
            Body::ContentionEnd(end) => {
                if !tasks.in_target(end.who.task, at.pid, at.tid) {
                    return correlate.outside();
                }
                let states = lives.as_ref().map(Lives::states);
                let mut sink =
                    Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
                correlate.end(at, &end, &mut |o| sink.take(o));
            }
            Body::CpuSample(sample) => {
                let series =
                    Series { event: sample.event, instance: event.instance, cpu: event.cpu };
                let mut skids =
                    |what| self.skid.iter_mut().for_each(|s| s.sample(series, at.time, what));
                let idle = tasks.id_of(at.tid) == Some(TaskId::IDLE);
                if !tasks.in_target(TaskId(at.tid), at.pid, at.tid) {
                    skids(Interrupted::Other);
                    return tables.add_outside(at.time, sample.weight, idle);
                }
                self.cpu_samples += 1;
                let stack = stack_of(sample.chain);
                let facts = attribution.facts(stack.kernel, kernel, stacks);
                skids(if idle { Interrupted::Other } else { facts.interrupted(stack.kernel) });
                let mut taken = None;
                correlate.sample(at, &sample, stack, tasks, &mut |o| taken = Some(o));
                let states = lives.as_ref().map(Lives::states);
                let mut sink =
                    Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
                taken.into_iter().for_each(|observation| sink.take(observation));
            }
            Body::SchedWaking(waking) => self.take_waking(at, &waking),
            Body::ContendedRelease(release) => self.take_release(at, &release),
            Body::MmapLock(lock) => self.take_mmap_lock(at, &lock),
            _ => self.take_sideband(event),
        }
    }

    fn take_mmap_lock(&mut self, at: Moment, event: &MmapLock<'_>) {
        let inside = self.tables.filter().time.contains(at.time);
        if inside && self.tasks.in_target(event.who.task, at.pid, at.tid) {
            self.spaces.mmap_lock(at.time, at.pid, event);
        }
    }

    fn take_sideband(&mut self, event: &Event<'_>) {
        self.maps.apply(event);
        self.spaces.apply(event);
        let at = Moment { time: event.time, cpu: event.cpu, pid: event.pid, tid: event.tid };
        match event.body {
            Body::Mmap(map) if map.kernel => self.anchor(&map),
            Body::Cgroup(cgroup) => self.cgroups.learn(cgroup.id, cgroup.path),
            Body::Comm(comm) => {
                self.tasks.comm(comm.pid, comm.tid, comm.name);
                let is_now = comm.exec && at.time.0 != 0;
                if let (true, Some(task)) = (is_now, self.tasks.id_of(comm.tid)) {
                    self.hear(|states, over| states.exec(task, at, &mut |s| over.push(s)));
                }
            }
            Body::Fork(change) => self.begin_life(at, change),
            Body::Exit(change) => self.end_life(at, change),
            Body::Switch(switch) => {
                if let Some(task) = self.tasks.id_of(event.tid) {
                    self.correlate.seen(task, at.cpu, at.time, !switch.out);
                    if switch.out {
                        self.wakeups.iter_mut().for_each(|wakeups| wakeups.left(task));
                    }
                    self.switched(task, at, (switch.out, switch.preempted));
                }
            }
            Body::SchedSwitch(switch) => {
                self.correlate.seen(switch.prev, at.cpu, at.time, false);
                self.wakeups.iter_mut().for_each(|wakeups| wakeups.left(switch.prev));
                self.correlate.seen(switch.next, at.cpu, at.time, true);
                self.sched_switched(at, &switch);
            }
            Body::Lost(lost) => self.lose(event, lost),
            Body::LostSamples(lost) => self.faults.lose_samples(lost),
            Body::Throttle if self.apart.is_meant(event) => self.end_apart(event.time),
            Body::Throttle => self.faults.throttled += 1,
            Body::Ksymbol(symbol) if !symbol.unregister => {
                let name = String::from_utf8_lossy(symbol.name);
                self.kernel.add(symbol.addr, symbol.len, &name);
            }
            _ => {}
        }
    }

    fn begin_life(&mut self, at: Moment, change: TaskChange) {
        self.copies.iter_mut().for_each(|copies| copies.forget(change.tid));
        self.tasks.fork(change);
        // perf makes such records up, without a time, of what is there before it begins.
        let born = self.tasks.id_of(change.tid).filter(|_| at.time.0 != 0);
        if let Some(task) = born {
            self.hear(|states, over| states.born(task, at, &mut |s| over.push(s)));
        }
    }

    fn end_life(&mut self, at: Moment, change: TaskChange) {
        self.copies.iter_mut().for_each(|copies| copies.forget(change.tid));
        let Some(task) = self.tasks.exit(change) else { return };
        self.life_ends(task, at);
        let Stages {
            stacks,
            tasks,
            lives,
            correlate,
            kernel,
            attribution,
            wakeups,
            queues,
            tables,
            ..
        } = self;
        let states = lives.as_ref().map(Lives::states);
        let mut sink = Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
        correlate.exit(task, at.cpu, at.time, &mut |o| sink.take(o));
    }

    fn lose(&mut self, event: &Event<'_>, lost: u64) {
        let (cpu, time) = (event.cpu, event.time);
        let from = self.apart.lost_since(event);
        self.lives.iter_mut().for_each(|lives| lives.lost(cpu, from));
        self.wakeups.iter_mut().for_each(|wakeups| wakeups.lost(from, time));
        if self.apart.is_meant(event) {
            self.apart.lose(lost);
            return self.correlate.doubt_switches();
        }
        let Stages {
            stacks,
            tasks,
            lives,
            correlate,
            kernel,
            attribution,
            wakeups,
            queues,
            tables,
            ..
        } = self;
        self.faults.lose(cpu, lost);
        let states = lives.as_ref().map(Lives::states);
        let mut sink = Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
        correlate.lost(cpu, time, &mut |o| sink.take(o));
    }

    /// The recorder stopped wakings and switches: they came faster than it could take them.
    fn end_apart(&mut self, time: Timestamp) {
        if self.apart.end(time) {
            self.lives.iter_mut().for_each(|lives| lives.stop(time));
            self.wakeups.iter_mut().for_each(|wakeups| wakeups.lost(time, Timestamp(u64::MAX)));
            self.correlate.doubt_switches();
        }
    }

    /// The recording says where its kernel's text begins: symbols of another boot move there.
    fn anchor(&mut self, map: &Mmap<'_>) {
        let name = String::from_utf8_lossy(map.name);
        let Some(symbol) = name.strip_prefix("[kernel.kallsyms]") else { return };
        if let Anchored::Moved(_) = self.kernel.anchor(symbol, map.pgoff) {
            self.kernel_symbols.push_str(", moved to where the recorded kernel was loaded");
        }
    }

    /// The first event starts the clock of `--time A..B`.
    #[inline]
    fn see(&mut self, time: Timestamp) {
        if self.tables.span().is_none()
            && let Some((from, to)) = self.time
        {
            let to = if to.0 == u64::MAX { Timestamp(u64::MAX) } else { time + to };
            let range = TimeRange { from: time + from, to };
            self.tables.set_time(range);
            self.queues.set_time(range);
        }
        self.tables.see(time);
    }

    fn finish(&mut self) {
        self.lives_end();
        let Stages {
            stacks,
            tasks,
            lives,
            correlate,
            kernel,
            attribution,
            wakeups,
            queues,
            tables,
            ..
        } = self;
        let states = lives.as_ref().map(Lives::states);
        let mut sink = Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
        correlate.finish(&mut |o| sink.take(o));
        sink.settle(Timestamp(u64::MAX));
        self.skid.iter_mut().for_each(Skid::finish);
    }
}
