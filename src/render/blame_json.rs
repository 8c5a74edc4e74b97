//! What blame adds to the report for programs.
//!
//! In: releasers, their holds, and the chains of a report by releaser or of blame. Out: fields of its
//! rows, and `chains`, `chains_cut_ns` and `roots`, which are empty and 0 in other reports. Described by
//! `schema/report-v1.json`.

use serde::Serialize;

use crate::model::{Nanos, Stat};
use crate::render::json::{LockOut, TaskOut, lock, task};
use crate::render::units;
use crate::report::{ChainLink, ChainRow, ChargedName, RowKey, WaitChains};

#[derive(Serialize)]
pub(super) struct ReleaserOut<'a> {
    task: TaskOut<'a>,
    caller: Option<&'a str>,
    wrappers: &'a [String],
    kind: &'static str,
}

#[derive(Serialize)]
pub(super) struct HoldOut {
    count: u64,
    total_ns: u64,
    avg_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: u64,
}

#[derive(Serialize)]
pub(super) struct ChainsOut<'a> {
    chains: Vec<ChainOut<'a>>,
    chains_cut_ns: u64,
    roots: Vec<RootOut<'a>>,
}

#[derive(Serialize)]
struct ChainOut<'a> {
    waiter: WaitedOut<'a>,
    links: Vec<LinkOut<'a>>,
    wait_ns: u64,
    /// Of all that is charged.
    share: f64,
    parts: u64,
    max_ns: u64,
}

#[derive(Serialize)]
struct LinkOut<'a> {
    releaser: Option<ReleaserOut<'a>>,
    waited: Option<WaitedOut<'a>>,
}

#[derive(Serialize)]
struct WaitedOut<'a> {
    lock_type: Option<String>,
    caller: Option<&'a str>,
    wrappers: &'a [String],
    lock: Option<LockOut<'a>>,
}

#[derive(Serialize)]
struct RootOut<'a> {
    releaser: Option<ReleaserOut<'a>>,
    wait_ns: u64,
    share: f64,
}

/// The fields.
pub(super) fn chains(chains: &WaitChains) -> ChainsOut<'_> {
    let all: Nanos = chains.roots.iter().map(|(_, time)| *time).sum();
    ChainsOut {
        chains: chains.rows.iter().map(|row| chain(row, all)).collect(),
        chains_cut_ns: chains.cut.0,
        roots: chains.roots.iter().map(|(name, time)| root(name, *time, all)).collect(),
    }
}

fn chain(row: &ChainRow, all: Nanos) -> ChainOut<'_> {
    ChainOut {
        waiter: waited(&row.waiter),
        links: row.links.iter().map(link).collect(),
        wait_ns: row.stat.own.0,
        share: units::share(row.stat.own, all),
        parts: row.stat.count,
        max_ns: row.stat.max.0,
    }
}

fn link(link: &ChainLink) -> LinkOut<'_> {
    LinkOut { releaser: releaser(&link.by), waited: link.waited.as_ref().map(waited) }
}

fn waited(key: &RowKey) -> WaitedOut<'_> {
    WaitedOut {
        lock_type: key.lock_type.map(|lock_type| lock_type.to_string()),
        caller: key.caller.as_deref(),
        wrappers: &key.wrappers,
        lock: key.lock.as_ref().map(lock),
    }
}

fn root(name: &ChargedName, time: Nanos, all: Nanos) -> RootOut<'_> {
    RootOut { releaser: releaser(name), wait_ns: time.0, share: units::share(time, all) }
}

/// A releaser; nothing where nobody is charged.
pub(super) fn releaser(charged: &ChargedName) -> Option<ReleaserOut<'_>> {
    match charged {
        ChargedName::Releaser { task: who, caller, wrappers, kind } => Some(ReleaserOut {
            task: task(who),
            caller: caller.as_deref(),
            wrappers,
            kind: kind.name(),
        }),
        ChargedName::Nobody(_) => None,
    }
}

/// How long a releaser kept locks.
pub(super) fn hold(hold: &Stat) -> HoldOut {
    HoldOut {
        count: hold.count,
        total_ns: hold.total.0,
        avg_ns: hold.avg().map(|t| t.0),
        p99_ns: hold.quantile(0.99).map(|t| t.0),
        max_ns: hold.max.0,
    }
}
