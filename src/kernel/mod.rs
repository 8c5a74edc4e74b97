//! The book of the recorded kernel: address -> function, role, lock class, mode.
//!
//! In: kallsyms text (of the recorded kernel, never of another one) and `symbols.tsv`, the table of
//! lock functions of every era. Out: answers, looked up once for each distinct stack.

mod role;

use crate::model::FunctionId;
pub use role::{LockFunction, Role};

/// Symbols of the recorded kernel.
#[derive(Debug, Default)]
pub struct Kernel {}

impl Kernel {
    /// Reads kallsyms text: `ffffffff81000000 T _text`, `... t name\t[module]`. Lines that are not
    /// of that form are passed over. All-zero addresses (no right to read them) give an empty book.
    pub fn from_kallsyms(text: &[u8]) -> Kernel {
        let _ = text;
        Kernel {}
    }

    /// Whether there are any symbols.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// The function that `addr` lies in, under its folded name.
    pub fn function(&self, addr: u64) -> Option<FunctionId> {
        let _ = addr;
        None
    }

    /// Its folded name.
    pub fn name(&self, function: FunctionId) -> &str {
        let _ = function;
        ""
    }

    /// What the table says of it; `None` for everything that has no row, and for negative rows.
    pub fn lock_function(&self, function: FunctionId) -> Option<&'static LockFunction> {
        let _ = function;
        None
    }

    /// Whether `addr` lies in `.sched.text` or `.spinlock.text`: perf's own definition of a lock
    /// function.
    pub fn in_lock_text(&self, addr: u64) -> bool {
        let _ = addr;
        false
    }

    /// The symbol that `addr` lies in, data or text, unfolded, and the offset in it.
    pub fn symbol(&self, addr: u64) -> Option<(&str, u64)> {
        let _ = addr;
        None
    }

    /// A symbol came while recording (PERF_RECORD_KSYMBOL: BPF programs, trampolines).
    pub fn add(&mut self, addr: u64, len: u64, name: &str) {
        let _ = (addr, len, name);
    }
}
