//! A screen over a recording that runs.
//!
//! ```text
//!   answer --> state --> picture --> key or signal, or a tenth of a second --> what it wants
//!      ^-- asked for when the last one was shown, four times a second at the most
//! ```
//!
//! In: the mailbox, keys. Out: what the screen wants and cannot do itself, to whoever runs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::session::{Event, Session, theme};
use super::written;
use crate::analyse::{Detail, Slicing};
use crate::cli::messages::Failure;
use crate::commands::flamegraph;
use crate::commands::record::mailbox::{Asked, Mailbox};
use crate::tui::{Effect, Format, Live, Question, State, Terminal, update};

/// Pause between two answers.
const PERIOD: Duration = Duration::from_millis(250);

/// How long an answer for a file may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a screen needs to be kept apart while a recording runs.
pub(in crate::commands) fn detail() -> Detail {
    Detail { slicing: Some(Slicing::LIVE), ..flamegraph::detail() }
}

/// What the screen's owner has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Turn {
    /// Nothing.
    GoOn,
    /// What a key wants.
    Do(Effect),
    /// This signal came.
    Signal(i32),
}

/// The screen.
pub(in crate::commands) struct LiveScreen {
    terminal: Terminal,
    session: Session,
    state: State,
    mailbox: Arc<Mailbox>,
    /// When an answer was asked for that has not come.
    waits: bool,
    asked: Instant,
    /// The next answer is shown though the picture is frozen.
    wanted: bool,
}

impl LiveScreen {
    /// Takes the terminal.
    pub(in crate::commands) fn open(mailbox: Arc<Mailbox>) -> Result<LiveScreen, Failure> {
        let session = Session::begin().context("cannot catch signals")?;
        let terminal = Terminal::open(theme()).context("cannot take the terminal")?;
        let (columns, lines) = terminal.size()?;
        let state = State::new(columns, lines).live(Live::default());
        let (waits, asked, wanted) = (false, Instant::now(), true);
        Ok(LiveScreen { terminal, session, state, mailbox, waits, asked, wanted })
    }

    /// How the recording is.
    pub(in crate::commands) fn set(&mut self, live: Live) {
        self.state.set_live(live);
    }

    /// Columns and lines of the terminal.
    pub(in crate::commands) fn size(&self) -> (u16, u16) {
        self.terminal.size().unwrap_or((80, 24))
    }

    /// Shows what there is, and takes one input.
    pub(in crate::commands) fn turn(&mut self) -> Result<Turn, Failure> {
        self.exchange();
        self.terminal.draw(&self.state).context("cannot draw")?;
        let effect = match self.session.next()? {
            Event::Input(input) => update(&mut self.state, input),
            Event::Stop => Some(Effect::Suspend),
            Event::End(signal) => return Ok(Turn::Signal(signal)),
            Event::Nothing => None,
        };
        match effect {
            None => {}
            Some(Effect::Ask(_)) => self.ask(),
            Some(Effect::Suspend) => super::suspend(&mut self.terminal, &mut self.state)?,
            Some(Effect::Restart) => {
                let asked = Asked { restart: true, ..self.asked() };
                self.mailbox.ask(asked);
                (self.waits, self.wanted) = (true, true);
            }
            Some(Effect::Write(format, question)) => self.write(format, &question),
            Some(other) => return Ok(Turn::Do(other)),
        }
        Ok(Turn::GoOn)
    }

    fn asked(&self) -> Asked {
        Asked { question: self.state.question(), when: self.state.when(), restart: false }
    }

    fn ask(&mut self) {
        self.mailbox.ask(self.asked());
        (self.waits, self.wanted, self.asked) = (true, true, Instant::now());
    }

    /// Takes an answer, asks for the next one.
    fn exchange(&mut self) {
        if let Some(answer) = self.mailbox.take(Duration::ZERO) {
            self.waits = false;
            if self.wanted || !self.state.is_frozen() {
                self.state.show(answer.snapshot);
            }
            self.wanted = false;
        }
        let due = self.asked.elapsed() >= PERIOD && !self.state.is_frozen();
        if !self.waits && (due || self.wanted) {
            self.mailbox.ask(self.asked());
            (self.waits, self.asked) = (true, Instant::now());
        }
    }

    /// A file is made of an answer of its own.
    fn write(&mut self, format: Format, question: &Question) {
        drop(self.mailbox.take(Duration::ZERO));
        let query = written::query(format, question);
        let question = Question { query, ..question.clone() };
        self.mailbox.ask(Asked { question, when: self.state.when(), restart: false });
        (self.waits, self.wanted) = (false, false);
        self.state.say(match self.mailbox.take(PATIENCE) {
            Some(answer) => written::write(&answer.snapshot.report, format),
            None => "not written: the analysis is busy".to_owned(),
        });
    }
}
