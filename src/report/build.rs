//! Tables and books -> report: group, filter, name, sort.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::blame;
use super::blame_stacks::blame_stacks;
use super::chains::{WaitChains, wait_chains};
use super::cpu_stacks::cpu_stacks;
use super::lock_name::{Evidence, LockNames};
use super::quality::{self, Named};
use super::report::{LockName, NameEvidence, Report, Row, RowKey, Split, StackShare, TaskName};
use super::{thread_time, unnamed_kind, user_locks};
use crate::analyse::{CellKey, StackKey, Tables, TaskKey};
use crate::attribute::{Attribution, Facts, Site, Skid};
use crate::correlate::{Chains, Counts, SleepCounts, Tasks};
use crate::kernel::Kernel;
use crate::model::{
    Context, Cpu, Filter, FunctionId, GroupBy, HolderTimes, LockKind, LockType, Nanos, Query,
    SortKey, StackId, Timestamp, WaitStat,
};
use crate::order::OrderFaults;
use crate::recording::Origin;
use crate::stacks::Stacks;
use crate::symbolize::Symbolizer;
use crate::unwind::Objects;

/// Everything that a report is made of: the books and what the stages counted.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Sources<'a> {
    pub origin: &'a Origin,
    pub kernel: &'a Kernel,
    pub kernel_symbols: &'a str,
    pub stacks: &'a Stacks,
    pub objects: &'a Objects,
    pub symbolizer: &'a RefCell<Symbolizer>,
    pub tasks: &'a Tasks,
    pub attribution: &'a Attribution,
    pub tables: &'a Tables,
    pub counts: Counts,
    pub lost: BTreeMap<Option<Cpu>, u64>,
    pub throttled: u64,
    pub unreadable: Vec<(String, u64)>,
    pub order: OrderFaults,
    pub records: u64,
    pub cpu_samples: u64,
    pub skid: Option<&'a Skid>,
    pub copies: u64,
    pub wakings: bool,
    pub switches: bool,
    pub sched_missing: (Option<Timestamp>, u64),
    pub sleeps: Option<SleepCounts>,
    pub chains: Option<&'a Chains>,
}

/// One cell of the tables in words.
pub(super) struct Cell<'a> {
    pub(super) key: &'a CellKey,
    pub(super) stat: &'a WaitStat,
    /// What those did who are charged with its waits.
    pub(super) holder: HolderTimes,
    pub(super) caller: Option<&'a str>,
    pub(super) wrappers: Vec<&'a str>,
    pub(super) lock: LockName,
    pub(super) task: TaskName,
}

impl Cell<'_> {
    fn add_to(&self, sum: &mut WaitStat) {
        sum.merge(self.stat);
        sum.holder.merge(&self.holder);
    }
}

/// Puts the answer to `query` into words.
pub fn build(sources: &Sources<'_>, query: &Query) -> Report {
    let names = learn_names(sources);
    let holders = blame::holders(sources);
    let holder_of = |key| holders.get(key).copied().unwrap_or_default();
    let mut cells: Vec<Cell<'_>> = sources
        .tables
        .waits()
        .map(|(key, stat)| Cell { holder: holder_of(key), ..cell(sources, &names, key, stat) })
        .collect();
    let lock_wait = thread_time::lock_wait(&cells, &query.filter);
    cells.retain(|cell| passes(cell, &query.filter));
    if query.by == GroupBy::Lock {
        one_name_a_lock(&mut cells);
    }
    let mut total = WaitStat::default();
    cells.iter().for_each(|cell| cell.add_to(&mut total));
    let charged = sources.wakings.then(|| blame::charged(sources, &names, &query.filter));
    let mut report = Report {
        header: quality::header(sources),
        by: query.by,
        sort: query.sort,
        top: query.top,
        rows: match query.by.is_blame() {
            true => blame::rows(sources, &names, query, &total),
            false => rows(sources, &cells, query),
        },
        thread_time: thread_time::thread_time(sources, &query.filter, lock_wait),
        user_locks: user_locks::user_locks(sources, &query.filter),
        chains: match query.by.is_blame() {
            true => wait_chains(sources, &names, query),
            false => WaitChains::default(),
        },
        blame_stacks: match query.stacks && query.by == GroupBy::Blame {
            true => blame_stacks(sources, &names, &query.filter, &cells),
            false => Vec::new(),
        },
        charged: match sources.wakings {
            true => blame::charged_rows(sources, &names, &query.filter, &total),
            false => Vec::new(),
        },
        cpu_stacks: if query.stacks { cpu_stacks(sources, &query.filter) } else { Vec::new() },
        trust: quality::trust(sources, named(&cells, charged)),
        total,
    };
    report.sort_rows();
    report
}

/// Cells that pass the filter, with their wait.
pub(super) fn wanted_waits<'a>(
    sources: &Sources<'a>,
    filter: &Filter,
) -> Vec<(&'a CellKey, Nanos)> {
    let names = learn_names(sources);
    let cells = sources.tables.waits().map(|(key, stat)| cell(sources, &names, key, stat));
    cells.filter(|cell| passes(cell, filter)).map(|cell| (cell.key, cell.stat.wait())).collect()
}

fn facts<'a>(sources: &Sources<'a>, key: &CellKey) -> Option<&'a Facts> {
    match key.kernel {
        StackKey::Stack(stack) => sources.attribution.known(stack),
        _ => None,
    }
}

fn caller<'a>(sources: &Sources<'a>, key: &CellKey) -> Option<&'a str> {
    let function = match key.kernel {
        StackKey::Stack(stack) => sources.attribution.known(stack)?.site.caller,
        StackKey::Site(site) => site,
        StackKey::Folded => None,
    };
    caller_of(sources, function)
}

pub(super) fn caller_of<'a>(
    sources: &Sources<'a>,
    function: Option<FunctionId>,
) -> Option<&'a str> {
    function.map(|function| sources.kernel.name(function))
}

pub(super) fn wrapper_names<'a>(
    sources: &Sources<'a>,
    site: Option<&'a Site>,
) -> impl Iterator<Item = &'a str> {
    let kernel = sources.kernel;
    let wrappers = site.map_or(&[][..], |site| &site.wrappers);
    wrappers.iter().map(|&wrapper| kernel.name(wrapper))
}

fn learn_names(sources: &Sources<'_>) -> LockNames {
    let evidence = sources.tables.waits().map(|(key, _)| Evidence {
        lock: key.lock,
        lock_type: key.lock_type,
        caller: caller(sources, key),
    });
    LockNames::learn(evidence, &sources.origin.host.release)
}

pub(super) fn cell<'a>(
    sources: &Sources<'a>,
    names: &LockNames,
    key: &'a CellKey,
    stat: &'a WaitStat,
) -> Cell<'a> {
    let caller = caller(sources, key);
    let site = facts(sources, key).map(|facts| &facts.site);
    let evidence = Evidence { lock: key.lock, lock_type: key.lock_type, caller };
    Cell {
        key,
        stat,
        holder: HolderTimes::default(),
        caller,
        wrappers: wrapper_names(sources, site).collect(),
        lock: unnamed_kind(sources, key, caller)
            .unwrap_or_else(|| names.name(evidence, sources.kernel)),
        task: task_name(sources, key.context, key.task),
    }
}

/// The name of a lock that only its own code knows.
fn unnamed_kind(sources: &Sources<'_>, key: &CellKey, caller: Option<&str>) -> Option<LockName> {
    let path = facts(sources, key).filter(|_| key.lock_type.kind == LockKind::Unknown)?.path?;
    unnamed_kind::name(sources.kernel.name(path.function), caller)
}

pub(super) fn task_name(sources: &Sources<'_>, context: Context, task: TaskKey) -> TaskName {
    let pseudo = |comm: &str| TaskName { comm: comm.into(), pid: 0, tid: 0 };
    match (context, task) {
        (Context::Softirq, _) => pseudo("[softirq]"),
        (Context::Hardirq, _) => pseudo("[hardirq]"),
        (Context::Nmi, _) => pseudo("[nmi]"),
        (Context::Task, TaskKey::Folded) => pseudo("[many tasks]"),
        (Context::Task, TaskKey::Task(task)) => {
            let info = sources.tasks.info(task);
            let comm = match info.comm.as_ref() {
                "" if info.id.0 == 0 => "swapper".to_owned(),
                "" => format!("[task {}]", info.id.0),
                comm => comm.to_owned(),
            };
            TaskName { comm, pid: info.pid, tid: info.id.0 }
        }
    }
}

pub(super) fn passes(cell: &Cell<'_>, filter: &Filter) -> bool {
    let any = |list: &[String], matches: &dyn Fn(&str) -> bool| {
        list.is_empty() || list.iter().any(|wanted| matches(wanted))
    };
    let caller = |wanted: &str| {
        cell.caller.iter().chain(&cell.wrappers).any(|function| function.contains(wanted))
    };
    (filter.lock_type.is_empty() || filter.lock_type.iter().any(|t| t.matches(cell.key.lock_type)))
        && any(&filter.caller, &caller)
        && any(&filter.lock, &|wanted| is_lock(cell, wanted))
        && any(&filter.comm, &|wanted| cell.task.comm == wanted)
        && (filter.pid.is_empty() || filter.pid.contains(&cell.task.pid))
        && (filter.tid.is_empty() || filter.tid.contains(&cell.task.tid))
}

/// By name, in either spelling of the mmap_lock, or by address.
fn is_lock(cell: &Cell<'_>, wanted: &str) -> bool {
    let spelling = |name: &str| name.replace("mmap_sem", "mmap_lock");
    let address = wanted.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    match address {
        Some(address) => cell.key.lock.is_some_and(|lock| lock.0 == address),
        None => spelling(&cell.lock.name) == spelling(wanted),
    }
}

fn named(cells: &[Cell<'_>], charged: Option<Nanos>) -> Named {
    let wait = |wanted: &dyn Fn(&Cell<'_>) -> bool| -> Nanos {
        cells.iter().filter(|cell| wanted(cell)).map(|cell| cell.stat.wait()).sum()
    };
    Named {
        caller: wait(&|cell| cell.caller.is_some()),
        lock: wait(&|cell| cell.lock.evidence != NameEvidence::Caller),
        charged,
        all: wait(&|_| true),
    }
}

fn rows(sources: &Sources<'_>, cells: &[Cell<'_>], query: &Query) -> Vec<Row> {
    let mut groups: HashMap<RowKey, Vec<&Cell<'_>>> = HashMap::new();
    for cell in cells {
        groups.entry(row_key(cell, query.by)).or_default().push(cell);
    }
    groups.into_iter().map(|(key, cells)| row(sources, key, &cells, query.stacks)).collect()
}

/// A lock that is named only by where it is taken has as many names as places: the one that waits
/// most stands for it.
fn one_name_a_lock(cells: &mut [Cell<'_>]) {
    let lock = |cell: &Cell<'_>| Some((cell.key.lock?, cell.key.lock_type.kind));
    let mut waits: BTreeMap<_, Nanos> = BTreeMap::new();
    for cell in cells.iter() {
        if let Some(lock) = lock(cell) {
            *waits.entry((lock, cell.lock.clone())).or_default() += cell.stat.wait();
        }
    }
    let mut best: HashMap<_, (Reverse<NameEvidence>, Nanos, LockName)> = HashMap::new();
    for ((lock, name), wait) in waits {
        let rank = (Reverse(name.evidence), wait);
        // Among equals the first in order of the names.
        match best.get(&lock) {
            Some((evidence, most, _)) if (*evidence, *most) >= rank => {}
            _ => drop(best.insert(lock, (rank.0, rank.1, name))),
        }
    }
    for cell in cells {
        if let Some((.., name)) = lock(cell).and_then(|lock| best.get(&lock)) {
            cell.lock = name.clone();
        }
    }
}

fn row_key(cell: &Cell<'_>, by: GroupBy) -> RowKey {
    let site = by == GroupBy::Site;
    let lock = by == GroupBy::Lock;
    RowKey {
        lock_type: site.then_some(cell.key.lock_type),
        lock_kind: lock.then_some(cell.key.lock_type.kind),
        caller: cell.caller.filter(|_| site).map(str::to_owned),
        wrappers: cell.wrappers.iter().filter(|_| site).map(|&w| w.to_owned()).collect(),
        lock: (site || lock).then(|| cell.lock.clone()),
        lock_addr: cell.key.lock.filter(|_| lock),
        task: (by == GroupBy::Task).then(|| cell.task.clone()),
        releaser: None,
    }
}

fn row(sources: &Sources<'_>, key: RowKey, cells: &[&Cell<'_>], with_stacks: bool) -> Row {
    let mut stat = WaitStat::default();
    let mut splits: BTreeMap<LockType, WaitStat> = BTreeMap::new();
    for cell in cells {
        cell.add_to(&mut stat);
        cell.add_to(splits.entry(cell.key.lock_type).or_default());
    }
    let splits = splits.into_iter().map(|(lock_type, stat)| Split { lock_type, stat }).collect();
    let stacks = if with_stacks { stacks(sources, cells) } else { Vec::new() };
    Row { key, stat, splits, stacks, hold: None, holder_slept: Vec::new() }
}

fn stacks(sources: &Sources<'_>, cells: &[&Cell<'_>]) -> Vec<StackShare> {
    let mut shares: BTreeMap<(LockType, LockName, StackKey, StackId), WaitStat> = BTreeMap::new();
    for cell in cells {
        let key = (cell.key.lock_type, cell.lock.clone(), cell.key.kernel, cell.key.user);
        cell.add_to(shares.entry(key).or_default());
    }
    let mut shares: Vec<StackShare> = shares
        .into_iter()
        .map(|((lock_type, lock, kernel, user), stat)| StackShare {
            kernel: kernel_frames(sources, kernel),
            user: user_frames(sources, user),
            lock_type,
            lock,
            stat,
        })
        .collect();
    sort_stacks(&mut shares);
    shares
}

/// Largest first, then by words.
pub(super) fn sort_stacks(shares: &mut [StackShare]) {
    fn words(s: &StackShare) -> (&[String], &[String], LockType, &LockName) {
        (&s.kernel, &s.user, s.lock_type, &s.lock)
    }
    shares.sort_by(|a, b| b.stat.wait().cmp(&a.stat.wait()).then_with(|| words(a).cmp(&words(b))));
}

pub(super) fn kernel_frames(sources: &Sources<'_>, kernel: StackKey) -> Vec<String> {
    match kernel {
        StackKey::Stack(stack) => {
            sources.stacks.kernel(stack).iter().map(|&ip| frame(sources.kernel, ip)).collect()
        }
        StackKey::Site(Some(site)) => vec![sources.kernel.name(site).to_owned()],
        StackKey::Site(None) | StackKey::Folded => vec!["[folded]".to_owned()],
    }
}

pub(super) fn user_frames(sources: &Sources<'_>, user: StackId) -> Vec<String> {
    let mut symbolizer = sources.symbolizer.borrow_mut();
    let frames = sources.stacks.user(user).iter();
    frames.map(|frame| symbolizer.frame(sources.objects, *frame).to_owned()).collect()
}

pub(super) fn frame(kernel: &Kernel, ip: u64) -> String {
    match kernel.symbol(ip) {
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("{ip:#x}"),
    }
}

impl Report {
    /// Sorts rows by the report's key, what nobody is charged with behind, largest first, then by how often (a recording without ends
    /// has no times), then by words.
    pub(super) fn sort_rows(&mut self) {
        let sort = self.sort;
        self.rows.sort_by(|a, b| {
            let (left, right) = (weight(sort, &a.stat), weight(sort, &b.stat));
            let often = || b.stat.contended().cmp(&a.stat.contended());
            let charged = a.is_uncharged().cmp(&b.is_uncharged());
            let larger = charged.then(right.cmp(&left));
            larger.then_with(often).then_with(|| a.key.cmp(&b.key))
        });
    }
}

fn weight(sort: SortKey, stat: &WaitStat) -> u64 {
    match sort {
        SortKey::Wait => stat.wait().0,
        SortKey::Contended => stat.contended(),
        SortKey::WaitTotal => stat.traced().0,
        SortKey::WaitMax => stat.ended.max.0,
        SortKey::WaitMin => stat.ended.min.0,
        SortKey::AvgWait => stat.ended.avg().map_or(0, |avg| avg.0),
    }
}
