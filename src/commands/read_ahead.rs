//! A recording read by a thread of its own, while the rounds before are being worked on.
//!
//! In: an opened recording. Out: its rounds in order, their records dated; at the end what went wrong.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::cli::messages::{self, Failure};
use crate::decode::Stamps;
use crate::order::Dated;
use crate::recording::ReadError;
use crate::source::{Replay, Round};

/// Pieces of rounds, of 4 MiB at the most, that may wait: reading is faster than what follows, and what
/// waits is memory.
const AHEAD: usize = 2;

/// Reading that takes longer than this shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// A recording on its way.
pub(super) struct ReadAhead {
    rounds: Receiver<Dated>,
    spare: Sender<Vec<u8>>,
    thread: JoinHandle<(Replay, Result<(), ReadError>)>,
    progress: Progress,
}

impl ReadAhead {
    /// Begins to read records that `stamps` can date.
    pub(super) fn start(replay: Replay, stamps: Stamps) -> io::Result<ReadAhead> {
        let (to_work, rounds) = sync_channel(AHEAD);
        let (spare, free) = channel();
        let progress = Progress::new(replay.len());
        let body = move || read(replay, &stamps, &to_work, &free);
        let thread = thread::Builder::new().name("lockprof-read".into()).spawn(body)?;
        Ok(ReadAhead { rounds, spare, thread, progress })
    }

    /// The next round; `None` at the end of what can be read.
    pub(super) fn next(&mut self) -> Option<Dated> {
        let round = self.rounds.recv().ok()?;
        self.progress.show(round.bytes() as u64);
        Some(round)
    }

    /// Gives back a buffer that is free.
    pub(super) fn give_back(&self, bytes: Vec<u8>) {
        // When everything is read, nobody needs it.
        let _ = self.spare.send(bytes);
    }

    /// Whether all could be read; warns of what could not.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let ended = self.thread.join();
        let (replay, result) = ended.map_err(|_| anyhow!("the reading thread panicked"))?;
        result.context("cannot read the recording")?;
        replay.warnings().iter().for_each(messages::warn);
        Ok(())
    }
}

fn read(
    mut replay: Replay,
    stamps: &Stamps,
    to_work: &SyncSender<Dated>,
    free: &Receiver<Vec<u8>>,
) -> (Replay, Result<(), ReadError>) {
    loop {
        let bytes = free.try_recv().unwrap_or_default();
        let mut round = Round { bytes, ..Round::default() };
        match replay.next_round(&mut round) {
            // Nobody listens any more: something else went wrong.
            Ok(true) if to_work.send(Dated::new(round, stamps)).is_err() => {
                return (replay, Ok(()));
            }
            Ok(true) => {}
            Ok(false) => return (replay, Ok(())),
            Err(error) => return (replay, Err(error)),
        }
    }
}

/// How far the reading is, once it takes long.
struct Progress {
    begun: Instant,
    shown: Instant,
    done: u64,
    len: u64,
}

impl Progress {
    fn new(len: u64) -> Progress {
        let now = Instant::now();
        Progress { begun: now, shown: now, done: 0, len }
    }

    fn show(&mut self, bytes: u64) {
        self.done += bytes;
        let due = self.begun.elapsed() > PATIENCE && self.shown.elapsed() > PATIENCE / 5;
        if due && self.len > 0 {
            let percent = (100 * self.done / self.len).min(100);
            let bar = "#".repeat(percent as usize / 4);
            messages::status(format_args!("reading [{bar:<25}] {percent} %"));
            self.shown = Instant::now();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown != self.begun {
            messages::clear_status();
        }
    }
}
