//! Where a command's data goes: stdout, with or without a terminal behind it.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::cli::args::DEFAULT_RECORDING;
use crate::cli::checks;
use crate::cli::messages::Failure;
use crate::render::Renderer;

/// Columns when stdout is no terminal.
const COLUMNS: usize = 100;

/// Columns of stdout's terminal, and whether to colour.
pub(super) fn of_stdout() -> (usize, bool) {
    (width(io::stdout()), color(&io::stdout()))
}

/// The same for stderr.
pub(super) fn of_stderr() -> (usize, bool) {
    (width(io::stderr()), color(&io::stderr()))
}

/// Columns and lines of stdout's terminal.
pub(super) fn size_of_stdout() -> (u16, u16) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

fn width(stream: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}

/// Whether a screen can be shown and keys be read: stdin, stdout and stderr are all the terminal, and
/// this process is in its foreground.
pub(super) fn has_terminal() -> bool {
    let stdin = io::stdin();
    let is_all = stdin.is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    is_all && tcgetpgrp(stdin).is_ok_and(|group| group == getpgrp())
}

/// On a terminal, unless `NO_COLOR` is set.
fn color(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !refused
}

/// ` FILE`, as it stands behind a command that reads the recording; nothing for the default one.
pub(super) fn file_argument(recording: &Path) -> String {
    match recording.to_string_lossy().as_ref() {
        DEFAULT_RECORDING => String::new(),
        other => format!(" {other}"),
    }
}

/// Why a file could not be written, and what to type instead.
pub(super) fn not_written(path: &Path, error: impl Into<anyhow::Error>) -> Failure {
    let error = error.into();
    let hint = checks::output_hint(path, error.as_ref());
    Failure::new(error.context(format!("cannot write `{}`", path.display()))).hint(hint)
}

/// Writes a report to stdout.
pub(super) fn print<R>(renderer: &dyn Renderer<R>, report: &R) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    renderer.render(report, &mut out)?;
    out.flush()?;
    Ok(())
}
