//! A recording read by a thread of its own, while the rounds before are being worked on.
//!
//! In: an opened recording. Out: its records in order of time; at the end what went wrong.

use std::cell::Cell;
use std::io;
use std::iter;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::cli::messages::{self, Failure};
use crate::order::{Dated, Dater, Order, Ordered};
use crate::recording::ReadError;
use crate::source::{Replay, Round};

/// Groups of records, a MiB or two each, that may wait: reading is faster than what follows, and what waits
/// is memory.
const AHEAD: usize = 12;

/// Reading that takes longer than this shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// A recording on its way.
pub(super) struct ReadAhead {
    records: Receiver<Ordered>,
    spare: Sender<Vec<u8>>,
    thread: JoinHandle<(Replay, Result<(), ReadError>)>,
    progress: Progress,
}

impl ReadAhead {
    /// Begins to read records that `dater` can date.
    pub(super) fn start(replay: Replay, dater: Dater) -> io::Result<ReadAhead> {
        let (to_work, records) = sync_channel(AHEAD);
        let (spare, free) = channel();
        let progress = Progress::new(replay.len());
        let body = move || read(replay, dater, &to_work, &free);
        let thread = thread::Builder::new().name("lockprof-read".into()).spawn(body)?;
        Ok(ReadAhead { records, spare, thread, progress })
    }

    /// The next records; `None` at the end of what can be read.
    pub(super) fn next(&mut self) -> Option<Ordered> {
        let ordered = self.records.recv().ok()?;
        self.progress.show(ordered.taken());
        Some(ordered)
    }

    /// Gives back the buffers that are free.
    pub(super) fn give_back(&self, free: impl FnMut() -> Option<Vec<u8>>) {
        // When everything is read, nobody needs them.
        iter::from_fn(free).for_each(|bytes| drop(self.spare.send(bytes)));
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
    mut dater: Dater,
    to_work: &SyncSender<Ordered>,
    free: &Receiver<Vec<u8>>,
) -> (Replay, Result<(), ReadError>) {
    let mut order = Order::default();
    let listening = Cell::new(true);
    let mut hand_on = |ordered| listening.set(to_work.send(ordered).is_ok());
    // When nobody listens any more, something else went wrong.
    let result = loop {
        let bytes = free.try_recv().unwrap_or_default();
        let mut round = Round { bytes, ..Round::default() };
        match replay.next_round(&mut round) {
            Ok(true) if listening.get() => order.push(Dated::new(round, &mut dater), &mut hand_on),
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    order.finish(&mut hand_on);
    (replay, result)
}

/// How far the reading is, once it takes long.
struct Progress {
    begun: Instant,
    shown: Instant,
    len: u64,
}

impl Progress {
    fn new(len: u64) -> Progress {
        let now = Instant::now();
        Progress { begun: now, shown: now, len }
    }

    /// So many bytes were read.
    fn show(&mut self, done: u64) {
        let due = self.begun.elapsed() > PATIENCE && self.shown.elapsed() > PATIENCE / 5;
        if due && self.len > 0 {
            let percent = (100 * done / self.len).min(100);
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
