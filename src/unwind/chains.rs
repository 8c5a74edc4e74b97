//! The cache of callchains: (generation of an address space, raw addresses) -> [`StackId`].
//!
//! A thread that waits for a lock mostly waits at places where it waited before: one look-up of the
//! raw bytes saves a search of the maps for each frame. A full cache is emptied.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::model::StackId;

/// Chains kept at the most.
const CHAIN_LIMIT: usize = 1 << 16;

/// Bytes of all kept chains at the most.
const BYTE_LIMIT: usize = 16 << 20;

#[derive(Clone, Copy, Debug)]
struct Entry {
    generation: u64,
    start: u32,
    len: u32,
    stack: StackId,
}

impl Entry {
    fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }
}

/// The cache of callchains.
#[derive(Debug, Default)]
pub(super) struct Chains {
    entries: HashTable<Entry>,
    bytes: Vec<u8>,
    hasher: DefaultHashBuilder,
}

impl Chains {
    #[inline]
    fn hash(hasher: &DefaultHashBuilder, generation: u64, chain: &[u8]) -> u64 {
        let mut hasher = hasher.build_hasher();
        hasher.write_u64(generation);
        hasher.write(chain);
        hasher.finish()
    }

    /// The stack that `chain` was, in that generation of its address space.
    #[inline]
    pub(super) fn get(&self, generation: u64, chain: &[u8]) -> Option<StackId> {
        let hash = Chains::hash(&self.hasher, generation, chain);
        let equal = |entry: &Entry| {
            entry.generation == generation && self.bytes.get(entry.range()) == Some(chain)
        };
        self.entries.find(hash, equal).map(|entry| entry.stack)
    }

    /// Keeps what `chain` is. It must not be there yet.
    pub(super) fn insert(&mut self, generation: u64, chain: &[u8], stack: StackId) {
        if self.entries.len() >= CHAIN_LIMIT || self.bytes.len() + chain.len() > BYTE_LIMIT {
            self.entries.clear();
            self.bytes.clear();
        }
        if chain.len() > BYTE_LIMIT {
            return;
        }
        let (start, len) = (self.bytes.len() as u32, chain.len() as u32);
        self.bytes.extend_from_slice(chain);
        let hash = Chains::hash(&self.hasher, generation, chain);
        let (bytes, hasher) = (&self.bytes, &self.hasher);
        let rehash = |entry: &Entry| {
            let chain = bytes.get(entry.range()).unwrap_or_default();
            Chains::hash(hasher, entry.generation, chain)
        };
        self.entries.insert_unique(hash, Entry { generation, start, len, stack }, rehash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_counts_for_its_own_generation_only() {
        let mut chains = Chains::default();
        chains.insert(1, b"abc", StackId(7));
        chains.insert(2, b"abc", StackId(8));
        assert_eq!(chains.get(1, b"abc"), Some(StackId(7)));
        assert_eq!(chains.get(2, b"abc"), Some(StackId(8)));
        assert_eq!(chains.get(3, b"abc"), None);
        assert_eq!(chains.get(1, b"ab"), None);
    }

    #[test]
    fn a_full_cache_is_emptied_and_goes_on() {
        let mut chains = Chains::default();
        let chain = |n: usize| n.to_le_bytes();
        for n in 0..=CHAIN_LIMIT {
            chains.insert(1, &chain(n), StackId(n as u32));
        }
        assert_eq!(chains.get(1, &chain(0)), None);
        assert_eq!(chains.get(1, &chain(CHAIN_LIMIT)), Some(StackId(CHAIN_LIMIT as u32)));
        assert_eq!((chains.entries.len(), chains.bytes.len()), (1, 8));
    }
}
