//! The hidden half of `record -- COMMAND`: waits at the gate, then becomes the command.

use std::process::ExitCode;

use lockprof_collectors::workload::{exec_stub, own_terminal};

use crate::cli::args::{ExecArgs, OWN_TERMINAL};
use crate::cli::messages::Failure;

pub(super) fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let mut words = args.words.as_slice();
    if let Some((_, rest)) = words.split_first().filter(|(first, _)| *first == OWN_TERMINAL) {
        words = rest;
        // Without it the command runs all the same; its keys cannot interrupt it.
        let _ = own_terminal();
    }
    let (gate, command) = words.split_first().ok_or_else(|| anyhow::anyhow!("no gate"))?;
    let gate: i32 = gate.to_string_lossy().parse()?;
    // The recorder was told why and says it; this process only ends.
    let error = exec_stub(gate, command);
    Ok(ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}
