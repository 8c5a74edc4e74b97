//! Threads that start together, repeat a call until the time is up, and leave together.
//!
//! ```text
//!   spawn all -> every thread waits at the gate -> gate opens -> calls until the deadline
//!             -> every thread is done -> all leave
//! ```
//!
//! In: jobs, one a thread. Out: a [`Tally`] a thread, in the order of the jobs. Between the gate
//! and the deadline a thread makes its calls, reads its clock and nothing else: it allocates
//! nothing, and no thread starts or ends, since both would take the mmap lock.

use std::io;
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::preemption::{Preemption, Runnable};
use crate::{Error, sys};

/// What one thread does.
pub(crate) struct Job<'a> {
    /// The thread's name, which the kernel cuts to 15 bytes.
    pub(crate) name: &'static str,
    /// What the call is, for the error message.
    pub(crate) call_name: &'static str,
    /// The call that takes the lock.
    pub(crate) call: Box<dyn FnMut() -> io::Result<()> + Send + 'a>,
    /// What the call takes when nobody else wants the lock.
    pub(crate) uncontended: Duration,
    pub(crate) pace: Pace,
}

/// What is done between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Nothing: calls of microseconds, which two more system calls would thin out.
    Rush,
    /// Each call is made at its time: `offset` into a slot of the length `every`, counted from the
    /// start. The time preempted is read too.
    Slots {
        /// From the begin of a slot to the call.
        offset: Duration,
        /// From the begin of a slot to that of the next.
        every: Duration,
    },
    /// The time preempted is read, then the thread sleeps for this long; zero goes on at once.
    Watch(Duration),
}

/// What one thread did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) ops: u64,
    /// From the gate to the end of the last call, or of the pause after it.
    pub(crate) elapsed: Duration,
    /// Wall time inside the calls.
    pub(crate) in_calls: Duration,
    pub(crate) longest_call: Duration,
    /// Time inside the calls that it could have run but had no CPU; none with [`Pace::Rush`].
    pub(crate) runnable: Option<Runnable>,
    pub(crate) uncontended: Duration,
}

impl Tally {
    /// Wall time inside the calls less what they take uncontended and less preemption. Not cut
    /// off at zero for each call, which would turn noise of the clock into waiting.
    pub(crate) fn waited(&self) -> Duration {
        let own = self.uncontended.as_nanos() * u128::from(self.ops);
        let own = own + self.runnable.unwrap_or_default().preempted.as_nanos();
        let waited = self.in_calls.as_nanos().saturating_sub(own);
        Duration::from_nanos(u64::try_from(waited).unwrap_or(u64::MAX))
    }
}

/// Runs the jobs for `time`.
pub(crate) fn run(jobs: Vec<Job<'_>>, time: Duration) -> Result<Vec<Tally>, Error> {
    if jobs.is_empty() {
        return Err(Error::NoThreads);
    }
    if time.is_zero() {
        return Err(Error::NoTime);
    }
    let gate = Gate::default();
    let leave = Barrier::new(jobs.len());
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(jobs.len());
        for job in jobs {
            let name = job.name;
            let work = || work(job, &gate, &leave);
            match thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work) {
                Ok(thread) => threads.push((name, thread)),
                Err(source) => {
                    gate.set(Signal::GiveUp);
                    return Err(Error::Spawn { name: name.to_owned(), source });
                }
            }
        }
        gate.wait_for(threads.len());
        gate.set(Signal::Go(time));
        threads.into_iter().map(|(name, thread)| join(name, thread)).collect()
    })
}

fn join(name: &str, thread: ScopedJoinHandle<'_, Result<Tally, Error>>) -> Result<Tally, Error> {
    thread.join().map_err(|_| Error::Panicked(name.to_owned()))?
}

/// The life of one thread. Stays until all others are done, even after an error.
fn work(mut job: Job<'_>, gate: &Gate, leave: &Barrier) -> Result<Tally, Error> {
    let preemption = match job.pace {
        Pace::Rush => None,
        Pace::Watch(_) | Pace::Slots { .. } => Preemption::of_this_thread(),
    };
    let Some(time) = gate.enter() else { return Ok(Tally::default()) };
    let tally = repeat(&mut job, preemption, time);
    leave.wait();
    tally.map_err(Error::call(job.call_name))
}

/// Calls until `time` has passed.
fn repeat(job: &mut Job<'_>, mut watch: Option<Preemption>, time: Duration) -> io::Result<Tally> {
    let runnable = watch.as_ref().map(|_| Runnable::default());
    let mut tally = Tally { uncontended: job.uncontended, runnable, ..Tally::default() };
    // Waiting at the gate does not count.
    watch.as_mut().map_or(Ok(()), Preemption::forget)?;
    let start = Instant::now();
    let mut begin = start;
    if let Pace::Slots { offset, .. } = job.pace {
        rest(offset, &mut watch)?;
        begin = Instant::now();
    }
    while begin - start < time {
        (job.call)()?;
        let end = Instant::now();
        let call = end - begin;
        tally.ops += 1;
        tally.in_calls += call;
        tally.longest_call = tally.longest_call.max(call);
        if let (Some(watch), Some(runnable)) = (&mut watch, &mut tally.runnable) {
            *runnable = runnable.plus(watch.since_last()?);
        }
        // Without anything in between, one reading of the clock ends a call and begins the next.
        begin = end;
        let pause = match job.pace {
            Pace::Rush => continue,
            Pace::Watch(pause) => pause,
            Pace::Slots { offset, every } => until_slot(begin - start, offset, every),
        };
        rest(pause, &mut watch)?;
        begin = Instant::now();
    }
    tally.elapsed = begin - start;
    Ok(tally)
}

/// From `now`, counted from the start, to the next slot's call. A slot that was missed is left out.
fn until_slot(now: Duration, offset: Duration, every: Duration) -> Duration {
    let past = now.saturating_sub(offset).as_nanos() % every.as_nanos().max(1);
    every.saturating_sub(Duration::from_nanos(u64::try_from(past).unwrap_or(0)))
}

/// Sleeps, and forgets what happened meanwhile.
fn rest(pause: Duration, watch: &mut Option<Preemption>) -> io::Result<()> {
    if pause.is_zero() {
        return Ok(());
    }
    thread::sleep(pause);
    watch.as_mut().map_or(Ok(()), Preemption::forget)
}

/// What a call takes when nobody else wants the lock: the median of three to nine means, in CPU
/// time of the calling thread, so that a preemption meanwhile is not taken for work.
pub(crate) fn uncontended(mut call: impl FnMut() -> io::Result<()>) -> io::Result<Duration> {
    /// Spent on all means together, if three are done in less.
    const BUDGET: Duration = Duration::from_millis(100);
    /// Long enough for one mean that reading the clock (a system call) does not count.
    const LEAST: Duration = Duration::from_micros(500);
    // Pairs, because mprotect goes to and fro and its two ways need not cost the same.
    let mut pair = || call().and_then(|()| call());
    let started = Instant::now();
    pair()?;
    let once = started.elapsed().max(Duration::from_nanos(1));
    let pairs = u32::try_from(LEAST.as_nanos() / once.as_nanos() + 1).unwrap_or(1);
    let means = BUDGET.as_nanos() / (once * pairs).as_nanos().max(1);
    let means = if means < 5 { 3 } else { 9 };
    let mut measured = Vec::with_capacity(means);
    for _ in 0..means {
        let begin = sys::thread_cpu_time()?;
        for _ in 0..pairs {
            pair()?;
        }
        measured.push((sys::thread_cpu_time()? - begin) / (2 * pairs));
    }
    measured.sort_unstable();
    Ok(measured.get(means / 2).copied().unwrap_or_default())
}

/// Holds all threads until the last one has arrived.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    arrived: usize,
    signal: Option<Signal>,
}

#[derive(Clone, Copy)]
enum Signal {
    /// Call for this time.
    Go(Duration),
    /// A thread could not be started: leave.
    GiveUp,
}

impl Gate {
    /// Reports the calling thread as ready and waits for the signal. None: leave at once.
    fn enter(&self) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.arrived += 1;
        self.changed.notify_all();
        loop {
            match state.signal {
                Some(Signal::Go(time)) => return Some(time),
                Some(Signal::GiveUp) => return None,
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn wait_for(&self, threads: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.arrived < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn set(&self, signal: Signal) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.signal = Some(signal);
        self.changed.notify_all();
    }
}
