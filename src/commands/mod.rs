//! One file a subcommand: the arguments in, bytes on stdout, an exit status out.

mod doctor;
mod flamegraph;
mod hammer;
mod input;
mod manual;
mod output;
mod repair;
mod report;
mod script;

use std::process::ExitCode;

use crate::cli::args::{Arguments, Command};
use crate::cli::messages::Failure;

/// Does what was asked for.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Report(args) => report::run(&args),
        Command::Flamegraph(args) => flamegraph::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Hammer(args) => hammer::run(args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::pages(&args),
        _ => Err(Failure::new(anyhow::anyhow!("not built yet"))),
    }
}
