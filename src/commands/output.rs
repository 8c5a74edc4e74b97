//! Where a command's data goes: stdout, with or without a terminal behind it.

use std::io::{self, BufWriter, IsTerminal, Write};

use crate::cli::messages::Failure;
use crate::render::Renderer;
use crate::report::Report;

/// Columns when stdout is no terminal.
const COLUMNS: usize = 100;

/// Columns of the terminal.
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}

/// Whether to colour: on a terminal, unless `NO_COLOR` is set.
pub(super) fn color() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !refused
}

/// Writes a report to stdout.
pub(super) fn print(renderer: &dyn Renderer, report: &Report) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    renderer.render(report, &mut out)?;
    out.flush()?;
    Ok(())
}
