//! Events -> counts: the second half of the pipe, and the books that it owns.
//!
//! In: events in order of time. Out: each at the stages that it concerns; what comes out of them goes into
//! the tables (`sink.rs`). Wakings and releases are in `hand_overs.rs`, what tasks do between two switches
//! is in `lives.rs`.

use std::cell::RefCell;

use super::apart::Apart;
use super::faults::Faults;
use super::lives::Lives;
use super::recorded::{self, attached, recorded, tasks_of};
use super::sink::Sink;
use crate::analyse::{Detail, Tables, WaitFilter};
use crate::attribute::{Attribution, Interrupted, Series, Skid};
use crate::correlate::{
    AddressSpaces, Cgroups, Copies, Correlate, Moment, Observation, Queues, Sleeps, StackPair,
    Tasks, Wakeups,
};
use crate::decode::{Begin, Body, CpuSample, End, Event, Mmap, MmapLock, RawChain, TaskChange};
use crate::kernel::{Anchored, Kernel};
use crate::model::{Filter, Nanos, StackId, TaskId, TimeRange, Timestamp};
use crate::recording::Origin;
use crate::stacks::Stacks;
use crate::symbolize::Symbolizer;
use crate::unwind::{Maps, Objects};

/// The second half of the pipe and the books that it owns.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) origin: Origin,
    pub(super) kernel: Kernel,
    pub(super) kernel_symbols: String,
    pub(super) stacks: Stacks,
    pub(super) tasks: Tasks,
    pub(super) cgroups: Cgroups,
    pub(super) maps: Maps,
    /// Whether user stacks are kept apart; resolving those that are not would be for nothing.
    pub(super) user_stacks: bool,
    pub(super) correlate: Correlate,
    /// Hand-overs of locks; `None` in a recording without wakings.
    pub(super) wakeups: Option<Wakeups>,
    /// Who waits for locks with readers and writers.
    pub(super) queues: Queues,
    /// What tasks do between two switches; `None` in a recording without switches.
    pub(super) lives: Option<Lives>,
    /// Records that come through rings of their own.
    pub(super) apart: Apart,
    /// What proves whose mmap_lock an rwsem is.
    pub(super) spaces: AddressSpaces,
    pub(super) attribution: Attribution,
    pub(super) tables: Tables,
    /// Names of user frames, looked up once for all reports.
    pub(super) symbolizer: RefCell<Symbolizer>,
    pub(super) faults: Faults,
    /// Where threads were attached to, whose samples may come twice.
    pub(super) copies: Option<Copies>,
    /// Lateness of CPU samples, where their stacks are kept.
    pub(super) skid: Option<Skid>,
    pub(super) cpu_samples: u64,
    pub(super) time: Option<(Nanos, Nanos)>,
    /// Observations on their way.
    pub(super) over: Vec<Observation>,
}

/// Those of the stages that make observations, and where these go.
pub(super) struct Observers<'a> {
    pub(super) correlate: &'a mut Correlate,
    /// `None` where sleeps are no waits.
    pub(super) sleeps: Option<&'a mut Sleeps>,
    pub(super) sink: Sink<'a>,
}

impl Stages {
    pub(super) fn new(
        origin: Origin,
        (kernel, kernel_symbols): (Kernel, String),
        detail: Detail,
        filter: &Filter,
    ) -> Stages {
        let wait_filter = WaitFilter { min_wait: filter.min_wait, ..WaitFilter::default() };
        let recorded = recorded(&origin);
        let mut objects = Objects::default();
        objects.learn(&origin.build_ids);
        Stages {
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
            over: Vec::new(),
            origin,
        }
    }

    /// The next event, in order of time.
    #[inline]
    pub(super) fn take(&mut self, event: &Event<'_>) {
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
        match event.body {
            Body::ContentionBegin(begin) => self.take_begin(at, &begin),
            Body::ContentionEnd(end) => self.take_end(at, &end),
            Body::CpuSample(sample) => self.take_sample(at, event.instance, &sample),
            Body::SchedWaking(waking) => self.take_waking(at, &waking),
            Body::ContendedRelease(release) => self.take_release(at, &release),
            Body::MmapLock(lock) => self.take_mmap_lock(at, &lock),
            _ => self.take_sideband(event),
        }
    }

    #[inline]
    fn take_begin(&mut self, at: Moment, begin: &Begin<'_>) {
        if !self.tasks.in_target(begin.who.task, at.pid, at.tid) {
            return self.correlate.outside();
        }
        let stack = self.stack_of(at.pid, begin.chain);
        let mut over = std::mem::take(&mut self.over);
        let Stages { correlate, tasks, kernel, stacks, .. } = self;
        correlate.begin(at, begin, stack, (tasks, kernel, stacks), &mut |o| over.push(o));
        if !over.is_empty() {
            let mut sink = self.observers().sink;
            over.drain(..).for_each(|observation| sink.take(observation));
        }
        self.over = over;
    }

    #[inline]
    fn take_end(&mut self, at: Moment, end: &End<'_>) {
        if !self.tasks.in_target(end.who.task, at.pid, at.tid) {
            return self.correlate.outside();
        }
        let Observers { correlate, mut sink, .. } = self.observers();
        correlate.end(at, end, &mut |observation| sink.take(observation));
    }

    fn take_sample(&mut self, at: Moment, instance: u64, sample: &CpuSample<'_>) {
        let series = Series { event: sample.event, instance, cpu: at.cpu };
        let idle = self.tasks.id_of(at.tid) == Some(TaskId::IDLE);
        if !self.tasks.in_target(TaskId(at.tid), at.pid, at.tid) {
            self.note_skid(series, at.time, Interrupted::Other);
            let of = (at.time, sample.weight);
            return self.tables.add_outside(of, idle, &self.attribution);
        }
        self.cpu_samples += 1;
        let stack = self.stack_of(at.pid, sample.chain);
        let facts = self.attribution.facts(stack.kernel, &self.kernel, &self.stacks);
        let what = if idle { Interrupted::Other } else { facts.interrupted(stack.kernel) };
        self.note_skid(series, at.time, what);
        let mut taken = None;
        let Stages { correlate, tasks, .. } = self;
        correlate.sample(at, sample, stack, tasks, &mut |o| taken = Some(o));
        if let Some(observation) = taken {
            self.observers().sink.take(observation);
        }
    }

    fn note_skid(&mut self, series: Series, time: Timestamp, what: Interrupted) {
        self.skid.iter_mut().for_each(|skid| skid.sample(series, time, what));
    }

    #[inline]
    fn stack_of(&mut self, pid: i32, chain: RawChain<'_>) -> StackPair {
        let Stages { stacks, maps, .. } = self;
        StackPair {
            kernel: stacks.kernel_of(chain),
            user: match self.user_stacks {
                true => maps.resolve(pid, chain.split().user, stacks),
                false => StackId::EMPTY,
            },
        }
    }

    #[inline]
    pub(super) fn observers(&mut self) -> Observers<'_> {
        let Stages {
            kernel,
            stacks,
            tasks,
            correlate,
            lives,
            attribution,
            wakeups,
            queues,
            tables,
            ..
        } = self;
        let (states, sleeps) = lives.as_mut().map(Lives::parts).unzip();
        let sink = Sink { kernel, stacks, tasks, states, attribution, wakeups, queues, tables };
        Observers { correlate, sleeps: sleeps.flatten(), sink }
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
        self.lives.iter_mut().for_each(|lives| lives.forked(change));
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
        let Observers { correlate, mut sink, .. } = self.observers();
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
        self.faults.lose(cpu, lost);
        let Observers { correlate, mut sink, .. } = self.observers();
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
        }
        self.tables.see(time);
    }

    /// The recording is over.
    pub(super) fn finish(&mut self) {
        self.lives_end();
        let Observers { correlate, mut sink, .. } = self.observers();
        correlate.finish(&mut |o| sink.take(o));
        sink.finish();
        self.skid.iter_mut().for_each(Skid::finish);
    }
}
