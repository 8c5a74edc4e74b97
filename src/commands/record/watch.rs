//! What ends a recording: its command or processes, a signal, the time, or the recorder itself.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use lockprof_collectors::workload::Workload;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::analysis::Analysis;
use crate::cli::messages::{self, Failure};
use crate::cli::plan::Target;
use crate::model::Nanos;
use crate::render::units;

/// How often the status line changes.
const TICK: Duration = Duration::from_millis(500);

/// How long lockprof waits for a command that was interrupted with it.
const GRACE: Duration = Duration::from_secs(2);

/// Why recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The command ended with this status.
    Command(i32),
    /// All processes ended.
    Processes,
    /// This signal came.
    Signal(i32),
    /// The time was over.
    Time,
    /// The user closed the screen.
    Quit,
    /// The recorder could not go on.
    Recorder,
}

impl Ended {
    /// The command's status, when it ended.
    pub(super) fn status(self) -> Option<i32> {
        match self {
            Ended::Command(status) => Some(status),
            _ => None,
        }
    }
}

/// Signals, each a byte in a socket of its own.
#[derive(Debug)]
struct Signals {
    sockets: Vec<(i32, UnixStream)>,
}

impl Signals {
    fn catch() -> std::io::Result<Signals> {
        let one = |signal| {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            pipe::register(signal, writer)?;
            Ok::<_, std::io::Error>((signal, reader))
        };
        let mut sockets = vec![one(SIGINT)?, one(SIGTERM)?];
        // A shell starts what runs in the background of a script without SIGINT, which is the signal
        // to end a recording there; but whoever ignores SIGHUP (nohup) wants it to go on.
        if !is_ignored(SIGHUP) {
            sockets.push(one(SIGHUP)?);
        }
        Ok(Signals { sockets })
    }

    /// A signal that came and was not taken yet.
    fn take(&mut self) -> Option<i32> {
        self.sockets.iter_mut().find_map(|(signal, socket)| {
            socket.read(&mut [0]).is_ok_and(|bytes| bytes > 0).then_some(*signal)
        })
    }
}

/// Whether this process was started with a signal ignored: `SigIgn` of proc_pid_status(5), bit
/// n - 1 for signal n.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Waits for the end.
#[derive(Debug)]
pub(super) struct Watch {
    signals: Signals,
    processes: Vec<OwnedFd>,
    begun: Instant,
    until: Option<Instant>,
    /// Nothing is said meanwhile.
    silent: bool,
}

impl Watch {
    /// From here on signals no longer end lockprof by themselves.
    pub(super) fn new(target: &Target) -> Result<Watch, Failure> {
        let signals = Signals::catch().context("cannot catch signals")?;
        let pids = match target {
            Target::Processes(pids) => pids.as_slice(),
            _ => &[],
        };
        // A process that is not there is found when events are opened on it.
        let open = |&pid: &i32| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
        Ok(Watch {
            signals,
            processes: pids.iter().filter_map(open).collect(),
            begun: Instant::now(),
            until: None,
            silent: false,
        })
    }

    /// Without a status line.
    pub(super) fn silent(self) -> Watch {
        Watch { silent: true, ..self }
    }

    /// Recording has begun; it is to end after `duration`.
    pub(super) fn begin(&mut self, duration: Option<Nanos>) {
        self.begun = Instant::now();
        self.until = duration.map(|duration| self.begun + Duration::from_nanos(duration.0));
    }

    /// Waits until recording has to end. `recorder` hangs up when the recorder ends by itself.
    pub(super) fn wait(
        &mut self,
        mut workload: Option<&mut Workload>,
        analysis: &Analysis,
        recorder: &UnixStream,
    ) -> Result<Ended, Failure> {
        loop {
            if let Some(ended) = self.check(workload.as_deref_mut(), recorder, TICK)? {
                return Ok(ended);
            }
            self.show(analysis);
        }
    }

    /// Whether recording has to end, after a pause at the most.
    pub(super) fn check(
        &mut self,
        workload: Option<&mut Workload>,
        recorder: &UnixStream,
        pause: Duration,
    ) -> Result<Option<Ended>, Failure> {
        let command = workload.as_ref().map(|workload| workload.pidfd());
        let mut ready = vec![recorder.as_fd()];
        ready.extend(command);
        let pause = self.until.map_or(pause, |until| until - Instant::now()).min(pause);
        let awake = self.poll(&ready, pause)?;
        if let Some(signal) = self.signals.take() {
            if let Some(workload) = workload {
                workload.forward(signal)?;
            }
            return Ok(Some(Ended::Signal(signal)));
        }
        if let Some(workload) = workload
            && let Some(status) = workload.try_wait()?
        {
            return Ok(Some(Ended::Command(status)));
        }
        if awake.contains(&0) {
            return Ok(Some(Ended::Recorder));
        }
        if self.processes_ended()? {
            return Ok(Some(Ended::Processes));
        }
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        Ok(is_over.then_some(Ended::Time))
    }

    /// Waits for a command that goes on after the recording has ended, and gives the status to end
    /// with. One that was interrupted has two seconds; another signal ends it.
    pub(super) fn wait_for_command(
        &mut self,
        workload: Option<Workload>,
        ended: &Ended,
    ) -> Result<u8, Failure> {
        let Some(mut workload) = workload else { return Ok(0) };
        if let Ended::Command(status) = ended {
            return Ok(*status as u8);
        }
        if matches!(ended, Ended::Time | Ended::Quit) && workload.try_wait()?.is_none() {
            messages::note("the recording is finished; the command goes on");
        }
        let grace = matches!(ended, Ended::Signal(_)).then(|| Instant::now() + GRACE);
        loop {
            if let Some(status) = workload.try_wait()? {
                return Ok(status as u8);
            }
            if let (Some(grace), Ended::Signal(signal)) = (grace, ended)
                && Instant::now() >= grace
            {
                let pid = workload.pid();
                messages::note(format_args!("the command still runs, as process {pid}"));
                return Ok((128 + signal) as u8);
            }
            let pidfd = workload.pidfd();
            self.poll(&[pidfd], TICK)?;
            match (self.signals.take(), grace) {
                (Some(_), Some(_)) => workload.signal(SIGTERM)?,
                (Some(signal), None) => workload.forward(signal)?,
                (None, _) => {}
            }
        }
    }

    /// Waits for one of `fds` or a signal. Gives the indexes of fds that are ready.
    fn poll(&self, fds: &[BorrowedFd<'_>], pause: Duration) -> Result<Vec<usize>, Failure> {
        let signals = self.signals.sockets.iter().map(|(_, socket)| socket.as_fd());
        let all = fds.iter().copied().chain(signals);
        let mut polled: Vec<PollFd<'_>> =
            all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let pause =
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        match poll(&mut polled, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(anyhow::Error::new(error).context("cannot wait").into()),
        }
        let ready = |index: &usize| !polled[*index].revents().is_empty();
        Ok((0..fds.len()).filter(ready).collect())
    }

    fn processes_ended(&mut self) -> Result<bool, Failure> {
        if self.processes.is_empty() {
            return Ok(false);
        }
        let fds: Vec<BorrowedFd<'_>> = self.processes.iter().map(AsFd::as_fd).collect();
        Ok(self.poll(&fds, Duration::ZERO)?.len() == fds.len())
    }

    fn show(&self, analysis: &Analysis) {
        if self.silent {
            return;
        }
        let (waits, lost) = analysis.progress().counts();
        let elapsed = units::time(Nanos(self.begun.elapsed().as_nanos() as u64));
        let waits = units::counted(waits, "wait");
        messages::status(format_args!("recording: {elapsed}, {waits}, {lost} lost"));
    }
}
