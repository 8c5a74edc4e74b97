//! Whom a wait stood behind: readers, writers, writers that were queued before.
//!
//! ```text
//!   piece ended by        up_write, downgrade_write    up_read                  neither is known
//!   of a reader           behind a writer              behind a queued writer   as its place in the queue says
//!   of a writer           behind a writer              behind readers           unknown
//! ```
//!
//! Who releases a lock held it until then. A reader that was kept waiting by readers stood behind a
//! writer that was queued before it. Where no release was seen, a reader waits for a queued writer as
//! long as one stands ahead of it, and for one that holds the lock from then on.
//!
//! In: a piece of a wait, what its releaser did, the wait's place in its queue. Out: times with
//! [`BehindWhom`], which add up to the piece.

use super::Attribution;
use crate::correlate::{Piece, PieceEnd};
use crate::model::{BehindWhom, Mode, Timestamp, Uncharged, Wait};

/// A part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its first moment.
    pub from: Timestamp,
    /// The moment after it.
    pub to: Timestamp,
    /// Whom it stood behind.
    pub behind: BehindWhom,
}

/// The parts of a whole wait, of which `pieces` are charged; what follows them, or all where there are
/// none, is told by the queue alone.
pub fn standings(wait: &Wait, pieces: &[Piece], attribution: &Attribution) -> Vec<Standing> {
    let mut parts = Vec::with_capacity(pieces.len() + 2);
    let (mode, writer_ahead) = (wait.lock_type.mode, wait.writer_ahead);
    let mut from = wait.begin;
    for piece in pieces {
        match judged(mode, piece, attribution) {
            Some(behind) => parts.push(Standing { from: piece.from, to: piece.to, behind }),
            None => by_queue(mode, (piece.from, piece.to), writer_ahead, &mut parts),
        }
        from = piece.to;
    }
    if from < wait.end {
        by_queue(mode, (from, wait.end), writer_ahead, &mut parts);
    }
    parts
}

/// What the end of a piece says; `None`: nothing.
fn judged(mode: Mode, piece: &Piece, attribution: &Attribution) -> Option<BehindWhom> {
    let by = match piece.end {
        PieceEnd::HandOver(by) => by,
        PieceEnd::Uncharged(Uncharged::Own) => return Some(BehindWhom::Woken),
        PieceEnd::Uncharged(Uncharged::Lost) => return Some(BehindWhom::Unknown),
        PieceEnd::Uncharged(_) => return None,
    };
    let release = attribution.known(by.stack)?.release.as_ref()?;
    Some(match (mode, release.mode?) {
        (_, Mode::Write | Mode::Exclusive) => BehindWhom::Writer,
        (Mode::Read, Mode::Read) => BehindWhom::QueuedWriter,
        (_, Mode::Read) => BehindWhom::Reader,
    })
}

fn by_queue(
    mode: Mode,
    (from, to): (Timestamp, Timestamp),
    writer_ahead: Option<Timestamp>,
    parts: &mut Vec<Standing>,
) {
    let Some(until) = writer_ahead.filter(|_| mode == Mode::Read) else {
        return parts.push(Standing { from, to, behind: BehindWhom::Unknown });
    };
    let until = until.clamp(from, to);
    if from < until {
        parts.push(Standing { from, to: until, behind: BehindWhom::QueuedWriter });
    }
    if until < to {
        parts.push(Standing { from: until, to, behind: BehindWhom::Writer });
    }
}
