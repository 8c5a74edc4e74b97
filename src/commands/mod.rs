//! One file a subcommand: the arguments in, bytes on stdout, an exit status out.

mod demo;
mod doctor;
mod exec;
mod explain;
mod flamegraph;
mod hammer;
mod input;
mod manual;
mod output;
mod perf_compat;
mod read_ahead;
mod record;
mod repair;
mod report;
mod script;
mod top;
mod tui;

use std::process::ExitCode;

use crate::cli::args::{Arguments, Command};
use crate::cli::messages::Failure;

/// Does what was asked for.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Record(args) => record::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Report(args) if args.perf_compat => perf_compat::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Tui(args) => tui::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Flamegraph(args) => flamegraph::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Hammer(args) => hammer::run(args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::pages(&args),
    }
}
