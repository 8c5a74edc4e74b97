//! The terminal while a screen is on it, and giving it back: when the screen ends, when lockprof
//! panics, when it is stopped.
//!
//! ```text
//!   shell --open--> ours --drop | panic--> shell
//!                    | suspend: shell, SIGSTOP, SIGCONT: ours again
//! ```

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, getpgrp, kill_process_group};

use super::state::State;
use super::theme::Theme;
use super::view;

/// Whether the terminal is ours; whoever gives it back first clears this.
static OURS: AtomicBool = AtomicBool::new(false);

/// The terminal, ours until this is dropped.
#[derive(Debug)]
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    theme: Theme,
}

impl Terminal {
    /// Takes the terminal of stdout: raw, its other screen, the mouse.
    ///
    /// # Errors
    /// It is no terminal, or is gone. What was changed until then is changed back.
    pub fn open(theme: Theme) -> io::Result<Terminal> {
        restore_at_panic();
        take()?;
        let inner = ratatui::Terminal::new(CrosstermBackend::new(stdout()));
        let inner = inner.inspect_err(|_| give_back())?;
        Ok(Terminal { inner, theme })
    }

    /// Columns and lines.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.inner.size()?;
        Ok((size.width, size.height))
    }

    /// Draws the state.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, state: &State) -> io::Result<()> {
        let theme = self.theme;
        self.inner.draw(|frame| view::draw(frame, state, theme)).map(drop)
    }

    /// Gives the terminal back, stops all processes of the group as Ctrl-Z does, takes the terminal
    /// again when they go on.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        stop()?;
        take()?;
        // A new one knows nothing of what was drawn, and does not ask where the cursor is.
        self.inner = ratatui::Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Stops all processes of the group, this one too, until SIGCONT.
///
/// # Errors
/// Those of kill(2).
pub fn stop() -> io::Result<()> {
    // Not SIGTSTP, which is caught to give the terminal back first.
    Ok(kill_process_group(getpgrp(), Signal::STOP)?)
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture).inspect_err(|_| give_back())
}

/// What fails here has no terminal to give back any more.
fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// A panic's message must not go to a screen that is about to be left.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}
