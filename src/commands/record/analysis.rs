//! The pipeline's thread: rounds in while they are recorded, a report at the end.
//!
//! ```text
//!   recorder ──Round──> channel ──> pipeline ──empty buffer──> channel ──> recorder
//! ```
//!
//! Rounds in flight are bounded in bytes. A pipeline that falls further behind is given up: the file
//! has everything, and the summary is made from it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::cost::Cost;
use super::mailbox::Mailbox;
use super::summary;
use crate::analyse::Detail;
use crate::cli::args::{InputArgs, RecordArgs};
use crate::cli::messages::{self, Failure};
use crate::commands::input;
use crate::model::Filter;
use crate::pipeline::Pipeline;
use crate::recording::{End, Origin};
use crate::source::Round;

/// Bytes that the pipeline may be behind.
const IN_FLIGHT: usize = 64 << 20;

/// Rounds have so many times the time that answers take: a screen must not make the pipeline late.
const ROUNDS_TO_ANSWERS: u32 = 5;

/// How long a question may wait when nothing is recorded.
const TICK: Duration = Duration::from_millis(50);

/// How the recording is.
#[derive(Debug)]
pub(super) struct Progress {
    cost: Cost,
    waits: AtomicU64,
    lost: AtomicU64,
    in_flight: AtomicUsize,
    behind: AtomicBool,
}

impl Progress {
    fn begin(cpus: u32) -> Progress {
        Progress {
            cost: Cost::begin(cpus),
            waits: AtomicU64::default(),
            lost: AtomicU64::default(),
            in_flight: AtomicUsize::default(),
            behind: AtomicBool::default(),
        }
    }

    /// What it costs.
    pub(super) fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Waits that ended, and records that were lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.waits.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }

    /// Whether the pipeline was given up.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }
}

/// The recorder's end.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    rounds: Sender<Round>,
    spare: Arc<Mutex<Receiver<Vec<u8>>>>,
    progress: Arc<Progress>,
}

impl Listener {
    /// Takes a round; gives back a buffer that is free.
    pub(super) fn listen(&self, round: Round) -> Option<Vec<u8>> {
        let progress = &self.progress;
        let in_flight = progress.in_flight.load(Ordering::Relaxed) + round.bytes.len();
        if in_flight > IN_FLIGHT {
            progress.behind.store(true, Ordering::Relaxed);
        }
        if progress.behind.load(Ordering::Relaxed) {
            return Some(round.bytes);
        }
        progress.in_flight.fetch_add(round.bytes.len(), Ordering::Relaxed);
        if let Err(refused) = self.rounds.send(round) {
            progress.behind.store(true, Ordering::Relaxed);
            return Some(refused.0.bytes);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
    }
}

/// The pipeline at work.
#[derive(Debug)]
pub(super) struct Analysis {
    listener: Listener,
    mailbox: Option<Arc<Mailbox>>,
    thread: JoinHandle<Pipeline>,
}

impl Analysis {
    /// Starts the thread.
    pub(super) fn start(
        origin: &Origin,
        detail: Detail,
        mailbox: Option<Arc<Mailbox>>,
    ) -> Result<Analysis, Failure> {
        let (kernel, source) = input::kernel_symbols(origin, None)?;
        let symbols = (kernel, source.to_string());
        let pipeline = Pipeline::new(origin.clone(), symbols, detail, &Filter::default())?;
        let (rounds, to_analyse) = channel();
        let (freed, spare) = channel();
        let progress = Arc::new(Progress::begin(origin.host.cpus_online));
        let listener = Listener {
            rounds,
            spare: Arc::new(Mutex::new(spare)),
            progress: Arc::clone(&progress),
        };
        let asks = mailbox.clone();
        let body = move || analyse(pipeline, (&to_analyse, &freed), &progress, asks.as_deref());
        let thread = thread::Builder::new().name("lockprof-analyse".into()).spawn(body);
        Ok(Analysis { listener, mailbox, thread: thread.context("cannot start a thread")? })
    }

    /// An end for the recorder.
    pub(super) fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// How the recording is.
    pub(super) fn progress(&self) -> &Progress {
        &self.listener.progress
    }

    /// The pipeline with the whole recording in it, when the recorder has ended. Filled from the file
    /// when the one at work was given up.
    pub(super) fn finish(self, end: End, args: &RecordArgs) -> Result<Pipeline, Failure> {
        let behind = self.listener.progress.behind.load(Ordering::Relaxed);
        drop(self.listener);
        let restarted = self.mailbox.is_some_and(|mailbox| mailbox.has_restarted());
        let pipeline = self.thread.join().ok().filter(|_| !behind && !restarted);
        match pipeline {
            Some(mut pipeline) => {
                pipeline.set_end(end);
                Ok(pipeline)
            }
            None => {
                let why = match restarted {
                    true => {
                        "counting began anew while recording; the summary is read from the file"
                    }
                    false => "analysis fell behind while recording; reading the file",
                };
                messages::note(why);
                let input = InputArgs { file: args.output.clone(), kallsyms: None };
                input::analyse(&input, summary::detail(args), &Filter::default())
            }
        }
    }
}

fn analyse(
    mut pipeline: Pipeline,
    (rounds, freed): (&Receiver<Round>, &Sender<Vec<u8>>),
    progress: &Progress,
    mailbox: Option<&Mailbox>,
) -> Pipeline {
    let mut due = Instant::now();
    loop {
        if let (Some(mailbox), true) = (mailbox, Instant::now() >= due) {
            let begun = Instant::now();
            mailbox.serve(&mut pipeline);
            due = Instant::now() + begun.elapsed() * ROUNDS_TO_ANSWERS;
        }
        let round = match mailbox {
            Some(_) => rounds.recv_timeout(TICK),
            None => rounds.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let round = match round {
            Ok(round) => round,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let bytes = round.bytes.len();
        pipeline.push(round);
        progress.in_flight.fetch_sub(bytes, Ordering::Relaxed);
        progress.waits.store(pipeline.waits(), Ordering::Relaxed);
        progress.lost.store(pipeline.lost(), Ordering::Relaxed);
        // When nobody wants buffers any more, recording has ended.
        pipeline.spare_buffer().into_iter().for_each(|bytes| drop(freed.send(bytes)));
    }
    pipeline.finish();
    pipeline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_that_falls_behind_gets_no_more_rounds() {
        let ((rounds, to_analyse), (_, spare)) = (channel(), channel());
        let progress = Arc::new(Progress::begin(1));
        let spare = Arc::new(Mutex::new(spare));
        let listener = Listener { rounds, spare, progress: Arc::clone(&progress) };
        let round = |bytes| Round { bytes: vec![0; bytes], ..Round::default() };
        // Nobody takes them.
        assert_eq!(listener.listen(round(IN_FLIGHT)), None);
        assert!(!progress.is_behind());
        assert_eq!(listener.listen(round(1)), Some(vec![0]));
        assert!(progress.is_behind());
        // Once given up, always: a hole in the rounds would be one in the numbers.
        assert_eq!(to_analyse.recv().map(|round: Round| round.bytes.len()), Ok(IN_FLIGHT));
        progress.in_flight.store(0, Ordering::Relaxed);
        assert_eq!(listener.listen(round(1)), Some(vec![0]));
        assert!(to_analyse.try_recv().is_err());
    }
}
