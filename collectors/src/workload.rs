//! The command to record: started, held back until the events are open, released, waited for.
//!
//! ```text
//!   Workload::start      stub: exec_stub()                the gate: a socket pair
//!        |  spawn  ------->  |
//!        |  <-- one byte: it is there (its own exec is over, which would enable the events)
//!   events are opened    waits for a byte  <------+
//!   release: one byte  ---------------------------+
//!        |                   exec the command: its end closes | failed: sends the errno
//!        |  <-- end of file: the command runs   <-- 4 bytes: errno
//! ```
//!
//! In: the stub's command line and the command. Out: a pid to open events on with `enable_on_exec`,
//! a pidfd to poll, and an exit status as a shell gives it. The stub is this program itself, called
//! again, because a process that is held back between fork and exec would need unsafe code.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, pidfd_open, pidfd_send_signal};

use crate::perf::take_inherited;

/// Why the command could not be started or waited for.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// No command was given.
    #[error("no command to run")]
    Empty,
    /// The command could not be executed.
    #[error("cannot run {}: {source}", .program.to_string_lossy())]
    Exec {
        /// As typed.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The stub could not be started, or the way to it broke.
    #[error("cannot start the command: {0}")]
    Stub(#[source] io::Error),
    /// Its end could not be learnt.
    #[error("cannot wait for the command: {0}")]
    Wait(#[source] io::Error),
    /// It could not be signalled.
    #[error("cannot send signal {signal} to the command: {source}")]
    Signal {
        /// Its number.
        signal: i32,
        /// Why.
        source: io::Error,
    },
}

impl WorkloadError {
    /// The status that a shell gives for it: 127 not found, 126 not executable; 125 our own failure.
    pub fn exit_status(&self) -> i32 {
        match self {
            WorkloadError::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            WorkloadError::Exec { .. } => 126,
            _ => 125,
        }
    }
}

/// Held while a stub's end of its gate can be inherited, so that no other stub keeps it open.
static STARTING: Mutex<()> = Mutex::new(());

/// A command that waits to be released, runs, or has ended.
///
/// Dropped before its release, the stub is ended and reaped and the command never runs. Dropped
/// after it, the command goes on.
#[derive(Debug)]
pub struct Workload {
    program: OsString,
    child: Child,
    pidfd: OwnedFd,
    gate: Option<UnixStream>,
    /// What our terminal sends does not reach it.
    own_terminal: bool,
}

impl Workload {
    /// Starts `stub... FD command...`, where the stub calls [`exec_stub`] with FD and the command.
    pub fn start(stub: &[OsString], command: &[OsString]) -> Result<Workload, WorkloadError> {
        Workload::start_on(stub, command, None)
    }

    /// The same with a terminal of its own as stdin, stdout and stderr.
    pub fn start_on(
        stub: &[OsString],
        command: &[OsString],
        terminal: Option<BorrowedFd<'_>>,
    ) -> Result<Workload, WorkloadError> {
        let program = command.first().ok_or(WorkloadError::Empty)?.clone();
        let (stub_program, stub_args) = stub.split_first().ok_or(WorkloadError::Empty)?;
        let (mut ours, theirs) = UnixStream::pair().map_err(WorkloadError::Stub)?;
        // Between the next line and the end of `theirs` any process started here inherits it.
        let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(|e| WorkloadError::Stub(e.into()))?;
        let mut stub = Command::new(stub_program);
        stub.args(stub_args).arg(theirs.as_raw_fd().to_string()).args(command);
        if let Some(terminal) = terminal {
            let user = || terminal.try_clone_to_owned().map_err(WorkloadError::Stub);
            stub.stdin(user()?).stdout(user()?).stderr(user()?);
        }
        let mut child = stub.spawn().map_err(WorkloadError::Stub)?;
        drop(theirs);
        let there = ours.read_exact(&mut [0]).and_then(|()| pidfd_of(&child));
        match there {
            Ok(pidfd) => {
                let own_terminal = terminal.is_some();
                Ok(Workload { program, child, pidfd, gate: Some(ours), own_terminal })
            }
            Err(error) => {
                end(&mut child);
                Err(WorkloadError::Stub(error))
            }
        }
    }

    /// The command's process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Readable when the command has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Lets the command run. Comes back when it was executed, or tells why it could not be.
    pub fn release(&mut self) -> Result<(), WorkloadError> {
        let Some(mut gate) = self.gate.take() else { return Ok(()) };
        // A stub that was killed meanwhile has closed its end: its status says so later.
        if let Err(error) = gate.write_all(&[1]) {
            return if is_closed(&error) { Ok(()) } else { Err(WorkloadError::Stub(error)) };
        }
        let mut errno = [0; 4];
        match gate.read_exact(&mut errno) {
            Err(error) if is_closed(&error) => Ok(()),
            Err(error) => Err(WorkloadError::Stub(error)),
            Ok(()) => {
                let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                self.wait()?;
                Err(WorkloadError::Exec { program: self.program.clone(), source })
            }
        }
    }

    /// The status if the command has ended: its own, or 128 and the signal that killed it.
    pub fn try_wait(&mut self) -> Result<Option<i32>, WorkloadError> {
        Ok(self.child.try_wait().map_err(WorkloadError::Wait)?.map(shell_status))
    }

    /// Waits for the command to end and gives its status as [`Workload::try_wait`].
    pub fn wait(&mut self) -> Result<i32, WorkloadError> {
        self.child.wait().map(shell_status).map_err(WorkloadError::Wait)
    }

    /// Passes on a signal that this process received. What the terminal sent (SIGINT, SIGQUIT, SIGHUP
    /// to its foreground group) has reached the command already and is not sent twice. A command that
    /// has ended gets nothing; that is no error.
    pub fn forward(&self, signal: i32) -> Result<(), WorkloadError> {
        let by_terminal = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP].contains(&signal);
        if by_terminal && !self.own_terminal && in_foreground() {
            return Ok(());
        }
        self.signal(signal)
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: i32) -> Result<(), WorkloadError> {
        let error = |source| WorkloadError::Signal { signal, source };
        let named = Signal::from_named_raw(signal)
            .ok_or_else(|| error(io::Error::from_raw_os_error(libc::EINVAL)))?;
        match pidfd_send_signal(&self.pidfd, named) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(error(errno.into())),
        }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            end(&mut self.child);
        }
    }
}

/// Ends a stub and reaps it. That fails only when it has been reaped already.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn pidfd_of(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Whether this process, and with it the command, is in the foreground of its terminal.
fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn shell_status(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(125)
}

/// Makes the terminal of stdin that of a session of its own, so that its keys can interrupt and stop
/// what runs there. For the stub, before [`exec_stub`].
pub fn own_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::ioctl_tiocsctty(io::stdin())?)
}

/// The stub's whole work: waits at the gate, then becomes the command. Comes back only with an error,
/// which the one who released it has been told too.
///
/// To be called first thing in `main`, on the main thread: it takes over the inherited fd `gate`, and
/// events that were opened on the process follow the main thread only.
pub fn exec_stub(gate: RawFd, command: &[OsString]) -> io::Error {
    let mut gate = match wait_at(gate) {
        Ok(gate) => gate,
        Err(error) => return error,
    };
    let (program, args) = match command.split_first() {
        Some((program, args)) => (program.as_os_str(), args),
        None => (OsStr::new(""), command),
    };
    let error = Command::new(program).args(args).exec();
    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
    // If the other side is gone, nobody wants to know.
    let _ = gate.write_all(&errno.to_ne_bytes());
    error
}

fn wait_at(gate: RawFd) -> io::Result<UnixStream> {
    let mut gate = UnixStream::from(take_inherited(gate)?);
    // Its closing tells that the command was executed; the command itself must not see it.
    fcntl_setfd(&gate, FdFlags::CLOEXEC)?;
    gate.write_all(&[1])?;
    gate.read_exact(&mut [0])?;
    Ok(gate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stub in shell: bash reads from and execs with any inherited fd as ours does.
    fn stub() -> Vec<OsString> {
        let script =
            r#"fd=$1; shift; printf . >&"$fd"; read -r -N1 -u "$fd" || exit 9; exec "$@" {fd}>&-"#;
        ["bash", "-c", script, "stub"].map(OsString::from).to_vec()
    }

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn status_of(words: &[&str]) -> i32 {
        let mut workload = Workload::start(&stub(), &command(words)).unwrap();
        assert_eq!(workload.try_wait().unwrap(), None, "it waits at the gate");
        workload.release().unwrap();
        workload.wait().unwrap()
    }

    #[test]
    fn the_status_is_the_commands_own_or_128_and_its_signal() {
        assert_eq!(status_of(&["true"]), 0);
        assert_eq!(status_of(&["sh", "-c", "exit 3"]), 3);
        assert_eq!(status_of(&["sh", "-c", "kill -TERM $$"]), 128 + 15);
    }

    #[test]
    fn a_command_that_is_dropped_before_its_release_never_runs_and_leaves_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let workload = Workload::start(&stub(), &command(&["touch", mark.to_str().unwrap()]));
        let pid = workload.as_ref().unwrap().pid();
        drop(workload);
        assert!(!mark.exists());
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "not even a zombie");
    }

    #[test]
    fn a_signal_reaches_the_command_and_one_to_an_ended_command_is_no_error() {
        let mut workload = Workload::start(&stub(), &command(&["sleep", "60"])).unwrap();
        workload.release().unwrap();
        workload.forward(libc::SIGTERM).unwrap();
        assert_eq!(workload.wait().unwrap(), 128 + 15);
        workload.signal(libc::SIGTERM).unwrap();
        assert!(workload.signal(9999).is_err());
    }

    #[test]
    fn no_command_and_no_stub_are_errors_of_their_own() {
        assert!(matches!(Workload::start(&stub(), &[]), Err(WorkloadError::Empty)));
        let missing = Workload::start(&command(&["/no/such/stub"]), &command(&["true"]));
        assert_eq!(missing.unwrap_err().exit_status(), 125);
        let no_stub = Workload::start(&command(&["true"]), &command(&["true"]));
        assert!(matches!(no_stub, Err(WorkloadError::Stub(_))), "it ends without a word");
    }

    #[test]
    fn a_gate_that_is_no_fd_is_an_error() {
        for fd in [-1, 0, 2, 99_999] {
            let error = exec_stub(fd, &command(&["true"]));
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "fd {fd}");
        }
    }
}
