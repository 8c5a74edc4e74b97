//! Parses, runs, prints the error, exits.

use std::process::ExitCode;

use clap::Parser;
use lockprof::cli::args::Arguments;
use lockprof::commands;

fn main() -> ExitCode {
    match commands::run(Arguments::parse()) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}
