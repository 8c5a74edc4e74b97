//! What `record` says at the end, and when it cannot begin.

use lockprof_collectors::perf::session::SessionError;

use super::super::output;
use crate::analyse::Detail;
use crate::cli::args::{DEFAULT_RECORDING, RecordArgs};
use crate::cli::messages::{self, Failure};
use crate::cli::plan::PlanError;
use crate::commands::flamegraph;
use crate::model::Query;
use crate::render::{Renderer, Table, Weight};
use crate::report::Report;

/// Rows of the summary.
const ROWS: usize = 10;

/// What has to be kept apart for the summary.
pub(super) fn detail(args: &RecordArgs) -> Detail {
    if args.svg.is_some() { flamegraph::detail() } else { Detail::default() }
}

/// The summary's question.
pub(in crate::commands) fn query(args: &RecordArgs) -> Query {
    Query { top: ROWS, stacks: args.svg.is_some(), ..Query::default() }
}

/// Prints the summary on stderr: stdout is the command's.
pub(super) fn print(args: &RecordArgs, report: &Report) -> Result<(), Failure> {
    if let Some(svg) = &args.svg {
        flamegraph::draw(report, Weight::Wait, svg)?;
    }
    let mut text = Vec::new();
    let (width, color) = output::of_stderr();
    Table { width, color, next: next(args) }.render(report, &mut text)?;
    messages::block(&String::from_utf8_lossy(&text));
    Ok(())
}

fn next(args: &RecordArgs) -> Vec<String> {
    let file = args.output.display().to_string();
    let file = if file == DEFAULT_RECORDING { String::new() } else { format!(" {file}") };
    vec![
        format!("lockprof report{file}"),
        format!("lockprof report{file} --by lock"),
        format!("lockprof flamegraph{file} -o lockprof.svg"),
    ]
}

/// Why there is no plan, and what to type.
pub(super) fn explain_plan(error: PlanError) -> Failure {
    let hint = match &error {
        PlanError::NoTarget => Some(
            "lockprof record -- COMMAND       a command\n      \
             lockprof record -p PID           a process\n      \
             lockprof record -a -d 10         the whole machine, for 10 seconds"
                .to_owned(),
        ),
        _ => None,
    };
    Failure::new(error).hint(hint)
}

/// Why the events cannot be opened, and what to type.
pub(super) fn explain_session(error: SessionError) -> Failure {
    Failure::new(error)
}
