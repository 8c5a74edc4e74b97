//! `lockprof flamegraph`: a recording in, a picture out.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;

use super::{input, output};
use crate::analyse::Detail;
use crate::cli::args::{self, FlamegraphArgs};
use crate::cli::messages::{self, Failure};
use crate::model::{GroupBy, Query};
use crate::render::{FlameGraph, Renderer, Weight};
use crate::report::Report;

pub(super) fn run(args: &FlamegraphArgs) -> Result<ExitCode, Failure> {
    let by = if args.blame { GroupBy::Blame } else { GroupBy::default() };
    let query = Query { by, filter: args.filter.filter(), ..query() };
    let pipeline = input::analyse(&args.input, detail(), &query.filter)?;
    let report = pipeline.report(&query);
    if args.blame && report.trust.charged.is_none() {
        return Err(without_wakings());
    }
    let weight = if args.blame { Weight::Blame } else { args.weight.into() };
    draw(&report, weight, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn without_wakings() -> Failure {
    let why =
        anyhow!("the recording does not tell who let whom wait: it has no wakings with stacks");
    Failure::new(why).hint("lockprof record -- COMMAND, without --no-blame".to_owned())
}

/// The question that a flame graph answers.
pub(super) fn query() -> Query {
    Query { stacks: true, ..Query::default() }
}

/// What a flame graph needs to be kept apart.
pub(super) fn detail() -> Detail {
    Detail { user_stacks: true, cpu_stacks: true, ..Detail::default() }
}

/// Draws the report into the file at `path`.
pub(super) fn draw(report: &Report, weight: Weight, path: &Path) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        FlameGraph { weight }.render(report, &mut out)?;
        out.flush()
    };
    write().map_err(|error| output::not_written(path, error))?;
    if report.rows.is_empty() && report.cpu_stacks.is_empty() {
        messages::note("no lock waits recorded; the picture says so");
    }
    messages::note(format_args!("flame graph in {}", path.display()));
    Ok(())
}

impl From<args::Weight> for Weight {
    fn from(weight: args::Weight) -> Weight {
        match weight {
            args::Weight::Wait => Weight::Wait,
            args::Weight::Cpu => Weight::Cpu,
            args::Weight::Count => Weight::Count,
        }
    }
}
