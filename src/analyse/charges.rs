//! Who is charged: how pieces of waits and holds enter the tables, and are asked for.
//!
//! In: pieces of waits, their parts that go on to another, holds. Out: counted in [`Blame`](super::blame),
//! times clipped to the range asked for, as those of the waits are.

use super::blame::{BlameKey, ChargedTo, HoldKey, ReleaserKey, SleepKey, ThroughKey};
use super::key::{StackKey, TaskKey};
use super::tables::{Tables, cell_key};
use crate::attribute::Attribution;
use crate::correlate::{ChainPart, Hold, Piece, PieceEnd, Releaser};
use crate::model::{HolderTimes, Nanos, StackId, Stat, TimeRange, Wait, WaitStat};

impl Tables {
    /// Charges a piece of a wait. `holder`: what who is charged did inside a range of time; it tells on
    /// which stacks that one slept.
    pub fn add_piece(
        &mut self,
        (wait, piece): (&Wait, &Piece),
        holder: impl FnOnce(TimeRange, &mut dyn FnMut(StackId, Nanos)) -> HolderTimes,
        attribution: &Attribution,
    ) {
        let range = self.filter.time;
        if wait.full() < self.filter.min_wait {
            return;
        }
        let inside = TimeRange { from: piece.from.max(range.from), to: piece.to.min(range.to) };
        let ends_inside = range.contains(piece.to);
        let own = wait.own_inside(inside);
        if own == Nanos::ZERO && !ends_inside {
            return;
        }
        let to = match piece.end {
            PieceEnd::HandOver(by) => ChargedTo::Releaser(releaser_key(by)),
            PieceEnd::Uncharged(why) => ChargedTo::Nobody(why),
        };
        let key = BlameKey { waiter: cell_key(wait, self.detail), to };
        let stat = self.blame.pieces.entry(key).or_default();
        stat.ended.own += own;
        if ends_inside {
            stat.ended.add(piece.to.since(piece.from));
        }
        if let Some(hold) = key.hold() {
            let sleeps = &mut self.blame.sleeps;
            stat.holder.merge(&holder(inside, &mut |stack, time| {
                let key = SleepKey { hold, stack: StackKey::Stack(stack) };
                *sleeps.entry(key).or_default() += time;
            }));
        }
        self.make_room_for_blame(attribution);
    }

    /// Counts a part of a piece that goes on to another than the piece's releaser, or may do so unseen.
    pub fn add_through(&mut self, wait: &Wait, part: ChainPart, attribution: &Attribution) {
        let range = self.filter.time;
        if wait.full() < self.filter.min_wait {
            return;
        }
        let inside = TimeRange { from: part.from.max(range.from), to: part.to.min(range.to) };
        let own = wait.own_inside(inside);
        if part.cut {
            self.blame.cut += own;
        }
        let ends_inside = range.contains(part.to);
        if part.chain.is_none() || (own == Nanos::ZERO && !ends_inside) {
            return;
        }
        let key = ThroughKey { waiter: cell_key(wait, self.detail), chain: part.chain };
        let stat = self.blame.through.entry(key).or_default();
        stat.own += own;
        if ends_inside {
            stat.add(part.to.since(part.from));
        }
        self.make_room_for_blame(attribution);
    }

    /// Charged waiting that goes on to another than its releaser, by waiter and chain, in no order.
    pub fn through(&self) -> impl Iterator<Item = (&ThroughKey, &Stat)> {
        self.blame.through.iter()
    }

    /// Charged time that may go on to another unseen, because a limit was reached.
    pub fn cut(&self) -> Nanos {
        self.blame.cut
    }

    /// Counts how long a releaser kept a lock while others waited for it.
    pub fn add_hold(&mut self, hold: &Hold, attribution: &Attribution) {
        if self.filter.time.contains(hold.time) {
            let key = HoldKey { lock: hold.lock, by: releaser_key(hold.by) };
            self.blame.holds.entry(key).or_default().add(hold.length);
            self.make_room_for_blame(attribution);
        }
    }

    /// Pieces of waits by waiter and releaser, in no order.
    pub fn pieces(&self) -> impl Iterator<Item = (&BlameKey, &WaitStat)> {
        self.blame.pieces.iter()
    }

    /// Where those slept who are charged with waiting, and how much of the waiting that was, in no order.
    pub fn holder_sleeps(&self) -> impl Iterator<Item = (&SleepKey, &Nanos)> {
        self.blame.sleeps.iter()
    }

    /// How long `key` kept a lock.
    pub fn hold(&self, key: &HoldKey) -> Option<&Stat> {
        self.blame.holds.get(key)
    }

    #[inline]
    fn make_room_for_blame(&mut self, attribution: &Attribution) {
        let waiter = |stack| attribution.known(stack)?.site.caller;
        let releaser = |stack| attribution.known(stack)?.release.as_ref()?.site.caller;
        self.blame.make_room(self.detail.cells, &waiter, &releaser);
    }
}

fn releaser_key(by: Releaser) -> ReleaserKey {
    let Releaser { task, stack, kind } = by;
    ReleaserKey { task: TaskKey::Task(task), stack: StackKey::Stack(stack), kind }
}
