//! `lockprof record`: from a plan to a finished recording and its summary.
//!
//! ```text
//!   main      plan, open, release the command ── waits: its end, Ctrl-C, the time ── stop ── summary
//!   recorder                                   rings ──> file ──> rounds
//!   pipeline                                                        └──> tables, while they come
//! ```
//!
//! The recorder never waits for the pipeline: when that falls too far behind it gets no more rounds,
//! and the summary is made from the file.

mod analysis;
mod before;
mod console;
mod cost;
mod ending;
pub(super) mod machine;
pub(super) mod mailbox;
mod screen;
mod summary;
mod watch;

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow};
use lockprof_collectors::attach;
use lockprof_collectors::perf::session::{Session, SessionError};
use lockprof_collectors::procfs::tracefs::TracefsError;
use lockprof_collectors::workload::Workload;

use self::analysis::{Analysis, Listener};
use self::screen::Screened;
use self::watch::Watch;
use super::tui::live::detail as screen_detail;
use super::{flamegraph, output};
use crate::analyse::Detail;
use crate::cli::args::{EXEC_STUB, OWN_TERMINAL, RecordArgs};
use crate::cli::checks;
use crate::cli::messages::{self, Failure, STATUS_OF_RECORD};
use crate::cli::plan::{RecordPlan, Target};
use crate::model::Timestamp;
use crate::recording::{Old, Origin, Writer};
use crate::report::Report;
use crate::source::{Mappings, Recorded, Recorder};

pub(super) use summary::draw;

pub(super) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let status = if args.command.is_empty() { 2 } else { STATUS_OF_RECORD };
    let outcome = record(args).map_err(|failure| failure.or_status(status))?;
    summary::print(args, &outcome).map_err(|failure| failure.or_status(status))?;
    Ok(ExitCode::from(outcome.status))
}

/// A finished recording.
pub(super) struct Outcome {
    /// The answer to the summary's question.
    pub(super) report: Report,
    /// The same with stacks, when a picture was asked for.
    pub(super) picture: Option<Report>,
    /// The exit status to end with.
    pub(super) status: u8,
}

/// Records as the arguments say. When this comes back the file is finished.
pub(super) fn record(args: &RecordArgs) -> Result<Outcome, Failure> {
    let mut plan = plan(args)?;
    let live = Screened::of(args, &plan.target)?;
    let mut workload = start_command(&plan.target, live.as_ref().and_then(Screened::terminal))?;
    let mut watch = Watch::new(&plan.target)?;
    let measured = before::measure_floor(&plan);
    let mut session = open(&mut plan, workload.as_ref())?;
    let floor = before::floor(measured);
    let origin = before::origin(&plan, &session, workload.as_ref(), floor);
    let (detail, mailbox) = (summary::detail(args), live.as_ref().map(Screened::mailbox));
    let detail = if live.is_some() {
        Detail { user_stacks: detail.user_stacks, ..screen_detail() }
    } else {
        detail
    };
    let ((writer, old), analysis) = meanwhile_held(&mut session, || {
        Ok((create(&args.output, &origin, &plan)?, Analysis::start(&origin, detail, mailbox)?))
    })?;
    let since = enable(&session, &plan)?;
    let mut mappings = Mappings::new(plan.events[0].attr.sample_type);
    let first = before::records(&plan, &origin, &mut mappings);
    let mut recorder = Recorder::new(session, writer, Some(mappings)).since(since);
    analysis.listener().listen(recorder.begin(first)?);
    let (stop, stopped) = UnixStream::pair().context("cannot make a socket")?;
    let thread = spawn(recorder, stopped, analysis.listener())?;
    if let Err(failure) = release(workload.as_mut()) {
        drop(stop);
        discard(thread, &args.output);
        return Err(failure);
    }
    keep(old, &args.output);
    watch.begin(args.duration);
    let ended = match &live {
        Some(live) => live.watch(&mut watch, workload.as_mut(), &analysis, &stop)?,
        None => watch.wait(workload.as_mut(), &analysis, &stop)?,
    };
    drop(stop);
    let recorded = thread.join().map_err(|_| anyhow!("the recorder panicked"))?;
    messages::clear_status();
    let cost = analysis.progress().cost();
    let (end, failure) = ending::finish(cost, &plan, recorded, ended.status())?;
    let pipeline = analysis.finish(end, args)?;
    let picture = args.svg.as_ref().map(|_| pipeline.report(&flamegraph::query()));
    let status = watch.wait_for_command(workload, &ended)?;
    drop(live);
    match failure {
        Some(failure) => {
            let hint = checks::hint(&failure);
            Err(Failure::new(failure).hint(hint).or_status(STATUS_OF_RECORD))
        }
        None => Ok(Outcome { report: pipeline.report(&summary::query()), picture, status }),
    }
}

/// What is to be recorded. That it is less than one might expect is said before anything else is shown.
fn plan(args: &RecordArgs) -> Result<RecordPlan, Failure> {
    let plan = RecordPlan::new(args).map_err(summary::explain_plan)?;
    if plan.tracefs.is_none() && !args.cpu_only {
        let missing = TracefsError::NotMounted;
        let text = format!("{missing}: only CPU samples are recorded");
        messages::warn_with_hint(text, checks::hint(&missing));
    }
    Ok(plan)
}

/// Starts the command and holds it back until everything else is open.
fn start_command(
    target: &Target,
    terminal: Option<BorrowedFd<'_>>,
) -> Result<Option<Workload>, Failure> {
    let Target::Command(command) = target else { return Ok(None) };
    let program = std::env::current_exe().context("cannot find the own program")?;
    let mut stub = vec![program.into(), EXEC_STUB.into()];
    stub.extend(terminal.map(|_| OWN_TERMINAL.into()));
    let command: Vec<_> = command.iter().map(Into::into).collect();
    Ok(Some(Workload::start_on(&stub, &command, terminal)?))
}

fn release(workload: Option<&mut Workload>) -> Result<(), Failure> {
    let Some(workload) = workload else { return Ok(()) };
    workload.release().map_err(|error| {
        let (status, hint) = (error.exit_status() as u8, checks::hint(&error));
        Failure::new(error).hint(hint).status(status)
    })
}

/// Opens the events on the target; on everything when they are too many for each of its threads and that
/// is allowed, and with smaller rings when no more memory may be locked.
fn open(plan: &mut RecordPlan, workload: Option<&Workload>) -> Result<Session, Failure> {
    let mut opened = open_on_target(plan, workload);
    while matches!(opened, Err(SessionError::LockedMemory { .. })) && plan.halve_rings() {
        opened = open_on_target(plan, workload);
    }
    if plan.follow.is_some()
        && matches!(&opened, Err(SessionError::Syscall(refused)) if refused.is_denied())
    {
        plan.follow_tasks();
        opened = open_on_target(plan, workload);
    }
    plan.note_small_rings();
    let opened = match (opened, &plan.target) {
        (
            Err(SessionError::TooManyFiles { limit, .. }),
            Target::Command(_) | Target::Processes(_),
        ) if plan.follow.is_none() => {
            plan.follow = Some(format!("its events need more than {limit} open files"));
            open_on_target(plan, workload)
        }
        (opened, _) => opened,
    };
    let session = opened.map_err(summary::explain_session)?;
    if session.narrowed() {
        plan.note_narrowed();
    }
    Ok(session)
}

fn open_on_target(
    plan: &mut RecordPlan,
    workload: Option<&Workload>,
) -> Result<Session, SessionError> {
    match &plan.target {
        Target::Processes(pids) if !plan.everything() => {
            let attached = attach::attach(&plan.session(Vec::new()), pids)?;
            if attached.threads == 0 {
                return Err(SessionError::NoSuchTask { tasks: pids.clone() });
            }
            if !attached.complete {
                plan.notes.push("threads came faster than they could be attached to".into());
            }
            Ok(attached.session)
        }
        _ => {
            let tasks = workload.map(Workload::pid).into_iter().collect();
            Session::open(&plan.session(tasks))
        }
    }
}

/// Does what takes a tenth of a second. Processes that were attached to are recorded already, and must
/// not fill their rings meanwhile.
fn meanwhile_held<T>(
    session: &mut Session,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (done, wait) = UnixStream::pair().context("cannot make a socket")?;
    thread::scope(|scope| {
        let holder = scope.spawn(move || session.hold_until(wait.as_fd()));
        let made = work();
        drop(done);
        match holder.join() {
            Ok(held) => held.map_err(summary::explain_session)?,
            Err(_) => return Err(anyhow!("the holder of the rings panicked").into()),
        }
        made
    })
}

/// Starts recording, where neither an exec nor attaching did. Gives the moment from which on every CPU
/// records every event; where that is not known, the beginning of time.
fn enable(session: &Session, plan: &RecordPlan) -> Result<Timestamp, Failure> {
    if !plan.everything() && plan.cgroup.is_none() {
        session.enable_everywhere().map_err(summary::explain_session)?;
        return Ok(Timestamp(0));
    }
    session.enable().map_err(summary::explain_session)?;
    Ok(plan.clockid.and_then(before::now).unwrap_or(Timestamp(0)))
}

/// Makes the file; one that stood there is put aside.
fn create(path: &Path, origin: &Origin, plan: &RecordPlan) -> Result<(Writer, Old), Failure> {
    let tracing = before::tracing_data(plan).context("cannot describe the tracepoints")?;
    let old = Old::put_aside(path).map_err(|error| output::not_written(path, error))?;
    let created = Writer::create(path, origin, &tracing);
    Ok((created.map_err(|error| output::not_written(path, error))?, old))
}

/// The new recording has begun: the one that stood there is an old one now.
fn keep(old: Old, path: &Path) {
    match old.keep() {
        Ok(None) => {}
        Ok(Some(old)) => {
            messages::note(format_args!("the recording that was there is now {}", old.display()));
        }
        Err(error) => {
            let path = path.display();
            messages::warn(format_args!("cannot keep the recording that was {path}: {error}"));
        }
    }
}

fn spawn(
    recorder: Recorder<Session>,
    stopped: UnixStream,
    listener: Listener,
) -> Result<JoinHandle<Recorded<Session>>, Failure> {
    let body = move || recorder.run(stopped.as_fd(), |round| listener.listen(round));
    let thread = thread::Builder::new().name("lockprof-record".into()).spawn(body);
    Ok(thread.context("cannot start a thread")?)
}

/// The command never ran: there is nothing to keep.
fn discard(thread: JoinHandle<Recorded<Session>>, path: &Path) {
    // Whatever fails here says less than the failure that is about to be reported.
    let _ = thread.join();
    let _ = std::fs::remove_file(path);
}
