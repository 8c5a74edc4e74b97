//! `lockprof script`: the events of a recording as text.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use super::input;
use crate::cli::args::ScriptArgs;
use crate::cli::messages::Failure;
use crate::render::Script;

pub(super) fn run(args: &ScriptArgs) -> Result<ExitCode, Failure> {
    let mut replay = input::open(&args.input.file)?;
    let origin = replay.take_origin();
    let (kernel, _) = input::kernel_symbols(&origin, args.input.kallsyms.as_deref())?;
    let mut out = BufWriter::new(io::stdout().lock());
    let script = Script::new(&origin.events, &kernel);
    input::events(replay, &origin, |event| Ok(script.write(event, &mut out)?))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
