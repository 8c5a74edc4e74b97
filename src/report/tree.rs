//! The call tree: tables and books -> [`Tree`], as perf draws it.
//!
//! In: CPU samples or waits by kernel stack. Out: nodes by function, largest first. A stack enters the
//! tree at its innermost frame of lock code; what that calls is in it. Only frames of the stack's
//! innermost context count: what an interrupt interrupted did not call it. Samples are as taken.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::paths::is_wanted;
use super::quality::{self, Named};
use super::report::Header;
use super::sources::Sources;
use super::trust::Trust;
use crate::analyse::{CpuKey, CpuStackKey, StackKey};
use crate::attribute::innermost_context;
use crate::kernel::Kernel;
use crate::model::{Filter, Nanos, Order, StackId, TreeQuery, Weighed};

/// Frames of a stack that enter the tree; the kernel records no more unless it is told to.
const DEEPEST: usize = 127;

/// A call tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// What was recorded.
    pub header: Header,
    /// The question.
    pub query: TreeQuery,
    /// All CPU time, or all waiting, in lock code or not.
    pub total: Nanos,
    /// The lock functions, or in order of callers where the kernel was entered; largest first.
    pub roots: Vec<Node>,
    /// How far all this can be trusted.
    pub trust: Trust,
}

/// A function on some call path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub function: String,
    /// Its time on this path, that of `children` included.
    pub time: Nanos,
    /// The next functions on the path, largest first.
    pub children: Vec<Node>,
}

/// The call tree that `query` asks for.
pub fn tree(sources: &Sources<'_>, query: &TreeQuery) -> Tree {
    let mut branch = Branch::default();
    let mut total = Nanos::ZERO;
    for (stack, time) in stacks(sources, query.over, &query.filter) {
        total += time;
        let mut chain = entered(sources, stack, query.over);
        if query.order == Order::Caller {
            chain.reverse();
        }
        if !chain.is_empty() {
            branch.add(&chain, time);
        }
    }
    Tree {
        header: quality::header(sources),
        query: query.clone(),
        total,
        roots: branch.nodes(),
        trust: quality::trust(sources, Named::default()),
    }
}

/// Kernel stacks with their time. Of waits whose stack was folded nothing is known.
fn stacks(sources: &Sources<'_>, over: Weighed, filter: &Filter) -> Vec<(StackId, Nanos)> {
    match over {
        Weighed::Cpu => {
            let wanted = sources.sums.cpu().filter(|(key, _)| is_wanted(sources, key, filter));
            let stack = |key: &CpuKey| match key.kernel {
                CpuStackKey::Stack(stack) => stack,
                CpuStackKey::Path(_) => StackId::EMPTY,
            };
            wanted.map(|(key, spun)| (stack(key), spun.time)).collect()
        }
        Weighed::Waits => {
            let stack = |key| match key {
                StackKey::Stack(stack) => stack,
                StackKey::Site(_) | StackKey::Folded => StackId::EMPTY,
            };
            let waits = super::build::wanted_waits(sources, filter).into_iter();
            waits.map(|(key, wait)| (stack(key.kernel), wait)).collect()
        }
    }
}

/// The functions of a stack from where it enters the tree, innermost first. A wait is in lock code by
/// itself; a CPU sample that is not has none.
fn entered<'a>(sources: &Sources<'a>, stack: StackId, over: Weighed) -> Vec<&'a str> {
    let kernel = sources.kernel;
    let frames = sources.stacks.kernel(stack);
    let own = &frames[..innermost_context(kernel, frames).0.min(DEEPEST)];
    let is_lock_code = |ip: &u64| kernel.frame(*ip).lock.is_some_and(|row| row.is_lock_code());
    let entry = match (own.iter().position(is_lock_code), over) {
        (Some(entry), _) => entry,
        (None, Weighed::Waits) => 0,
        (None, Weighed::Cpu) => return Vec::new(),
    };
    own[entry..].iter().map(|&ip| name(kernel, ip)).collect()
}

fn name(kernel: &Kernel, ip: u64) -> &str {
    kernel.function(ip).map_or(super::NO_SYMBOL, |function| kernel.name(function))
}

/// A tree in the making.
#[derive(Debug, Default)]
struct Branch<'a> {
    time: Nanos,
    next: BTreeMap<&'a str, Branch<'a>>,
}

impl<'a> Branch<'a> {
    fn add(&mut self, chain: &[&'a str], time: Nanos) {
        let mut at = self;
        for function in chain {
            at = at.next.entry(function).or_default();
            at.time += time;
        }
    }

    /// At most [`DEEPEST`] deep.
    fn nodes(self) -> Vec<Node> {
        let node = |(function, branch): (&str, Branch<'_>)| Node {
            function: function.to_owned(),
            time: branch.time,
            children: branch.nodes(),
        };
        let mut nodes: Vec<Node> = self.next.into_iter().map(node).collect();
        nodes.sort_by_key(|node| Reverse(node.time));
        nodes
    }
}
