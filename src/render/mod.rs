//! Report -> bytes, one format a file.
//!
//! In: an immutable [`Report`]. Out: text for a terminal ([`Table`]), for programs ([`Json`],
//! [`Csv`]), for other tools ([`Folded`]) and for the eye ([`FlameGraph`]). Numbers become text in
//! [`units`] only; names from the machine pass [`escape`] before anybody sees them.

use std::io;

use crate::report::Report;

mod blame_json;
mod block;
pub(crate) mod cells;
mod chains;
mod csv;
mod doubts;
pub mod escape;
pub mod explain;
mod findings;
mod flamegraph;
mod folded;
mod grid;
mod json;
mod json_lines;
pub(crate) mod path_words;
mod paths;
mod paths_json;
mod phases;
pub(crate) mod paint;
pub(crate) mod paragraph;
mod readers_writers;
mod readers_writers_json;
mod script;
mod table;
mod thread_time;
mod threads_json;
mod tree;
mod trust_json;
pub mod units;

pub use block::{Block, JsonLine};
pub use csv::Csv;
pub use findings::{Sentence, sentence};
pub use flamegraph::FlameGraph;
pub use folded::{Folded, Weight};
pub(crate) use grid::Cell;
pub use json::{Json, SCHEMA, SCHEMA_VERSION};
pub use paths_json::{PATHS_SCHEMA, PATHS_SCHEMA_VERSION};
pub use script::Script;
pub use table::Table;

/// A format for `R`.
pub trait Renderer<R = Report> {
    /// Writes all of `report`, in small pieces: `out` wants a buffer. The same report gives the
    /// same bytes every time.
    ///
    /// # Errors
    /// Only those of `out`: every report can be written, an empty one too.
    fn render(&self, report: &R, out: &mut dyn io::Write) -> io::Result<()>;
}
