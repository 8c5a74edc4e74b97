//! User addresses -> (object, offset) frames, while the maps that they belong to are still known.
//!
//! In: MMAP, FORK, COMM and EXIT records in time order, and the user part of callchains. Out:
//! [`StackId`](crate::model::StackId)s of interned frames, and [`Objects`], the book of what was
//! mapped. Words for the frames come later, from `symbolize`.
//!
//! A frame's offset is what a symbol must be looked up by: the instruction itself for the
//! innermost frame, one byte before the return address for its callers. A call may be the last
//! instruction of its function, and then the return address lies in the next one.

mod chains;
mod maps;
mod objects;
mod space;

pub use maps::Maps;
pub use objects::{Object, Objects};
