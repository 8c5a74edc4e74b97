//! The call tree of a row's waiters: stacks -> lines, branches by their share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::Nanos;
use crate::render::escape::visible;
use crate::render::paragraph::wrap;
use crate::render::units;
use crate::report::StackShare;

/// Branches with less than this share are summed up.
const LEAST_SHARE: f64 = 0.01;

/// Branchings shown: the kernel records stacks of at most 127 frames.
const DEEPEST: usize = 12;

#[derive(Default)]
struct Branch<'a> {
    wait: Nanos,
    next: BTreeMap<&'a str, Branch<'a>>,
}

/// Lines no wider than `width`, unless a name is.
pub(super) fn lines(stacks: &[StackShare], width: usize) -> Vec<String> {
    let mut root = Branch::default();
    for stack in stacks {
        root.wait += stack.stat.wait();
        let mut at = &mut root;
        for frame in &stack.kernel {
            at = at.next.entry(function(frame)).or_default();
            at.wait += stack.stat.wait();
        }
    }
    let mut lines = Vec::new();
    below(&root, (root.wait, width), 0, &mut lines);
    lines
}

/// A frame without its offset.
fn function(frame: &str) -> &str {
    frame.rsplit_once("+0x").map_or(frame, |(function, _)| function)
}

fn below(branch: &Branch<'_>, (all, width): (Nanos, usize), depth: usize, lines: &mut Vec<String>) {
    let mut next: Vec<_> = branch.next.iter().collect();
    next.sort_by_key(|(name, branch)| (Reverse(branch.wait), **name));
    let (shown, rest): (Vec<_>, Vec<_>) =
        next.into_iter().partition(|(_, next)| units::share(next.wait, all) >= LEAST_SHARE);
    for (name, next) in shown {
        let (chain, end) = chain(name, next);
        let indent = "  ".repeat(depth);
        let share = units::percent(units::share(next.wait, all));
        lines.extend(wrap(&format!("{indent}{share:>5}  "), &chain, width));
        if depth < DEEPEST {
            below(end, (all, width), depth + 1, lines);
        }
    }
    let left: Nanos = rest.iter().map(|(_, branch)| branch.wait).sum();
    if !rest.is_empty() {
        let share = units::percent(units::share(left, all));
        let more = units::counted(rest.len() as u64, "more branch").replace("branchs", "branches");
        lines.push(format!("{}{share:>5}  ({more})", "  ".repeat(depth)));
    }
}

/// Functions up to where the tree branches.
fn chain<'t, 'a>(name: &str, branch: &'t Branch<'a>) -> (String, &'t Branch<'a>) {
    let (mut words, mut at) = (visible(name).into_owned(), branch);
    while let (Some((name, next)), 1) = (at.next.iter().next(), at.next.len()) {
        if next.wait != at.wait {
            break;
        }
        words += &format!(" <- {}", visible(name));
        at = next;
    }
    (words, at)
}
