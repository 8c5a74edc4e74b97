//! The floor: what a contention begin-to-end pair costs on this machine when nobody waits long.
//!
//! In: the contention events as they will be recorded. Out: nanoseconds that measuring adds to each
//! wait. The time of a begin is taken before its callchain is unwound and its sample written, and
//! the lock code runs on only afterwards, so no measured wait can be shorter.
//!
//! Two threads of ours fight for the mutex of a pipe for 50 ms or a little more. Mutex waits that ended while still
//! spinning (one begin, SPIN|MUTEX) are as short as waits get; their 1st percentile is the floor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::contention::{BEGIN, END, begin_flag};
use crate::perf::attr::{Attr, sample};
use crate::perf::plan::{DEFAULT_RING_PAGES, EventSpec, Plan, Scope};
use crate::perf::record::{HEADER_SIZE, RecordHeader, kind};
use crate::perf::session::{Session, SessionError};
use crate::procfs::tracefs::Field;

/// How long the threads fight before their waits are looked at.
const BURST: Duration = Duration::from_millis(50);

/// On a busy machine the two seldom run at the same time; after that many bursts it is given up.
const MAX_BURSTS: usize = 5;

/// Fewer waits than that say nothing.
const MIN_WAITS: usize = 100;

/// Why the floor could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// The session on our own threads.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The pipe.
    #[error("cannot open a pipe: {0}")]
    Pipe(#[source] std::io::Error),
    /// A thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// Measures the floor in ns, with the contention events among `events` on these CPUs. `None` when
/// there were too few waits, as on one CPU.
pub fn measure(
    events: &[EventSpec],
    cpus: &[u32],
    clockid: Option<i32>,
) -> Result<Option<u64>, FloorError> {
    let fighters = Fighters::start(cpus)?;
    let contention = |spec: &&EventSpec| spec.name == BEGIN || spec.name == END;
    let events: Vec<_> = events.iter().filter(contention).cloned().collect();
    let (tasks, cpus) = (fighters.tids.clone(), cpus.to_vec());
    let scope = Scope::Tasks { tasks, cpus, inherit: false, enable_on_exec: false };
    let plan = Plan { events, scope, ring_pages: DEFAULT_RING_PAGES, clockid };
    let mut session = Session::open(&plan)?;
    let readers = readers(&session);
    let mut records = Vec::new();
    session.enable()?;
    for _ in 0..MAX_BURSTS {
        thread::sleep(BURST);
        session.drain(&mut records);
        if let Some(floor) = first_percentile(spinning_waits(read_hits(&records, &readers))) {
            return Ok(Some(floor));
        }
    }
    Ok(None)
}

/// How to read the samples of each instance.
fn readers(session: &Session) -> HashMap<u64, Reader> {
    let readers = session.events().iter().map(Reader::new);
    let instances = session.ids().into_iter().zip(readers).filter_map(|(ids, r)| Some((ids, r?)));
    instances.flat_map(|(ids, r)| ids.into_iter().map(move |id| (id, r.clone()))).collect()
}

/// Two threads that write to and read from one pipe without ever sleeping.
struct Fighters {
    tids: Vec<i32>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Fighters {
    fn start(cpus: &[u32]) -> Result<Fighters, FloorError> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = pipe_with(flags).map_err(|e| FloorError::Pipe(e.into()))?;
        let mut fighters = Fighters { tids: Vec::new(), stop: Arc::default(), threads: Vec::new() };
        // Both hold both ends: a write without a reader would be SIGPIPE.
        let pipe = Arc::new((reader, writer));
        let same_pipe = Arc::clone(&pipe);
        fighters.add(cpus.first(), move || rustix::io::write(&pipe.1, &[0]).map(drop))?;
        fighters.add(cpus.last(), move || rustix::io::read(&same_pipe.0, &mut [0]).map(drop))?;
        Ok(fighters)
    }

    fn add(
        &mut self,
        cpu: Option<&u32>,
        mut step: impl FnMut() -> Result<(), Errno> + Send + 'static,
    ) -> Result<(), FloorError> {
        let stop = Arc::clone(&self.stop);
        let (tell, told) = mpsc::channel();
        let mut own_cpu = CpuSet::new();
        if let Some(cpu) = cpu.filter(|cpu| **cpu < CpuSet::MAX_CPU as u32) {
            own_cpu.set(*cpu as usize);
        }
        let body = move || {
            // On one CPU they would never meet. Where it is not allowed, the scheduler decides.
            let _ = sched_setaffinity(None, &own_cpu);
            // If nobody listens, `stop` is set.
            let _ = tell.send(rustix::thread::gettid().as_raw_pid());
            // A pipe that is full or empty is as good: its mutex was taken to find out.
            while !stop.load(Ordering::Relaxed) && matches!(step(), Ok(()) | Err(Errno::AGAIN)) {}
        };
        let thread = thread::Builder::new().name("lockprof-floor".to_owned()).spawn(body);
        self.threads.push(thread.map_err(FloorError::Thread)?);
        self.tids.extend(told.recv());
        Ok(())
    }
}

impl Drop for Fighters {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// One begin or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    time: u64,
    tid: u32,
    lock: u64,
    /// A begin's flags; `None` for an end.
    flags: Option<u32>,
}

/// Reads samples of one event.
#[derive(Clone, Debug)]
struct Reader {
    attr: Attr,
    lock: Field,
    /// A begin has it.
    flags: Option<Field>,
}

impl Reader {
    fn new(spec: &EventSpec) -> Option<Reader> {
        let format = &spec.tracepoint.as_ref()?.format;
        let lock = format.field("lock_addr")?.clone();
        Some(Reader { attr: spec.attr, lock, flags: format.field("flags").cloned() })
    }

    /// ```text
    /// header 8 | u64 id | u64 ip | u32 pid, tid | u64 time | u32 cpu, res |
    ///     { u64 period } | { u64 nr, nr * u64 } | u32 size, bytes
    /// ```
    fn hit(&self, record: &[u8]) -> Option<Hit> {
        let mut raw_at = 48;
        if self.attr.samples(sample::PERIOD) {
            raw_at += 8;
        }
        if self.attr.samples(sample::CALLCHAIN) {
            let frames = usize::try_from(word(record, raw_at, 8)?).ok()?;
            raw_at = frames.checked_mul(8)?.checked_add(raw_at + 8)?;
        }
        let raw = record.get(raw_at.checked_add(4)?..)?;
        let field = |field: &Field| word(raw, usize::from(field.offset), usize::from(field.size));
        Some(Hit {
            time: word(record, 32, 8)?,
            tid: word(record, 28, 4)? as u32,
            lock: field(&self.lock)?,
            flags: match &self.flags {
                Some(flags) => Some(field(flags)? as u32),
                None => None,
            },
        })
    }
}

/// An unsigned number of up to 8 bytes.
fn word(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(size)?)?;
    let mut word = [0; 8];
    word.get_mut(..size)?.copy_from_slice(found);
    Some(u64::from_le_bytes(word))
}

/// All hits, in the order of time.
fn read_hits(records: &[u8], by_id: &HashMap<u64, Reader>) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut rest = records;
    while let Some(header) = RecordHeader::parse(rest) {
        let size = usize::from(header.size).max(HEADER_SIZE);
        let Some((record, behind)) = rest.split_at_checked(size) else { break };
        if header.kind == kind::SAMPLE {
            let reader = word(record, 8, 8).and_then(|id| by_id.get(&id));
            hits.extend(reader.and_then(|reader| reader.hit(record)));
        }
        rest = behind;
    }
    hits.sort_unstable();
    hits
}

/// Durations of mutex waits that never went to sleep, in ns.
fn spinning_waits(hits: Vec<Hit>) -> Vec<u64> {
    let mut open: HashMap<(u32, u64), u64> = HashMap::new();
    let mut waits = Vec::new();
    for hit in hits {
        let key = (hit.tid, hit.lock);
        match hit.flags {
            Some(flags) if flags == begin_flag::SPIN | begin_flag::MUTEX => {
                open.insert(key, hit.time);
            }
            // It goes to sleep, or it is another kind of lock: not one of ours.
            Some(_) => drop(open.remove(&key)),
            None => waits.extend(open.remove(&key).map(|begin| hit.time.saturating_sub(begin))),
        }
    }
    waits
}

fn first_percentile(mut waits: Vec<u64>) -> Option<u64> {
    if waits.len() < MIN_WAITS {
        return None;
    }
    waits.sort_unstable();
    waits.get(waits.len() / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPINS: Option<u32> = Some(33);
    const SLEEPS: Option<u32> = Some(32);
    const END_OF_WAIT: Option<u32> = None;

    fn hit(time: u64, tid: u32, flags: Option<u32>) -> Hit {
        Hit { time, tid, lock: 0xffff_8880_0000_0040, flags }
    }

    #[test]
    fn only_waits_that_ended_while_spinning_count() {
        let hits = vec![
            hit(100, 1, SPINS),
            hit(150, 2, SPINS),
            hit(200, 1, END_OF_WAIT),
            hit(250, 2, SLEEPS),
            hit(900, 2, END_OF_WAIT),
            hit(950, 1, Some(1)),
            hit(990, 1, END_OF_WAIT),
            hit(1000, 3, END_OF_WAIT),
        ];
        assert_eq!(spinning_waits(hits), [100]);
    }

    #[test]
    fn a_begin_whose_end_was_lost_gives_way_to_the_next() {
        let hits = vec![hit(100, 1, SPINS), hit(500, 1, SPINS), hit(530, 1, END_OF_WAIT)];
        assert_eq!(spinning_waits(hits), [30]);
    }

    #[test]
    fn the_floor_is_the_first_percentile_and_needs_enough_waits() {
        assert_eq!(first_percentile((1..=1000).rev().collect()), Some(11));
        assert_eq!(first_percentile((1..=99).collect()), None);
    }

    fn reader(with_callchain: bool) -> Reader {
        let field =
            |name: &str, offset, size| Field { name: name.to_owned(), offset, size, signed: false };
        let callchain = if with_callchain { sample::CALLCHAIN } else { 0 };
        Reader {
            attr: Attr { sample_type: callchain, ..Attr::default() },
            lock: field("lock_addr", 8, 8),
            flags: Some(field("flags", 16, 4)),
        }
    }

    /// A sample with id 5, tid 7, time 9, lock 11, flags 33.
    fn begin(callchain: Option<&[u64]>) -> Vec<u8> {
        let mut body: Vec<u64> = vec![5, 0, 7 << 32 | 6, 9, 0];
        if let Some(frames) = callchain {
            body.push(frames.len() as u64);
            body.extend(frames);
        }
        let mut bytes: Vec<u8> = body.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(28_u32.to_le_bytes());
        for word in [0_u64, 11, 33] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0; 4]);
        let size = (bytes.len() + 8) as u16;
        [RecordHeader { kind: kind::SAMPLE, misc: 1, size }.to_bytes().to_vec(), bytes].concat()
    }

    #[test]
    fn a_sample_is_read_behind_its_callchain() {
        let expected = Hit { time: 9, tid: 7, lock: 11, flags: Some(33) };
        assert_eq!(reader(false).hit(&begin(None)), Some(expected));
        assert_eq!(reader(true).hit(&begin(Some(&[1, 2, 3]))), Some(expected));
        assert_eq!(reader(true).hit(&begin(Some(&[]))), Some(expected));
    }

    #[test]
    fn samples_that_are_cut_or_lie_about_their_callchain_are_left_out() {
        let whole = begin(Some(&[1, 2]));
        let by_id = HashMap::from([(5, reader(true))]);
        assert_eq!(read_hits(&[whole.clone(), whole.clone()].concat(), &by_id).len(), 2);
        for cut in 0..whole.len() {
            assert_eq!(read_hits(&whole[..cut], &by_id), [], "cut after {cut} bytes");
        }
        let mut lying = whole;
        lying[48..56].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read_hits(&lying, &by_id), []);
    }
}
