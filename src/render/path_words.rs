//! Lock paths in words: `spin rwsem:W`, and where in the kernel that is.
//!
//! In: paths and their parts. Out: the words of DESIGN.md, for people and for programs.

use crate::attribute::{CpuPath, PathRole};
use crate::model::Spun;
use crate::render::escape::visible;
use crate::render::units;
use crate::report::PathRow;

/// The word for what the CPU does.
pub(crate) fn path(path: CpuPath) -> &'static str {
    match path {
        CpuPath::Work => "useful work",
        CpuPath::Lock(PathRole::Acquire, _) => "acquire",
        CpuPath::Lock(PathRole::Spin, _) => "spin",
        CpuPath::Lock(PathRole::WaitLock, _) => "wait-lock",
        CpuPath::Lock(PathRole::Block, _) => "block",
        CpuPath::Lock(PathRole::Wake, _) => "wake",
        CpuPath::Lock(PathRole::Release, _) => "release",
        CpuPath::Lock(PathRole::IrqOff, _) => "irq-off",
        CpuPath::Lock(PathRole::Recording, _) | CpuPath::Recording => "recording",
        CpuPath::ContextSwitch => "context switch",
        CpuPath::Unknown => "unknown",
    }
}

/// With which lock.
pub(crate) fn lock_type(path: CpuPath) -> Option<String> {
    match path {
        CpuPath::Lock(_, lock_type) => Some(lock_type.to_string()),
        CpuPath::Work | CpuPath::ContextSwitch => None,
        CpuPath::Recording | CpuPath::Unknown => None,
    }
}

/// Functions and callers named on a line.
const NAMED: usize = 3;

/// In which functions: `osq_lock 66 %, rwsem_spin_on_owner 34 %`.
pub(super) fn functions(row: &PathRow) -> String {
    shares(row.parts.iter().map(|part| (part.function.as_str(), part.spun)), row.spun)
}

/// For which callers; empty where none are known.
pub(super) fn callers(row: &PathRow) -> String {
    let known = row.parts.iter().filter_map(|part| Some((part.caller.as_deref()?, part.spun)));
    shares(known, row.spun)
}

/// The largest names with their shares; a share that all have is not said.
fn shares<'a>(parts: impl Iterator<Item = (&'a str, Spun)>, all: Spun) -> String {
    let mut sums: Vec<(&str, Spun)> = Vec::new();
    for (name, spun) in parts {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => sum.merge(spun),
            None => sums.push((name, spun)),
        }
    }
    sums.sort_by(|a, b| b.1.time.cmp(&a.1.time).then_with(|| a.0.cmp(b.0)));
    let alone = sums.len() == 1;
    let word = |(name, spun): &(&str, Spun)| match alone {
        true => visible(name).into_owned(),
        false => format!("{} {}", visible(name), units::percent(units::share(spun.time, all.time))),
    };
    sums.iter().take(NAMED).map(word).collect::<Vec<_>>().join(", ")
}
