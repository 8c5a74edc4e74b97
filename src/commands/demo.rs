//! `lockprof demo`: the whole way in a few seconds: record a workload, report it, draw it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::{output, record};
use crate::cli::args::{DEFAULT_RECORDING, DemoArgs, RecordArgs};
use crate::cli::messages::{self, Failure};
use crate::render::Table;

const PICTURE: &str = "lockprof.svg";

/// What to look at next, and why.
const NEXT: [&str; 4] = [
    "lockprof report --by lock                  one lock, its readers and its writers",
    "lockprof report --by task --min-wait 1ms   who waited long",
    "lockprof report --stacks --top 3           the whole way from user code to the lock",
    "lockprof record -- COMMAND                 a program of yours",
];

pub(super) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let seconds = format!("{}ms", args.seconds.0 / 1_000_000);
    let program = std::env::current_exe().context("cannot find the own program")?;
    let hammer = ["hammer", "mmap-sem", "--readers", "4", "--writers", "4", "--seconds", &seconds];
    let mut command = vec![program.to_string_lossy().into_owned()];
    command.extend(hammer.map(str::to_owned));
    messages::note("4 threads call mincore, 4 call mprotect, on one address space: they all want");
    messages::note("its mmap_lock, the ones to read and the others to write");
    let args = RecordArgs {
        output: PathBuf::from(DEFAULT_RECORDING),
        svg: Some(PathBuf::from(PICTURE)),
        command,
        no_tui: true,
        ..RecordArgs::of_defaults()
    };
    let outcome = record::record(&args)?;
    record::draw(&args, &outcome)?;
    let (width, color) = output::of_stdout();
    let next = NEXT.map(str::to_owned).to_vec();
    output::print(&Table { width, color, next, ..Table::default() }, &outcome.report)?;
    messages::note(format_args!("the recording is in {DEFAULT_RECORDING}"));
    Ok(ExitCode::from(outcome.status))
}
