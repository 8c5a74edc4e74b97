//! Pieces of waits -> rows: who let whom wait.
//!
//! In: the tables of blame, and the waits that pass the filter. Out: a row for each releaser and site
//! ([`GroupBy::Releaser`]), or for each waiter's site with a releaser ([`GroupBy::Blame`]). What no
//! hand-over was seen in is a row too: rows add up to all waiting.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::build::{Cell, caller_of, cell, passes, task_name, wrapper_names};
use super::namer::Namer;
use super::report::{ChargedName, Row, RowKey, Split};
use super::sources::Sources;
use crate::analyse::{BlameKey, CellKey, ChargedTo, HoldKey, ReleaserKey, StackKey};
use crate::model::{
    Context, Filter, GroupBy, HolderTimes, LockType, Nanos, Query, SleepOn, Stat, Uncharged,
    WaitStat,
};

/// What a row gathers.
#[derive(Default)]
struct Group {
    stat: WaitStat,
    splits: BTreeMap<LockType, WaitStat>,
    /// Each hold once, whoever waited for it.
    holds: BTreeSet<HoldKey>,
}

/// Waiting that is charged to a releaser, of the waits that pass the filter.
pub(super) fn charged(sources: &Sources<'_>, names: &Namer, filter: &Filter) -> Nanos {
    let pieces = passing(sources, names, filter);
    let charged = pieces.filter(|(key, ..)| matches!(key.to, ChargedTo::Releaser(_)));
    charged.map(|(_, cell)| cell.stat.wait()).sum()
}

/// Rows by waiter's site and releaser, in order of their words.
pub(super) fn charged_rows(
    sources: &Sources<'_>,
    names: &Namer,
    filter: &Filter,
    total: &WaitStat,
) -> Vec<Row> {
    let query = Query { by: GroupBy::Blame, filter: filter.clone(), ..Query::default() };
    let mut rows = rows(sources, names, &query, total);
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows
}

/// Rows of blame. `total`: all waits that pass the filter.
pub(super) fn rows(
    sources: &Sources<'_>,
    names: &Namer,
    query: &Query,
    total: &WaitStat,
) -> Vec<Row> {
    let mut groups: HashMap<RowKey, Group> = HashMap::new();
    for (key, cell) in passing(sources, names, &query.filter) {
        let group = groups.entry(row_key(sources, &cell, key.to, query.by)).or_default();
        group.stat.merge(cell.stat);
        group.splits.entry(cell.key.lock_type).or_default().merge(cell.stat);
        group.holds.extend(key.hold());
    }
    let seen: Nanos = groups.values().map(|group| group.stat.traced()).sum();
    let rest = groups.entry(nobody(Uncharged::NoWaking)).or_default();
    rest.stat.ended.own += total.traced().saturating_sub(seen);
    rest.stat.spun.merge(total.spun);
    let sleeps = sleeps_by_hold(sources);
    groups.into_iter().map(|(key, group)| row(sources, &sleeps, key, group)).collect()
}

/// Pieces of the waits that pass the filter.
pub(super) fn passing<'a>(
    sources: &'a Sources<'a>,
    names: &'a Namer,
    filter: &'a Filter,
) -> impl Iterator<Item = (&'a BlameKey, Cell<'a>)> {
    let cells = sources.sums.pieces();
    let cells = cells.map(|(key, stat)| (key, cell(sources, names, &key.waiter, stat)));
    cells.filter(|(_, cell)| passes(cell, filter))
}

/// On which stacks somebody slept, and how much of the waiting that was, by whose hold it was.
type Sleeps = HashMap<HoldKey, Vec<(StackKey, Nanos)>>;

fn sleeps_by_hold(sources: &Sources<'_>) -> Sleeps {
    let mut sleeps = Sleeps::new();
    for (key, time) in sources.sums.holder_sleeps() {
        sleeps.entry(key.hold).or_default().push((key.stack, *time));
    }
    sleeps
}

fn row(sources: &Sources<'_>, sleeps: &Sleeps, key: RowKey, group: Group) -> Row {
    let mut holds = Stat::default();
    group.holds.iter().filter_map(|key| sources.sums.hold(key)).for_each(|h| holds.merge(h));
    let splits = group.splits.into_iter();
    Row {
        hold: (holds.count > 0).then_some(holds),
        queue: None,
        holder_slept: slept(sources, sleeps, &group.holds),
        via: Nanos::ZERO,
        splits: splits.map(|(lock_type, stat)| Split::new(lock_type, stat)).collect(),
        stat: group.stat,
        stacks: Vec::new(),
        tasks: Vec::new(),
        history: Vec::new(),
        key,
    }
}

/// In what those slept whose holds these are.
fn slept(
    sources: &Sources<'_>,
    sleeps: &Sleeps,
    holds: &BTreeSet<HoldKey>,
) -> Vec<(String, Nanos)> {
    let mut on: BTreeMap<String, Nanos> = BTreeMap::new();
    for (stack, time) in holds.iter().filter_map(|hold| sleeps.get(hold)).flatten() {
        *on.entry(slept_in(sources, *stack)).or_default() += *time;
    }
    let mut on: Vec<(String, Nanos)> = on.into_iter().collect();
    on.sort_by(|(a, long), (b, longer)| longer.cmp(long).then_with(|| a.cmp(b)));
    on
}

fn slept_in(sources: &Sources<'_>, stack: StackKey) -> String {
    let facts = match stack {
        StackKey::Stack(stack) => sources.attribution.known(stack),
        _ => None,
    };
    let Some(facts) = facts else { return "[unknown]".into() };
    match facts.sleeps_on {
        SleepOn::Lock(lock_type) => {
            let caller = caller_of(sources, facts.site.caller).unwrap_or("[unknown]");
            format!("{lock_type} @ {caller}")
        }
        SleepOn::Futex(_) => "futex".into(),
        SleepOn::Other(function) => sources.kernel.name(function).to_owned(),
        SleepOn::Unknown => "[unknown]".into(),
    }
}

/// What those did who are charged with the waits of each cell. Cells that were folded in the table of
/// waits are found under the parent that they were merged into; pieces that were folded further than
/// their waits belong to no cell any more.
pub(super) fn holders<'a>(sources: &Sources<'a>) -> HashMap<&'a CellKey, HolderTimes> {
    let mut holders: HashMap<&CellKey, HolderTimes> = HashMap::new();
    for (key, stat) in sources.sums.pieces() {
        let mut waiter = Some(key.waiter);
        while let Some(key) = waiter {
            if let Some((cell, _)) = sources.sums.wait(&key) {
                holders.entry(cell).or_default().merge(&stat.holder);
                break;
            }
            waiter = key.parent(sources.attribution);
        }
    }
    holders
}

fn nobody(why: Uncharged) -> RowKey {
    RowKey { releaser: Some(ChargedName::Nobody(why)), ..RowKey::default() }
}

pub(super) fn row_key(
    sources: &Sources<'_>,
    cell: &Cell<'_>,
    to: ChargedTo,
    by: GroupBy,
) -> RowKey {
    let releaser = match to {
        ChargedTo::Nobody(Uncharged::NoWaking) => return nobody(Uncharged::NoWaking),
        ChargedTo::Nobody(why) => ChargedName::Nobody(why),
        ChargedTo::Releaser(by) => releaser(sources, by),
    };
    let waiter = match by {
        GroupBy::Blame => RowKey {
            lock_type: Some(cell.key.lock_type),
            caller: cell.caller.map(str::to_owned),
            wrappers: cell.wrappers.iter().map(|&wrapper| wrapper.to_owned()).collect(),
            lock: Some(cell.lock.clone()),
            ..RowKey::default()
        },
        _ => RowKey::default(),
    };
    RowKey { releaser: Some(releaser), ..waiter }
}

pub(super) fn releaser(sources: &Sources<'_>, by: ReleaserKey) -> ChargedName {
    let release = match by.stack {
        StackKey::Stack(stack) => sources.attribution.known(stack).and_then(|f| f.release.as_ref()),
        _ => None,
    };
    let site = release.map(|release| &release.site);
    let caller = match by.stack {
        StackKey::Site(site) => site,
        _ => site.and_then(|site| site.caller),
    };
    ChargedName::Releaser {
        task: task_name(sources, Context::Task, by.task),
        caller: caller_of(sources, caller).map(str::to_owned),
        wrappers: wrapper_names(sources, site).map(str::to_owned).collect(),
        kind: by.kind,
    }
}
