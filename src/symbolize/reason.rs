//! Why a frame has no function name.

use thiserror::Error;

/// Why a frame has no function name. Displays as words that follow "no name: ".
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The innermost address lies in no mapping that was recorded, or its process has none.
    #[error("no mapping was recorded for the address")]
    NoMapping,
    /// A caller's address lies in no mapping: the code was built without frame pointers.
    #[error("the callchain breaks here, as in code without frame pointers")]
    BrokenStack,
    /// Memory without a file, and no `perf-PID.map` names what is in it.
    #[error("generated code, and there is no perf-PID.map file for its process")]
    NoPerfMap,
    /// A `perf-PID.map` that somebody else could have written.
    #[error("the perf-PID.map file is not a plain file of this user or of root")]
    ForeignPerfMap,
    /// Memory of the kernel that has no symbols, or of which it is not known what it was.
    #[error("kernel-made memory without symbols")]
    NoFile,
    /// The recording does not say which vdso was mapped, and kernels differ in theirs.
    #[error("the recording does not say which build it was")]
    NoBuildId,
    /// Nothing is at the path.
    #[error("the file is not there")]
    FileMissing,
    /// The file was deleted or replaced before it was mapped.
    #[error("the file was deleted or replaced while it ran")]
    FileDeleted,
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Unreadable,
    /// The file is no ELF file.
    #[error("the file is no ELF file")]
    NotElf,
    /// The file's headers or tables contradict its size.
    #[error("the file is damaged")]
    Damaged,
    /// A table of the file is larger than any that was ever seen.
    #[error("the file's symbol table is too large")]
    TooLarge,
    /// The file at the path is another build than the one that was recorded.
    #[error("the file is another build than the one recorded")]
    OtherBuildId,
    /// Neither the file nor a debug file has symbols.
    #[error("the file is stripped, and its debug file is not installed")]
    NoSymbols,
    /// There are symbols, but none spans the offset.
    #[error("no symbol spans the address")]
    OutsideSymbols,
}
