<<<<<<< HEAD
//! symbolize
use std::path::Path;
/// The build id of the ELF file at `path`.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    use object::Object;
    let file = std::fs::File::open(path).ok()?;
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    elf.build_id().ok()?.map(<[u8]>::to_vec)
}
=======
//! (object, offset) -> the function's name, or the reason why there is none.
//!
//! In: [`UserFrame`]s, at report time, and the book of objects. Symbols are read from ELF files
//! (at their recorded path, in debug directories, in caches of perf and debuginfod) and from the
//! `perf-PID.map` files that JIT compilers write. Out: names, demangled. A file that is not the one
//! that was recorded gives none: its names would be wrong without looking so.
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

pub use locate::Places;
pub use reason::Reason;
pub use symbolizer::{Source, Symbol, Symbolizer};
>>>>>>> symbolize
