//! (object, offset) -> the function's name, or the reason why there is none.
//!
//! In: frames ([`UserFrame`](crate::model::UserFrame)) at report time, and the book of objects.
//! Symbols are read from ELF files (at their recorded path, in debug directories, in caches of perf
//! and debuginfod) and from the `perf-PID.map` files that JIT compilers write. Out: names,
//! demangled. A file that is not the one that was recorded gives none: its names would be wrong
//! without looking so.
//!
//! Names come from the machine: whoever prints them escapes them.

mod demangle;
mod elf;
mod image;
mod locate;
mod perf_map;
mod reason;
mod symbolizer;
mod table;
mod vdso;

use std::path::Path;

pub use locate::Places;
pub use reason::Reason;
pub use symbolizer::{Source, Symbol, Symbolizer};

/// The build id of the ELF file at `path`; `None` when it is no such file or has none.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    elf::Elf::open(path).ok()?.build_id()
}
