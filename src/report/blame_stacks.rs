//! Who let whom wait, as stacks: for flame graphs.
//!
//! In: the pieces of waits that pass the filter. Out: the waiter's stack up to its site with the stack of
//! the releaser from its release code on, and the time between them. What no hand-over was seen in is
//! there too: stacks add up to all waiting.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::blame::{passing, releaser};
use super::build::{Cell, frame, kernel_frames, user_frames};
use super::namer::Namer;
use super::report::{ChargedName, LockName};
use super::sources::Sources;
use crate::analyse::{CellKey, ChargedTo, ReleaserKey, StackKey};
use crate::attribute::Site;
use crate::model::{Filter, LockType, Nanos, StackId, Uncharged};

/// Waiting of one stack that is charged to another, or to nobody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlameStack {
    /// The type of the lock.
    pub lock_type: LockType,
    /// Its name.
    pub lock: LockName,
    /// Kernel frames of the waiter from its site on, innermost first.
    pub kernel: Vec<String>,
    /// User frames of the waiter, innermost first.
    pub user: Vec<String>,
    /// Who is charged.
    pub charged: ChargedName,
    /// Kernel frames of the releaser from the release code on, innermost first.
    pub releaser: Vec<String>,
    /// How long.
    pub wait: Nanos,
}

/// The stacks of the waits that pass the filter, of which `cells` are all.
pub(super) fn blame_stacks(
    sources: &Sources<'_>,
    names: &Namer,
    filter: &Filter,
    cells: &[Cell<'_>],
) -> Vec<BlameStack> {
    let mut stacks = Vec::new();
    let mut seen: HashMap<&CellKey, Nanos> = HashMap::new();
    for (key, piece) in passing(sources, names, filter) {
        stacks.push(stack(sources, &piece, key.to, piece.stat.wait()));
        *seen.entry(&key.waiter).or_default() += piece.stat.wait();
    }
    stacks.extend(unseen(sources, cells, &seen));
    by_words(stacks.into_iter())
}

/// Waiting in which no hand-over was seen. Where keys of pieces were folded, it is not known of which
/// cells they were: it is not more than is missing of all.
fn unseen(
    sources: &Sources<'_>,
    cells: &[Cell<'_>],
    seen: &HashMap<&CellKey, Nanos>,
) -> Vec<BlameStack> {
    let all: Nanos = cells.iter().map(|cell| cell.stat.wait()).sum();
    let mut missing = all.saturating_sub(seen.values().copied().sum());
    let mut cells: Vec<&Cell<'_>> = cells.iter().collect();
    cells.sort_by_key(|cell| *cell.key);
    let mut stacks = Vec::new();
    for cell in cells {
        let known = seen.get(cell.key).copied().unwrap_or_default();
        let rest = cell.stat.wait().saturating_sub(known).min(missing);
        missing = missing.saturating_sub(rest);
        stacks.push(stack(sources, cell, ChargedTo::Nobody(Uncharged::NoWaking), rest));
    }
    stacks
}

fn stack(sources: &Sources<'_>, waiter: &Cell<'_>, to: ChargedTo, wait: Nanos) -> BlameStack {
    let (charged, frames) = match to {
        ChargedTo::Nobody(why) => (ChargedName::Nobody(why), Vec::new()),
        ChargedTo::Releaser(by) => (releaser(sources, by), releaser_frames(sources, by)),
    };
    BlameStack {
        lock_type: waiter.key.lock_type,
        lock: waiter.lock.clone(),
        kernel: waiter_frames(sources, waiter.key.kernel),
        user: user_frames(sources, waiter.key.user),
        charged,
        releaser: frames,
        wait,
    }
}

fn waiter_frames(sources: &Sources<'_>, kernel: StackKey) -> Vec<String> {
    let StackKey::Stack(stack) = kernel else { return kernel_frames(sources, kernel) };
    let site = sources.attribution.known(stack).map(|facts| &facts.site);
    frames_from(sources, stack, site, 0)
}

fn releaser_frames(sources: &Sources<'_>, by: ReleaserKey) -> Vec<String> {
    let StackKey::Stack(stack) = by.stack else { return kernel_frames(sources, by.stack) };
    let facts = sources.attribution.known(stack);
    let site = facts.and_then(|facts| facts.release.as_ref()).map(|release| &release.site);
    // Its wrappers and one function of lock code below.
    let below = site.map_or(0, |site| site.wrappers.len() + 1);
    frames_from(sources, stack, site, below)
}

/// Frames of a stack from its site on, and `below` of those that it called; all where it has none.
fn frames_from(
    sources: &Sources<'_>,
    stack: StackId,
    site: Option<&Site>,
    below: usize,
) -> Vec<String> {
    let frames = sources.stacks.kernel(stack);
    let caller = site.and_then(|site| site.caller);
    let is_site = |&ip: &u64| caller.is_some() && sources.kernel.function(ip) == caller;
    let first = frames.iter().position(is_site).unwrap_or(0).saturating_sub(below);
    frames[first..].iter().map(|&ip| frame(sources.kernel, ip)).collect()
}

/// Stacks of the same words are one; in order of their words, none without time.
pub(super) fn by_words(stacks: impl Iterator<Item = BlameStack>) -> Vec<BlameStack> {
    let mut sums: BTreeMap<BlameStack, Nanos> = BTreeMap::new();
    for stack in stacks.filter(|stack| stack.wait > Nanos::ZERO) {
        let wait = stack.wait;
        *sums.entry(BlameStack { wait: Nanos::ZERO, ..stack }).or_default() += wait;
    }
    sums.into_iter().map(|(stack, wait)| BlameStack { wait, ..stack }).collect()
}
