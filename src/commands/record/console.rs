//! The terminal of a command that runs behind a screen.
//!
//! ```text
//!   command <──pty──> reader ──> spool, picture          while the screen is shown
//!                       `──────> stdout                  afterwards: the spool first, then what comes
//! ```
//!
//! What a command prints is on stdout in the end, all of it and in order.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ratatui::text::Line;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::tui::Output;

/// How long the reader sleeps when nothing comes.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// Where what is read goes.
#[derive(Debug)]
struct Sink {
    spool: File,
    picture: Output,
    /// The screen is gone: stdout gets everything.
    through: bool,
}

/// A terminal.
#[derive(Debug)]
pub(super) struct Console {
    controller: File,
    user: OwnedFd,
    sink: Arc<Mutex<Sink>>,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Console {
    /// A terminal of this many columns and lines.
    pub(super) fn open(columns: u16, lines: u16) -> io::Result<Console> {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let name = ptsname(&controller, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let user = open(name.as_c_str(), flags, Mode::empty())?;
        let controller = File::from(controller);
        let picture = Output::new(columns, lines);
        let sink = Sink { spool: spool()?, picture, through: false };
        let (sink, over) = (Arc::new(Mutex::new(sink)), Arc::new(AtomicBool::new(false)));
        let reader = {
            let (controller, sink, over) =
                (controller.try_clone()?, Arc::clone(&sink), Arc::clone(&over));
            let body = move || read(controller, &sink, &over);
            thread::Builder::new().name("lockprof-output".into()).spawn(body)?
        };
        let console = Console { controller, user, sink, over, reader: Some(reader) };
        console.resize(columns, lines);
        Ok(console)
    }

    /// The command's side of it.
    pub(super) fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    /// What it shows.
    pub(super) fn lines(&self) -> Vec<Line<'static>> {
        lock(&self.sink).picture.lines()
    }

    /// Keys for the command. One that does not read them loses them.
    pub(super) fn type_in(&self, keys: &[u8]) {
        let _ = (&self.controller).write_all(keys);
    }

    /// It has this many columns and lines now.
    pub(super) fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        // The command is told; where that fails it prints as before.
        let _ = tcsetwinsize(&self.user, size);
        lock(&self.sink).picture.resize(columns, lines);
    }

    /// The screen is gone: prints what came until now, and from here on what comes.
    pub(super) fn pass_through(&self) {
        let mut sink = lock(&self.sink);
        if !std::mem::replace(&mut sink.through, true) {
            // Whoever closed stdout does not want it.
            let _ = copy_out(&mut sink.spool);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // A reader that panicked has nothing left to print.
            let _ = reader.join();
        }
        self.pass_through();
    }
}

fn lock(sink: &Mutex<Sink>) -> MutexGuard<'_, Sink> {
    sink.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file without a name: beside other temporary files, in memory where that cannot be.
fn spool() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let unnamed = open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR);
    let file = unnamed.or_else(|_| memfd_create("lockprof-output", MemfdFlags::CLOEXEC))?;
    Ok(File::from(file))
}

fn copy_out(spool: &mut File) -> io::Result<()> {
    spool.seek(SeekFrom::Start(0))?;
    let mut out = io::stdout().lock();
    io::copy(spool, &mut out)?;
    out.flush()
}

/// Reads until the command and all that it started have closed their side, or until it is over and
/// nothing is left.
fn read(mut controller: File, sink: &Mutex<Sink>, over: &AtomicBool) {
    let mut bytes = vec![0; CHUNK];
    loop {
        let was_over = over.load(Ordering::Relaxed);
        let mut polled = [PollFd::new(&controller, PollFlags::IN)];
        let ready = poll(&mut polled, Some(&TICK)).unwrap_or(0) > 0;
        if !ready && was_over {
            return;
        }
        if !ready {
            continue;
        }
        match controller.read(&mut bytes) {
            Ok(count) if count > 0 => take(&mut lock(sink), &bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO: nobody has the other side open.
            _ => return,
        }
    }
}

fn take(sink: &mut Sink, bytes: &[u8]) {
    if sink.through {
        let mut out = io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
        return;
    }
    sink.picture.take(bytes);
    // On a full disk the end of what was printed is missing; the recording is worth more.
    let _ = sink.spool.write_all(bytes);
}
