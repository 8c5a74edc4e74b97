//! `lockprof tui`: the screens over a finished recording.
//!
//! In: a recording, keys. Out: nothing but what the keys write. Ranges of time are answered from the
//! file, which has all of it; everything else from the pipe that the whole recording went through.

pub(super) mod live;
mod session;
mod written;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, anyhow};

use super::{flamegraph, input};
use crate::analyse::{Detail, Slicing};
use crate::cli::args::{InputArgs, TuiArgs};
use crate::cli::messages::Failure;
use crate::model::{Filter, Nanos};
use crate::pipeline::Pipeline;
use crate::tui::{Effect, Input, Question, Snapshot, State, Terminal, update};
use session::{Event, Session};

pub(super) fn run(args: &TuiArgs) -> Result<ExitCode, Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let report = "without one: lockprof report".to_owned();
        return Err(Failure::new(anyhow!("the screens need a terminal")).hint(report));
    }
    let mut book = Book::open(&args.input)?;
    let mut session = Session::begin().context("cannot catch signals")?;
    let mut terminal = Terminal::open(session::theme()).context("cannot take the terminal")?;
    let (columns, lines) = terminal.size()?;
    let mut state = State::new(columns, lines);
    state.show(book.answer(&state.question())?);
    let status = show(&mut terminal, &mut session, &mut state, &mut book)?;
    Ok(ExitCode::from(status))
}

/// Until the user or a signal ends it. Gives the exit status.
fn show(
    terminal: &mut Terminal,
    session: &mut Session,
    state: &mut State,
    book: &mut Book<'_>,
) -> Result<u8, Failure> {
    loop {
        terminal.draw(state).context("cannot draw")?;
        let effect = match session.next()? {
            Event::Input(input) => update(state, input),
            Event::Stop => Some(Effect::Suspend),
            Event::End(signal) => return Ok((128 + signal) as u8),
            Event::Nothing => None,
        };
        match effect {
            // Nothing runs that these could speak of.
            None | Some(Effect::Restart | Effect::Type(_)) => {}
            Some(Effect::Quit | Effect::Interrupt | Effect::StopCommand) => return Ok(0),
            Some(Effect::Suspend) => {
                suspend(terminal, state)?;
            }
            Some(Effect::Ask(question)) => {
                state.say("reading ...");
                terminal.draw(state).context("cannot draw")?;
                state.show(book.answer(&question)?);
                state.unsay();
            }
            Some(Effect::Write(format, question)) => {
                let query = written::query(format, &question);
                let report = book.read(question.query.filter.time)?.report(&query);
                state.say(written::write(&report, format));
            }
        }
    }
}

/// The terminal to the shell and back, perhaps in another size.
pub(super) fn suspend(terminal: &mut Terminal, state: &mut State) -> Result<(), Failure> {
    terminal.suspend().context("cannot take the terminal again")?;
    let (columns, lines) = terminal.size()?;
    update(state, Input::Resize(columns, lines));
    Ok(())
}

/// A recording, read as often as ranges of it are asked for.
struct Book<'a> {
    input: &'a InputArgs,
    whole: Pipeline,
    part: Option<((Nanos, Nanos), Pipeline)>,
}

impl Book<'_> {
    fn open(input: &InputArgs) -> Result<Book<'_>, Failure> {
        let whole = input::analyse(input, detail(), &Filter::default())?;
        Ok(Book { input, whole, part: None })
    }

    /// All of the recording, or a part of it.
    fn read(&mut self, time: Option<(Nanos, Nanos)>) -> Result<&Pipeline, Failure> {
        let Some(time) = time else {
            self.part = None;
            return Ok(&self.whole);
        };
        if self.part.as_ref().is_none_or(|(known, _)| *known != time) {
            let filter = Filter { time: Some(time), ..Filter::default() };
            self.part = Some((time, input::analyse(self.input, detail(), &filter)?));
        }
        Ok(self.part.as_ref().map_or(&self.whole, |(_, part)| part))
    }

    fn answer(&mut self, question: &Question) -> Result<Snapshot, Failure> {
        let pipeline = self.read(question.query.filter.time)?;
        Ok(Snapshot {
            report: pipeline.report(&question.query),
            paths: pipeline.paths(&question.paths),
            slices: pipeline.slices(),
            span: pipeline.span(),
        })
    }
}

/// What the screens need to be kept apart.
fn detail() -> Detail {
    Detail { slicing: Some(Slicing::WHOLE), ..flamegraph::detail() }
}
