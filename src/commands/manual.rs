//! `lockprof completions` and `lockprof man`: from the same definitions as the command line.

use std::fs;
use std::io;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::args::{Arguments, CompletionsArgs, ManArgs};
use crate::cli::messages::Failure;

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut command = Arguments::command();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lockprof", &mut text);
    io::Write::write_all(&mut io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn pages(args: &ManArgs) -> Result<ExitCode, Failure> {
    let directory = &args.directory;
    let cannot = || format!("cannot write man pages into `{}`", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(Arguments::command(), directory).with_context(cannot)?;
    Ok(ExitCode::SUCCESS)
}
