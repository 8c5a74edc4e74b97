//! Chains of releasers, in words: who let those wait who let others wait.
//!
//! In: the parts of charged waiting that go on to another than the releaser, of the waits that pass the
//! filter. Out: [`WaitChains`]: a row for each waiter's site with a chain, how much of each row of blame
//! goes through, and all charged waiting by its roots. Nothing is counted twice: what the roots are
//! charged with adds up to what the releasers are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::blame::{passing, releaser, row_key};
use super::build::{Cell, cell, passes};
use super::namer::Namer;
use super::report::{ChargedName, Row, RowKey};
use super::sources::Sources;
use crate::analyse::{CellKey, ChargedTo, ReleaserKey, StackKey, TaskKey};
use crate::correlate::{ChainId, Link, Waited};
use crate::model::{Context, Nanos, Query, StackId, Stat, WaitStat};

/// What waiting for releasers that waited themselves adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitChains {
    /// Chains of two releasers or more, the most expensive first.
    pub rows: Vec<ChainRow>,
    /// All charged waiting by who was at the root of it, the most expensive first.
    pub roots: Vec<(ChargedName, Nanos)>,
    /// Charged time that may go on to another unseen, because a limit was reached.
    pub cut: Nanos,
}

/// Who waited along which chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRow {
    /// Type, caller and name of the lock that is waited for.
    pub waiter: RowKey,
    /// From who let the waiter go to the root; empty for chains that were folded together.
    pub links: Vec<ChainLink>,
    /// The parts of waits that went along: their own time is `own`.
    pub stat: Stat,
}

/// One releaser of a chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainLink {
    /// Who, and where it let the one before it go.
    pub by: ChargedName,
    /// Type, caller and name of the lock that it waited for meanwhile; `None` for the root.
    pub waited: Option<RowKey>,
}

impl WaitChains {
    /// Charged waiting that went through a releaser to another.
    pub fn through(&self) -> Nanos {
        self.rows.iter().map(|row| row.stat.own).sum()
    }

    /// The chain with most releasers; of equal ones the most expensive.
    pub fn longest(&self) -> Option<&ChainRow> {
        self.rows.iter().rev().max_by_key(|row| row.links.len())
    }

    /// Adds everything that `other` counted.
    pub(super) fn merge(&mut self, other: &WaitChains) {
        let mut rows = BTreeMap::new();
        let both = std::mem::take(&mut self.rows).into_iter().chain(other.rows.iter().cloned());
        for row in both {
            let stat: &mut Stat = rows.entry((row.waiter, row.links)).or_default();
            stat.merge(&row.stat);
        }
        self.rows = sorted_rows(rows);
        let roots = std::mem::take(&mut self.roots).into_iter().chain(other.roots.iter().cloned());
        self.roots = sorted_roots(roots);
        self.cut += other.cut;
    }
}

/// The chains of the waits that pass the query's filter. `report_rows` are told how much of
/// them goes through.
pub(super) fn wait_chains(
    sources: &Sources<'_>,
    names: &Namer,
    query: &Query,
    report_rows: &mut [Row],
) -> WaitChains {
    let mut rows: BTreeMap<(RowKey, Vec<ChainLink>), Stat> = BTreeMap::new();
    let mut via: BTreeMap<RowKey, Nanos> = BTreeMap::new();
    let mut moved: BTreeMap<(ChargedName, ChargedName), Nanos> = BTreeMap::new();
    let none = WaitStat::default();
    for (key, stat) in sources.sums.through() {
        let waiter = cell(sources, names, &key.waiter, &none);
        if !passes(&waiter, &query.filter) {
            continue;
        }
        let links: Vec<&Link> = key.chain.map_or(Vec::new(), |chain| links_of(sources, chain));
        let words: Vec<ChainLink> = links.iter().map(|l| link(sources, names, l)).collect();
        if let (Some(first), [own, .., root]) = (links.first(), words.as_slice()) {
            let to = ChargedTo::Releaser(key_of(first));
            *via.entry(row_key(sources, &waiter, to, query.by)).or_default() += stat.own;
            *moved.entry((own.by.clone(), root.by.clone())).or_default() += stat.own;
        }
        rows.entry((waited_for(&waiter), words)).or_default().merge(stat);
    }
    for row in report_rows {
        row.via = via.get(&row.key).copied().unwrap_or_default();
    }
    let roots = roots(charged_time(sources, names, query), moved);
    WaitChains { rows: sorted_rows(rows), roots, cut: sources.sums.cut() }
}

/// What each releaser is charged with.
fn charged_time(
    sources: &Sources<'_>,
    names: &Namer,
    query: &Query,
) -> BTreeMap<ChargedName, Nanos> {
    let mut charged: BTreeMap<ChargedName, Nanos> = BTreeMap::new();
    for (key, piece) in passing(sources, names, &query.filter) {
        if let ChargedTo::Releaser(by) = key.to {
            *charged.entry(releaser(sources, by)).or_default() += piece.stat.wait();
        }
    }
    charged
}

/// Moves what went through a releaser to the root. A releaser whose charges were folded has less to
/// give than its chains say, and never less than nothing.
fn roots(
    mut charged: BTreeMap<ChargedName, Nanos>,
    moved: BTreeMap<(ChargedName, ChargedName), Nanos>,
) -> Vec<(ChargedName, Nanos)> {
    let mut gained = Vec::new();
    for ((releaser, root), time) in moved {
        if let Some(own) = charged.get_mut(&releaser) {
            let time = time.min(*own);
            *own = own.saturating_sub(time);
            gained.push((root, time));
        }
    }
    sorted_roots(charged.into_iter().chain(gained))
}

fn links_of<'a>(sources: &Sources<'a>, chain: ChainId) -> Vec<&'a Link> {
    sources.chains.map_or(Vec::new(), |chains| chains.links(chain).collect())
}

fn key_of(link: &Link) -> ReleaserKey {
    let by = link.by;
    ReleaserKey { task: TaskKey::of(by.task), stack: StackKey::Stack(by.stack), kind: by.kind }
}

fn link(sources: &Sources<'_>, names: &Namer, link: &Link) -> ChainLink {
    let none = WaitStat::default();
    let waited = link.waited.map(|waited| {
        let key = waiter_of(waited, link);
        waited_for(&cell(sources, names, &key, &none))
    });
    ChainLink { by: releaser(sources, key_of(link)), waited }
}

/// The cell that the releaser's own wait was counted in.
fn waiter_of(waited: Waited, link: &Link) -> CellKey {
    CellKey {
        lock_type: waited.lock_type,
        kernel: StackKey::Stack(waited.stack),
        user: StackId::EMPTY,
        lock: waited.lock.known(),
        task: TaskKey::of(link.by.task),
        context: Context::Task,
    }
}

fn waited_for(cell: &Cell<'_>) -> RowKey {
    RowKey {
        lock_type: Some(cell.key.lock_type),
        caller: cell.caller.map(str::to_owned),
        wrappers: cell.wrappers.iter().map(|&wrapper| wrapper.to_owned()).collect(),
        lock: Some(cell.lock.clone()),
        ..RowKey::default()
    }
}

fn sorted_rows(rows: BTreeMap<(RowKey, Vec<ChainLink>), Stat>) -> Vec<ChainRow> {
    let rows = rows.into_iter().map(|((waiter, links), stat)| ChainRow { waiter, links, stat });
    let mut rows: Vec<ChainRow> = rows.collect();
    // Stable: equal ones stay in order of their words.
    rows.sort_by_key(|row| Reverse((row.stat.own, row.links.len())));
    rows
}

fn sorted_roots(roots: impl Iterator<Item = (ChargedName, Nanos)>) -> Vec<(ChargedName, Nanos)> {
    let mut sums: BTreeMap<ChargedName, Nanos> = BTreeMap::new();
    roots.for_each(|(name, time)| *sums.entry(name).or_default() += time);
    let mut roots: Vec<_> = sums.into_iter().filter(|(_, time)| *time > Nanos::ZERO).collect();
    roots.sort_by_key(|(_, time)| Reverse(*time));
    roots
}
