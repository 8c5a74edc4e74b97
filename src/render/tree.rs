//! The call tree as text, as `perf report` shows it and as it is pasted into mails.
//!
//! ```text
//! -   37.30%  [kernel]  [k] _raw_spin_unlock_irqrestore
//!    - _raw_spin_unlock_irqrestore
//!       - 62.00% rwsem_wake
//!          - call_rwsem_wake
//!             + 83.52% sys_mprotect
//! ```
//!
//! In: [`Tree`]. Out: `-` before what is shown, `+` before what is folded. A function that all of the
//! time goes on to stands without a percentage.

use std::io;

use crate::model::{Nanos, Order, Weighed};
use crate::render::doubts::doubts_of_samples;
use crate::render::escape::visible;
use crate::render::paint::Paint;
use crate::render::paragraph::{pack, wrap};
use crate::render::table::{headline, said, write_parts};
use crate::render::{Renderer, Table, units};
use crate::report::{Node, Tree};

/// Less than this part of the branch is summed up: perf's own limit.
const SMALL: f64 = 0.005;

impl Renderer<Tree> for Table {
    fn render(&self, tree: &Tree, out: &mut dyn io::Write) -> io::Result<()> {
        let paint = Paint { color: self.color };
        let mut verdict = vec![headline(&tree.header, self.width, paint)];
        verdict.extend(wrap("", &sum(tree), self.width));
        let doubts = said(&doubts_of_samples(&tree.trust), self.width, paint);
        let next = match self.next.is_empty() {
            true => Vec::new(),
            false => pack("next: ", &self.next, self.width),
        };
        write_parts(&[verdict, lines(tree), doubts, next], out)
    }
}

/// What the percentages are of.
fn sum(tree: &Tree) -> String {
    if tree.total == Nanos::ZERO {
        return match tree.query.over {
            Weighed::Cpu => "no CPU samples of what was asked for: --over waits draws waits".into(),
            Weighed::Waits => "no waits that were asked for: --over cpu draws CPU samples".into(),
        };
    }
    let inside: Nanos = tree.roots.iter().map(|root| root.time).sum();
    let share = units::percent(units::share(inside, tree.total));
    let what = match tree.query.over {
        Weighed::Cpu => "CPU time",
        Weighed::Waits => "waiting for kernel locks",
    };
    let order = match tree.query.order {
        Order::Callee => "callers below what they call",
        Order::Caller => "callees below who calls them",
    };
    let of = if tree.query.absolute { "all of it" } else { "the branch above" };
    let total = units::time(tree.total);
    format!("{what} {total}, {share} of it in this tree; {order}, percentages of {of}")
}

/// The tree itself.
fn lines(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let (shown, small): (Vec<&Node>, Vec<&Node>) =
        tree.roots.iter().partition(|root| units::share(root.time, tree.total) >= SMALL);
    for root in shown {
        let folded = if tree.query.levels == 1 { '+' } else { '-' };
        let share = percent(root.time, tree.total);
        lines.push(format!("{folded} {share:>8}  [kernel]  [k] {}", visible(&root.function)));
        if folded == '-' {
            let chain = Chain { tree, indent: 1, level: 1 };
            chain.node(root, None, &mut lines);
        }
    }
    lines.extend(rest(&small, tree.total).map(|rest| format!("  {rest}")));
    lines
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Chain<'a> {
    tree: &'a Tree,
    indent: usize,
    /// Branchings above it.
    level: usize,
}

impl Chain<'_> {
    /// A node and all below it. `share`: its percentage, where it has one.
    fn node(self, node: &Node, share: Option<String>, lines: &mut Vec<String>) {
        let levels = self.tree.query.levels;
        let folded = levels > 0 && self.level >= levels && share.is_some();
        let sign = match node.children.is_empty() {
            true => ' ',
            false if folded => '+',
            false => '-',
        };
        let share = share.map_or(String::new(), |share| share + " ");
        let line = format!("{:1$}{sign} {share}{2}", "", 3 * self.indent, visible(&node.function));
        lines.push(line);
        if folded {
            return;
        }
        match node.children.as_slice() {
            // Nothing branches off here.
            [only] if only.time == node.time => self.deeper(0).node(only, None, lines),
            children => self.branches(node, children, lines),
        }
    }

    fn branches(self, node: &Node, children: &[Node], lines: &mut Vec<String>) {
        let whole = if self.tree.query.absolute { self.tree.total } else { node.time };
        let (shown, small): (Vec<&Node>, Vec<&Node>) =
            children.iter().partition(|child| units::share(child.time, node.time) >= SMALL);
        for child in shown {
            self.deeper(1).node(child, Some(percent(child.time, whole)), lines);
        }
        let rest = rest(&small, whole);
        let indent = 3 * (self.indent + 1);
        lines.extend(rest.map(|rest| format!("{:indent$}  {rest}", "")));
    }

    fn deeper(self, levels: usize) -> Self {
        Chain { indent: self.indent + 1, level: self.level + levels, ..self }
    }
}

/// What is too small for lines of its own.
fn rest(small: &[&Node], whole: Nanos) -> Option<String> {
    let time: Nanos = small.iter().map(|node| node.time).sum();
    let text =
        format!("{} [{}]", percent(time, whole), units::counted(small.len() as u64, "other"));
    (!small.is_empty()).then_some(text)
}

/// As perf writes it.
fn percent(part: Nanos, whole: Nanos) -> String {
    format!("{:.2}%", 100.0 * units::share(part, whole))
}
