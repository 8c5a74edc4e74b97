//! `lockprof doctor`: what recording needs on this machine, and what mends what is missing.
//!
//! ```text
//! ok    kernel               6.18.44: contention events (Linux 5.19 and later)
//! fail  perf_event_paranoid  2: users without CAP_PERFMON see only their own processes
//!         sudo sysctl kernel.perf_event_paranoid=-1
//! ```
//!
//! Out: the lines, or JSON; exit status 1 when a check fails.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::output;
use crate::cli::args::DoctorArgs;
use crate::cli::checks::{self, Check, Level};
use crate::cli::messages::Failure;
use crate::render::escape::visible;
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::wrap;
use crate::render::units;

/// Goes up when a field changes its name, type or meaning; new fields and checks do not count.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    lockprof_version: &'static str,
    verdict: Level,
    checks: &'a [Check],
}

pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let checks = checks::all(args.program.as_deref());
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        write_json(&checks, &mut out)?;
    } else {
        let (width, color) = output::of_stdout();
        write_lines(&checks, width, Paint { color }, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(worst(&checks) == Level::Fail)))
}

fn worst(checks: &[Check]) -> Level {
    checks.iter().map(|check| check.level).max().unwrap_or(Level::Ok)
}

fn write_json(checks: &[Check], out: &mut impl Write) -> io::Result<()> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        lockprof_version: env!("CARGO_PKG_VERSION"),
        verdict: worst(checks),
        checks,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn write_lines(
    checks: &[Check],
    width: usize,
    paint: Paint,
    out: &mut impl Write,
) -> io::Result<()> {
    let names = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let word = check.level.word();
        let start = format!("{word:4}  {:names$}  ", check.name);
        let mut lines = wrap(&start, &visible(&check.found), width);
        if let Some(rest) = lines.first().and_then(|line| line.strip_prefix(word)) {
            lines[0] = format!("{}{rest}", paint.apply(style(check.level), word));
        }
        for line in lines {
            writeln!(out, "{line}")?;
        }
        for command in check.remedy.iter().flat_map(|remedy| remedy.lines()) {
            writeln!(out, "        {}", visible(command))?;
        }
    }
    writeln!(out)?;
    wrap("", &verdict(checks), width).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn style(level: Level) -> Style {
    match level {
        Level::Ok => Style::Plain,
        Level::Warn => Style::Warning,
        Level::Fail => Style::Strong,
    }
}

fn verdict(checks: &[Check]) -> String {
    let of = |level| checks.iter().filter(move |check| check.level == level);
    let warnings = of(Level::Warn).count();
    let failed: Vec<&str> = of(Level::Fail).map(|check| check.name).collect();
    let with = match warnings {
        0 => String::new(),
        count => format!(", with {}", units::counted(count as u64, "warning")),
    };
    if failed.is_empty() {
        return format!("verdict: ready to record{with}");
    }
    format!("verdict: not ready to record{with}. To be mended: {}", failed.join(", "))
}
