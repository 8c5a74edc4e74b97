//! Who is charged: how pieces of waits and holds enter the sums.
//!
//! In: pieces of waits, their parts that go on to another, holds. Out: counted in [`Sums`], times clipped
//! to the range asked for, as those of the waits are.

use super::blame::{BlameKey, ChargedTo, HoldKey, ReleaserKey, SleepKey, ThroughKey};
use super::key::{StackKey, TaskKey};
use super::sums::Sums;
use super::tables::{Tables, cell_key};
use crate::attribute::Attribution;
use crate::correlate::{ChainPart, Hold, Piece, PieceEnd, Releaser};
use crate::model::{HolderTimes, Nanos, StackId, TimeRange, Wait};

impl Tables {
    /// Charges a piece of a wait. `holder`: what who is charged did inside a range of time; it tells on
    /// which stacks that one slept.
    pub fn add_piece(
        &mut self,
        (wait, piece): (&Wait, &Piece),
        holder: impl Fn(TimeRange, &mut dyn FnMut(StackId, Nanos)) -> HolderTimes,
        attribution: &Attribution,
    ) {
        let to = match piece.end {
            PieceEnd::HandOver(by) => ChargedTo::Releaser(releaser_key(by)),
            PieceEnd::Uncharged(why) => ChargedTo::Nobody(why),
        };
        let key = BlameKey { waiter: cell_key(wait, self.detail), to };
        if self.wants(wait) {
            self.count((piece.from, piece.to), attribution, |sums, range| {
                sums.add_piece(key, (wait, piece), range, &holder);
            });
        }
    }

    /// Counts a part of a piece that goes on to another than the piece's releaser, or may do so unseen.
    pub fn add_through(&mut self, wait: &Wait, part: ChainPart, attribution: &Attribution) {
        let key = ThroughKey { waiter: cell_key(wait, self.detail), chain: part.chain };
        if self.wants(wait) {
            self.count((part.from, part.to), attribution, |sums, range| {
                sums.add_through(key, (wait, part), range);
            });
        }
    }

    /// Counts how long a releaser kept a lock while others waited for it.
    pub fn add_hold(&mut self, hold: &Hold, attribution: &Attribution) {
        let key = HoldKey { lock: hold.lock, by: releaser_key(hold.by) };
        self.count_at(hold.time, attribution, |sums| sums.holds.cell(key).add(hold.length));
    }
}

impl Sums {
    fn add_piece(
        &mut self,
        key: BlameKey,
        (wait, piece): (&Wait, &Piece),
        range: TimeRange,
        holder: impl Fn(TimeRange, &mut dyn FnMut(StackId, Nanos)) -> HolderTimes,
    ) {
        let inside = TimeRange { from: piece.from, to: piece.to }.both(range);
        let ends_inside = range.contains(piece.to);
        let own = wait.own_inside(inside);
        if own == Nanos::ZERO && !ends_inside {
            return;
        }
        let stat = self.pieces.cell(key);
        stat.ended.own += own;
        if ends_inside {
            stat.ended.add(piece.to.since(piece.from));
        }
        if let Some(hold) = key.hold() {
            let sleeps = &mut self.sleeps;
            stat.holder.merge(&holder(inside, &mut |stack, time| {
                *sleeps.cell(SleepKey { hold, stack: StackKey::Stack(stack) }) += time;
            }));
        }
    }

    fn add_through(&mut self, key: ThroughKey, (wait, part): (&Wait, ChainPart), range: TimeRange) {
        let own = wait.own_inside(TimeRange { from: part.from, to: part.to }.both(range));
        if part.cut {
            self.cut += own;
        }
        let ends_inside = range.contains(part.to);
        if part.chain.is_none() || (own == Nanos::ZERO && !ends_inside) {
            return;
        }
        let stat = self.through.cell(key);
        stat.own += own;
        if ends_inside {
            stat.add(part.to.since(part.from));
        }
    }
}

fn releaser_key(by: Releaser) -> ReleaserKey {
    let Releaser { task, stack, kind } = by;
    ReleaserKey { task: TaskKey::of(task), stack: StackKey::Stack(stack), kind }
}
