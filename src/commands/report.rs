//! `lockprof report`: a recording in, an answer out.

use std::process::ExitCode;

use anyhow::anyhow;

use super::{input, output};
use crate::analyse::Detail;
use crate::cli::args::{By, Format, ReportArgs};
use crate::cli::messages::Failure;
use crate::model::GroupBy;
use crate::render::{Csv, Folded, Json, Table, Weight};

pub(super) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    match args.by {
        _ if args.tree => tree(args)?,
        By::Path => paths(args)?,
        By::Site | By::Lock | By::Task | By::Cgroup | By::Releaser => waits(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn waits(args: &ReportArgs) -> Result<(), Failure> {
    if args.raw {
        let by_path = "lockprof report --by path --raw".to_owned();
        return Err(Failure::new(anyhow!("--raw speaks of CPU samples")).hint(by_path));
    }
    let query = args.query();
    if query.by == GroupBy::Releaser && query.stacks {
        let blame = "lockprof report --blame --format folded".to_owned();
        return Err(Failure::new(anyhow!("rows of releasers have no stacks")).hint(blame));
    }
    let detail = Detail { user_stacks: query.stacks, ..Detail::default() };
    let pipeline = input::analyse(&args.input, detail, &query.filter)?;
    if query.by == GroupBy::Cgroup && !pipeline.has_cgroups() {
        return Err(input::no_cgroups());
    }
    let report = pipeline.report(&query);
    match args.format {
        Format::Table => output::print(&table(args), &report),
        Format::Json => output::print(&Json, &report),
        Format::Csv => output::print(&Csv, &report),
        Format::Folded if args.blame => output::print(&Folded { weight: Weight::Blame }, &report),
        Format::Folded => output::print(&Folded::default(), &report),
    }
}

fn paths(args: &ReportArgs) -> Result<(), Failure> {
    let cpu_graph = "lockprof flamegraph --weight cpu draws the stacks of CPU samples".to_owned();
    let query = args.path_query().map_err(|why| Failure::new(anyhow!(why)).hint(cpu_graph))?;
    let detail = Detail { cpu_stacks: true, ..Detail::default() };
    let paths = input::analyse(&args.input, detail, &query.filter)?.paths(&query);
    match args.format {
        Format::Json => output::print(&Json, &paths),
        Format::Csv => output::print(&Csv, &paths),
        Format::Table | Format::Folded => output::print(&table(args), &paths),
    }
}

fn tree(args: &ReportArgs) -> Result<(), Failure> {
    let stacks = "lockprof report --stacks --format json".to_owned();
    let query = args.tree_query().map_err(|why| Failure::new(anyhow!(why)).hint(stacks))?;
    let detail = Detail { cpu_stacks: true, ..Detail::default() };
    let tree = input::analyse(&args.input, detail, &query.filter)?.tree(&query);
    output::print(&table(args), &tree)
}

fn table(args: &ReportArgs) -> Table {
    let (width, color) = output::of_stdout();
    let (file, phases) = (output::file_argument(&args.input.file), args.phases);
    Table { width, color, next: next(args), file, phases, readers_writers: args.rw }
}

/// What to try next, with the file that was asked for.
fn next(args: &ReportArgs) -> Vec<String> {
    let file = output::file_argument(&args.input.file);
    let report = |rest: &str| format!("lockprof report{file} {rest}");
    let graph = |rest: &str| format!("lockprof flamegraph{file} {rest}-o lockprof.svg");
    match args.by {
        _ if args.blame => vec![report("--by releaser"), graph("--blame ")],
        By::Site => vec![report("--by lock"), report("--stacks"), graph("")],
        By::Lock | By::Task | By::Cgroup => {
            vec![report("--by site"), report("--stacks"), graph("")]
        }
        By::Releaser => vec![report("--blame"), report("--by lock")],
        By::Path => vec![report("--by site"), graph("--weight cpu ")],
    }
}
