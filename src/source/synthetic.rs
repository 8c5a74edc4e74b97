//! Records made up by tests and benches, as bytes that no decoder can tell from the kernel's.
//!
//! Events of a synthetic recording: `lock:contention_begin` with callchain, `lock:contention_end`
//! without, `cpu-clock` with callchain; and, where [`Synthetic::waking_event`] and
//! [`Synthetic::switch_event`] and [`Synthetic::release_event`] are added to them, `sched:sched_waking`,
//! `sched:sched_switch` and `lock:contended_release` with callchain. All have one sample_type; ids are 1 to
//! 6, and 11 to 16 of their second instances.

use std::sync::Arc;

use lockprof_collectors::perf::attr::{Attr, event_type, flag, sample, software};
use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, context, kind, misc};
use lockprof_collectors::procfs::tracefs::Format;

use super::Round;
use crate::recording::{EventDesc, Origin, TracingData};

const SAMPLE_TYPE: u64 = sample::IDENTIFIER
    | sample::IP
    | sample::TID
    | sample::TIME
    | sample::CPU
    | sample::PERIOD
    | sample::CALLCHAIN
    | sample::RAW;
const BEGIN_ID: u64 = 1;
const END_ID: u64 = 2;
const CLOCK_ID: u64 = 3;
const WAKING_ID: u64 = 4;
const SWITCH_ID: u64 = 5;
const RELEASE_ID: u64 = 6;
/// Between the ids of an event's two instances.
const SECOND: u64 = 10;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

/// What one tracepoint of them has beside the common fields.
#[derive(Clone, Copy, Debug)]
struct Tracepoint {
    system: &'static str,
    name: &'static str,
    id: u64,
    fields: &'static str,
}

const BEGIN: Tracepoint = Tracepoint {
    system: "lock",
    name: "contention_begin",
    id: BEGIN_ID,
    fields: "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;",
};
const END: Tracepoint = Tracepoint {
    system: "lock",
    name: "contention_end",
    id: END_ID,
    fields: "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;",
};
const WAKING: Tracepoint = Tracepoint {
    system: "sched",
    name: "sched_waking",
    id: WAKING_ID,
    fields: "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;",
};

const SWITCH: Tracepoint = Tracepoint {
    system: "sched",
    name: "sched_switch",
    id: SWITCH_ID,
    fields: "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;\n\
        \tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;",
};

const RELEASE: Tracepoint = Tracepoint {
    system: "lock",
    name: "contended_release",
    id: RELEASE_ID,
    fields: "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;",
};

impl Tracepoint {
    /// The text of its `format` file in tracefs.
    fn format(self) -> String {
        let Tracepoint { name, id, fields, .. } = self;
        format!("name: {name}\nID: {}\nformat:\n{COMMON}{fields}\n", 400 + id)
    }

    fn event(self) -> EventDesc {
        let Tracepoint { system, name, id, .. } = self;
        EventDesc {
            attr: Attr { kind: event_type::TRACEPOINT, config: 400 + id, ..base() },
            name: format!("{system}:{name}"),
            ids: vec![id, id + SECOND],
            format: Format::parse(&self.format()).map(Arc::new),
        }
    }
}

/// When, where and by whom.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// ns.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// Process.
    pub pid: i32,
    /// Thread in the recorder's pid namespace.
    pub tid: i32,
    /// Thread in the kernel's: `common_pid` of raw records.
    pub common_pid: i32,
    /// `common_flags`.
    pub common_flags: u8,
}

impl At {
    /// A thread in task context that is its own process.
    pub fn new(time: u64, cpu: u32, tid: i32) -> At {
        At { time, cpu, pid: tid, tid, common_pid: tid, common_flags: 0 }
    }
}

/// Builds rounds record by record.
#[derive(Debug, Default)]
pub struct Synthetic {
    bytes: Vec<u8>,
    taken: u64,
    /// Added to the ids of samples.
    instance: u64,
    /// Where samples are taken, when they say so.
    cgroup: Option<u64>,
}

impl Synthetic {
    /// Nothing yet.
    pub fn new() -> Synthetic {
        Synthetic::default()
    }

    /// Samples are the first or, with `second`, the second instance's from here on.
    pub fn instance(&mut self, second: bool) -> &mut Synthetic {
        self.instance = if second { SECOND } else { 0 };
        self
    }

    /// Samples from here on say that they were taken in this cgroup: of an origin that is made to
    /// sample it ([`Synthetic::origin_of_cgroups`]).
    pub fn in_cgroup(&mut self, id: u64) -> &mut Synthetic {
        self.cgroup = Some(id);
        self
    }

    /// CGROUP: the group `id` is at `path`.
    pub fn cgroup(&mut self, at: At, id: u64, path: &str) -> &mut Synthetic {
        let mut body = id.to_le_bytes().to_vec();
        body.extend_from_slice(path.as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        self.other(kind::CGROUP, 0, &body, at)
    }

    /// The same as [`Synthetic::origin`], with the cgroup in every sample.
    pub fn origin_of_cgroups(&self) -> Origin {
        let mut origin = self.origin();
        origin.events.iter_mut().for_each(|event| event.attr.sample_type |= sample::CGROUP);
        origin
    }

    /// What these records are records of.
    pub fn origin(&self) -> Origin {
        let base = base();
        let clock = Attr {
            kind: event_type::SOFTWARE,
            config: software::CPU_CLOCK,
            sample_period: 1_000_000,
            ..base
        };
        Origin {
            events: vec![
                BEGIN.event(),
                END.event(),
                EventDesc {
                    attr: clock,
                    name: "cpu-clock".into(),
                    ids: vec![CLOCK_ID, CLOCK_ID + SECOND],
                    format: None,
                },
            ],
            ..Origin::default()
        }
    }

    /// The formats of its tracepoints, for a file.
    pub fn tracing_data(&self) -> TracingData {
        let format = |tracepoint: Tracepoint| ("lock".to_owned(), tracepoint.format().into_bytes());
        TracingData {
            // perf refuses an empty one.
            header_page: b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n".to_vec(),
            formats: [BEGIN, END].map(format).to_vec(),
            page_size: 4096,
            ..TracingData::default()
        }
    }

    /// `sched:sched_waking`, for an origin whose records include [`Synthetic::waking`].
    pub fn waking_event() -> EventDesc {
        WAKING.event()
    }

    /// `sched:sched_switch`, for an origin whose records include [`Synthetic::sched_switch`].
    pub fn switch_event() -> EventDesc {
        SWITCH.event()
    }

    /// `sched:sched_switch`: `at`'s task leaves its CPU in `state` (0 running, 1 interruptible sleep, 2
    /// uninterruptible, 256 preempted) on these `(kernel, user)` stacks; `next` comes.
    pub fn sched_switch(
        &mut self,
        at: At,
        state: u64,
        next: i32,
        stacks: (&[u64], &[u64]),
    ) -> &mut Synthetic {
        let mut raw = common(at, SWITCH_ID);
        raw.extend(at.common_pid.to_le_bytes());
        raw.extend([0; 4]);
        raw.extend(state.to_le_bytes());
        raw.extend(next.to_le_bytes());
        self.sample(at, SWITCH_ID, stacks, &raw)
    }

    /// `lock:contended_release`, for an origin whose records include [`Synthetic::release`].
    pub fn release_event() -> EventDesc {
        RELEASE.event()
    }

    /// `lock:contended_release`: `at`'s task lets go. Without frames it has no callchain.
    pub fn release(&mut self, at: At, lock: u64, kernel: &[u64]) -> &mut Synthetic {
        let mut raw = common(at, RELEASE_ID);
        raw.extend(lock.to_le_bytes());
        self.sample(at, RELEASE_ID, (kernel, &[]), &raw)
    }

    /// `sched:sched_waking`: `at`'s task wakes `woken`.
    pub fn waking(&mut self, at: At, woken: i32, kernel: &[u64]) -> &mut Synthetic {
        let mut raw = common(at, WAKING_ID);
        raw.extend(woken.to_le_bytes());
        self.sample(at, WAKING_ID, (kernel, &[]), &raw)
    }

    /// `lock:contention_begin` with kernel frames.
    pub fn begin(&mut self, at: At, lock: u64, flags: u32, kernel: &[u64]) -> &mut Synthetic {
        let raw = raw(at, BEGIN_ID, lock, flags);
        self.sample(at, BEGIN_ID, (kernel, &[]), &raw)
    }

    /// `lock:contention_end`.
    pub fn end(&mut self, at: At, lock: u64, ret: i32) -> &mut Synthetic {
        let raw = raw(at, END_ID, lock, ret as u32);
        self.sample(at, END_ID, (&[], &[]), &raw)
    }

    /// A `cpu-clock` sample that stands for 1 ms.
    pub fn cpu_sample(&mut self, at: At, kernel: &[u64], user: &[u64]) -> &mut Synthetic {
        self.sample(at, CLOCK_ID, (kernel, user), &[])
    }

    /// COMM.
    pub fn comm(
        &mut self,
        time: u64,
        pid: i32,
        tid: i32,
        name: &str,
        exec: bool,
    ) -> &mut Synthetic {
        let mut body = [pid.to_le_bytes(), tid.to_le_bytes()].concat();
        body.extend_from_slice(name.as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        let misc = if exec { misc::COMM_EXEC } else { 0 };
        self.other(kind::COMM, misc, &body, At { pid, ..At::new(time, 0, tid) })
    }

    /// FORK of `at`'s task by thread `parent` of process `parent_pid`.
    pub fn fork(&mut self, at: At, parent_pid: i32, parent: i32) -> &mut Synthetic {
        self.task_change(kind::FORK, at, parent_pid, parent)
    }

    /// EXIT.
    pub fn exit(&mut self, at: At) -> &mut Synthetic {
        self.task_change(kind::EXIT, at, 0, 0)
    }

    /// LOST: the ring of `at`'s CPU dropped records.
    pub fn lost(&mut self, at: At, lost: u64) -> &mut Synthetic {
        self.lost_of(0, at, lost)
    }

    /// LOST: the ring of the event instance `id`, on `at`'s CPU, dropped records.
    pub fn lost_of(&mut self, id: u64, at: At, lost: u64) -> &mut Synthetic {
        self.other(kind::LOST, 0, &[id.to_le_bytes(), lost.to_le_bytes()].concat(), at)
    }

    /// THROTTLE: the event instance `id` was stopped.
    pub fn throttle(&mut self, id: u64, at: At) -> &mut Synthetic {
        let body = [at.time, id, id].map(u64::to_le_bytes).concat();
        self.other(kind::THROTTLE, 0, &body, at)
    }

    /// SWITCH: `at`'s task is preempted.
    pub fn preempt(&mut self, at: At) -> &mut Synthetic {
        self.other(kind::SWITCH, misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT, &[], at)
    }

    /// SWITCH: `at`'s task leaves its CPU or comes to it.
    pub fn switch(&mut self, at: At, out: bool) -> &mut Synthetic {
        self.other(kind::SWITCH, if out { misc::SWITCH_OUT } else { 0 }, &[], at)
    }

    /// The records so far as a finished round.
    pub fn take_round(&mut self) -> Round {
        let bytes = std::mem::take(&mut self.bytes);
        let offset = self.taken;
        self.taken += bytes.len() as u64;
        Round { bytes, offset, finished: true }
    }

    fn task_change(&mut self, kind: u32, at: At, ppid: i32, ptid: i32) -> &mut Synthetic {
        let mut body = [at.pid, ppid, at.tid, ptid].map(i32::to_le_bytes).concat();
        body.extend(at.time.to_le_bytes());
        self.other(kind, 0, &body, at)
    }

    fn sample(
        &mut self,
        at: At,
        id: u64,
        (kernel, user): (&[u64], &[u64]),
        raw: &[u8],
    ) -> &mut Synthetic {
        let mut body = Vec::new();
        body.extend((id + self.instance).to_le_bytes());
        body.extend(kernel.first().or(user.first()).unwrap_or(&0).to_le_bytes());
        body.extend(at.pid.to_le_bytes());
        body.extend(at.tid.to_le_bytes());
        body.extend(at.time.to_le_bytes());
        body.extend(u64::from(at.cpu).to_le_bytes());
        let period: u64 = if id == CLOCK_ID { 1_000_000 } else { 1 };
        body.extend(period.to_le_bytes());
        let mut ips: Vec<u64> = Vec::new();
        for (mark, part) in [(context::KERNEL, kernel), (context::USER, user)] {
            if !part.is_empty() {
                ips.push(mark);
                ips.extend_from_slice(part);
            }
        }
        body.extend((ips.len() as u64).to_le_bytes());
        body.extend(ips.iter().flat_map(|ip| ip.to_le_bytes()));
        // The raw part ends on 8 bytes, its size included.
        let size = (raw.len() + 4).next_multiple_of(8) - 4;
        body.extend((size as u32).to_le_bytes());
        body.extend_from_slice(raw);
        body.resize(body.len() + size - raw.len(), 0);
        body.extend(self.cgroup.iter().flat_map(|id| id.to_le_bytes()));
        self.record(kind::SAMPLE, misc::KERNEL, &body)
    }

    /// A record with the sample id that `SAMPLE_TYPE` asks for.
    fn other(&mut self, kind: u32, misc: u16, body: &[u8], at: At) -> &mut Synthetic {
        let mut body = body.to_vec();
        body.extend(at.pid.to_le_bytes());
        body.extend(at.tid.to_le_bytes());
        body.extend(at.time.to_le_bytes());
        body.extend(u64::from(at.cpu).to_le_bytes());
        body.extend(BEGIN_ID.to_le_bytes());
        self.record(kind, misc, &body)
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Synthetic {
        let size = (HEADER_SIZE + body.len()) as u16;
        self.bytes.extend(RecordHeader { kind, misc, size }.to_bytes());
        self.bytes.extend_from_slice(body);
        self
    }
}

fn base() -> Attr {
    let flags = flag::SAMPLE_ID_ALL | flag::COMM | flag::TASK;
    Attr { sample_type: SAMPLE_TYPE, sample_period: 1, flags, ..Attr::default() }
}

fn common(at: At, id: u64) -> Vec<u8> {
    let mut raw = ((400 + id) as u16).to_le_bytes().to_vec();
    raw.extend([at.common_flags, 0]);
    raw.extend(at.common_pid.to_le_bytes());
    raw
}

fn raw(at: At, id: u64, lock: u64, last: u32) -> Vec<u8> {
    let mut raw = common(at, id);
    raw.extend(lock.to_le_bytes());
    raw.extend(last.to_le_bytes());
    raw
}
