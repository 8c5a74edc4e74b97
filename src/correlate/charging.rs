//! Whom the parts of an ended wait are charged to, and when that is known.
//!
//! ```text
//!   end of wait ──> releases inside it become hand-overs ──> charged at once
//!                        │ one of them has no site yet: its task may be about to wake somebody
//!                        └──> late ──its waking──────────────> charged
//!                              └────10 ms, or too many late──> charged to a task without a site
//! ```
//!
//! In: waits that ended, wakings, `contended_release`. Out: [`Charge`]s. Bounded: of too many late waits,
//! and of too many hand-overs without a site, the oldest is no longer waited for.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::chains::Part;
use super::identity::Identity;
use super::releases::{CALL, ContendedRelease};
use super::waiting::OpenWait;
use super::wakeups::{HandOver, Hold, LockId, Piece, Wakeups};
use crate::model::{StackId, Timestamp, Wait};

/// Hand-overs without a site that are waited for, at the most.
const NAMELESS: usize = 1 << 12;
/// Late waits for one lock at the most.
const LATE: usize = 64;

/// What is known of a wait that ended.
#[derive(Clone, Copy, Debug)]
pub enum Charge<'a> {
    /// All of the wait, piece by piece.
    Piece(&'a Wait, Piece),
    /// A part of the piece before, which goes on to another than the piece's own releaser.
    Through(&'a Wait, Part),
    /// The wait and its pieces together, after each of them.
    Whole(&'a Wait, &'a [Piece]),
    /// How long a releaser kept a lock.
    Hold(Hold),
}

/// What is late, and why.
#[derive(Debug, Default)]
pub(super) struct Late {
    locks: HashMap<LockId, OfLock>,
    /// Hand-overs without a site, as they came: those at the front are given up first.
    order: VecDeque<(Timestamp, LockId)>,
    /// Locks of which a hand-over has got its site.
    named: Vec<LockId>,
}

/// The same of one lock.
#[derive(Debug, Default)]
struct OfLock {
    waits: VecDeque<Wait>,
    /// Holds that ended by a hand-over without a site.
    nameless: Vec<Hold>,
}

impl OfLock {
    /// A hand-over inside the wait has no site.
    fn concerns(&self, wait: &Wait) -> bool {
        self.nameless.iter().any(|hold| wait.begin < hold.time && hold.time <= wait.end)
    }
}

impl Late {
    /// The late waits, as if they were open.
    pub(super) fn waits(&self) -> impl Iterator<Item = OpenWait> + '_ {
        let waits = self.locks.values().flat_map(|of_lock| &of_lock.waits);
        waits.map(|wait| OpenWait { lock: Identity::at(wait), begin: wait.begin })
    }

    fn wait_for(&mut self, id: LockId, hold: Hold) {
        self.order.push_back((hold.time, id));
        self.locks.entry(id).or_default().nameless.push(hold);
    }

    /// The waking by which the hand-over of a hold has its site.
    fn take(&mut self, id: LockId, HandOver { time, by }: HandOver) -> Option<Hold> {
        let of_lock = self.locks.get_mut(&id)?;
        let is_this = |hold: &Hold| hold.time == time && hold.by.task == by.task;
        let at = of_lock.nameless.iter().position(is_this)?;
        self.named.push(id);
        Some(Hold { by, ..of_lock.nameless.remove(at) })
    }

    /// The lock of the oldest hand-over that is not waited for any more at `now`.
    fn overdue(&mut self, now: Timestamp) -> Option<(Timestamp, LockId)> {
        let (time, _) = *self.order.front()?;
        let over = now.since(time) > CALL || self.order.len() > NAMELESS;
        if over { self.order.pop_front() } else { None }
    }
}

impl Wakeups {
    /// A lock that others wait for was let go.
    pub fn released(&mut self, release: ContendedRelease) {
        self.releases.note(release);
    }

    /// Charges a wait that ended, at once or later.
    pub fn charge(&mut self, wait: &Wait, out: &mut impl FnMut(Charge<'_>)) {
        self.let_go(wait, out);
        let id = lock_of(wait);
        let of_lock = self.late.locks.get_mut(&id);
        let Some(of_lock) = of_lock.filter(|of_lock| of_lock.concerns(wait)) else {
            return self.charge_now(wait, Identity::at(wait), out);
        };
        of_lock.waits.push_back(*wait);
        if of_lock.waits.len() > LATE
            && let Some(oldest) = of_lock.waits.pop_front()
        {
            self.charge_now(&oldest, Identity::At(id), out);
        }
    }

    /// Charges the late waits of which all is known by now.
    pub fn settle(&mut self, now: Timestamp, out: &mut impl FnMut(Charge<'_>)) {
        while let Some(id) = self.late.named.pop() {
            self.settle_lock(id, out);
        }
        while let Some(oldest) = self.late.overdue(now) {
            self.give_up(oldest, out);
        }
    }

    /// The end of the recording: nothing more will be known.
    pub fn finish(&mut self, out: &mut impl FnMut(Charge<'_>)) {
        while let Some(oldest) = self.late.order.pop_front() {
            self.give_up(oldest, out);
        }
    }

    /// Hand-overs of this lock until then stay without a site.
    fn give_up(&mut self, (time, id): (Timestamp, LockId), out: &mut impl FnMut(Charge<'_>)) {
        let Some(of_lock) = self.late.locks.get_mut(&id) else { return };
        of_lock.nameless.retain(|hold| {
            let given_up = hold.time <= time;
            if given_up {
                out(Charge::Hold(*hold));
            }
            !given_up
        });
        self.settle_lock(id, out);
    }

    fn settle_lock(&mut self, id: LockId, out: &mut impl FnMut(Charge<'_>)) {
        let Some(mut of_lock) = self.late.locks.remove(&id) else { return };
        for _ in 0..of_lock.waits.len() {
            let Some(wait) = of_lock.waits.pop_front() else { break };
            match of_lock.concerns(&wait) {
                true => of_lock.waits.push_back(wait),
                false => self.charge_now(&wait, Identity::At(id), out),
            }
        }
        if !of_lock.nameless.is_empty() {
            self.late.locks.insert(id, of_lock);
        }
    }

    /// Charges a wait of which all is known that will be: one that ended, or one by sleeps, of which
    /// wakings are all that tells.
    pub fn charge_now(&mut self, wait: &Wait, lock: Identity, out: &mut impl FnMut(Charge<'_>)) {
        let mut pieces = std::mem::take(&mut self.pieces);
        self.cut(wait, lock, &mut |piece| pieces.push(piece));
        for piece in &pieces {
            out(Charge::Piece(wait, *piece));
            self.chains.follow(wait, piece, &mut |part| out(Charge::Through(wait, part)));
        }
        out(Charge::Whole(wait, &pieces));
        pieces.clear();
        self.pieces = pieces;
    }

    /// Releases inside the wait, of which no waking told, are hand-overs.
    fn let_go(&mut self, wait: &Wait, out: &mut impl FnMut(Charge<'_>)) {
        let id = lock_of(wait);
        let inside =
            self.locks.get(&Identity::At(id)).map(|lock| lock.inside(wait.begin, wait.end));
        let last = inside.and_then(|inside| inside.last()).map(|last| last.time);
        for ContendedRelease { time, by, .. } in self.releases.of_wait(wait, last) {
            let hold = self.insert(id, HandOver { time, by }, wait.begin);
            match by.stack == StackId::EMPTY && wait.end.since(time) <= CALL {
                true => self.late.wait_for(id, hold),
                false => out(Charge::Hold(hold)),
            }
        }
    }

    /// Adds a hand-over that may be older than others; gives the hold that it ended.
    pub(super) fn insert(&mut self, id: LockId, hand_over: HandOver, begin: Timestamp) -> Hold {
        let HandOver { time, by } = hand_over;
        let since = self.locks.entry(Identity::At(id)).or_default().insert(hand_over).max(begin);
        self.kept += 1;
        Hold { lock: Some(id), by, time, length: time.since(since) }
    }

    /// A waking tells the site of a hand-over that is known. Gives the hold, if that had none.
    pub(super) fn name(&mut self, id: LockId, hand_over: HandOver) -> Option<Hold> {
        let HandOver { time, by } = hand_over;
        let hold = self.late.take(id, hand_over)?;
        if let Some(known) =
            self.locks.get_mut(&Identity::At(id)).and_then(|lock| lock.at(time, by.task))
        {
            known.by = by;
        }
        Some(hold)
    }
}

fn lock_of(wait: &Wait) -> LockId {
    LockId { addr: wait.lock, kind: wait.lock_type.kind }
}
