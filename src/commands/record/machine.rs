//! The whole machine, watched without a file.
//!
//! ```text
//!   recorder   rings ──> rounds ──> pipeline, tables <──question, answer──> whoever watches
//! ```

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use lockprof_collectors::perf::session::Session;

use super::analysis::Analysis;
use super::mailbox::Mailbox;
use super::watch::{Ended, Watch};
use super::{before, enable, meanwhile_held, open, spawn, summary};
use crate::analyse::Detail;
use crate::cli::args::RecordArgs;
use crate::cli::checks;
use crate::cli::messages::Failure;
use crate::cli::plan::RecordPlan;
use crate::model::Nanos;
use crate::source::{Mappings, Recorded, Recorder};

/// A machine that is watched.
pub(in crate::commands) struct Machine {
    watch: Watch,
    analysis: Analysis,
    thread: JoinHandle<Recorded<Session>>,
    stop: UnixStream,
}

/// Why a pause is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Pause {
    /// Its time has passed.
    Over,
    /// This signal ends it all.
    Signal(i32),
    /// The recorder could not go on.
    Recorder,
}

impl Machine {
    /// Starts watching. Questions go through the mailbox.
    pub(in crate::commands) fn start(
        args: &RecordArgs,
        detail: Detail,
        mailbox: Arc<Mailbox>,
    ) -> Result<Machine, Failure> {
        let mut plan = RecordPlan::new(args).map_err(summary::explain_plan)?;
        let watch = Watch::new(&plan.target)?.silent();
        let measured = before::measure_floor(&plan);
        let mut session = open(&mut plan, None)?;
        let origin = before::origin(&plan, &session, None, before::floor(measured));
        let analysis =
            meanwhile_held(&mut session, || Analysis::start(&origin, detail, Some(mailbox)))?;
        let since = enable(&session, &plan)?;
        let mut mappings = Mappings::new(plan.events[0].attr.sample_type);
        let first = before::records(&plan, &origin, &mut mappings);
        let mut recorder = Recorder::new(session, None, Some(mappings)).since(since);
        analysis.listener().listen(recorder.begin(first)?);
        let (stop, stopped) = UnixStream::pair().context("cannot make a socket")?;
        let thread = spawn(recorder, stopped, analysis.listener())?;
        Ok(Machine { watch, analysis, thread, stop })
    }

    /// Lets this much time pass.
    pub(in crate::commands) fn pause(&mut self, time: Nanos) -> Result<Pause, Failure> {
        self.watch.begin(Some(time));
        Ok(match self.watch.wait(None, &self.analysis, &self.stop)? {
            Ended::Time => Pause::Over,
            Ended::Signal(signal) => Pause::Signal(signal),
            _ => Pause::Recorder,
        })
    }

    /// The share of all CPUs that watching takes, 0 to 1.
    pub(in crate::commands) fn cost(&self) -> f64 {
        self.analysis.progress().cost().share()
    }

    /// Whether the analysis was given up because it could not keep up.
    pub(in crate::commands) fn is_behind(&self) -> bool {
        self.analysis.progress().is_behind()
    }

    /// Ends it. Gives the failure that ended the recorder before, if one did.
    pub(in crate::commands) fn end(self) -> Result<(), Failure> {
        drop(self.stop);
        let recorded = self.thread.join().map_err(|_| anyhow!("the recorder panicked"))?;
        drop(self.analysis);
        match recorded.failure {
            Some(failure) => {
                let hint = checks::hint(&failure);
                Err(Failure::new(failure).hint(hint))
            }
            None => Ok(()),
        }
    }
}
