//! `report --by path`: on which lock paths CPU time goes, on every kernel era.
//!
//! `LOCKPROF_BLESS=1 cargo test --test lock_paths` writes the goldens of the recordings anew; look at
//! the diff.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod eras;
mod recordings;
mod rules;

use lockprof::attribute::CpuPath;
use lockprof::kernel::Kernel;
use lockprof::report::Paths;

/// Where the made-up functions begin, 0x100 bytes each.
const FIRST: u64 = 0xffff_ffff_8100_0000;

/// A kernel that has these functions, and the stack of them, innermost first.
fn stack(functions: &[&str]) -> (Kernel, Vec<u64>) {
    let addresses = || (0..).map(|at| FIRST + at * 0x100);
    let line = |(name, addr): (&&str, u64)| format!("{addr:x} T {name}\n");
    let text: String = functions.iter().zip(addresses()).map(line).collect();
    let frames = functions.iter().zip(addresses()).map(|(_, addr)| addr + 0x10).collect();
    (Kernel::from_kallsyms(text.as_bytes()), frames)
}

/// `spin rwsem:W`, as the table of a report says it.
fn words(path: CpuPath) -> String {
    match path {
        CpuPath::Lock(role, lock_type) => format!("{role:?} {lock_type}"),
        other => format!("{other:?}"),
    }
}

/// The share of a path, in percent.
fn percent(paths: &Paths, path: &str) -> f64 {
    let wanted = paths.rows.iter().filter(|row| words(row.path).starts_with(path));
    wanted.map(|row| 100.0 * paths.share(row.spun)).sum()
}
