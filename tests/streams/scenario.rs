//! Streams made up by proptest: anything at all, and what a kernel could have done.
//!
//! In: small numbers that proptest chooses and shrinks. Out: [`Record`]s in order of time.

use std::ops::Range;

use lockprof::source::{At, Round, Synthetic};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{MUTEX, READ, READER, RT, RT_MUTEX, SEM, SPIN, WRITE, WRITER, at, in_softirq};

/// A record by itself, so that rounds can be cut anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) bytes: Vec<u8>,
}

/// What a kernel could have done, and the time that its threads spent waiting.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) records: Vec<Record>,
    /// Time in which a thread, with the interrupts on top of it, had at least one open wait, added up
    /// over all threads.
    pub(crate) waited: u64,
    pub(crate) elapsed: u64,
}

const LOCKS: [u64; 5] = [0x1000, 0x1008, 0x1010, 0x2000, 0x2008];
const FLAGS: [u32; 9] = [SEM, SPIN, SPIN | READ, READ, WRITE, SPIN | MUTEX, MUTEX, RT, RT | READ];
const STACKS: [&[u64]; 4] = [&[], READER, WRITER, RT_MUTEX];
const CPUS: u32 = 3;
const TASKS: i32 = 4;

/// One choice: what, and four numbers that say with whom.
type Choice = (u8, u8, u8, u8, u8);

fn choices(len: Range<usize>) -> impl Strategy<Value = Vec<Choice>> {
    vec(any::<Choice>(), len)
}

/// Rounds of one record each.
struct Recorder {
    synthetic: Synthetic,
    records: Vec<Record>,
}

impl Recorder {
    fn new() -> Recorder {
        Recorder { synthetic: Synthetic::new(), records: Vec::new() }
    }

    fn write(&mut self, at: At, write: impl FnOnce(&mut Synthetic)) {
        write(&mut self.synthetic);
        let bytes = self.synthetic.take_round().bytes;
        self.records.push(Record { time: at.time, cpu: at.cpu, bytes });
    }
}

/// Any begins, ends, samples, losses, switches, forks, exits, names; times from `times`, in order.
pub(crate) fn arbitrary(
    len: Range<usize>,
    time_of: impl Fn(u64, u8) -> u64,
) -> impl Strategy<Value = Vec<Record>> {
    choices(len).prop_map(move |choices| {
        let mut recorder = Recorder::new();
        let mut time = 1000;
        for choice in choices {
            time = time_of(time, choice.4);
            any_record(&mut recorder, time, choice);
        }
        recorder.records
    })
}

fn any_record(recorder: &mut Recorder, time: u64, (what, a, b, c, d): Choice) {
    let pick = |from: &[u64], by: u8| from[usize::from(by) % from.len()];
    let (cpu, tid) = (u32::from(a) % CPUS, i32::from(b) % TASKS);
    let at = if c & 0x80 != 0 { in_softirq(time, cpu, tid) } else { at(time, cpu, tid) };
    let lock = pick(&LOCKS, c);
    let flags = FLAGS[usize::from(d) % FLAGS.len()];
    let stack = STACKS[usize::from(d >> 4) % STACKS.len()];
    let other = i32::from(d) % TASKS;
    recorder.write(at, |s| {
        match what % 16 {
            0..=5 => s.begin(at, lock, flags, stack),
            6..=10 => s.end(at, lock, [0, 0, 0, -4, -35][usize::from(d) % 5]),
            11 => s.cpu_sample(at, stack, &[]),
            12 => s.lost(at, u64::from(d)),
            13 => s.switch(at, d & 1 != 0),
            14 if d & 1 != 0 => s.fork(at, other, other),
            14 => s.comm(time, tid, tid, ["a", "b"][usize::from(d >> 1) % 2], true),
            _ => s.exit(at),
        };
    });
}

/// A thread: its open waits as `(lock, spins, softirq)`, outermost first.
#[derive(Default)]
struct Thread {
    waits: Vec<(u64, bool, bool)>,
    flags: u32,
}

/// A machine of three CPUs. Task 0 is the idle task of CPU 0; tasks 1.. run where they are put.
struct Machine {
    recorder: Recorder,
    threads: Vec<Thread>,
    /// Who runs on which CPU.
    running: Vec<Option<usize>>,
    time: u64,
    waited: u64,
}

/// What a kernel could have done: a task is on one CPU at a time, sleeps only when nothing spins on
/// top of it, and waits end in the reverse order of their begins.
pub(crate) fn realistic(len: Range<usize>) -> impl Strategy<Value = Scenario> {
    choices(len).prop_map(|choices| {
        let mut machine = Machine {
            recorder: Recorder::new(),
            threads: (0..TASKS).map(|_| Thread::default()).collect(),
            running: vec![None; CPUS as usize],
            time: 1000,
            waited: 0,
        };
        choices.into_iter().for_each(|choice| machine.step(choice));
        let records = machine.recorder.records;
        let first = records.first().map_or(0, |record| record.time);
        let elapsed = records.last().map_or(0, |record| record.time) - first;
        Scenario { records, waited: machine.waited, elapsed }
    })
}

impl Machine {
    fn step(&mut self, (what, a, b, c, d): Choice) {
        let cpu = usize::from(a) % self.running.len();
        match self.running[cpu] {
            None => self.come(cpu, usize::from(b) % self.threads.len(), d),
            Some(thread) => match what % 8 {
                0 => self.leave(cpu, thread, d),
                1..=3 => self.begin(cpu, thread, (b, c), d),
                _ => self.end(cpu, thread, d),
            },
        }
    }

    /// Time passes; every thread with an open wait waits.
    fn pass(&mut self, by: u8) {
        let by = u64::from(by) + 1;
        let waiting = self.threads.iter().filter(|thread| !thread.waits.is_empty()).count() as u64;
        self.waited += by * waiting;
        self.time += by;
    }

    fn come(&mut self, cpu: usize, thread: usize, dt: u8) {
        if self.running.contains(&Some(thread)) {
            return;
        }
        self.running[cpu] = Some(thread);
        self.record(cpu, thread, dt, false, |s, at| {
            s.switch(at, false);
        });
    }

    fn leave(&mut self, cpu: usize, thread: usize, dt: u8) {
        if self.threads[thread].waits.iter().any(|&(_, spins, _)| spins) {
            return;
        }
        self.record(cpu, thread, dt, false, |s, at| {
            s.switch(at, true);
        });
        self.running[cpu] = None;
    }

    fn begin(&mut self, cpu: usize, thread: usize, (b, c): (u8, u8), dt: u8) {
        let state = &mut self.threads[thread];
        let softirq = state.waits.last().is_some_and(|&(_, _, softirq)| softirq) || b & 0x80 != 0;
        let spins = softirq || state.waits.iter().any(|&(_, spins, _)| spins) || b & 0x40 != 0;
        let flags = if spins { SPIN } else { [SEM, READ, WRITE, SPIN | MUTEX][usize::from(b) % 4] };
        let lock = LOCKS[usize::from(c) % LOCKS.len()];
        // One wait for a lock of each kind at a time, except that a semaphore has a spinlock inside.
        let again = state.waits.iter().any(|&(other, s, _)| other == lock && s == spins);
        if again || state.waits.len() >= 5 {
            return;
        }
        state.flags = flags;
        let stack = STACKS[usize::from(c >> 4) % 2 * 3];
        self.record(cpu, thread, dt, softirq, |s, at| {
            s.begin(at, lock, flags, stack);
        });
        self.threads[thread].waits.push((lock, spins, softirq));
    }

    fn end(&mut self, cpu: usize, thread: usize, dt: u8) {
        let Some(&(lock, _, softirq)) = self.threads[thread].waits.last() else { return };
        self.record(cpu, thread, dt, softirq, |s, at| {
            s.end(at, lock, 0);
        });
        self.threads[thread].waits.pop();
    }

    fn record(
        &mut self,
        cpu: usize,
        thread: usize,
        dt: u8,
        softirq: bool,
        write: impl FnOnce(&mut Synthetic, At),
    ) {
        self.pass(dt);
        let at = At {
            common_flags: if softirq { super::SOFTIRQ } else { 0 },
            // Thread ids start behind the idle task.
            ..at(self.time, cpu as u32, thread as i32 + 1)
        };
        self.recorder.write(at, |s| write(s, at));
    }
}

/// The records as rounds that a recorder could have cut: in round n ring c was read up to a moment
/// between the n-th of `bounds` and the next, so that no record of a round is older than the newest of
/// the round before the last. Within a round `order` says how rings follow each other.
pub(crate) fn rounds(
    records: &[Record],
    bounds: &[u64],
    jitter: &[u8],
    order: &[u8],
) -> Vec<Round> {
    let span = |at: usize| (bounds.get(at).copied(), bounds.get(at + 1).copied());
    let cut = |round: usize, cpu: u32| {
        let jitter = jitter.get((round * 3 + cpu as usize) % jitter.len().max(1)).copied();
        match span(round) {
            (Some(from), Some(to)) => from + (to - from) * u64::from(jitter.unwrap_or(0)) / 256,
            _ => u64::MAX,
        }
    };
    let in_round = |round: usize, record: &Record| {
        let after = round == 0 || cut(round - 1, record.cpu) < record.time;
        after && record.time <= cut(round, record.cpu)
    };
    let count = bounds.len().max(1);
    (0..count).map(|n| round(records.iter().filter(|r| in_round(n, r)), order)).collect()
}

/// One round: rings interleaved as `order` says, each ring in its own order.
fn round<'a>(records: impl Iterator<Item = &'a Record>, order: &[u8]) -> Round {
    let mut rings: Vec<Vec<&Record>> = vec![Vec::new(); CPUS as usize];
    records.for_each(|record| rings[record.cpu as usize].push(record));
    let mut rings: Vec<_> = rings.into_iter().map(|ring| ring.into_iter().peekable()).collect();
    let mut bytes = Vec::new();
    let mut order = order.iter().cycle();
    while rings.iter_mut().any(|ring| ring.peek().is_some()) {
        let first = order.next().map_or(0, |&by| usize::from(by));
        for at in 0..CPUS as usize {
            if let Some(record) = rings[(first + at) % CPUS as usize].next() {
                bytes.extend_from_slice(&record.bytes);
                break;
            }
        }
    }
    Round { bytes, offset: 0, finished: true }
}
