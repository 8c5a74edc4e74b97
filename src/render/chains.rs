//! Wait chains on a terminal: who let those wait who let others wait.
//!
//! ```text
//! wait chains: 120 ms, 40 % of what is charged, went through a releaser that waited itself
//!   110 ms   37 %  rwsem:W do_mprotect_pkey, mmap_lock
//!                  <- holder/12 do_madvise, which waited for mutex do_sync, inode lock
//!                  <- flusher/14 do_flush
//! ```
//!
//! In: a report by releaser or of blame. Out: the most expensive chains, the longest one, and the roots;
//! nothing where no releaser was seen to wait.

use crate::model::Nanos;
use crate::render::cells::{caller, charged, lock_beside_caller};
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::{columns, shorten, wrap};
use crate::render::{escape::visible, units};
use crate::report::{ChainLink, ChainRow, Report, RowKey, WaitChains};

/// Chains shown, unless all rows are asked for; the longest one comes behind.
const SHOWN: usize = 3;
/// Roots named.
const ROOTS_SHOWN: usize = 3;
/// Columns before what a chain says.
const INDENT: usize = 17;

/// The section on chains.
pub(super) fn lines(report: &Report, width: usize, paint: Paint) -> Vec<String> {
    let chains = &report.chains;
    if chains.rows.is_empty() {
        return Vec::new();
    }
    let all: Nanos = chains.roots.iter().map(|(_, time)| *time).sum();
    let mut lines = wrap("wait chains: ", &sum(chains, all), width);
    let shown = if report.top == 0 { chains.rows.len() } else { SHOWN };
    let (top, rest) = chains.rows.split_at(shown.min(chains.rows.len()));
    for row in top {
        lines.extend(chain(row, all, width, paint));
    }
    if let Some(longest) = rest.iter().rev().max_by_key(|row| row.links.len()) {
        lines.extend(more(rest, all));
        if top.iter().all(|row| row.links.len() < longest.links.len()) {
            lines.push("  the longest:".into());
            lines.extend(chain(longest, all, width, paint));
        }
    }
    lines.extend(wrap("at the roots: ", &roots(chains, all), width));
    lines
}

fn sum(chains: &WaitChains, all: Nanos) -> String {
    let through = chains.through();
    let share = units::percent(units::share(through, all));
    let mut sum = format!(
        "{}, {share} of what is charged, went through a releaser that waited itself",
        units::time(through)
    );
    if chains.cut > Nanos::ZERO {
        sum += &format!("; {} may go on unseen", units::time(chains.cut));
    }
    sum
}

fn more(rows: &[ChainRow], all: Nanos) -> Option<String> {
    let time: Nanos = rows.iter().map(|row| row.stat.own).sum();
    let share = units::percent(units::share(time, all));
    let more = units::counted(rows.len() as u64, "more chain");
    Some(format!("  ... {more}, {} ({share}): --top 0", units::time(time)))
}

fn chain(row: &ChainRow, all: Nanos, width: usize, paint: Paint) -> Vec<String> {
    let share = units::percent(units::share(row.stat.own, all));
    let numbers = format!("{:>8} {share:>7}  ", units::time(row.stat.own));
    let waiter = format!("{numbers}{}", waits(&row.waiter));
    let mut lines = vec![paint.apply(Style::Strong, &shorten(&waiter, width))];
    if row.links.is_empty() {
        lines.push(format!("{:INDENT$}<- (many chains)", ""));
    }
    for link in &row.links {
        lines.extend(link_lines(link, width).iter().map(|line| shorten(line, width)));
    }
    lines
}

/// On one line where there is room for it.
fn link_lines(link: &ChainLink, width: usize) -> Vec<String> {
    let by = format!("{:INDENT$}<- {}", "", charged(Some(&link.by)).text);
    let Some(waited) = &link.waited else { return vec![by] };
    let waited = format!("which waited for {}", waits(waited));
    match format!("{by}, {waited}") {
        line if columns(&line) <= width => vec![line],
        _ => vec![by + ",", format!("{:INDENT$}   {waited}", "")],
    }
}

/// `rwsem:W do_mprotect_pkey, mmap_lock`.
fn waits(key: &RowKey) -> String {
    let lock_type = key.lock_type.map_or(String::new(), |lock_type| lock_type.to_string());
    let lock = lock_beside_caller(key);
    let place = format!("{lock_type} {}", caller(key).text);
    if lock == "@ caller" { place } else { format!("{place}, {}", visible(&lock)) }
}

fn roots(chains: &WaitChains, all: Nanos) -> String {
    let root = |(name, time): &(_, Nanos)| {
        let share = units::percent(units::share(*time, all));
        format!("{} {} ({share})", charged(Some(name)).text, units::time(*time))
    };
    let mut named: Vec<String> = chains.roots.iter().take(ROOTS_SHOWN).map(root).collect();
    let rest = chains.roots.get(ROOTS_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        named.push(format!("{} more", units::count(rest.len() as u64)));
    }
    named.join(", ")
}
