//! Raw tracepoint records, read through the formats that the recording carries.
//!
//! ```text
//! u16 common_type; u8 common_flags; u8 common_preempt_count; i32 common_pid; fields by format
//! ```

use lockprof_collectors::procfs::tracefs::{Field, Format};

use super::event::{
    Begin, Body, End, MmapLock, MmapLockStep, RawTask, Release, SchedSwitch, SchedWaking,
};
use super::reader::unsigned;
use super::{DecodeError, RawChain};
use crate::model::{Context, LockAddr, LockFlags, TaskId};

/// Where one number stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u16,
    size: u16,
}

impl Place {
    fn of(field: &Field) -> Place {
        Place { offset: field.offset, size: field.size }
    }

    #[inline]
    fn read(self, raw: &[u8]) -> Option<u64> {
        unsigned(raw, self.offset, self.size)
    }
}

/// A tracepoint that this program understands, with the places of its fields.
#[derive(Clone, Copy, Debug)]
enum Known {
    ContentionBegin { lock: Place, flags: Place },
    ContentionEnd { lock: Place, ret: Place },
    ContendedRelease { lock: Place },
    SchedWaking { pid: Place },
    SchedSwitch { prev: Place, state: Place, next: Place },
    MmapLock { step: MmapLockStep, mm: Place, write: Place, success: Option<Place> },
    Unknown,
}

/// How one tracepoint event is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracepoint {
    common_pid: Place,
    common_flags: Place,
    known: Known,
}

impl Tracepoint {
    /// From the event's name (`lock:contention_begin`) and format. Without the format, or with
    /// fields that are not there, nothing is known of its raw record.
    pub(super) fn new(name: &str, format: &Format) -> Option<Tracepoint> {
        let place = |field| format.field(field).map(Place::of);
        let system = name.split_once(':').map_or("", |(system, _)| system);
        let in_system = |wanted| system.is_empty() || system == wanted;
        let known = match format.name.as_str() {
            "contention_begin" if in_system("lock") => {
                Known::ContentionBegin { lock: place("lock_addr")?, flags: place("flags")? }
            }
            "contention_end" if in_system("lock") => {
                Known::ContentionEnd { lock: place("lock_addr")?, ret: place("ret")? }
            }
            "contended_release" if in_system("lock") => {
                Known::ContendedRelease { lock: place("lock_addr")? }
            }
            "sched_waking" if in_system("sched") => Known::SchedWaking { pid: place("pid")? },
            "sched_switch" if in_system("sched") => Known::SchedSwitch {
                prev: place("prev_pid")?,
                state: place("prev_state")?,
                next: place("next_pid")?,
            },
            name if in_system("mmap_lock") && mmap_lock_step(name).is_some() => Known::MmapLock {
                step: mmap_lock_step(name)?,
                mm: place("mm")?,
                write: place("write")?,
                success: place("success"),
            },
            _ => Known::Unknown,
        };
        let (common_pid, common_flags) = (place("common_pid")?, place("common_flags")?);
        Some(Tracepoint { common_pid, common_flags, known })
    }

    #[inline]
    pub(super) fn decode<'a>(
        &self,
        event: usize,
        raw: &[u8],
        chain: RawChain<'a>,
    ) -> Result<Body<'a>, DecodeError> {
        self.read(event, raw, chain).ok_or(DecodeError::ShortRaw)
    }

    #[inline]
    fn read<'a>(&self, event: usize, raw: &[u8], chain: RawChain<'a>) -> Option<Body<'a>> {
        let who = RawTask {
            task: task(self.common_pid.read(raw)?),
            context: Context::from_common_flags(self.common_flags.read(raw)? as u8),
        };
        Some(match self.known {
            Known::ContentionBegin { lock, flags } => Body::ContentionBegin(Begin {
                who,
                lock: LockAddr(lock.read(raw)?),
                flags: LockFlags(flags.read(raw)? as u32),
                chain,
            }),
            Known::ContentionEnd { lock, ret } => Body::ContentionEnd(End {
                who,
                lock: LockAddr(lock.read(raw)?),
                ret: ret.read(raw)? as i32,
                chain,
            }),
            Known::ContendedRelease { lock } => {
                Body::ContendedRelease(Release { who, lock: LockAddr(lock.read(raw)?), chain })
            }
            Known::SchedWaking { pid } => {
                Body::SchedWaking(SchedWaking { who, woken: task(pid.read(raw)?), chain })
            }
            Known::SchedSwitch { prev, state, next } => Body::SchedSwitch(SchedSwitch {
                prev: task(prev.read(raw)?),
                prev_state: state.read(raw)?,
                next: task(next.read(raw)?),
                chain,
            }),
            Known::MmapLock { step, mm, write, success } => {
                let got = success.map_or(Some(1), |success| success.read(raw))? != 0;
                Body::MmapLock(MmapLock {
                    who,
                    mm: mm.read(raw)?,
                    step: if got { step } else { MmapLockStep::NotAcquired },
                    write: write.read(raw)? != 0,
                    chain,
                })
            }
            Known::Unknown => Body::Tracepoint(event, who, chain),
        })
    }
}

fn mmap_lock_step(name: &str) -> Option<MmapLockStep> {
    Some(match name {
        "mmap_lock_start_locking" => MmapLockStep::StartLocking,
        "mmap_lock_acquire_returned" => MmapLockStep::Acquired,
        "mmap_lock_released" => MmapLockStep::Released,
        _ => return None,
    })
}

#[inline]
fn task(pid: u64) -> TaskId {
    TaskId(pid as u32 as i32)
}
