//! `lockprof top`: the whole machine, while it runs, without a file.
//!
//! In: the rings. Out: a screen; with `--plain`, or without a terminal, a block of text or a line of JSON an interval, each of what was
//! waited between two moments: blocks add up to the whole.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::output;
use super::record::machine::{Machine, Pause};
use super::record::mailbox::{Asked, Mailbox};
use super::tui::live::{self, LiveScreen, Turn};
use crate::analyse::Detail;
use crate::cli::args::{TopArgs, TopFormat};
use crate::cli::messages::Failure;
use crate::model::Nanos;
use crate::render::{Block, JsonLine};
use crate::report::Report;
use crate::tui::{Effect, Live, Question};

/// How long an answer may take before the machine counts as too busy to be watched.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    let mailbox = Arc::new(Mailbox::default());
    let on_screen = !args.plain && output::has_terminal();
    let detail = if on_screen { live::detail() } else { Detail::default() };
    let mut machine = Machine::start(&args.record(), detail, Arc::clone(&mailbox))?;
    let status = match on_screen {
        true => screen(&mut machine, mailbox),
        false => blocks(args, &mut machine, &mailbox),
    };
    let ended = machine.end();
    let status = status?;
    ended?;
    Ok(ExitCode::from(status))
}

/// The screen, until the user has seen enough. Gives the exit status.
fn screen(machine: &mut Machine, mailbox: Arc<Mailbox>) -> Result<u8, Failure> {
    let mut screen = LiveScreen::open(mailbox)?;
    loop {
        let behind = "the analysis cannot keep up: what is shown stands still";
        let doubt = machine.is_behind().then(|| behind.to_owned());
        screen.set(Live { doubt, cost: machine.cost(), ..Live::default() });
        match screen.turn()? {
            Turn::Do(Effect::Quit | Effect::Interrupt | Effect::StopCommand) => return Ok(0),
            Turn::Signal(signal) => return Ok((128 + signal) as u8),
            Turn::Do(_) | Turn::GoOn => {}
        }
        match machine.pause(Nanos::ZERO)? {
            Pause::Over => {}
            Pause::Signal(signal) => return Ok((128 + signal) as u8),
            Pause::Recorder => return Ok(0),
        }
    }
}

/// A block an interval. Gives the exit status.
fn blocks(args: &TopArgs, machine: &mut Machine, mailbox: &Mailbox) -> Result<u8, Failure> {
    let (mut printed, mut due) = (0, Instant::now());
    // What is there when it begins belongs to no interval.
    mailbox.ask(Asked { restart: true, ..Asked::default() });
    while args.count.is_none_or(|count| printed < count) {
        due += Duration::from_nanos(args.interval.0);
        let left = due.saturating_duration_since(Instant::now());
        match machine.pause(Nanos(left.as_nanos() as u64))? {
            Pause::Over => {}
            Pause::Signal(signal) => return Ok((128 + signal) as u8),
            Pause::Recorder => return Ok(0),
        }
        print(args, &ask(args, machine, mailbox)?)?;
        printed += 1;
    }
    Ok(0)
}

/// What happened since it was asked last.
fn ask(args: &TopArgs, machine: &Machine, mailbox: &Mailbox) -> Result<Report, Failure> {
    let question = Question { query: args.query(), ..Question::default() };
    // An answer that came too late for the question before this one.
    drop(mailbox.take(Duration::ZERO));
    mailbox.ask(Asked { question, last: None, restart: true });
    if let Some(answer) = mailbox.take(PATIENCE) {
        return Ok(answer.snapshot.report);
    }
    let why = match machine.is_behind() {
        true => "the analysis cannot keep up with what is recorded",
        false => "no answer for half a minute",
    };
    let narrower = "record less: lockprof top --no-blame --no-phases --no-sleeps".to_owned();
    Err(Failure::new(anyhow!(why)).hint(narrower))
}

fn print(args: &TopArgs, report: &Report) -> Result<(), Failure> {
    match args.format {
        TopFormat::Table => {
            let (width, color) = output::of_stdout();
            output::print(&Block { width, color }, report)
        }
        TopFormat::Json => output::print(&JsonLine, report),
    }
}
