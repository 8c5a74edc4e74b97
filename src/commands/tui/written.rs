//! Files that are written from a screen: what is shown, in another form.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::model::Query;
use crate::render::{FlameGraph, Json, Renderer, Weight};
use crate::report::Report;
use crate::tui::{Format, Question};

/// Names tried before another directory is asked for.
const NAMES: u32 = 1000;

/// What has to be asked for a file.
pub(super) fn query(format: Format, question: &Question) -> Query {
    Query { stacks: format == Format::FlameGraph, ..question.query.clone() }
}

/// Writes a report and says where, or why not.
pub(super) fn write(report: &Report, format: Format) -> String {
    match try_write(report, format) {
        Ok(path) => format!("written: {}", path.display()),
        Err(error) => format!("not written: {error}"),
    }
}

fn try_write(report: &Report, format: Format) -> io::Result<PathBuf> {
    let (path, file) = create(if format == Format::Json { "json" } else { "svg" })?;
    let mut out = BufWriter::new(file);
    match format {
        Format::FlameGraph => FlameGraph { weight: Weight::Wait }.render(report, &mut out)?,
        Format::Json => Json.render(report, &mut out)?,
    }
    out.flush()?;
    Ok(path)
}

/// A new file in this directory: nothing is overwritten by a key.
fn create(extension: &str) -> io::Result<(PathBuf, std::fs::File)> {
    let mut last = None;
    for n in 1..=NAMES {
        let path = PathBuf::from(format!("lockprof-{n}.{extension}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}
