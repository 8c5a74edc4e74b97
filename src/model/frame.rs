//! Ids of functions, objects and stacks. Books hand them out; words come at report time.

/// A kernel function under its folded name: `foo.isra.0` and `foo.cold` are one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// A stack in the book of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack without frames: none was recorded, or none was asked for.
    pub const EMPTY: StackId = StackId(0);
}

/// A mapped file, anonymous memory or vdso: an entry in the book of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// No mapping is known for the address; the offset is the address itself.
    pub const UNKNOWN: ObjectId = ObjectId(0);
}

/// A user frame that outlives its process: where in which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserFrame {
    /// The mapped object.
    pub object: ObjectId,
    /// Bytes from the start of the file, or the address when the object is unknown.
    pub offset: u64,
}
