//! The book of the recorded kernel: address -> function, role, lock class, mode.
//!
//! In: kallsyms text (of the recorded kernel, never of another one: `kallsyms.rs` finds it) and
//! `symbols.tsv`, the table of lock functions of every era. Out: answers, looked up once for each
//! distinct stack.

mod fold;
mod index;
mod kallsyms;
mod role;
mod table;

use index::{Index, Place};

use crate::model::FunctionId;
pub use fold::fold;
pub use kallsyms::{KallsymsError, NoSymbols, Places, SymbolSource, Wanted, find};
pub use role::{LockFunction, Role};
pub use table::{Verdict, lock_functions, verdict};

/// Functions that came while recording are kept up to this number; a machine has a few hundred.
const MOST_ADDED: usize = 1 << 16;

/// Symbols of the recorded kernel.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    index: Index,
    /// Sorted by address, none over another.
    added: Vec<Added>,
}

/// A symbol that came while recording.
#[derive(Clone, Debug)]
struct Added {
    addr: u64,
    end: u64,
    name: String,
    function: FunctionId,
}

/// What the book says of an address in kernel text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFrame {
    /// The function; `None` where no symbol is known.
    pub function: Option<FunctionId>,
    /// The table's row for it.
    pub lock: Option<&'static LockFunction>,
    /// Whether it is the lock's own code, which a site skips: by its row, and where it has none by
    /// `.sched.text` and `.spinlock.text`. A negative row is an answer too.
    pub lock_code: bool,
}

/// How the addresses of a book and of a recording relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchored {
    /// They agree.
    Same,
    /// The symbols were of another boot of the kernel. They were moved by so many bytes
    /// (wrapping), and those of modules forgotten.
    Moved(u64),
    /// The book does not have that symbol.
    Unknown,
}

impl Kernel {
    /// Reads kallsyms text: `ffffffff81000000 T _text`, `... t name\t[module]`. Lines that are not
    /// of that form are passed over. All-zero addresses (no right to read them) give an empty book.
    pub fn from_kallsyms(text: &[u8]) -> Kernel {
        Kernel { index: Index::new(text), added: Vec::new() }
    }

    /// Whether there are any symbols.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty() && self.added.is_empty()
    }

    /// How many symbols there are.
    pub fn len(&self) -> usize {
        self.index.len() + self.added.len()
    }

    /// Whether the kallsyms had functions, but zeros for their addresses: `kptr_restrict`.
    pub fn addresses_hidden(&self) -> bool {
        self.index.is_empty() && self.index.text_lines > 0
    }

    /// The function that `addr` lies in, under its folded name.
    pub fn function(&self, addr: u64) -> Option<FunctionId> {
        match self.added(addr) {
            Some(added) => Some(added.function),
            None => self.index.find(addr).and_then(|(place, _)| self.index.function(place)),
        }
    }

    /// Whether there is a function of this folded name.
    pub fn has_function(&self, name: &str) -> bool {
        self.index.has_function(name)
    }

    /// Its folded name.
    pub fn name(&self, function: FunctionId) -> &str {
        self.index.function_name(function)
    }

    /// What the table says of it; `None` for everything that has no row, and for negative rows.
    pub fn lock_function(&self, function: FunctionId) -> Option<&'static LockFunction> {
        match verdict(self.name(function)) {
            Verdict::Lock(row) => Some(row),
            Verdict::NotALock | Verdict::Unknown => None,
        }
    }

    /// All that attribution asks of an address.
    pub fn frame(&self, addr: u64) -> KernelFrame {
        let Some(function) = self.function(addr) else { return KernelFrame::default() };
        let (lock, lock_code) = match verdict(self.name(function)) {
            Verdict::Lock(row) => (Some(row), row.is_lock_code()),
            Verdict::NotALock => (None, false),
            Verdict::Unknown => (None, self.in_lock_text(addr)),
        };
        KernelFrame { function: Some(function), lock, lock_code }
    }

    /// Whether it is a PREEMPT_RT kernel, whose spinlocks are rt-mutexes.
    pub fn preempt_rt(&self) -> bool {
        self.index.landmarks.rt_spin_lock
    }

    /// Whether `addr` lies in `.sched.text` or `.spinlock.text`: perf's own definition of a lock
    /// function.
    pub fn in_lock_text(&self, addr: u64) -> bool {
        self.index.landmarks.in_lock_text(addr)
    }

    /// The symbol that `addr` lies in, data or text, unfolded, and the offset in it.
    pub fn symbol(&self, addr: u64) -> Option<(&str, u64)> {
        match self.added(addr) {
            Some(added) => Some((&added.name, addr - added.addr)),
            None => self.place(addr).map(|(place, offset)| (self.index.place_name(place), offset)),
        }
    }

    /// The module that `addr` lies in, without brackets; `None` for the kernel itself and where
    /// no symbol is known.
    pub fn module(&self, addr: u64) -> Option<&str> {
        match self.added(addr) {
            Some(_) => None,
            None => self.place(addr).and_then(|(place, _)| self.index.place_module(place)),
        }
    }

    /// A symbol came while recording (PERF_RECORD_KSYMBOL: BPF programs, trampolines). What it
    /// lies over is gone. Symbols that go are kept until then, as stacks of the time before still
    /// name them.
    pub fn add(&mut self, addr: u64, len: u64, name: &str) {
        let end = addr.saturating_add(len);
        if end == addr || name.is_empty() {
            return;
        }
        let first = self.added.partition_point(|old| old.end <= addr);
        let last = self.added.partition_point(|old| old.addr < end);
        if first == last && self.added.len() >= MOST_ADDED {
            return;
        }
        let Some(function) = self.index.add_function(name) else { return };
        let added = Added { addr, end, name: name.to_owned(), function };
        self.added.splice(first..last.max(first), [added]);
    }

    /// Says where the recording has `symbol`, `_text` or `_stext`: the page offset and the name
    /// of the mapping `[kernel.kallsyms]_text` at the head of a perf.data. When the book has it
    /// elsewhere (kallsyms of another boot, KASLR), the book is moved there.
    pub fn anchor(&mut self, symbol: &str, addr: u64) -> Anchored {
        let known = match symbol {
            "_text" => self.index.landmarks.text,
            "_stext" => self.index.landmarks.stext,
            _ => None,
        };
        match known {
            None => Anchored::Unknown,
            Some(known) if known == addr => Anchored::Same,
            Some(known) => {
                let distance = addr.wrapping_sub(known);
                self.index.relocate(distance);
                Anchored::Moved(distance)
            }
        }
    }

    fn place(&self, addr: u64) -> Option<(&Place, u64)> {
        self.index.find(addr)
    }

    fn added(&self, addr: u64) -> Option<&Added> {
        let after = self.added.partition_point(|added| added.addr <= addr);
        self.added.get(after.checked_sub(1)?).filter(|added| addr < added.end)
    }
}
