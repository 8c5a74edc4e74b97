//! Rows by lock: one name for each address, whose lock it is, how long it was held.
//!
//! In: cells with their names. Out: cells of one lock with one name, and what a row by lock says
//! beside its waits.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::build::Cell;
use super::namer::Namer;
use super::report::{LockName, NameEvidence, Row, TaskName};
use super::sources::Sources;
use crate::correlate::Tasks;
use crate::model::{GroupBy, LockAddr, LockKind, Mode, Nanos, Stat};

/// One lock: its address, its kind, whose it is.
type Lock = (LockAddr, LockKind, Option<i32>);

/// A lock that is named only by where it is taken has as many names as places: the one that waits
/// most stands for it.
pub(super) fn one_name_a_lock(cells: &mut [Cell<'_>]) {
    let lock = |cell: &Cell<'_>| Some((cell.addr?, cell.key.lock_type.kind, cell.owner));
    let mut waits: BTreeMap<_, Nanos> = BTreeMap::new();
    for cell in cells.iter() {
        // The lives of an address have names of their own; what is unnamed has one for all.
        if let Some(lock) = lock(cell).filter(|_| cell.lock.evidence == NameEvidence::Caller) {
            *waits.entry((lock, cell.lock.clone())).or_default() += cell.stat.wait();
        }
    }
    let mut best: HashMap<Lock, (Nanos, Reverse<LockName>)> = HashMap::new();
    for ((lock, name), wait) in waits {
        let this = (wait, Reverse(name));
        let most = best.entry(lock).or_insert_with(|| this.clone());
        if this > *most {
            *most = this;
        }
    }
    for cell in cells.iter_mut().filter(|cell| cell.lock.evidence == NameEvidence::Caller) {
        if let Some((_, Reverse(name))) = lock(cell).and_then(|lock| best.get(&lock)) {
            cell.lock = name.clone();
        }
    }
}

/// Names of the processes that own locks: the main thread's, or that of the first thread seen.
#[derive(Debug, Default)]
pub(super) struct Owners(HashMap<i32, TaskName>);

impl Owners {
    /// From the tasks that waited; for processes whose main thread has no name on record.
    pub(super) fn of(cells: &[Cell<'_>]) -> Owners {
        let mut names: HashMap<i32, TaskName> = HashMap::new();
        for task in cells.iter().map(|cell| &cell.task).filter(|task| task.pid > 0) {
            let first = names.entry(task.pid).or_insert_with(|| task.clone());
            if (task.tid, &task.comm) < (first.tid, &first.comm) {
                *first = task.clone();
            }
        }
        Owners(names)
    }

    /// The process in words.
    pub(super) fn name(&self, tasks: &Tasks, pid: i32) -> TaskName {
        let main = tasks.process_name(pid);
        let comm = main.or(self.0.get(&pid).map(|task| task.comm.as_str()));
        let comm = comm.map_or_else(|| format!("[task {pid}]"), str::to_owned);
        TaskName { comm, pid, tid: 0 }
    }
}

/// Puts beside the waits of each row how long its lock was held.
pub(super) fn add_holds(sources: &Sources<'_>, names: &Namer, by: GroupBy, rows: &mut [Row]) {
    if by != GroupBy::Lock {
        return;
    }
    let mut owners: HashMap<LockAddr, Vec<i32>> = HashMap::new();
    for row in rows.iter() {
        if let (Some(addr), Some(owner)) = (row.key.lock_addr, &row.key.lock_owner) {
            owners.entry(addr).or_default().push(owner.pid);
        }
    }
    for row in rows {
        let (Some(addr), Some(LockKind::Rwsem)) = (row.key.lock_addr, row.key.lock_kind) else {
            continue;
        };
        let own = row.key.lock_owner.as_ref().map(|owner| owner.pid);
        let mut others = owners.get(&addr).cloned().unwrap_or_default();
        others.retain(|pid| Some(*pid) != own);
        let hold = |mode| names.hold(sources, addr, mode, &others);
        for split in &mut row.splits {
            split.hold = hold(split.lock_type.mode);
        }
        let mut all = Stat::default();
        [Mode::Read, Mode::Write].into_iter().filter_map(hold).for_each(|stat| all.merge(&stat));
        row.hold = (all.count > 0).then_some(all);
    }
}
