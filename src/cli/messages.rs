//! All of stderr: errors with their hints, warnings, notes.
//!
//! ```text
//! error: cannot read `x.data`: No such file or directory
//!
//! hint: record one with: lockprof record -- COMMAND
//! ```

#![allow(clippy::print_stderr)]

use std::fmt::{self, Display};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use crate::render::escape::visible as escaped;

/// A failure, with what to type instead when that is known, and the exit status.
#[derive(Debug)]
pub struct Failure {
    error: anyhow::Error,
    hint: Option<String>,
    status: Option<u8>,
}

/// Our own failure while a command is being recorded, as `env` and `timeout` have it.
pub const STATUS_OF_RECORD: u8 = 125;

impl Failure {
    /// A failure with exit status 2.
    pub fn new(error: impl Into<anyhow::Error>) -> Failure {
        Failure { error: error.into(), hint: None, status: None }
    }

    /// What to type instead.
    pub fn hint(self, hint: impl Into<Option<String>>) -> Failure {
        Failure { hint: hint.into(), ..self }
    }

    /// Another exit status.
    pub fn status(self, status: u8) -> Failure {
        Failure { status: Some(status), ..self }
    }

    /// The exit status when no better one is known.
    pub fn or_status(self, status: u8) -> Failure {
        Failure { status: self.status.or(Some(status)), ..self }
    }

    /// Says what went wrong. A reader that went away (broken pipe) is success.
    pub fn report(&self) -> ExitCode {
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS;
        }
        eprintln!("error: {}", escaped(&sentence(&self.error)));
        hint(self.hint.as_deref());
        ExitCode::from(self.status.unwrap_or(2))
    }

    fn is_broken_pipe(&self) -> bool {
        let io = self.error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        io.map(io::Error::kind).any(|kind| kind == io::ErrorKind::BrokenPipe)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(&self.error))
    }
}

/// Something went differently than asked; the work goes on.
pub fn warn(text: impl Display) {
    eprintln!("warning: {}", escaped(&text.to_string()));
}

/// The same, with what to type.
pub fn warn_with_hint(text: impl Display, what: Option<String>) {
    warn(text);
    hint(what.as_deref());
}

fn hint(what: Option<&str>) {
    if let Some(what) = what {
        eprintln!("\nhint: {}", escaped_lines(what));
    }
}

/// Something the user may want to know.
pub fn note(text: impl Display) {
    eprintln!("lockprof: {}", escaped(&text.to_string()));
}

/// Says what went wrong, when the work is done all the same.
pub fn error(error: &anyhow::Error) {
    eprintln!("error: {}", escaped(&sentence(error)));
}

/// A text of several lines that is escaped already.
pub fn block(text: &str) {
    eprint!("{text}");
}

/// Overwrites the status line, on a terminal only.
pub fn status(text: impl Display) {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{}", escaped(&text.to_string()));
    }
}

/// Takes the status line away.
pub fn clear_status() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// The error and its causes, each said once: many errors of ours quote their cause already. Numbers of
/// system errors, which the words before them repeat, are left out.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for cause in error.chain() {
        let words = without_numbers(&cause.to_string());
        if !last.ends_with(&words) {
            text += if text.is_empty() { "" } else { ": " };
            text += &words;
        }
        last = words;
    }
    text
}

/// Takes every ` (os error 2)` out.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(')');
        kept += rest.unwrap_or(part);
    }
    kept
}

/// Hints have several lines; each is escaped by itself.
fn escaped_lines(text: &str) -> String {
    text.lines().map(|line| escaped(line).into_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read x: {0}")]
    struct Quoting(#[source] io::Error);

    #[test]
    fn a_cause_is_said_once_and_without_its_number() {
        let gone = || io::Error::from_raw_os_error(2);
        let said = [
            (anyhow!(Quoting(gone())), "cannot read x: No such file or directory"),
            (anyhow!(gone()).context("cannot read y"), "cannot read y: No such file or directory"),
            (
                anyhow!(Quoting(gone())).context("no report"),
                "no report: cannot read x: No such file or directory",
            ),
            (anyhow!("open of x (os error 13), twice"), "open of x, twice"),
        ];
        for (error, expected) in said {
            assert_eq!(sentence(&error), expected);
        }
    }
}
