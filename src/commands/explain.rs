//! `lockprof explain`: what the catalogue knows of a lock.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::anyhow;

use super::output;
use crate::attribute::catalogue;
use crate::cli::args::ExplainArgs;
use crate::cli::messages::Failure;
use crate::render::explain;

/// Locks suggested at the most.
const SUGGESTIONS: usize = 8;

pub(super) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let (width, _) = output::of_stdout();
    let name = args.name.join(" ");
    let text = match catalogue::entry(&name) {
        _ if name.is_empty() => explain::list(catalogue::entries(), width),
        Some(entry) => explain::entry(entry, width),
        None => match catalogue::suggestions(&name).as_slice() {
            [only] => explain::entry(only, width),
            several => return Err(unknown(&name, several)),
        },
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn unknown(name: &str, suggestions: &[&catalogue::Entry]) -> Failure {
    let failure = Failure::new(anyhow!("no lock is called `{name}`"));
    let lines: Vec<String> = suggestions
        .iter()
        .take(SUGGESTIONS)
        .map(|entry| format!("        lockprof explain {}", shell_word(entry.name)))
        .collect();
    failure.hint(match lines.is_empty() {
        true => "these are known:\n        lockprof explain".to_owned(),
        false => format!("these are:\n{}", lines.join("\n")),
    })
}

/// A name as it is typed: names with `>` or brackets want quotes.
fn shell_word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{name}'") }
}
