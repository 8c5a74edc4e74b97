//! The LOCKPROF block between the file header and the ids: a table of sections that perf never sees.
//!
//! In: the bytes behind the file header. Out: where the sections stand. perf finds its sections by a
//! table behind the records, which a killed recorder did not write; this one is written first. It
//! also lists what perf has no section for: an unknown feature bit makes `perf inject` crash.
//!
//! ```text
//! 104 "LOCKPROF"                120 entries { u64 kind, u64 offset, u64 size }, kind 0: free
//! 112 u32 version: 1            kind: perf's feature bit, or one of `kind::KALLSYMS` and up
//! 116 u32 number of entries
//! ```

use super::bytes::Cursor;
use super::header::{Extent, HEADER_SIZE};

/// Kinds of sections: perf's feature bits (`tools/perf/util/header.h`), then our own.
pub(super) mod kind {
    pub(crate) const TRACING_DATA: u64 = 1;
    pub(crate) const BUILD_ID: u64 = 2;
    pub(crate) const HOSTNAME: u64 = 3;
    pub(crate) const OSRELEASE: u64 = 4;
    pub(crate) const VERSION: u64 = 5;
    pub(crate) const ARCH: u64 = 6;
    pub(crate) const NRCPUS: u64 = 7;
    pub(crate) const CPUDESC: u64 = 8;
    pub(crate) const TOTAL_MEM: u64 = 10;
    pub(crate) const CMDLINE: u64 = 11;
    pub(crate) const EVENT_DESC: u64 = 12;
    pub(crate) const SAMPLE_TIME: u64 = 21;
    pub(crate) const CLOCKID: u64 = 23;
    pub(crate) const COMPRESSED: u64 = 27;
    pub(crate) const CLOCK_DATA: u64 = 29;
    /// `/proc/kallsyms`, zlib.
    pub(crate) const KALLSYMS: u64 = 0x1000;
    /// `Settings`, JSON.
    pub(crate) const ORIGIN: u64 = 0x1001;
    /// `End`, JSON.
    pub(crate) const END: u64 = 0x1002;

    /// Whether perf lists sections of this kind in its own table.
    pub(crate) fn is_perf_feature(kind: u64) -> bool {
        kind < KALLSYMS
    }
}

/// Where the block starts.
pub(super) const BLOCK_OFFSET: u64 = HEADER_SIZE;
/// Bytes before the entries.
pub(super) const BLOCK_HEAD: usize = 16;
const ENTRY_SIZE: usize = 24;
/// More than any version will need; keeps a hostile count from asking for memory.
pub(super) const ENTRIES_MAX: u32 = 256;

const MAGIC: &[u8; 8] = b"LOCKPROF";
const VERSION: u32 = 1;

/// One section of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: u64,
    pub(super) extent: Extent,
}

/// The block: sections written so far, and the number of entries that have room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) sections: Vec<Section>,
    pub(super) capacity: u32,
}

impl Block {
    /// Entries of the block that `head` (its first [`BLOCK_HEAD`] bytes) announces; `None` when
    /// there is no such block.
    pub(super) fn announced(head: &[u8]) -> Option<Result<u32, String>> {
        let mut cursor = Cursor::new(head);
        if cursor.take(8)? != MAGIC {
            return None;
        }
        let (version, entries) = (cursor.u32()?, cursor.u32()?);
        if version > VERSION {
            return Some(Err(format!("is of version {version}, this lockprof reads {VERSION}")));
        }
        if entries > ENTRIES_MAX {
            return Some(Err(format!("says it has {entries} sections")));
        }
        Some(Ok(entries))
    }

    /// Reads the entries behind the head.
    pub(super) fn parse_entries(bytes: &[u8]) -> Block {
        let entries = bytes.chunks_exact(ENTRY_SIZE);
        let capacity = entries.len() as u32;
        let sections = entries.filter_map(|entry| {
            let mut cursor = Cursor::new(entry);
            let (kind, offset, size) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            (kind != 0).then_some(Section { kind, extent: Extent { offset, size } })
        });
        Block { sections: sections.collect(), capacity }
    }

    /// Bytes of a block with room for `capacity` entries.
    pub(super) fn size(capacity: u32) -> u64 {
        (BLOCK_HEAD + ENTRY_SIZE * capacity as usize) as u64
    }

    /// Puts a section in, in place of an earlier one of its kind.
    pub(super) fn set(&mut self, section: Section) {
        match self.sections.iter_mut().find(|known| known.kind == section.kind) {
            Some(known) => *known = section,
            None => self.sections.push(section),
        }
    }

    /// The block's bytes; sections beyond the capacity are left out.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let size = Self::size(self.capacity) as usize;
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.capacity.to_le_bytes());
        for section in self.sections.iter().take(self.capacity as usize) {
            let Extent { offset, size } = section.extent;
            bytes.extend([section.kind, offset, size].into_iter().flat_map(u64::to_le_bytes));
        }
        bytes.resize(size, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_with_free_entries_survives_the_round_trip() {
        let mut block = Block { sections: Vec::new(), capacity: 3 };
        block.set(Section { kind: kind::END, extent: Extent { offset: 1, size: 2 } });
        block.set(Section { kind: kind::ARCH, extent: Extent { offset: 3, size: 4 } });
        block.set(Section { kind: kind::END, extent: Extent { offset: 5, size: 6 } });
        let bytes = block.to_bytes();
        assert_eq!(bytes.len() as u64, Block::size(3));
        assert_eq!(Block::announced(&bytes), Some(Ok(3)));
        let read = Block::parse_entries(&bytes[BLOCK_HEAD..]);
        assert_eq!(read, block);
        assert_eq!(read.sections[0].extent.offset, 5);
    }

    #[test]
    fn a_foreign_head_is_no_block_and_a_hostile_one_is_named() {
        assert_eq!(Block::announced(b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), None);
        assert_eq!(Block::announced(b"LOCKPR"), None);
        let head = |version: u32, entries: u32| {
            [&MAGIC[..], &version.to_le_bytes(), &entries.to_le_bytes()].concat()
        };
        assert!(Block::announced(&head(2, 1)).unwrap().is_err());
        assert!(Block::announced(&head(1, u32::MAX)).unwrap().is_err());
    }
}
