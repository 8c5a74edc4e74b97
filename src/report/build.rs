//! Tables and books -> report: group, filter, name, sort.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::blame;
use super::blame_stacks::blame_stacks;
use super::chains::{WaitChains, wait_chains};
use super::cpu_stacks::cpu_stacks;
use super::history::add_histories;
use super::lock_row::{Owners, add_holds, one_name_a_lock};
use super::namer::Namer;
use super::quality::{self, Named};
use super::readers_writers::queue_of;
use super::report::{
    LockName, NameEvidence, Report, Row, RowKey, SEVERAL, Split, StackShare, TaskName,
};
use super::sources::Sources;
use super::{thread_time, unnamed_kind, user_locks};
use crate::analyse::{CellKey, StackKey, TaskKey};
use crate::attribute::{Facts, Site};
use crate::kernel::Kernel;
use crate::model::{
    Context, Filter, FunctionId, GroupBy, HolderTimes, LockAddr, LockKind, LockType, Nanos, Query,
    SortKey, StackId, WaitStat,
};

/// One cell of the tables in words.
pub(super) struct Cell<'a> {
    pub(super) key: &'a CellKey,
    pub(super) stat: &'a WaitStat,
    /// What those did who are charged with its waits.
    pub(super) holder: HolderTimes,
    pub(super) caller: Option<&'a str>,
    pub(super) wrappers: Vec<&'a str>,
    pub(super) lock: LockName,
    /// Which lock; samples have it where there is only one that they can be about.
    pub(super) addr: Option<LockAddr>,
    /// Whose it is, of locks that processes own.
    pub(super) owner: Option<i32>,
    pub(super) task: TaskName,
    cgroup: Cow<'a, str>,
}

impl Cell<'_> {
    fn add_to(&self, sum: &mut WaitStat) {
        sum.merge(self.stat);
        sum.holder.merge(&self.holder);
    }
}

/// Puts the answer to `query` into words.
pub fn build(sources: &Sources<'_>, query: &Query) -> Report {
    let names = Namer::learn(sources);
    let holders = blame::holders(sources);
    let holder_of = |key| holders.get(key).copied().unwrap_or_default();
    let mut cells: Vec<Cell<'_>> = sources
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
            false => rows(sources, &names, &cells, query),
        },
        thread_time: thread_time::thread_time(sources, &query.filter, lock_wait),
        user_locks: user_locks::user_locks(sources, &query.filter),
        chains: WaitChains::default(),
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
    if query.by.is_blame() {
        report.chains = wait_chains(sources, &names, query, &mut report.rows);
    }
    report.sort_rows();
    report
}

/// Cells that pass the filter, with their wait.
pub(super) fn wanted_waits<'a>(
    sources: &Sources<'a>,
    filter: &Filter,
) -> Vec<(&'a CellKey, Nanos)> {
    let names = Namer::learn(sources);
    let cells = sources.waits().map(|(key, stat)| cell(sources, &names, key, stat));
    cells.filter(|cell| passes(cell, filter)).map(|cell| (cell.key, cell.stat.wait())).collect()
}

fn facts<'a>(sources: &Sources<'a>, key: &CellKey) -> Option<&'a Facts> {
    match key.kernel {
        StackKey::Stack(stack) => sources.attribution.known(stack),
        _ => None,
    }
}

pub(super) fn caller<'a>(sources: &Sources<'a>, key: &CellKey) -> Option<&'a str> {
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

pub(super) fn cell<'a>(
    sources: &Sources<'a>,
    names: &Namer,
    key: &'a CellKey,
    stat: &'a WaitStat,
) -> Cell<'a> {
    let caller = caller(sources, key);
    let site = facts(sources, key).map(|facts| &facts.site);
    let lock = names.name(sources, key);
    Cell {
        key,
        stat,
        holder: HolderTimes::default(),
        caller,
        wrappers: wrapper_names(sources, site).collect(),
        lock: unnamed_kind(sources, key, caller).unwrap_or(lock.name),
        addr: lock.addr,
        owner: lock.owner,
        task: task_name(sources, key.context, key.task),
        cgroup: cgroup_of(sources, key.task),
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

/// The path of a task's cgroup.
pub(super) fn cgroup_of<'a>(sources: &Sources<'a>, task: TaskKey) -> Cow<'a, str> {
    let TaskKey::Task(task) = task else { return "[many tasks]".into() };
    match sources.tasks.info(task).cgroup {
        None => "[not recorded]".into(),
        Some(id) => match sources.cgroups.path(id) {
            Some(path) => path.into(),
            None => format!("[cgroup {id}]").into(),
        },
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
        && filter.takes_cgroup(&cell.cgroup)
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
        lock: wait(&|cell| cell.lock.evidence < NameEvidence::Class),
        charged,
        all: wait(&|_| true),
    }
}

fn rows(sources: &Sources<'_>, names: &Namer, cells: &[Cell<'_>], query: &Query) -> Vec<Row> {
    let owners = Owners::of(cells);
    let mut groups: HashMap<RowKey, Vec<&Cell<'_>>> = HashMap::new();
    for cell in cells {
        groups.entry(row_key(sources, cell, &owners, query.by)).or_default().push(cell);
    }
    let row = |(key, cells): (&RowKey, &Vec<&Cell<'_>>)| {
        (key.clone(), row(sources, key.clone(), cells, query.stacks))
    };
    let mut rows: Vec<(RowKey, Row)> = groups.iter().map(row).collect();
    add_histories(sources.tables.timeline(), &groups, &mut rows);
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    add_holds(sources, names, query.by, &mut rows);
    rows
}

/// The wrappers of a row: those that all its waits came by.
pub(super) fn common<'a>(mut chains: impl Iterator<Item = &'a [&'a str]>) -> Vec<String> {
    let first = chains.next().unwrap_or_default();
    match chains.all(|chain| chain == first) {
        true => first.iter().map(|&wrapper| wrapper.to_owned()).collect(),
        false => vec![SEVERAL.to_owned()],
    }
}

fn row_key(sources: &Sources<'_>, cell: &Cell<'_>, owners: &Owners, by: GroupBy) -> RowKey {
    let site = by == GroupBy::Site;
    let lock = by == GroupBy::Lock;
    RowKey {
        lock_type: site.then_some(cell.key.lock_type),
        lock_kind: lock.then_some(cell.key.lock_type.kind),
        caller: cell.caller.filter(|_| site).map(str::to_owned),
        wrappers: Vec::new(),
        lock: (site || lock).then(|| cell.lock.clone()),
        lock_addr: cell.addr.filter(|_| lock),
        lock_owner: cell.owner.filter(|_| lock).map(|pid| owners.name(sources.tasks, pid)),
        task: (by == GroupBy::Task).then(|| cell.task.clone()),
        cgroup: (by == GroupBy::Cgroup).then(|| cell.cgroup.clone().into_owned()),
        releaser: None,
    }
}

fn row(sources: &Sources<'_>, mut key: RowKey, cells: &[&Cell<'_>], with_stacks: bool) -> Row {
    if key.lock_type.is_some() {
        key.wrappers = common(cells.iter().map(|cell| cell.wrappers.as_slice()));
    }
    let mut stat = WaitStat::default();
    let mut splits: BTreeMap<LockType, WaitStat> = BTreeMap::new();
    for cell in cells {
        cell.add_to(&mut stat);
        cell.add_to(splits.entry(cell.key.lock_type).or_default());
    }
    let splits = splits.into_iter().map(|(lock_type, stat)| Split::new(lock_type, stat)).collect();
    let stacks = if with_stacks { stacks(sources, cells) } else { Vec::new() };
    let tasks = if with_stacks { tasks(cells) } else { Vec::new() };
    // A lock has one queue: divided among the sites that wait in it, it would add up to nothing.
    let queue = key.lock_kind.and_then(|_| queue_of(sources, cells.iter().map(|cell| cell.key)));
    Row { key, stat, splits, stacks, tasks, queue, ..Row::default() }
}

fn tasks(cells: &[&Cell<'_>]) -> Vec<(TaskName, Nanos)> {
    let mut waits: BTreeMap<&TaskName, Nanos> = BTreeMap::new();
    for cell in cells {
        *waits.entry(&cell.task).or_default() += cell.stat.wait();
    }
    let mut waits: Vec<_> = waits.into_iter().map(|(task, wait)| (task.clone(), wait)).collect();
    waits.sort_by_key(|(_, wait)| Reverse(*wait));
    waits
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
    /// Sorts rows by the report's key, largest first, what nobody is charged with behind them; then by how
    /// often (a recording without ends has no times), then by words.
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
