//! What a screen hears: keys, the terminal's size, signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::flag;

use crate::tui::{Input, Palette, Theme, input};

/// How long a signal may go unnoticed.
const TICK: Duration = Duration::from_millis(100);

/// What happened.
pub(in crate::commands) enum Event {
    /// A key, or another size.
    Input(Input),
    /// The shell wants its terminal back for a while (SIGTSTP).
    Stop,
    /// This signal ends the screen.
    End(i32),
    /// Nothing for a while.
    Nothing,
}

/// Signals caught from here on.
#[derive(Debug)]
pub(in crate::commands) struct Session {
    ends: Vec<(i32, Arc<AtomicBool>)>,
    stop: Arc<AtomicBool>,
}

impl Session {
    pub(in crate::commands) fn begin() -> io::Result<Session> {
        let caught = |signal| {
            let came = Arc::new(AtomicBool::new(false));
            flag::register(signal, Arc::clone(&came)).map(|_| (signal, came))
        };
        let ends = [SIGTERM, SIGHUP, SIGINT].map(caught).into_iter().collect::<Result<_, _>>()?;
        Ok(Session { ends, stop: caught(SIGTSTP)?.1 })
    }

    /// Waits for something to happen, not for long. A terminal that is gone ends the screen as its
    /// signal does.
    pub(in crate::commands) fn next(&mut self) -> io::Result<Event> {
        let polled = event::poll(TICK);
        if let Some((signal, _)) = self.ends.iter().find(|(_, came)| came.load(Ordering::Relaxed)) {
            return Ok(Event::End(*signal));
        }
        if self.stop.swap(false, Ordering::Relaxed) {
            return Ok(Event::Stop);
        }
        let event = match polled {
            Ok(true) => event::read(),
            Ok(false) => return Ok(Event::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Event::Nothing),
            Err(_) => return Ok(Event::End(SIGHUP)),
        };
        Ok(match event {
            Ok(event) => input(&event).map_or(Event::Nothing, Event::Input),
            Err(_) => Event::End(SIGHUP),
        })
    }
}

/// By the environment.
pub(in crate::commands) fn theme() -> Theme {
    let variable = |name| std::env::var(name).ok();
    let (no_color, colorterm) = (variable("NO_COLOR"), variable("COLORTERM"));
    let term = variable("TERM");
    let palette = Palette::of(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
    Theme { palette }
}
