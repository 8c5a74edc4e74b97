//! The table of kernels and checks, as text.
//!
//! In: what each check said of each kernel. Out: a line a check, a column a kernel, then the failures and
//! what was skipped, in full.

use std::fmt::{self, Display};

use crate::checks::{Said, Wrong};

/// What stands where a line and a column meet.
pub(crate) enum Cell {
    /// What the check said.
    Said(Said),
    /// There is nothing to check on this kernel.
    NotHere,
    /// The kernel or its guest is not there.
    Skipped,
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Cell::Said(Ok(word)) => format!("ok {word}"),
            Cell::Said(Err(Wrong::Failed(_))) => "FAILED".into(),
            Cell::NotHere => "-".into(),
            Cell::Skipped | Cell::Said(Err(Wrong::NotTold(_))) => "SKIPPED".into(),
        }
    }
}

/// Columns and lines.
pub(crate) struct Matrix {
    /// Kernels.
    pub(crate) columns: Vec<String>,
    /// Checks, with a cell a kernel.
    pub(crate) lines: Vec<(String, Vec<Cell>)>,
    /// Why kernels or guests are not there.
    pub(crate) skipped: Vec<String>,
}

impl Matrix {
    /// The checks that failed, with their kernels.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.wrong(|wrong| match wrong {
            Wrong::Failed(why) => Some(why),
            Wrong::NotTold(_) => None,
        })
    }

    /// The checks that could not be told, with their kernels.
    fn not_told(&self) -> Vec<String> {
        self.wrong(|wrong| match wrong {
            Wrong::Failed(_) => None,
            Wrong::NotTold(why) => Some(why),
        })
    }

    fn wrong(&self, wanted: impl Fn(&Wrong) -> Option<&String>) -> Vec<String> {
        let mut found = Vec::new();
        for (check, cells) in &self.lines {
            for (kernel, cell) in self.columns.iter().zip(cells) {
                if let Cell::Said(Err(wrong)) = cell {
                    let why = wanted(wrong).map(|why| format!("{kernel}: {check}: {why}"));
                    found.extend(why);
                }
            }
        }
        found
    }
}

impl Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_told = self.not_told();
        let first = self.lines.iter().map(|(check, _)| check.len()).max().unwrap_or(0);
        let cells: Vec<Vec<String>> = self.lines.iter().map(|(_, cells)| texts(cells)).collect();
        let width = |column: usize| {
            let below = cells.iter().filter_map(|line| line.get(column)).map(String::len).max();
            below.unwrap_or(0).max(self.columns[column].len())
        };
        write!(f, "{:first$}", "")?;
        for (at, kernel) in self.columns.iter().enumerate() {
            write!(f, "  {kernel:width$}", width = width(at))?;
        }
        writeln!(f)?;
        for ((check, _), line) in self.lines.iter().zip(&cells) {
            write!(f, "{check:first$}")?;
            for (at, text) in line.iter().enumerate() {
                write!(f, "  {text:width$}", width = width(at))?;
            }
            writeln!(f)?;
        }
        let skipped = self.skipped.iter().chain(&not_told);
        for why in skipped {
            writeln!(f, "SKIPPED {why}")?;
        }
        self.failures().iter().try_for_each(|why| writeln!(f, "FAILED {why}"))
    }
}

fn texts(cells: &[Cell]) -> Vec<String> {
    cells.iter().map(Cell::text).collect()
}
