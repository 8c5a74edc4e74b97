//! `lockprof repair`: finish the recording of a recorder that was killed.

use std::process::ExitCode;

use crate::cli::args::RepairArgs;
use crate::cli::messages::{self, Failure};
use crate::recording::{self, Repaired};

pub(super) fn run(args: &RepairArgs) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let repaired = recording::repair(path).map_err(|error| {
        let hint = error.hint();
        let error = anyhow::Error::new(error);
        Failure::new(error.context(format!("cannot repair `{}`", path.display()))).hint(hint)
    })?;
    let path = path.display();
    match repaired {
        Repaired::Good => messages::note(format_args!("{path} is a finished recording")),
        Repaired::Mended { record_bytes, dropped_bytes: 0 } => {
            messages::note(format_args!("{path} is finished now: {record_bytes} bytes of records"));
        }
        Repaired::Mended { record_bytes, dropped_bytes } => messages::note(format_args!(
            "{path} is finished now: {record_bytes} bytes of records; {dropped_bytes} bytes behind \
             the last whole one were cut off"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
