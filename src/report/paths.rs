//! On which lock paths CPU time went: tables and books -> [`Paths`].
//!
//! In: the table of CPU samples by stack, ids only, and the facts of each stack. Out: rows by role and
//! lock type whose times add up to all the CPU time of the target; what is in no lock code is the
//! useful work. Of samples at a point that turns interrupts on, those that [`Correction`] says are of
//! the section before go to the path of the point's caller. Idle CPUs are left out, and so are tasks that the question does not want.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::build::cgroup_of;
use super::path_history::{self, histories};
use super::quality::{self, Named};
use super::report::Header;
use super::sources::Sources;
use super::trust::Trust;
use crate::analyse::{CpuKey, CpuStackKey, TaskKey};
use crate::attribute::{Correction, CpuPath, Facts, PathRole, Point};
use crate::kernel::{Kernel, LockFunction};
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
    /// What was moved from where interrupts went on to where they were off.
    pub skid: PathSkid,
    /// How far all this can be trusted.
    pub trust: Trust,
}

/// What was moved, or why nothing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSkid {
    /// The question was for samples as taken.
    Raw,
    /// No clock of a known period sampled.
    NoClock,
    /// The samples keep no grid, or are too few to tell.
    NoGrid,
    /// Samples that are late beyond the base rate were moved.
    Moved(SkidMoved),
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkidMoved {
    /// Later than this after the clock's grid is late.
    pub late_after: Nanos,
    /// Kernel samples elsewhere.
    pub elsewhere: u64,
    /// Of those, late: the base rate. They cannot be placed.
    pub elsewhere_late: u64,
    /// CPU time that another path has now.
    pub time: Nanos,
    /// Points that turn interrupts on, most samples first.
    pub points: Vec<SkidPoint>,
}

/// A point that turns interrupts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkidPoint {
    /// Its function.
    pub function: String,
    /// Samples in it.
    pub samples: u64,
    /// Of those, late.
    pub late: u64,
    /// Of those, charged to its callers.
    pub moved: u64,
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
    /// By slice of time; empty where CPU time was not kept by time.
    pub history: Vec<Nanos>,
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
    let counted = sources.sums;
    let correction = match sources.skid {
        Some(skid) if !query.raw => Some(skid.correction()),
        _ => None,
    };
    let mut sums = Sums { correction, ..Sums::default() };
    let wanted = counted.cpu().filter(|(key, _)| is_wanted(sources, key, &query.filter));
    let mut wanted: Vec<(&CpuKey, &Spun)> = wanted.collect();
    // What is left of a sample that cannot be split goes to the next one: in one order.
    wanted.sort_unstable_by_key(|(key, _)| **key);
    wanted.into_iter().for_each(|(key, spun)| sums.add(sources, key, *spun));
    let mut all = counted.cpu_total();
    all.merge(counted.outside());
    let divide = |stack| {
        let facts = sources.attribution.known(stack);
        let divided =
            facts.map(|facts| sums.divide(sources.kernel, sources.stacks.kernel(stack), facts));
        divided.map_or((CpuPath::Unknown, None), |divided| divided.paths())
    };
    let mut histories = histories(sources, &query.filter, divide);
    Paths {
        header: quality::header(sources),
        machine: (all.samples > sums.total.samples).then_some(all),
        total: sums.total,
        idle: counted.idle(),
        skid: skid(sources.kernel, sums.correction.as_ref(), sums.moved),
        rows: rows(sums.paths, &mut histories),
        top: query.top,
        irq_off_measurable: UNLOCKS.iter().any(|name| sources.kernel.has_function(name)),
        unclassified: largest_first(sums.unclassified),
        wakings_with_stacks: quality::wakings_with_stacks(sources.origin),
        trust: quality::trust(sources, Named::default()),
    }
}

/// Whether a CPU sample is of a task that the filter asks for.
pub(super) fn is_wanted(sources: &Sources<'_>, key: &CpuKey, filter: &Filter) -> bool {
    let any = filter.comm.is_empty() && filter.pid.is_empty() && filter.tid.is_empty();
    let TaskKey::Task(task) = key.task else { return any && filter.cgroup.is_empty() };
    let cgroup = || cgroup_of(sources, TaskKey::Task(task));
    let in_cgroup = filter.cgroup.is_empty() || filter.takes_cgroup(&cgroup());
    let task = sources.tasks.info(task);
    (filter.comm.is_empty() || filter.comm.iter().any(|comm| **comm == *task.comm))
        && (filter.pid.is_empty() || filter.pid.contains(&task.pid))
        && (filter.tid.is_empty() || filter.tid.contains(&task.id.0))
        && in_cgroup
}

/// Function and caller.
type Place = (String, Option<String>);

/// Where the time of a stack went: a share of it not where it was sampled.
struct Divided {
    own: (CpuPath, Place),
    behind: Option<((CpuPath, Place), f64)>,
}

impl Divided {
    fn paths(&self) -> path_history::Divided {
        (self.own.0, self.behind.as_ref().map(|((path, _), share)| (*path, *share)))
    }
}

/// Sums on their way to rows.
#[derive(Default)]
struct Sums {
    total: Spun,
    paths: BTreeMap<CpuPath, BTreeMap<Place, Spun>>,
    unclassified: BTreeMap<String, Spun>,
    /// `None`: samples as taken.
    correction: Option<Correction>,
    /// Part of a sample that is still to be moved.
    carry: f64,
    /// Time that changed its path.
    moved: Nanos,
}

impl Sums {
    fn add(&mut self, sources: &Sources<'_>, key: &CpuKey, spun: Spun) {
        self.total.merge(spun);
        let stack = match key.kernel {
            CpuStackKey::Stack(stack) => stack,
            CpuStackKey::Path(path) => {
                return self.put(path, ("[not kept apart]".into(), None), spun);
            }
        };
        let Some(facts) = sources.attribution.known(stack) else { return };
        self.add_stack(sources.kernel, sources.stacks.kernel(stack), facts, spun);
        if let Some(function) = facts.unclassified {
            let name = sources.kernel.name(function).to_owned();
            self.unclassified.entry(name).or_default().merge(spun);
        }
    }

    fn put(&mut self, path: CpuPath, place: Place, spun: Spun) {
        self.paths.entry(path).or_default().entry(place).or_default().merge(spun);
    }

    fn add_stack(&mut self, kernel: &Kernel, frames: &[u64], facts: &Facts, spun: Spun) {
        let Divided { own: (path, place), behind } = self.divide(kernel, frames, facts);
        let Some(((behind, behind_place), share)) = behind else {
            return self.put(path, place, spun);
        };
        let (late, rest) = self.split(spun, share);
        self.moved += late.time;
        for (path, place, part) in [(behind, behind_place, late), (path, place, rest)] {
            if part != Spun::default() {
                self.put(path, place, part);
            }
        }
    }

    /// On which paths the time of a stack went.
    fn divide(&self, kernel: &Kernel, frames: &[u64], facts: &Facts) -> Divided {
        let own = place(kernel, frames, facts);
        let share = match (&self.correction, facts.point) {
            (Some(correction), Some(point)) if own.0 != CpuPath::Recording => {
                correction.share(point)
            }
            _ => 0.0,
        };
        let behind = (share > 0.0).then(|| behind(kernel, frames, facts)).flatten();
        let behind = behind.filter(|behind| behind.0 != own.0).map(|behind| (behind, share));
        Divided { own, behind }
    }

    /// Splits off a share. Samples stay whole: over all splits their number is right.
    fn split(&mut self, spun: Spun, share: f64) -> (Spun, Spun) {
        let exact = spun.samples as f64 * share + self.carry;
        let samples = (exact.round().max(0.0) as u64).min(spun.samples);
        self.carry = exact - samples as f64;
        let time = share_of(spun.time, share);
        let rest = Spun { samples: spun.samples - samples, time: spun.time.saturating_sub(time) };
        (Spun { samples, time }, rest)
    }
}

/// A share of a time.
pub(super) fn share_of(time: Nanos, share: f64) -> Nanos {
    Nanos((time.0 as f64 * share) as u64)
}

fn rows(
    paths: BTreeMap<CpuPath, BTreeMap<Place, Spun>>,
    histories: &mut HashMap<CpuPath, Vec<Nanos>>,
) -> Vec<PathRow> {
    let mut row = |(path, places): (CpuPath, BTreeMap<Place, Spun>)| {
        let mut spun = Spun::default();
        places.values().for_each(|part| spun.merge(*part));
        let parts = largest_first(places).into_iter();
        let parts = parts.map(|((function, caller), spun)| PathPart { function, caller, spun });
        let history = histories.remove(&path).unwrap_or_default();
        PathRow { path, spun, parts: parts.collect(), history }
    };
    let mut rows: Vec<PathRow> = paths.into_iter().map(&mut row).collect();
    rows.sort_by_key(|row| (row.path != CpuPath::Work, Reverse(row.spun.time), row.path));
    rows
}

/// Largest first, then by name.
fn largest_first<K: Ord>(sums: BTreeMap<K, Spun>) -> Vec<(K, Spun)> {
    let mut sums: Vec<(K, Spun)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, spun)| Reverse(spun.time));
    sums
}

/// The path of the section that ended at the innermost frame, when another one than the frame's own.
/// A section without lock code stays where it is: it is named by its caller already.
fn behind(kernel: &Kernel, frames: &[u64], facts: &Facts) -> Option<(CpuPath, Place)> {
    let ends_switch = |ip: &&u64| kernel.frame(**ip).lock.is_some_and(LockFunction::ends_switch);
    if let Some(&switch) = frames.iter().take(2).find(ends_switch) {
        let function = kernel.name(kernel.function(switch)?).to_owned();
        return Some((CpuPath::ContextSwitch, (function, None)));
    }
    let callers = frames.get(1..)?;
    let behind = place(kernel, callers, &Facts::of(kernel, callers));
    let direct = callers.first().is_some_and(|&ip| kernel.frame(ip).lock_code);
    let path = if direct { behind.0.under_wait_lock() } else { behind.0 };
    (facts.path.is_some() && matches!(path, CpuPath::Lock(..))).then_some((path, behind.1))
}

/// What was moved, in words.
fn skid(kernel: &Kernel, correction: Option<&Correction>, time: Nanos) -> PathSkid {
    let moved = match correction {
        None => return PathSkid::Raw,
        Some(Correction::NoClock) => return PathSkid::NoClock,
        Some(Correction::NoGrid) => return PathSkid::NoGrid,
        Some(Correction::Known(moved)) => moved,
    };
    let point = |point: &Point| SkidPoint {
        function: kernel.name(point.function).to_owned(),
        samples: point.samples,
        late: point.late,
        moved: (point.samples as f64 * point.share).round() as u64,
    };
    PathSkid::Moved(SkidMoved {
        late_after: moved.late_after,
        elsewhere: moved.elsewhere.0,
        elsewhere_late: moved.elsewhere.1,
        time,
        points: moved.points.iter().map(point).collect(),
    })
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
