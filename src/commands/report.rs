//! `lockprof report`: a recording in, an answer out.

use std::process::ExitCode;

use anyhow::anyhow;

use super::{input, output};
use crate::analyse::Detail;
use crate::cli::args::{Format, ReportArgs};
use crate::cli::messages::Failure;
use crate::render::{Csv, Folded, Json, Renderer, Table};

pub(super) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let query = args.query();
    if query.by.is_blame() && (args.format == Format::Folded || args.stacks) {
        return Err(
            anyhow!("rows of releasers have no stacks: leave --stacks and folded away").into()
        );
    }
    let detail = Detail { user_stacks: query.stacks, ..Detail::default() };
    let pipeline = input::analyse(&args.input, detail, &query.filter)?;
    output::print(renderer(args).as_ref(), &pipeline.report(&query))?;
    Ok(ExitCode::SUCCESS)
}

fn renderer(args: &ReportArgs) -> Box<dyn Renderer> {
    match args.format {
        Format::Table => {
            let (width, color) = output::of_stdout();
            Box::new(Table { width, color, next: next(args) })
        }
        Format::Json => Box::new(Json),
        Format::Csv => Box::new(Csv),
        Format::Folded => Box::new(Folded::default()),
    }
}

/// What to try next, with the file that was asked for.
fn next(args: &ReportArgs) -> Vec<String> {
    let file = args.input.file.to_string_lossy();
    let file = match file.as_ref() {
        crate::cli::args::DEFAULT_RECORDING => String::new(),
        other => format!(" {other}"),
    };
    let other = match args.by {
        _ if args.blame => "--by releaser",
        crate::cli::args::By::Site => "--by lock",
        crate::cli::args::By::Releaser => "--blame",
        _ => "--by site",
    };
    vec![
        format!("lockprof report{file} {other}"),
        format!("lockprof report{file} --stacks"),
        format!("lockprof flamegraph{file} -o lockprof.svg"),
    ]
}
