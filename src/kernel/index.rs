//! Symbols of one kernel, sorted by address.
//!
//! In: the lines of kallsyms. Out: which symbol an address lies in, and ids of functions under
//! their folded names. Of several names of one address one is kept; markers of sections, which
//! are not functions, only where there is no other.

use hashbrown::{DefaultHashBuilder, HashTable};
use lockprof_collectors::procfs::kallsyms::{Symbol, symbols};
use std::cmp::Reverse;
use std::hash::BuildHasher;

use super::fold::fold;
use super::table::{Verdict, verdict};
use crate::model::FunctionId;

/// The furthest that an address is believed to lie behind a symbol: no function is longer.
const LONGEST: u64 = 1 << 20;
/// What lies behind the last symbol of a module's text is believed to be of it up to the end of
/// the page after its start: kallsyms has no lengths.
const PAGE: u64 = 4096;

/// One symbol. Its name is in [`Index::names`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) addr: u64,
    name_at: u32,
    name_len: u32,
    /// Its id, once it has one; data has none.
    function: u32,
    /// 0 is the kernel itself, others are one more than their place in `modules`.
    module: u16,
    /// nm(1)'s letter.
    kind: u8,
    /// Text ends here; nothing lies in it.
    end_of_text: bool,
}

const NO_FUNCTION: u32 = u32::MAX;

/// Where the kernel's lock and scheduler functions lie, and two symbols that every kernel has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Landmarks {
    pub(super) sched_text: (u64, u64),
    pub(super) lock_text: (u64, u64),
    pub(super) text: Option<u64>,
    pub(super) stext: Option<u64>,
}

impl Landmarks {
    fn note(&mut self, symbol: &Symbol<'_>) {
        match symbol.name {
            "__sched_text_start" => self.sched_text.0 = symbol.addr,
            "__sched_text_end" => self.sched_text.1 = symbol.addr,
            "__lock_text_start" => self.lock_text.0 = symbol.addr,
            "__lock_text_end" => self.lock_text.1 = symbol.addr,
            "_text" => self.text = Some(symbol.addr),
            "_stext" => self.stext = Some(symbol.addr),
            _ => {}
        }
    }

    /// A range of which one end is missing is empty.
    pub(super) fn in_lock_text(&self, addr: u64) -> bool {
        let inside = |(start, end): (u64, u64)| start != 0 && (start..end).contains(&addr);
        inside(self.sched_text) || inside(self.lock_text)
    }
}

/// The symbols of a kernel and its modules.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    names: String,
    modules: Vec<String>,
    functions: Functions,
    pub(super) landmarks: Landmarks,
    /// Lines that were symbols of text, whatever their address.
    pub(super) text_lines: usize,
}

impl Index {
    pub(super) fn new(text: &[u8]) -> Index {
        let mut index = Index::default();
        // A line is about 45 bytes, of which half are the name.
        index.entries.reserve(text.len() / 48);
        index.names.reserve(text.len() / 2);
        for symbol in symbols(text).filter(|symbol| is_text(symbol.kind) || is_data(symbol.kind)) {
            index.take(&symbol);
        }
        index.sort();
        index.intern();
        index
    }

    fn take(&mut self, symbol: &Symbol<'_>) {
        let text = is_text(symbol.kind);
        self.text_lines += usize::from(text);
        // Address 0 is what a reader without the right to see addresses is shown.
        if symbol.addr == 0 {
            return;
        }
        let module = symbol.module.map_or(0, |name| self.module_number(name));
        if module == 0 && symbol.name.starts_with('_') {
            self.landmarks.note(symbol);
        }
        let Ok(name_at) = u32::try_from(self.names.len()) else { return };
        self.names.push_str(symbol.name);
        self.entries.push(Entry {
            addr: symbol.addr,
            name_at,
            name_len: symbol.name.len() as u32,
            function: NO_FUNCTION,
            module,
            kind: symbol.kind,
            end_of_text: text && is_end_of_text(symbol.name),
        });
    }

    /// Lines of one module follow each other.
    fn module_number(&mut self, name: &str) -> u16 {
        if self.modules.last().is_some_and(|last| last == name) {
            return self.modules.len() as u16;
        }
        if let Some(at) = self.modules.iter().position(|module| module == name) {
            return at as u16 + 1;
        }
        if self.modules.len() + 1 < usize::from(u16::MAX) {
            self.modules.push(name.to_owned());
        }
        self.modules.len() as u16
    }

    /// By address, one entry an address.
    fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.addr);
        let entries = std::mem::take(&mut self.entries);
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            match kept.last_mut() {
                Some(last) if last.addr == entry.addr => {
                    if self.rank(&entry) < self.rank(last) {
                        *last = entry;
                    }
                }
                _ => kept.push(entry),
            }
        }
        self.entries = kept;
    }

    /// The lowest of several names of one address is kept. Beyond what is ours (no markers, text,
    /// names of the table) it is the order in which perf prefers them, so that names agree.
    fn rank(&self, entry: &Entry) -> impl Ord + use<> {
        let name = self.entry_name(entry);
        (
            is_marker(name),
            !entry.is_text(),
            matches!(verdict(fold(name)), Verdict::Unknown),
            matches!(entry.kind, b'w' | b'W' | b'v' | b'V'),
            entry.kind.is_ascii_lowercase(),
            name.bytes().take_while(|&byte| byte == b'_').count(),
            Reverse(name.len()),
        )
    }

    fn intern(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        functions.by_name = HashTable::with_capacity(self.entries.len());
        for entry in &mut self.entries {
            if entry.is_text() {
                let (at, len) = (entry.name_at as usize, entry.name_len as usize);
                let name = self.names.get(at..at + len).unwrap_or_default();
                let folded = fold(name);
                // What folding drops stands before and after, so this is where the rest begins.
                let skipped = folded.as_ptr() as usize - name.as_ptr() as usize;
                entry.function = functions.id(&self.names, at + skipped, folded.len());
            }
        }
        self.functions = functions;
    }

    /// The symbol in which `addr` lies, and the offset in it.
    pub(super) fn find(&self, addr: u64) -> Option<(&Entry, u64)> {
        let after = self.entries.partition_point(|entry| entry.addr <= addr);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        let offset = addr - entry.addr;
        let end = match self.entries.get(after) {
            Some(next) if next.module == entry.module && entry.is_text() == next.is_text() => {
                entry.addr.saturating_add(LONGEST)
            }
            _ => entry.page_after(),
        };
        (!entry.end_of_text && addr < end).then_some((entry, offset))
    }

    pub(super) fn function(&self, entry: &Entry) -> Option<FunctionId> {
        entry.is_text().then_some(FunctionId(entry.function))
    }

    pub(super) fn entry_name(&self, entry: &Entry) -> &str {
        let at = entry.name_at as usize;
        self.names.get(at..at + entry.name_len as usize).unwrap_or_default()
    }

    pub(super) fn entry_module(&self, entry: &Entry) -> Option<&str> {
        self.modules.get(usize::from(entry.module).checked_sub(1)?).map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn function_name(&self, function: FunctionId) -> &str {
        self.functions.name(&self.names, function)
    }

    /// The id of a function that kallsyms does not have; the same as that of a function of that
    /// folded name that it has.
    pub(super) fn add_function(&mut self, name: &str) -> Option<FunctionId> {
        let folded = fold(name);
        if let Some(id) = self.functions.find(&self.names, folded) {
            return Some(id);
        }
        let at = self.names.len();
        u32::try_from(at + folded.len()).ok()?;
        self.names.push_str(folded);
        Some(FunctionId(self.functions.id(&self.names, at, folded.len())))
    }

    /// Moves the kernel's own symbols by `distance`, as another boot of it has them elsewhere
    /// (KASLR), and forgets the modules', which moved each for itself.
    pub(super) fn relocate(&mut self, distance: u64) {
        self.entries.retain(|entry| entry.module == 0);
        for entry in &mut self.entries {
            entry.addr = entry.addr.wrapping_add(distance);
        }
        self.entries.sort_by_key(|entry| entry.addr);
        let marks = &mut self.landmarks;
        for (start, end) in [&mut marks.sched_text, &mut marks.lock_text] {
            if *start != 0 {
                (*start, *end) = (start.wrapping_add(distance), end.wrapping_add(distance));
            }
        }
        for mark in [&mut marks.text, &mut marks.stext].into_iter().flatten() {
            *mark = mark.wrapping_add(distance);
        }
    }
}

impl Entry {
    fn is_text(&self) -> bool {
        is_text(self.kind)
    }

    fn page_after(&self) -> u64 {
        (self.addr & !(PAGE - 1)).saturating_add(2 * PAGE)
    }
}

/// Folded names, each once. A name is a piece of the book's `names`.
#[derive(Debug, Default)]
struct Functions {
    pieces: Vec<(u32, u32)>,
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Functions {
    fn find(&self, names: &str, name: &str) -> Option<FunctionId> {
        let hash = self.hasher.hash_one(name);
        let same = |&id: &u32| self.name(names, FunctionId(id)) == name;
        self.by_name.find(hash, same).map(|&id| FunctionId(id))
    }

    /// The id of the name at `at` in `names`.
    fn id(&mut self, names: &str, at: usize, len: usize) -> u32 {
        let name = names.get(at..at + len).unwrap_or_default();
        if let Some(FunctionId(id)) = self.find(names, name) {
            return id;
        }
        let id = self.pieces.len() as u32;
        self.pieces.push((at as u32, len as u32));
        let (pieces, hasher) = (&self.pieces, &self.hasher);
        self.by_name.insert_unique(hasher.hash_one(name), id, |&id| {
            hasher.hash_one(piece(names, pieces, id))
        });
        id
    }

    fn name<'a>(&self, names: &'a str, FunctionId(id): FunctionId) -> &'a str {
        piece(names, &self.pieces, id)
    }
}

fn piece<'a>(names: &'a str, pieces: &[(u32, u32)], id: u32) -> &'a str {
    let Some(&(at, len)) = pieces.get(id as usize) else { return "" };
    names.get(at as usize..(at + len) as usize).unwrap_or_default()
}

fn is_text(kind: u8) -> bool {
    matches!(kind, b't' | b'T' | b'w' | b'W')
}

/// Absolute symbols (`A`) are offsets of per-CPU variables, no addresses.
fn is_data(kind: u8) -> bool {
    matches!(kind, b'b' | b'B' | b'd' | b'D' | b'r' | b'R' | b'v' | b'V')
}

/// Whether the linker script put this name where a section ends.
fn is_end_of_text(name: &str) -> bool {
    name == "_etext" || name == "_einittext" || name.ends_with("_text_end")
}

/// Whether the linker script put this name where a section begins or ends.
fn is_marker(name: &str) -> bool {
    let bounds = ["_start", "_end", "_begin"];
    matches!(name, "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext" | "_end" | "_edata")
        || (name.starts_with("__") && bounds.iter().any(|bound| name.ends_with(bound)))
}
