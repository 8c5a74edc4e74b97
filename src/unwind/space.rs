//! The mappings of one address space: no two overlap, the newest wins.
//!
//! In: mappings as they are made. The kernel reports no unmapping; a range that was unmapped is
//! known to be gone only when something else is mapped there. Out: the mapping of an address.

use std::collections::BTreeMap;

use crate::model::{ObjectId, UserFrame};

/// Where an object is mapped. `start + len` may be past the end of the address space in a hostile
/// recording: then it ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) len: u64,
    /// Offset in the object at `start`.
    pub(super) pgoff: u64,
    pub(super) object: ObjectId,
}

/// What starts at a key of [`Space::pieces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    end: u64,
    /// Address + shift = offset in the object. It stays the same when the piece is cut.
    shift: u64,
    object: ObjectId,
}

/// The mappings of one address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    pieces: BTreeMap<u64, Piece>,
}

impl Space {
    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether `mapping` is there already, just so.
    pub(super) fn has(&self, mapping: &Mapping) -> bool {
        self.pieces.get(&mapping.start) == Some(&Piece::of(mapping))
    }

    /// Adds `mapping` in place of whatever was there.
    pub(super) fn map(&mut self, mapping: &Mapping) {
        let new = Piece::of(mapping);
        if new.end <= mapping.start {
            return;
        }
        self.clear(mapping.start, new.end);
        self.pieces.insert(mapping.start, new);
    }

    /// Cuts `start..end` out of all pieces.
    fn clear(&mut self, start: u64, end: u64) {
        if let Some((_, before)) = self.pieces.range_mut(..start).next_back()
            && before.end > start
        {
            let tail = *before;
            before.end = start;
            self.keep_tail(tail, end);
        }
        while let Some((&at, &piece)) = self.pieces.range(start..end).next() {
            self.pieces.remove(&at);
            self.keep_tail(piece, end);
        }
    }

    /// Keeps the part of `piece` from `end` on, if there is one.
    fn keep_tail(&mut self, piece: Piece, end: u64) {
        if piece.end > end {
            self.pieces.insert(end, piece);
        }
    }

    /// Where `addr` lies.
    pub(super) fn find(&self, addr: u64) -> Option<UserFrame> {
        let (_, piece) = self.pieces.range(..=addr).next_back()?;
        let frame = UserFrame { object: piece.object, offset: addr.wrapping_add(piece.shift) };
        (addr < piece.end).then_some(frame)
    }
}

impl Piece {
    fn of(mapping: &Mapping) -> Piece {
        Piece {
            end: mapping.start.saturating_add(mapping.len),
            shift: mapping.pgoff.wrapping_sub(mapping.start),
            object: mapping.object,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Mapped = (u64, u64, u32);
    type Row = (u64, u64, u32, u64);

    fn rows(space: &Space) -> Vec<Row> {
        let row = |(&at, piece): (&u64, &Piece)| {
            (at, piece.end, piece.object.0, at.wrapping_add(piece.shift))
        };
        space.pieces.iter().map(row).collect()
    }

    #[test]
    fn a_new_mapping_replaces_and_cuts_old_ones() {
        // (start, len, object) mapped in this order, pgoff = 0x10 -> (start, end, object, pgoff).
        let cases: &[(&str, &[Mapped], &[Row])] = &[
            (
                "apart",
                &[(0x1000, 0x1000, 5), (0x3000, 0x1000, 6)],
                &[(0x1000, 0x2000, 5, 0x10), (0x3000, 0x4000, 6, 0x10)],
            ),
            (
                "adjacent",
                &[(0x1000, 0x1000, 5), (0x2000, 0x1000, 6)],
                &[(0x1000, 0x2000, 5, 0x10), (0x2000, 0x3000, 6, 0x10)],
            ),
            (
                "the same place",
                &[(0x1000, 0x1000, 5), (0x1000, 0x1000, 6)],
                &[(0x1000, 0x2000, 6, 0x10)],
            ),
            (
                "in the middle",
                &[(0x1000, 0x3000, 5), (0x2000, 0x1000, 6)],
                &[
                    (0x1000, 0x2000, 5, 0x10),
                    (0x2000, 0x3000, 6, 0x10),
                    (0x3000, 0x4000, 5, 0x2010),
                ],
            ),
            (
                "over the start",
                &[(0x2000, 0x2000, 5), (0x1000, 0x2000, 6)],
                &[(0x1000, 0x3000, 6, 0x10), (0x3000, 0x4000, 5, 0x1010)],
            ),
            (
                "over the end",
                &[(0x1000, 0x2000, 5), (0x2000, 0x2000, 6)],
                &[(0x1000, 0x2000, 5, 0x10), (0x2000, 0x4000, 6, 0x10)],
            ),
            (
                "over several",
                &[(1, 1, 5), (3, 1, 6), (5, 4, 7), (0, 6, 8)],
                &[(0, 6, 8, 0x10), (6, 9, 7, 0x11)],
            ),
            ("empty", &[(0x1000, 0x1000, 5), (0x1800, 0, 6)], &[(0x1000, 0x2000, 5, 0x10)]),
            ("past the end", &[(u64::MAX - 1, 100, 5)], &[(u64::MAX - 1, u64::MAX, 5, 0x10)]),
        ];
        for (name, mapped, expected) in cases {
            let mut space = Space::default();
            for &(start, len, object) in *mapped {
                let object = ObjectId(object);
                space.map(&Mapping { start, len, pgoff: 0x10, object });
            }
            assert_eq!(rows(&space), *expected, "{name}");
        }
    }

    #[test]
    fn an_address_is_found_between_start_and_end_only() {
        let mut space = Space::default();
        space.map(&Mapping { start: 0x1000, len: 0x1000, pgoff: 0x4000, object: ObjectId(9) });
        let offset = |addr| space.find(addr).map(|frame| frame.offset);
        assert_eq!(offset(0xfff), None);
        assert_eq!(offset(0x1000), Some(0x4000));
        assert_eq!(offset(0x1fff), Some(0x4fff));
        assert_eq!(offset(0x2000), None);
    }
}
