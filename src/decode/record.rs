//! One record -> one [`Event`], by kind.

use lockprof_collectors::perf::attr::{Attr, event_type, flag, read_format, sample, software};
use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind, misc};
use thiserror::Error;

use super::event::{Body, Cgroup, Comm, CpuSample, Event, Ksymbol, Mmap, Switch, TaskChange};
use super::layout::{Layout, Layouts, word};
use super::reader::Bytes;
use super::tracepoint::Tracepoint;
use super::{LayoutError, RawChain, RawRecord};
use crate::model::{Cpu, Nanos};
use crate::recording::EventDesc;

/// A record that is not what its header or its event says.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record ends before its fields do.
    #[error("the record ends before its fields do")]
    Short,
    /// A sample of an event that the recording does not describe.
    #[error("a sample carries the id of no event")]
    UnknownEvent,
    /// The raw part of a tracepoint is shorter than its format says.
    #[error("the raw part of a tracepoint is shorter than its format says")]
    ShortRaw,
}

/// What a sample of one event means.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Tracepoint(Tracepoint),
    /// A clock or counter; `Some` when the period is not in ns and each sample stands for this long.
    Cpu(Option<Nanos>),
    Unknown,
}

impl Meaning {
    fn of(event: &EventDesc) -> Meaning {
        let attr = &event.attr;
        match (attr.kind, attr.config) {
            (event_type::TRACEPOINT, _) => event
                .format
                .as_ref()
                .and_then(|format| Tracepoint::new(&event.name, format))
                .map_or(Meaning::Unknown, Meaning::Tracepoint),
            (event_type::SOFTWARE, software::CPU_CLOCK | software::TASK_CLOCK) => {
                Meaning::Cpu(None)
            }
            (event_type::SOFTWARE, _) => Meaning::Unknown,
            _ => Meaning::Cpu(Some(nominal_period(attr))),
        }
    }
}

/// 1/frequency of an event that counts no time; an event with a fixed period has none.
fn nominal_period(attr: &Attr) -> Nanos {
    let frequency = if attr.has(flag::FREQ) { attr.sample_period } else { 0 };
    Nanos(1_000_000_000u64.checked_div(frequency).unwrap_or(0))
}

/// Decodes the records of one recording.
#[derive(Clone, Debug)]
pub struct Decoder {
    layouts: Layouts,
    events: Vec<(Meaning, u64)>,
}

/// The fields of a sample that anyone here needs.
#[derive(Default)]
struct Sample<'a> {
    ip: u64,
    pid: i32,
    tid: i32,
    cpu: Option<Cpu>,
    period: u64,
    chain: RawChain<'a>,
    raw: &'a [u8],
}

impl Decoder {
    /// For the records of these events.
    pub fn new(events: &[EventDesc]) -> Result<Decoder, LayoutError> {
        let layouts = Layouts::new(events)?;
        let events = events.iter().map(|e| (Meaning::of(e), e.attr.sample_period)).collect();
        Ok(Decoder { layouts, events })
    }

    /// Decodes one record.
    #[inline]
    pub fn decode<'a>(&self, raw: RawRecord<'a>) -> Result<Event<'a>, DecodeError> {
        let header = RecordHeader::parse(raw.bytes).ok_or(DecodeError::Short)?;
        if header.kind == kind::SAMPLE { self.sample(raw) } else { self.other(raw, header) }
    }

    #[inline]
    fn sample<'a>(&self, raw: RawRecord<'a>) -> Result<Event<'a>, DecodeError> {
        let (index, layout) = self.layouts.of_sample(raw.bytes).ok_or(DecodeError::UnknownEvent)?;
        let sample = read_sample(layout, raw).ok_or(DecodeError::Short)?;
        let (meaning, fixed_period) = &self.events[index];
        let body = match meaning {
            Meaning::Tracepoint(tracepoint) => {
                tracepoint.decode(index, sample.raw, sample.chain)?
            }
            Meaning::Cpu(nominal) => {
                let sampled = layout.sample_type & sample::PERIOD != 0;
                let period = if sampled { sample.period } else { *fixed_period };
                let weight = nominal.unwrap_or(Nanos(period));
                Body::CpuSample(CpuSample {
                    event: index,
                    ip: sample.ip,
                    weight,
                    chain: sample.chain,
                })
            }
            Meaning::Unknown => Body::Other(kind::SAMPLE),
        };
        let Sample { pid, tid, cpu, .. } = sample;
        let instance = layout.sample_event.and_then(|at| word(raw.bytes, at)).unwrap_or(0);
        let cgroup = layout.cgroup_from_end.and_then(|back| {
            // Not in the fields in front of it, however short the record is.
            word(raw.bytes, raw.bytes.len().checked_sub(back).filter(|&at| at >= HEADER_SIZE)?)
        });
        Ok(Event { time: raw.time, cpu, pid, tid, instance, cgroup, offset: raw.offset, body })
    }

    fn other<'a>(
        &self,
        raw: RawRecord<'a>,
        header: RecordHeader,
    ) -> Result<Event<'a>, DecodeError> {
        let body = raw.bytes.get(HEADER_SIZE..).ok_or(DecodeError::Short)?;
        let mut event = Event {
            time: raw.time,
            cpu: None,
            pid: 0,
            tid: 0,
            instance: 0,
            cgroup: None,
            offset: raw.offset,
            body: Body::Other(header.kind),
        };
        if header.kind >= kind::USER_TYPE_START {
            return Ok(event);
        }
        let layout = self.layouts.of_other(raw.bytes);
        let mut fields = body;
        if layout.sample_id_all {
            let at = body.len().checked_sub(layout.id_size).ok_or(DecodeError::Short)?;
            let (head, id) = body.split_at(at);
            fields = head;
            (event.pid, event.tid, event.cpu) = read_sample_id(layout, id);
        }
        event.body = read_other(header, Bytes(fields)).ok_or(DecodeError::Short)?;
        // LOST: u64 id, lost. THROTTLE: u64 time, id, stream id.
        event.instance = match header.kind {
            kind::LOST => word(fields, 0).unwrap_or(0),
            kind::THROTTLE => word(fields, 8).unwrap_or(0),
            _ => 0,
        };
        Ok(event)
    }
}

/// Reads a sample's fields where its layout says that they stand; what follows RAW is of no use here.
#[inline]
fn read_sample<'a>(layout: &Layout, raw: RawRecord<'a>) -> Option<Sample<'a>> {
    let mut tail = layout.tail(raw.bytes)?;
    let field = |at: Option<usize>| at.and_then(|at| word(raw.bytes, at));
    let (pid, tid) = pair(field(layout.sample_tid).unwrap_or(0));
    let mut out = Sample {
        ip: field(layout.sample_ip).unwrap_or(0),
        pid,
        tid,
        cpu: field(layout.sample_cpu).map(|cpu| Cpu(cpu as u32)),
        period: field(layout.sample_period).unwrap_or(0),
        chain: RawChain { bytes: callchain(layout, &mut tail)?, stack: raw.stack },
        ..Sample::default()
    };
    if layout.sample_type & sample::RAW != 0 {
        let size = tail.u32()?;
        out.raw = tail.take(size as usize)?;
    }
    Some(out)
}

/// The callchain, which is the second of the fields of no fixed length; empty without one.
#[inline]
pub(super) fn callchain<'a>(layout: &Layout, tail: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let has = |field: u64| layout.sample_type & field != 0;
    if has(sample::READ) {
        skip_read(layout.read_format, tail)?;
    }
    if !has(sample::CALLCHAIN) {
        return Some(&[]);
    }
    let count = tail.u64()?;
    tail.words(count)
}

/// The two numbers of 4 bytes in one of 8: the one that stands first is the lower half.
#[inline]
fn pair(word: u64) -> (i32, i32) {
    (word as u32 as i32, (word >> 32) as u32 as i32)
}

/// ```text
/// group:  u64 nr; [u64 time_enabled]; [u64 time_running]; { u64 value; [u64 id]; [u64 lost] } [nr]
/// single: u64 value; [u64 time_enabled]; [u64 time_running]; [u64 id]; [u64 lost]
/// ```
fn skip_read(format: u64, bytes: &mut Bytes<'_>) -> Option<()> {
    let words = |bits: &[u64]| bits.iter().filter(|&&bit| format & bit != 0).count() as u64;
    let times = words(&[read_format::TOTAL_TIME_ENABLED, read_format::TOTAL_TIME_RUNNING]);
    let value = 1 + words(&[read_format::ID, read_format::LOST]);
    if format & read_format::GROUP == 0 {
        bytes.words(times + value)?;
        return Some(());
    }
    let count = bytes.u64()?;
    bytes.words(count.checked_mul(value)?.checked_add(times)?)?;
    Some(())
}

/// Process, thread and CPU of a sample id.
fn read_sample_id(layout: &Layout, id: &[u8]) -> (i32, i32, Option<Cpu>) {
    let mut bytes = Bytes(id);
    let has = |field: u64| layout.sample_type & field != 0;
    let (mut pid, mut tid) = (0, 0);
    if has(sample::TID) {
        (pid, tid) = (bytes.i32().unwrap_or(0), bytes.i32().unwrap_or(0));
    }
    for field in [sample::TIME, sample::ID, sample::STREAM_ID] {
        if has(field) {
            bytes.u64();
        }
    }
    let cpu = has(sample::CPU).then(|| bytes.u64()).flatten().map(|cpu| Cpu(cpu as u32));
    (pid, tid, cpu)
}

fn read_other<'a>(header: RecordHeader, mut bytes: Bytes<'a>) -> Option<Body<'a>> {
    Some(match header.kind {
        kind::MMAP | kind::MMAP2 => Body::Mmap(read_mmap(header, bytes)?),
        kind::COMM => Body::Comm(Comm {
            pid: bytes.i32()?,
            tid: bytes.i32()?,
            exec: header.misc & misc::COMM_EXEC != 0,
            name: bytes.string(),
        }),
        kind::FORK => Body::Fork(read_task_change(bytes)?),
        kind::EXIT => Body::Exit(read_task_change(bytes)?),
        kind::LOST => {
            // u64 id; u64 lost
            bytes.u64()?;
            Body::Lost(bytes.u64()?)
        }
        kind::LOST_SAMPLES => Body::LostSamples(bytes.u64()?),
        kind::THROTTLE => Body::Throttle,
        kind::SWITCH | kind::SWITCH_CPU_WIDE => Body::Switch(Switch {
            out: header.misc & misc::SWITCH_OUT != 0,
            preempted: header.misc & misc::SWITCH_OUT_PREEMPT != 0,
        }),
        kind::KSYMBOL => Body::Ksymbol(read_ksymbol(bytes)?),
        // u64 id; char path[]
        kind::CGROUP => Body::Cgroup(Cgroup { id: bytes.u64()?, path: bytes.string() }),
        other => Body::Other(other),
    })
}

/// ```text
/// MMAP:  i32 pid, tid; u64 addr, len, pgoff; char filename[]
/// MMAP2: the same; then u32 maj, min; u64 ino, ino_generation (or u8 build_id_size, 3 bytes,
///        u8 build_id[20]); u32 prot, flags; char filename[]
/// ```
fn read_mmap<'a>(header: RecordHeader, mut bytes: Bytes<'a>) -> Option<Mmap<'a>> {
    let pid = bytes.i32()?;
    bytes.u32()?;
    let (addr, len, pgoff) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
    let mut build_id = None;
    if header.kind == kind::MMAP2 {
        let mut file = Bytes(bytes.take(24)?);
        bytes.u64()?;
        if header.misc & misc::MMAP_BUILD_ID != 0 {
            let size = file.u32()? & 0xff;
            build_id = file.take((size as usize).min(20));
        }
    }
    let kernel = header.misc & misc::CPUMODE_MASK == misc::KERNEL;
    Some(Mmap { pid, addr, len, pgoff, kernel, name: bytes.string(), build_id })
}

/// `u32 pid, ppid, tid, ptid; u64 time`
fn read_task_change(mut bytes: Bytes<'_>) -> Option<TaskChange> {
    let (pid, parent_pid) = (bytes.i32()?, bytes.i32()?);
    let (tid, parent_tid) = (bytes.i32()?, bytes.i32()?);
    Some(TaskChange { pid, tid, parent_pid, parent_tid })
}

/// `u64 addr; u32 len; u16 ksym_type, flags; char name[]`; bit 0 of flags: unregistered.
fn read_ksymbol<'a>(mut bytes: Bytes<'a>) -> Option<Ksymbol<'a>> {
    let (addr, len) = (bytes.u64()?, u64::from(bytes.u32()?));
    bytes.u16()?;
    let unregister = bytes.u16()? & 1 != 0;
    Some(Ksymbol { addr, len, unregister, name: bytes.string() })
}
