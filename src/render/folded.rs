//! Stacks on one line each, as flame graph tools read them: `type;lock;root;...;leaf WEIGHT`.
//!
//! In: a report whose query asked for stacks. Out: lines in alphabetical order, each stack once.
//! Lock type and lock come first, so that readers and writers of a lock stand side by side; then
//! frames, root first, user before kernel. What a row has beyond its stacks (they were folded away,
//! or not asked for) is a line that ends at its caller, so that the weights add up to the report's
//! total.

use std::collections::BTreeMap;
use std::io;

use crate::model::{HandOverKind, LockType, Nanos, WaitStat};
use crate::render::Renderer;
use crate::render::cells::nobody;
use crate::render::escape::folded_frame;
use crate::report::{BlameStack, ChargedName, CpuStack, Report, Row, StackShare};

/// What the width of a frame, or the number behind a stack, means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Thread time spent waiting for locks, in ns.
    #[default]
    Wait,
    /// CPU time, in ns: all that was sampled, lock code or not.
    Cpu,
    /// Waits.
    Count,
    /// Thread time spent waiting, in ns: the waiter's stack, and on it the releaser's upside down.
    Blame,
}

/// `--format folded`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded {
    /// The number behind each stack.
    pub weight: Weight,
}

impl Renderer for Folded {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        for (path, weight) in fold(report, self.weight) {
            let frames: Vec<_> = path.iter().map(|frame| folded_frame(&frame.name)).collect();
            writeln!(out, "{} {weight}", frames.join(";"))?;
        }
        Ok(())
    }
}

/// Where a frame comes from. The order is that of equal names in a flame graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Lock type, lock name or task: no code at all.
    Label,
    User,
    Kernel,
    /// Between who waited and who let it wait.
    Divider,
    /// Kernel code of who let it wait.
    Releaser,
}

/// Stands where CPU time has no lock type.
pub(super) const NOT_IN_LOCK_CODE: &str = "not in lock code";

/// A frame without its offset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) place: Place,
}

/// Stacks, root first, with their weights; sorted, and none without weight.
pub(super) fn fold(report: &Report, weight: Weight) -> BTreeMap<Vec<Frame>, u64> {
    let mut folded = BTreeMap::new();
    let mut add = |path: Vec<Frame>, weight: u64| {
        if weight > 0 {
            let sum: &mut u64 = folded.entry(path).or_default();
            *sum = sum.saturating_add(weight);
        }
    };
    match weight {
        Weight::Cpu => {
            report.cpu_stacks.iter().for_each(|stack| add(cpu_path(stack), stack.time.0));
            return folded;
        }
        Weight::Blame => {
            report.blame_stacks.iter().for_each(|stack| add(blame_path(stack), stack.wait.0));
            return folded;
        }
        Weight::Wait | Weight::Count => {}
    }
    for row in &report.rows {
        row.stacks.iter().for_each(|s| add(wait_path(s), weigh(&s.stat, weight)));
        for split in &row.splits {
            let own = weigh(&split.stat, weight);
            let known: u64 = row
                .stacks
                .iter()
                .filter(|stack| stack.lock_type == split.lock_type)
                .map(|stack| weigh(&stack.stat, weight))
                .fold(0, u64::saturating_add);
            add(rest_path(row, split.lock_type), own.saturating_sub(known));
        }
    }
    folded
}

fn weigh(stat: &WaitStat, weight: Weight) -> u64 {
    match weight {
        Weight::Wait | Weight::Cpu | Weight::Blame => stat.wait().0,
        Weight::Count => stat.contended(),
    }
}

/// What all stacks add up to: ns, or waits where the weight counts them.
pub(super) fn total(folded: &BTreeMap<Vec<Frame>, u64>) -> Nanos {
    Nanos(folded.values().fold(0, |sum, weight| sum.saturating_add(*weight)))
}

fn label(name: impl Into<String>) -> Frame {
    Frame { name: name.into(), place: Place::Label }
}

fn wait_path(stack: &StackShare) -> Vec<Frame> {
    let mut path = vec![label(stack.lock_type.to_string()), label(&stack.lock.name)];
    push_frames(&mut path, &stack.user, &stack.kernel);
    path
}

fn cpu_path(stack: &CpuStack) -> Vec<Frame> {
    let first = match stack.lock_type {
        Some(lock_type) => lock_type.to_string(),
        None => NOT_IN_LOCK_CODE.into(),
    };
    let mut path = vec![label(first), label(&stack.comm)];
    push_frames(&mut path, &stack.user, &stack.kernel);
    path
}

/// The waiter's stack, root first, and on it that of who let it wait, which ends at its root: the
/// release code meets in the middle what waited for it.
fn blame_path(stack: &BlameStack) -> Vec<Frame> {
    let mut path = vec![label(stack.lock_type.to_string()), label(&stack.lock.name)];
    push_frames(&mut path, &stack.user, &stack.kernel);
    let frame = |name: &str, place| Frame { name: name.into(), place };
    match &stack.charged {
        ChargedName::Nobody(why) => path.push(frame(nobody(*why), Place::Divider)),
        ChargedName::Releaser { task, kind, .. } => {
            path.push(frame(divider(*kind), Place::Divider));
            path.extend(stack.releaser.iter().map(|name| frame(base(name), Place::Releaser)));
            path.push(frame(&task.comm, Place::Divider));
        }
    }
    path
}

fn divider(kind: HandOverKind) -> &'static str {
    match kind {
        HandOverKind::Release => "-- released by --",
        HandOverKind::PassOn => "-- passed on by --",
    }
}

/// What is known of a row without its stacks: lock type, lock or task, caller and wrappers.
fn rest_path(row: &Row, lock_type: LockType) -> Vec<Frame> {
    let key = &row.key;
    let mut path = vec![label(lock_type.to_string())];
    path.extend(key.lock.as_ref().map(|lock| label(&lock.name)));
    path.extend(key.task.as_ref().map(|task| label(&task.comm)));
    let caller = key.caller.iter().chain(key.wrappers.iter().rev());
    path.extend(caller.map(|name| kernel_frame(name)));
    path
}

/// Both parts are innermost first.
fn push_frames(path: &mut Vec<Frame>, user: &[String], kernel: &[String]) {
    let user_frame = |name: &String| Frame { name: base(name).into(), place: Place::User };
    path.extend(user.iter().rev().map(user_frame));
    path.extend(kernel.iter().rev().map(|name| kernel_frame(name)));
}

fn kernel_frame(name: &str) -> Frame {
    Frame { name: base(name).into(), place: Place::Kernel }
}

/// `down_read+0x43` is `down_read`: calls from two places of a function are one frame.
fn base(frame: &str) -> &str {
    match frame.rsplit_once("+0x") {
        Some((name, offset))
            if !name.is_empty()
                && !offset.is_empty()
                && offset.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => frame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offset_is_taken_off_a_frame() {
        let cases = [
            ("down_read+0x43", "down_read"),
            ("operator+0xg", "operator+0xg"),
            ("f+0x", "f+0x"),
            ("+0x10", "+0x10"),
            ("a+0x1+0x2f", "a+0x1"),
            ("[unknown]", "[unknown]"),
        ];
        for (frame, name) in cases {
            assert_eq!(base(frame), name);
        }
    }
}
