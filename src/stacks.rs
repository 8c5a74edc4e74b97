//! Frames -> [`StackId`]: each distinct stack is kept once.
//!
//! Kernel and user part of a callchain are interned apart: sites, roles and rows hang on the kernel
//! part. A recording of 458,802 begins had 365 distinct kernel stacks. These get their ids where records
//! are dated, by [`KernelIds`], perhaps on another thread; whoever decodes them keeps their frames.

use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::decode::{RawChain, words};
use crate::model::{StackId, UserFrame};

/// Frames kept at the most, over all stacks. Beyond it new stacks are empty, and counted.
const FRAME_LIMIT: usize = 16 << 20;

/// One kind of stacks.
#[derive(Debug)]
struct Interner<T> {
    frames: Vec<T>,
    /// Start of each stack in `frames`; stack n ends where n + 1 starts.
    starts: Vec<u32>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    limit: usize,
    refused: u64,
}

impl<T: Copy + Eq + Hash> Interner<T> {
    fn new(limit: usize) -> Interner<T> {
        Interner {
            frames: Vec::new(),
            // Stack 0 is StackId::EMPTY.
            starts: vec![0, 0],
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            limit,
            refused: 0,
        }
    }

    fn get(&self, id: u32) -> &[T] {
        frames_of(&self.frames, &self.starts, id)
    }

    fn intern(&mut self, frames: &[T]) -> StackId {
        if frames.is_empty() {
            return StackId::EMPTY;
        }
        let hash = self.hasher.hash_one(frames);
        let (all, starts) = (&self.frames, &self.starts);
        if let Some(&id) = self.ids.find(hash, |&id| frames_of(all, starts, id) == frames) {
            return StackId(id);
        }
        if self.frames.len() + frames.len() > self.limit {
            self.refused += 1;
            return StackId::EMPTY;
        }
        let id = self.starts.len() as u32 - 1;
        self.frames.extend_from_slice(frames);
        self.starts.push(self.frames.len() as u32);
        let (all, starts, hasher) = (&self.frames, &self.starts, &self.hasher);
        let rehash = |&id: &u32| hasher.hash_one(frames_of(all, starts, id));
        self.ids.insert_unique(hash, id, rehash);
        StackId(id)
    }
}

fn frames_of<'a, T>(frames: &'a [T], starts: &[u32], id: u32) -> &'a [T] {
    let id = id as usize;
    match (starts.get(id), starts.get(id + 1)) {
        (Some(&start), Some(&end)) => &frames[start as usize..end as usize],
        _ => &[],
    }
}

/// Gives kernel stacks their ids, in the order in which it is shown them.
#[derive(Debug)]
pub struct KernelIds(Interner<u8>);

impl Default for KernelIds {
    fn default() -> KernelIds {
        KernelIds(Interner::new(FRAME_LIMIT * size_of::<u64>()))
    }
}

impl KernelIds {
    /// The id of the kernel stack whose addresses stand in `chain`, 8 bytes each.
    #[inline]
    pub fn id(&mut self, chain: &[u8]) -> StackId {
        self.0.intern(chain)
    }
}

/// Kernel stacks under the ids that they came with.
#[derive(Debug, Default)]
struct Known {
    frames: Vec<u64>,
    /// Where those of each stack stand; an empty range when it has not come.
    places: Vec<Range<u32>>,
}

impl Known {
    fn get(&self, StackId(id): StackId) -> &[u64] {
        let place = self.places.get(id as usize).cloned().unwrap_or_default();
        self.frames.get(place.start as usize..place.end as usize).unwrap_or_default()
    }

    fn keep(&mut self, StackId(id): StackId, frames: impl Iterator<Item = u64>) {
        let (index, start) = (id as usize, self.frames.len() as u32);
        self.frames.extend(frames);
        if self.places.len() <= index {
            self.places.resize(index + 1, 0..0);
        }
        self.places[index] = start..self.frames.len() as u32;
    }
}

/// The book of stacks.
#[derive(Debug)]
pub struct Stacks {
    kernel: Known,
    user: Interner<UserFrame>,
    refused: u64,
}

impl Default for Stacks {
    fn default() -> Stacks {
        Stacks::with_limit(FRAME_LIMIT)
    }
}

impl Stacks {
    /// A book that keeps at most `frames` frames of user stacks. What it keeps of kernel stacks is
    /// bounded by who gave the ids.
    pub fn with_limit(frames: usize) -> Stacks {
        Stacks { kernel: Known::default(), user: Interner::new(frames), refused: 0 }
    }

    /// The kernel stack of a callchain; its frames are kept when it is the first that has it.
    #[inline]
    pub fn kernel_of(&mut self, chain: RawChain<'_>) -> StackId {
        if self.kernel.get(chain.stack).is_empty() {
            self.meet(chain);
        }
        chain.stack
    }

    fn meet(&mut self, chain: RawChain<'_>) {
        let frames = words(chain.split().kernel);
        match chain.stack {
            StackId::EMPTY => self.refused += u64::from(frames.len() > 0),
            stack => self.kernel.keep(stack, frames),
        }
    }

    /// The id of a user stack, innermost first.
    pub fn intern_user(&mut self, frames: &[UserFrame]) -> StackId {
        self.user.intern(frames)
    }

    /// Addresses of a kernel stack, innermost first.
    pub fn kernel(&self, id: StackId) -> &[u64] {
        self.kernel.get(id)
    }

    /// Frames of a user stack, innermost first.
    pub fn user(&self, id: StackId) -> &[UserFrame] {
        self.user.get(id.0)
    }

    /// Stacks that found no room and became empty.
    pub fn refused(&self) -> u64 {
        self.refused + self.user.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectId;

    /// A book and who gives the ids, with room for so many kernel frames.
    struct Books(KernelIds, Stacks);

    impl Books {
        fn new(frames: usize) -> Books {
            Books(KernelIds(Interner::new(frames * 8)), Stacks::default())
        }

        fn take(&mut self, ips: &[u64]) -> StackId {
            let bytes: Vec<u8> = ips.iter().flat_map(|ip| ip.to_le_bytes()).collect();
            let stack = self.0.id(&bytes);
            self.1.kernel_of(RawChain { bytes: &bytes, stack })
        }
    }

    #[test]
    fn equal_stacks_have_one_id_and_keep_their_frames() {
        let mut books = Books::new(100);
        let a = books.take(&[1, 2, 3]);
        let b = books.take(&[1, 2]);
        assert_eq!(books.take(&[1, 2, 3]), a);
        assert_ne!(a, b);
        let Books(_, stacks) = &books;
        assert_eq!((stacks.kernel(a), stacks.kernel(b)), (&[1, 2, 3][..], &[1, 2][..]));
        assert_eq!(stacks.kernel.frames.len(), 5);
        assert_eq!(books.take(&[]), StackId::EMPTY);
        assert!(books.1.kernel(StackId::EMPTY).is_empty());
        assert_eq!(books.1.refused(), 0);
    }

    #[test]
    fn stacks_may_come_in_another_order_than_they_got_their_ids() {
        let mut ids = KernelIds::default();
        let [a, b] = [1u64, 2].map(|ip| ip.to_le_bytes());
        let [a, b] = [&a, &b].map(|bytes| RawChain { bytes, stack: ids.id(bytes) });
        let mut stacks = Stacks::default();
        let later = stacks.kernel_of(b);
        assert!(stacks.kernel(a.stack).is_empty());
        let earlier = stacks.kernel_of(a);
        assert_eq!((stacks.kernel(earlier), stacks.kernel(later)), (&[1][..], &[2][..]));
    }

    #[test]
    fn kernel_and_user_stacks_are_apart() {
        let mut stacks = Stacks::default();
        let frame = UserFrame { object: ObjectId::UNKNOWN, offset: 1 };
        let user = stacks.intern_user(&[frame]);
        assert_eq!(stacks.user(user), &[frame]);
        assert!(stacks.kernel(user).is_empty());
    }

    #[test]
    fn a_full_book_gives_empty_stacks_and_counts_them() {
        let mut books = Books::new(3);
        let kept = books.take(&[1, 2]);
        assert_eq!(books.take(&[3, 4]), StackId::EMPTY);
        assert_eq!(books.take(&[1, 2]), kept);
        assert_eq!(books.1.refused(), 1);
    }
}
