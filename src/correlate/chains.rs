//! Wait chains: whoever let a task wait may have waited for another lock meanwhile.
//!
//! ```text
//!   C holds lock 2  |==================|  up_write: wakes B
//!   B waits for it     |---------------|~|   has lock 1 all the time; up_write: wakes A
//!   A waits for lock 1    |----------------------|~|
//!     charged to B        |======================|
//!     goes on to C        |============|                A <- B, who waits for lock 2 <- C
//!     ends with B                      |=========|      A <- B
//! ```
//!
//! B must have lock 2 and go on before it can release lock 1: B's wait ends before A's piece does, and
//! when A's wait is cut all that B waited for meanwhile is known, its own chains included. No look-ahead
//! is needed and no recursion, and a cycle cannot come to be but by records that are wrong.
//!
//! In: the pieces of waits, in order of the waits' ends. Out: [`Part`]s of pieces with the chain that they
//! go on to. Bounded: what a task waited for is forgotten when it is older than all open waits, and of
//! too much the oldest; what may go on unseen because of a limit is said ([`Part::cut`]).

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::wakeups::{Piece, PieceEnd, Releaser};
use crate::model::{LockAddr, LockKind, LockType, StackId, TaskRef, Timestamp, Wait};

/// Releasers in one chain at the most.
const LONGEST: usize = 8;
/// Distinct chains at the most.
const CHAINS: usize = 1 << 16;
/// What is remembered of one task's waiting at the most.
const SPANS_OF_TASK: usize = 1 << 10;
/// Spans of all tasks kept before it is looked for those that nobody needs any more.
const KEPT: usize = 1 << 14;
/// Spans of all tasks kept at the most.
const KEPT_AT_MOST: usize = 1 << 18;

/// A chain of releasers, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(u32);

/// What a releaser waited for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waited {
    /// The lock's type.
    pub lock_type: LockType,
    /// The lock.
    pub lock: LockAddr,
    /// Kernel stack of the begin.
    pub stack: StackId,
    /// Who let it wait.
    pub on: ChainId,
}

/// One releaser of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Who, and where it let the one before it go.
    pub by: Releaser,
    /// What it waited for meanwhile; `None`: it did not wait, the chain has its root here.
    pub waited: Option<Waited>,
}

/// A part of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first moment.
    pub from: Timestamp,
    /// The moment after it.
    pub to: Timestamp,
    /// The chain that it goes on to, of two releasers or more; `None`: it ends with the piece's own.
    pub chain: Option<ChainId>,
    /// It may go on further: a limit was reached.
    pub cut: bool,
}

/// A time that a task is known to have waited for another.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Timestamp,
    to: Timestamp,
    waited: Waited,
}

/// What one task waited for lately: spans in order of time that do not overlap. Of waits inside each
/// other the inner one, which ends first, has the time.
#[derive(Debug, Default)]
struct History {
    spans: VecDeque<Span>,
    /// Spans up to here were too many to keep.
    forgotten: Timestamp,
}

/// What all tasks waited for lately, and the chains that were found.
#[derive(Debug)]
pub struct Chains {
    links: Vec<Link>,
    ids: HashMap<Link, ChainId>,
    histories: HashMap<TaskRef, History>,
    /// Spans in all histories.
    kept: usize,
    limit: usize,
    /// The spans that overlap the piece at hand.
    overlapping: Vec<Span>,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains {
            links: Vec::new(),
            ids: HashMap::new(),
            histories: HashMap::new(),
            kept: 0,
            limit: KEPT,
            overlapping: Vec::new(),
        }
    }
}

impl Chains {
    /// The releasers of a chain: the first is who let the waiter go, the last is the root.
    pub fn links(&self, chain: ChainId) -> impl Iterator<Item = &Link> {
        let link = |chain: ChainId| self.links.get(chain.0 as usize);
        std::iter::successors(link(chain), move |last| link(last.waited?.on))
    }

    /// Follows a piece of a wait to its roots: gives the parts of which something is to be said, and
    /// remembers all of them for those who wait for this waiter.
    pub fn follow(&mut self, wait: &Wait, piece: &Piece, out: &mut impl FnMut(Part)) {
        let PieceEnd::HandOver(by) = piece.end else { return };
        let mut overlapping = std::mem::take(&mut self.overlapping);
        let mut at = piece.from;
        if let Some(history) = self.histories.get(&by.task) {
            overlapping.extend(history.inside(piece.from, piece.to));
            let unknown = history.forgotten.min(piece.to);
            if unknown > at {
                self.take(wait, Part { from: at, to: unknown, chain: None, cut: true }, by, out);
                at = unknown;
            }
        }
        for span in overlapping.drain(..) {
            let (from, to) = (span.from.max(at), span.to.min(piece.to));
            if from >= to {
                continue;
            }
            self.take(wait, Part { from: at, to: from, chain: None, cut: false }, by, out);
            let chain = self.longer(wait.task, by, span.waited);
            self.take(wait, Part { from, to, chain, cut: chain.is_none() }, by, out);
            at = to;
        }
        self.take(wait, Part { from: at, to: piece.to, chain: None, cut: false }, by, out);
        self.overlapping = overlapping;
    }

    /// A part of a piece that `by` ended.
    fn take(&mut self, wait: &Wait, part: Part, by: Releaser, out: &mut impl FnMut(Part)) {
        if part.from >= part.to {
            return;
        }
        if part.chain.is_some() || part.cut {
            out(part);
        }
        let on = part.chain.or_else(|| self.intern(Link { by, waited: None }));
        let Wait { lock_type, lock, kernel_stack: stack, .. } = *wait;
        if let Some(on) = on {
            let waited = Waited { lock_type, lock, stack, on };
            self.remember(wait.task, Span { from: part.from, to: part.to, waited });
        }
    }

    /// The chain of a `waiter` whom `by` let go, who had `waited` itself. `None` where that would be
    /// too long, or one too many, or somebody would wait for himself.
    fn longer(&mut self, waiter: TaskRef, by: Releaser, waited: Waited) -> Option<ChainId> {
        let is_new = |link: &Link| link.by.task != waiter && link.by.task != by.task;
        let length = self.links(waited.on).take_while(|link| is_new(link)).count();
        let whole = length == self.links(waited.on).count();
        (whole && length < LONGEST).then(|| self.intern(Link { by, waited: Some(waited) }))?
    }

    /// Until when the task is known to have waited for a lock of this kind, between two moments.
    pub(super) fn waited_until(
        &self,
        task: TaskRef,
        kind: LockKind,
        (from, to): (Timestamp, Timestamp),
    ) -> Option<Timestamp> {
        let spans = self.histories.get(&task)?.inside(from, to);
        let of_kind = spans.filter(|span| span.waited.lock_type.kind == kind);
        of_kind.last().map(|span| span.to.min(to))
    }

    fn intern(&mut self, link: Link) -> Option<ChainId> {
        if let Some(&known) = self.ids.get(&link) {
            return Some(known);
        }
        if self.links.len() >= CHAINS {
            return None;
        }
        let id = ChainId(self.links.len() as u32);
        self.links.push(link);
        self.ids.insert(link, id);
        Some(id)
    }

    fn remember(&mut self, task: TaskRef, span: Span) {
        if self.kept >= KEPT_AT_MOST {
            self.halve();
        }
        let history = self.histories.entry(task).or_default();
        self.kept -= history.spans.len();
        history.add(span);
        self.kept += history.spans.len();
    }

    /// Whether it is time to [`Chains::forget`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.kept >= self.limit
    }

    /// Forgets what tasks waited for before `oldest`, when the oldest open wait began.
    pub fn forget(&mut self, oldest: Timestamp) {
        self.histories.retain(|_, history| {
            let gone = history.spans.partition_point(|span| span.to <= oldest);
            history.spans.drain(..gone);
            !history.spans.is_empty()
        });
        self.count();
        self.limit = KEPT.max(2 * self.kept);
    }

    /// Forgets the older half of every history.
    fn halve(&mut self) {
        self.histories.values_mut().for_each(|history| {
            let most = history.spans.len() / 2;
            history.shorten(most);
        });
        self.count();
    }

    fn count(&mut self) {
        self.kept = self.histories.values().map(|history| history.spans.len()).sum();
    }
}

impl History {
    fn inside(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Span> + '_ {
        let first = self.spans.partition_point(|span| span.to <= from);
        self.spans.range(first..).take_while(move |span| span.from < to).copied()
    }

    /// Adds what is not covered by spans of inner waits.
    fn add(&mut self, span: Span) {
        let mut from = span.from;
        let mut index = self.spans.partition_point(|other| other.to <= from);
        while from < span.to {
            match self.spans.get(index) {
                Some(inner) if inner.from <= from => from = from.max(inner.to),
                next => {
                    let to = next.map_or(span.to, |next| next.from.min(span.to));
                    self.spans.insert(index, Span { from, to, ..span });
                    from = to;
                }
            }
            index += 1;
        }
        self.shorten(SPANS_OF_TASK);
    }

    fn shorten(&mut self, most: usize) {
        let gone = self.spans.len().saturating_sub(most);
        if let Some(last) = self.spans.drain(..gone).next_back() {
            self.forgotten = self.forgotten.max(last.to);
        }
    }
}
