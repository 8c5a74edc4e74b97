//! On which lock paths CPU time went: tables and books -> [`Paths`].
//!
//! In: the table of CPU samples by stack, ids only, and the facts of each stack. Out: rows by role and
//! lock type whose times add up to all the CPU time of the target; what is in no lock code is the
//! useful work. Idle CPUs are left out, and so are tasks that the question does not want.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::build::Sources;
use super::quality::{self, Named};
use super::report::Header;
use super::trust::Trust;
use crate::analyse::CpuKey;
use crate::attribute::{CpuPath, Facts, PathRole};
use crate::kernel::Kernel;
use crate::model::{Filter, Nanos, PathQuery, Spun};

/// Functions that turn interrupts on as they release a spinlock. Kernels that inline them (arm64
/// without preemption, s390) have none.
const UNLOCKS: [&str; 4] = [
    "_raw_spin_unlock_irqrestore",
    "_raw_spin_unlock_irq",
    "_spin_unlock_irqrestore",
    "_spin_unlock_irq",
];

/// The function of a frame that has no symbol.
pub const NO_SYMBOL: &str = "[no symbol]";

/// Where the CPU time of a recording went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// What was recorded.
    pub header: Header,
    /// The CPU time that was asked about; all rows together.
    pub total: Spun,
    /// All the CPU time that was sampled, where that is more than was asked about; idle CPUs left
    /// out.
    pub machine: Option<Spun>,
    /// Samples of idle CPUs.
    pub idle: Spun,
    /// Useful work first, then the largest first.
    pub rows: Vec<PathRow>,
    /// How many rows the user wants to see; 0 for all. All rows are here.
    pub top: usize,
    /// Whether this kernel has the functions that interrupts-off time shows up in.
    pub irq_off_measurable: bool,
    /// Lock code by its section of kernel text that the symbol table does not have, by CPU time.
    pub unclassified: Vec<(String, Spun)>,
    /// Wakings were recorded with their stacks: inside the locks of the run queues.
    pub wakings_with_stacks: bool,
    /// How far all this can be trusted.
    pub trust: Trust,
}

/// A lock path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRow {
    /// Which.
    pub path: CpuPath,
    /// Its CPU time.
    pub spun: Spun,
    /// By function and caller, largest first.
    pub parts: Vec<PathPart>,
}

/// The CPU time of a path in one function for one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// The innermost function of lock code; of other code the innermost function at all, `[user]`
    /// for the program itself.
    pub function: String,
    /// The first caller that is neither lock code nor a wrapper.
    pub caller: Option<String>,
    /// Its CPU time.
    pub spun: Spun,
}

/// On which lock paths CPU time went.
pub fn paths(sources: &Sources<'_>, query: &PathQuery) -> Paths {
    let tables = sources.tables;
    let mut sums = Sums::default();
    for (key, spun) in tables.cpu().filter(|(key, _)| is_wanted(sources, key, &query.filter)) {
        sums.add(sources, key, *spun);
    }
    let mut all = tables.cpu_total();
    all.merge(tables.outside());
    Paths {
        header: quality::header(sources),
        machine: (all.samples > sums.total.samples).then_some(all),
        total: sums.total,
        idle: tables.idle(),
        rows: rows(sums.paths),
        top: query.top,
        irq_off_measurable: UNLOCKS.iter().any(|name| sources.kernel.has_function(name)),
        unclassified: largest_first(sums.unclassified),
        wakings_with_stacks: quality::wakings_with_stacks(sources.origin),
        trust: quality::trust(sources, Named::default()),
    }
}

fn is_wanted(sources: &Sources<'_>, key: &CpuKey, filter: &Filter) -> bool {
    let any = filter.comm.is_empty() && filter.pid.is_empty() && filter.tid.is_empty();
    let Some(task) = key.task else { return any };
    let task = sources.tasks.info(task);
    (filter.comm.is_empty() || filter.comm.iter().any(|comm| **comm == *task.comm))
        && (filter.pid.is_empty() || filter.pid.contains(&task.pid))
        && (filter.tid.is_empty() || filter.tid.contains(&task.id.0))
}

/// Function and caller.
type Place = (String, Option<String>);

/// Sums on their way to rows.
#[derive(Default)]
struct Sums {
    total: Spun,
    paths: BTreeMap<CpuPath, BTreeMap<Place, Spun>>,
    unclassified: BTreeMap<String, Spun>,
}

impl Sums {
    fn add(&mut self, sources: &Sources<'_>, key: &CpuKey, spun: Spun) {
        self.total.merge(spun);
        let frames = sources.stacks.kernel(key.kernel);
        let facts = sources.attribution.known(key.kernel);
        let (path, place) = match facts {
            Some(facts) if key.task.is_some() => place(sources.kernel, frames, facts),
            _ => (CpuPath::Unknown, ("[not kept apart]".into(), None)),
        };
        self.paths.entry(path).or_default().entry(place).or_default().merge(spun);
        if let Some(function) = facts.and_then(|facts| facts.unclassified) {
            let name = sources.kernel.name(function).to_owned();
            self.unclassified.entry(name).or_default().merge(spun);
        }
    }
}

fn rows(paths: BTreeMap<CpuPath, BTreeMap<Place, Spun>>) -> Vec<PathRow> {
    let row = |(path, places): (CpuPath, BTreeMap<Place, Spun>)| {
        let mut spun = Spun::default();
        places.values().for_each(|part| spun.merge(*part));
        let parts = largest_first(places).into_iter();
        let parts = parts.map(|((function, caller), spun)| PathPart { function, caller, spun });
        PathRow { path, spun, parts: parts.collect() }
    };
    let mut rows: Vec<PathRow> = paths.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.path != CpuPath::Work, Reverse(row.spun.time), row.path));
    rows
}

/// Largest first, then by name.
fn largest_first<K: Ord>(sums: BTreeMap<K, Spun>) -> Vec<(K, Spun)> {
    let mut sums: Vec<(K, Spun)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, spun)| Reverse(spun.time));
    sums
}

/// The path of a stack, and where in it.
fn place(kernel: &Kernel, frames: &[u64], facts: &Facts) -> (CpuPath, Place) {
    let name = |function| kernel.name(function).to_owned();
    let path = facts.cpu_path();
    if let (CpuPath::Lock(..), Some(lock)) = (path, facts.path) {
        return (path, (name(lock.function), facts.site.caller.map(name)));
    }
    let Some(&innermost) = frames.first() else { return (path, ("[user]".into(), None)) };
    match kernel.function(innermost) {
        Some(function) => (path, (name(function), None)),
        None if frames.iter().all(|&ip| kernel.function(ip).is_none()) => {
            (CpuPath::Unknown, (NO_SYMBOL.into(), None))
        }
        None => (path, (NO_SYMBOL.into(), None)),
    }
}

impl Paths {
    /// The share of the CPU time asked about, 0 to 1.
    pub fn share(&self, spun: Spun) -> f64 {
        share(spun, self.total)
    }

    /// The share of all the CPU time that was sampled.
    pub fn machine_share(&self, spun: Spun) -> Option<f64> {
        self.machine.map(|machine| share(spun, machine))
    }

    /// CPU time in lock code.
    pub fn lock_time(&self) -> Nanos {
        let in_lock = |row: &&PathRow| matches!(row.path, CpuPath::Lock(..));
        self.rows.iter().filter(in_lock).map(|row| row.spun.time).sum()
    }

    /// CPU time of one path; nothing when it is not there.
    pub fn of(&self, path: CpuPath) -> Spun {
        let row = self.rows.iter().find(|row| row.path == path);
        row.map_or(Spun::default(), |row| row.spun)
    }

    /// CPU time of one role, whatever the lock.
    pub fn of_role(&self, role: PathRole) -> Spun {
        let mut sum = Spun::default();
        for row in &self.rows {
            if matches!(row.path, CpuPath::Lock(of, _) if of == role) {
                sum.merge(row.spun);
            }
        }
        sum
    }
}

fn share(part: Spun, all: Spun) -> f64 {
    if all.time == Nanos::ZERO { 0.0 } else { part.time.0 as f64 / all.time.0 as f64 }
}
