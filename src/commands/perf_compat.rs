//! `lockprof report --perf-compat`: the numbers of `perf lock contention --stack-skip 0`, and where
//! lockprof's own differ from them.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::anyhow;

use super::input;
use crate::cli::args::{By, Format, ReportArgs};
use crate::cli::messages::{self, Failure};
use crate::perf_compat::{PerfCompat, Walk};

pub(super) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    if args.by == By::Releaser {
        return Err(anyhow!("perf has no rows by releaser to compare with").into());
    }
    let mut replay = input::open(&args.input.file)?;
    let origin = replay.take_origin();
    let (kernel, _) = input::kernel_symbols(&origin, args.input.kallsyms.as_deref())?;
    let mut compat = PerfCompat::new(args.by.into(), Walk::default());
    input::events(replay, &origin, |event| {
        compat.push(event, &kernel);
        Ok(())
    })?;
    let report = compat.finish();
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        _ => report.write_table(&mut out)?,
    }
    out.flush()?;
    if report.differences.ends_without_callchain > 0 && args.by == By::Site {
        messages::note("perf takes callers from the ends of waits, which carry no callchain here;");
        messages::note("record with `lockprof record --perf-compat` for its table by caller");
    }
    Ok(ExitCode::SUCCESS)
}
