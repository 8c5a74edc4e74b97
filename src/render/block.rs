//! A report in a few lines, one block after the other: for logs, as vmstat(8) does it.
//!
//! In: the report of an interval. Out: its sum in a line, the table of its rows, an empty line; or as
//! JSON, one document a line.

use std::io;

use crate::render::cells::Shape;
use crate::render::grid::Grid;
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::shorten;
use crate::render::{Json, Renderer, units};
use crate::report::{Report, Row};

/// The text.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to colour.
    pub color: bool,
}

impl Renderer for Block {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let paint = Paint { color: self.color };
        let sum = shorten(&sum(report), self.width);
        writeln!(out, "{}", paint.apply(Style::Strong, &sum))?;
        let shown = if report.top == 0 { report.rows.len() } else { report.top };
        let rows: Vec<&Row> = report.rows.iter().take(shown).collect();
        if !rows.is_empty() {
            let shape = Shape::of(report, &rows);
            let mut grid = Grid::new(shape.columns());
            rows.iter().for_each(|row| grid.row(shape.row(row)));
            for line in grid.print(self.width, paint).0 {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)
    }
}

/// All of an interval in a sentence.
fn sum(report: &Report) -> String {
    let total = &report.total;
    let elapsed = units::time(report.header.elapsed);
    let waits = units::counted(total.contended(), "wait");
    let mut words = format!("{elapsed}: waited {} in {waits}", units::time(total.wait()));
    if total.waiting > 0 {
        let oldest = units::time(total.oldest);
        words += &format!(", now {} waiting, oldest {oldest}", units::count(total.waiting));
    }
    let lost: u64 = report.trust.lost.iter().map(|(_, lost)| lost).sum();
    if lost > 0 {
        words += &format!("; lost {} records so far", units::count(lost));
    }
    words
}

/// [`Json`], one document a line.
#[derive(Clone, Copy, Debug)]
pub struct JsonLine;

impl Renderer for JsonLine {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut text = Vec::new();
        Json.render(report, &mut text)?;
        // A line break inside of a JSON string is written out: these are all of the layout.
        for line in text.split(|byte| *byte == b'\n') {
            out.write_all(line.trim_ascii_start())?;
        }
        out.write_all(b"\n")
    }
}
