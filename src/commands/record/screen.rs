//! The screen while a command, processes or the machine are recorded.

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use lockprof_collectors::workload::Workload;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::analysis::Analysis;
use super::console::Console;
use super::mailbox::Mailbox;
use super::watch::{Ended, Watch};
use crate::cli::args::RecordArgs;
use crate::cli::messages::{self, Failure};
use crate::cli::plan::Target;
use crate::commands::output;
use crate::commands::tui::live::{LiveScreen, Turn};
use crate::tui::{Effect, Live};

/// Lines of the screen that are not the command's.
const FRAME: u16 = 4;

/// What a screen needs: somebody who answers, and a terminal for the command.
pub(super) struct Screened {
    mailbox: Arc<Mailbox>,
    console: Option<Console>,
}

impl Screened {
    /// `None` where there is no terminal, or it is not to be taken.
    pub(super) fn of(args: &RecordArgs, target: &Target) -> Result<Option<Screened>, Failure> {
        if args.no_tui || !output::has_terminal() {
            return Ok(None);
        }
        let console = match target {
            Target::Command(_) => {
                let (columns, lines) = output::size_of_stdout();
                let console = Console::open(columns, lines.saturating_sub(FRAME));
                Some(console.context("cannot make a terminal for the command")?)
            }
            Target::Processes(_) | Target::Cgroup(_) | Target::System => None,
        };
        Ok(Some(Screened { mailbox: Arc::default(), console }))
    }

    /// Where the screen's questions go.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// The command's terminal.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.console.as_ref().map(Console::user)
    }

    /// Shows the recording until it has to end. Afterwards the terminal is the command's again.
    pub(super) fn watch(
        &self,
        watch: &mut Watch,
        workload: Option<&mut Workload>,
        analysis: &Analysis,
        recorder: &UnixStream,
    ) -> Result<Ended, Failure> {
        let ended = match LiveScreen::open(self.mailbox()) {
            Ok(screen) => self.show(screen, watch, workload, (analysis, recorder)),
            Err(failure) => {
                messages::warn(format_args!("no screen: {failure}"));
                watch.wait(workload, analysis, recorder)
            }
        };
        self.console.iter().for_each(Console::pass_through);
        ended
    }

    fn show(
        &self,
        mut screen: LiveScreen,
        watch: &mut Watch,
        mut workload: Option<&mut Workload>,
        (analysis, recorder): (&Analysis, &UnixStream),
    ) -> Result<Ended, Failure> {
        let mut size = screen.size();
        loop {
            screen.set(self.live(analysis));
            // A terminal that is gone ends the recording, not the file.
            let turn = screen.turn().unwrap_or(Turn::Signal(SIGHUP));
            if let Some(ended) = watch.check(workload.as_deref_mut(), recorder, Duration::ZERO)? {
                return Ok(ended);
            }
            match (turn, workload.as_deref()) {
                (Turn::Signal(signal), _) => return Ok(Ended::Signal(signal)),
                (Turn::Do(Effect::Quit), _) => return Ok(Ended::Quit),
                (Turn::Do(Effect::Interrupt), Some(command)) => {
                    command.signal(SIGINT)?;
                    return Ok(Ended::Signal(SIGINT));
                }
                (Turn::Do(Effect::Interrupt), None) => return Ok(Ended::Signal(SIGINT)),
                (Turn::Do(Effect::StopCommand), Some(command)) => command.signal(SIGTERM)?,
                (Turn::Do(Effect::Type(keys)), _) => {
                    self.console.iter().for_each(|console| console.type_in(&keys));
                }
                (Turn::Do(_) | Turn::GoOn, _) => {}
            }
            if size != screen.size() {
                size = screen.size();
                let (columns, lines) = (size.0, size.1.saturating_sub(FRAME));
                self.console.iter().for_each(|console| console.resize(columns, lines));
            }
        }
    }

    fn live(&self, analysis: &Analysis) -> Live {
        let behind = "the analysis is behind: the file is complete, the screen stands still";
        Live {
            command: self.console.is_some(),
            output: self.console.as_ref().map(Console::lines),
            cost: analysis.progress().cost().share(),
            doubt: analysis.progress().is_behind().then(|| behind.to_owned()),
        }
    }
}
