//! What `record` says at the end, and when it cannot begin.

use lockprof_collectors::perf::session::SessionError;

use super::Outcome;
use crate::analyse::Detail;
use crate::cli::args::RecordArgs;
use crate::cli::checks;
use crate::cli::messages::{self, Failure};
use crate::cli::plan::PlanError;
use crate::commands::{flamegraph, output};
use crate::model::Query;
use crate::render::{Renderer, Table, Weight};

/// What can be recorded, as a hint: its lines stand under the first one.
const TARGETS: &str = "a command:          lockprof record -- COMMAND
      a process:          lockprof record -p PID
      the whole machine:  lockprof record -a -d 10s";

/// Rows of the summary.
const ROWS: usize = 10;

/// What has to be kept apart for the summary.
pub(super) fn detail(args: &RecordArgs) -> Detail {
    if args.svg.is_some() { flamegraph::detail() } else { Detail::default() }
}

/// The summary's question.
pub(super) fn query() -> Query {
    Query { top: ROWS, ..Query::default() }
}

/// Prints the summary on stderr: stdout is the command's.
pub(super) fn print(args: &RecordArgs, outcome: &Outcome) -> Result<(), Failure> {
    draw(args, outcome)?;
    let mut text = Vec::new();
    let (width, color) = output::of_stderr();
    let file = output::file_argument(&args.output);
    let next = next(&file);
    Table { width, color, next, file, ..Table::default() }.render(&outcome.report, &mut text)?;
    messages::block(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Draws the picture, if one was asked for.
pub(in crate::commands) fn draw(args: &RecordArgs, outcome: &Outcome) -> Result<(), Failure> {
    match (&args.svg, &outcome.picture) {
        (Some(svg), Some(picture)) => flamegraph::draw(picture, Weight::Wait, svg),
        _ => Ok(()),
    }
}

fn next(file: &str) -> Vec<String> {
    vec![
        format!("lockprof report{file}"),
        format!("lockprof report{file} --by lock"),
        format!("lockprof report{file} --blame"),
        format!("lockprof flamegraph{file} -o lockprof.svg"),
    ]
}

/// Why there is no plan, and what to type.
pub(super) fn explain_plan(error: PlanError) -> Failure {
    let hint = match &error {
        PlanError::NoTarget => Some(TARGETS.to_owned()),
        PlanError::Machine(missing) => checks::hint(missing),
        _ => checks::hint(&error),
    };
    Failure::new(error).hint(hint)
}

/// Why the events cannot be opened, and what to type.
pub(super) fn explain_session(error: SessionError) -> Failure {
    let hint = checks::hint(&error);
    let refused = matches!(error, SessionError::Syscall(_));
    let error = anyhow::Error::new(error);
    let error = if refused { error.context("cannot trace lock contention") } else { error };
    Failure::new(error).hint(hint)
}
