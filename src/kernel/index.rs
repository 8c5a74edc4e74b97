//! Symbols of one kernel, sorted by address.
//!
//! In: the lines of kallsyms. Out: which symbol an address lies in, and ids of functions under
//! their folded names, given when they are first asked for: of 150,000 functions a recording asks
//! for a few hundred. Of several names of one address one is kept; markers of sections, which are
//! not functions, only where there is no other.

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use lockprof_collectors::procfs::kallsyms::{Symbol, symbols};
use std::cmp::Reverse;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fold::fold;
use super::table::{Verdict, verdict};
use crate::model::FunctionId;

/// The furthest that an address is believed to lie behind a symbol: no function is longer.
const LONGEST: u64 = 1 << 20;

/// A kernel with CONFIG_KALLSYMS_ALL lists tens of thousands of variables, one without it those few
/// that happen to lie among text.
const FEW_VARIABLES: usize = 1000;
/// What lies behind the last symbol of a module's text is believed to be of it up to the end of
/// the page after its start: kallsyms has no lengths.
const PAGE: u64 = 4096;

/// One symbol. Its name is in [`Index::names`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) addr: u64,
    name_at: u32,
    name_len: u32,
    /// 0 is the kernel itself, others are one more than their place in `modules`.
    module: u16,
    /// nm(1)'s letter.
    kind: u8,
    /// Text ends here; nothing lies in it.
    end_of_text: bool,
}

/// Where the kernel's lock and scheduler functions lie, two symbols that every kernel has, and one that
/// only PREEMPT_RT has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Landmarks {
    pub(super) sched_text: (u64, u64),
    pub(super) lock_text: (u64, u64),
    pub(super) text: Option<u64>,
    pub(super) stext: Option<u64>,
    pub(super) rt_spin_lock: bool,
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
            "rt_spin_lock" => self.rt_spin_lock = true,
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
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    places: Vec<Place>,
    names: String,
    modules: Vec<String>,
    functions: Shared<Functions>,
    pub(super) landmarks: Landmarks,
    /// Lines that were symbols of text, whatever their address.
    pub(super) text_lines: usize,
    /// Lines that were variables.
    data_lines: usize,
}

impl Index {
    pub(super) fn new(text: &[u8]) -> Index {
        let mut index = Index::default();
        // A line is about 45 bytes, of which half are the name.
        index.places.reserve(text.len() / 48);
        index.names.reserve(text.len() / 2);
        for symbol in symbols(text).filter(|symbol| is_text(symbol.kind) || is_data(symbol.kind)) {
            index.take(&symbol);
        }
        index.sort();
        index
    }

    fn take(&mut self, symbol: &Symbol<'_>) {
        let text = is_text(symbol.kind);
        self.text_lines += usize::from(text);
        self.data_lines += usize::from(!text);
        // Address 0 is what a reader without the right to see addresses is shown.
        if symbol.addr == 0 {
            return;
        }
        let module = symbol.module.map_or(Some(0), |name| self.module_number(name));
        let Some(module) = module else { return };
        if module == 0 && symbol.name.starts_with(['_', 'r']) {
            self.landmarks.note(symbol);
        }
        let Ok(name_at) = u32::try_from(self.names.len()) else { return };
        self.names.push_str(symbol.name);
        self.places.push(Place {
            addr: symbol.addr,
            name_at,
            name_len: symbol.name.len() as u32,
            module,
            kind: symbol.kind,
            end_of_text: text && is_end_of_text(symbol.name),
        });
    }

    /// Lines of one module follow each other. `None` when there are more modules than can be.
    fn module_number(&mut self, name: &str) -> Option<u16> {
        if self.modules.last().is_none_or(|last| last != name) {
            u16::try_from(self.modules.len() + 1).ok()?;
            self.modules.push(name.to_owned());
        }
        u16::try_from(self.modules.len()).ok()
    }

    /// By address, one place an address.
    fn sort(&mut self) {
        self.places.sort_by_key(|place| place.addr);
        let places = std::mem::take(&mut self.places);
        let mut kept: Vec<Place> = Vec::with_capacity(places.len());
        for place in places {
            match kept.last_mut() {
                Some(last) if last.addr == place.addr => {
                    if self.rank(&place) < self.rank(last) {
                        *last = place;
                    }
                }
                _ => kept.push(place),
            }
        }
        self.places = kept;
    }

    /// The lowest of several names of one address is kept. Beyond what is ours (no markers, text,
    /// names of the table) it is the order in which perf prefers them, so that names agree.
    fn rank(&self, place: &Place) -> impl Ord + use<> {
        let name = self.place_name(place);
        (
            is_marker(name),
            !place.is_text(),
            matches!(verdict(fold(name)), Verdict::Unknown),
            matches!(place.kind, b'w' | b'W' | b'v' | b'V'),
            place.kind.is_ascii_lowercase(),
            // One system call without arguments has one body for both kinds of entry.
            name.starts_with("__ia32_"),
            name.bytes().take_while(|&byte| byte == b'_').count(),
            Reverse(name.len()),
        )
    }

    /// The symbol in which `addr` lies, and the offset in it.
    pub(super) fn find(&self, addr: u64) -> Option<(&Place, u64)> {
        let after = self.places.partition_point(|place| place.addr <= addr);
        let place = self.places.get(after.checked_sub(1)?)?;
        let offset = addr - place.addr;
        let end = match self.places.get(after) {
            Some(next) if next.module == place.module && place.is_text() == next.is_text() => {
                place.addr.saturating_add(LONGEST)
            }
            _ => place.page_after(),
        };
        // Where the kernel lists few of its variables (no CONFIG_KALLSYMS_ALL), what follows one of
        // them is another one without a name.
        let end = if place.is_text() || self.lists_data() { end } else { place.addr + 1 };
        (!place.end_of_text && addr < end).then_some((place, offset))
    }

    /// Whether variables are listed as functions are.
    fn lists_data(&self) -> bool {
        self.data_lines >= FEW_VARIABLES
    }

    /// The function that a symbol of text is; a new id when it was not asked for before.
    pub(super) fn function(&self, place: &Place) -> Option<FunctionId> {
        if !place.is_text() {
            return None;
        }
        let name = self.place_name(place);
        let folded = fold(name);
        // What folding drops stands before and after, so this is where the rest begins.
        let skipped = folded.as_ptr() as usize - name.as_ptr() as usize;
        let at = place.name_at as usize + skipped;
        Some(self.functions.get().id(&self.names, at, folded.len()))
    }

    pub(super) fn place_name(&self, place: &Place) -> &str {
        let at = place.name_at as usize;
        self.names.get(at..at + place.name_len as usize).unwrap_or_default()
    }

    pub(super) fn place_module(&self, place: &Place) -> Option<&str> {
        self.modules.get(usize::from(place.module).checked_sub(1)?).map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn function_name(&self, function: FunctionId) -> &str {
        piece(&self.names, &self.functions.get().pieces, function.0)
    }

    /// Whether kallsyms has a function of that folded name. Looks at all of them.
    pub(super) fn has_function(&self, name: &str) -> bool {
        let mut functions = self.places.iter().filter(|place| place.is_text());
        functions.any(|place| fold(self.place_name(place)) == name)
    }

    /// The id of a function that kallsyms need not have.
    pub(super) fn add_function(&mut self, name: &str) -> Option<FunctionId> {
        let folded = fold(name);
        let mut functions = self.functions.get();
        if let Some(id) = functions.find(&self.names, folded) {
            return Some(id);
        }
        let at = self.names.len();
        u32::try_from(at + folded.len()).ok()?;
        self.names.push_str(folded);
        Some(functions.id(&self.names, at, folded.len()))
    }

    /// Moves the kernel's own symbols by `distance`, as another boot of it has them elsewhere
    /// (KASLR), and forgets the modules', which moved each for itself.
    pub(super) fn relocate(&mut self, distance: u64) {
        self.places.retain(|place| place.module == 0);
        for place in &mut self.places {
            place.addr = place.addr.wrapping_add(distance);
        }
        self.places.sort_by_key(|place| place.addr);
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

impl Place {
    fn is_text(&self) -> bool {
        is_text(self.kind)
    }

    fn page_after(&self) -> u64 {
        (self.addr & !(PAGE - 1)).saturating_add(2 * PAGE)
    }
}

/// What is filled while it is looked at, by whoever shares the book.
#[derive(Debug, Default)]
struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    fn get(&self) -> MutexGuard<'_, T> {
        // A panic leaves no change half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(Mutex::new(self.get().clone()))
    }
}

/// Folded names, each once. A name is a piece of the book's `names`.
#[derive(Clone, Debug, Default)]
struct Functions {
    pieces: Vec<(u32, u32)>,
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Functions {
    fn find(&self, names: &str, name: &str) -> Option<FunctionId> {
        let hash = self.hasher.hash_one(name);
        let same = |&id: &u32| piece(names, &self.pieces, id) == name;
        self.by_name.find(hash, same).map(|&id| FunctionId(id))
    }

    /// The id of the name at `at` in `names`.
    fn id(&mut self, names: &str, at: usize, len: usize) -> FunctionId {
        let (pieces, hasher) = (&mut self.pieces, &self.hasher);
        let name = names.get(at..at + len).unwrap_or_default();
        let same = |&id: &u32| piece(names, pieces, id) == name;
        let rehash = |&id: &u32| hasher.hash_one(piece(names, pieces, id));
        FunctionId(match self.by_name.entry(hasher.hash_one(name), same, rehash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let id = pieces.len() as u32;
                free.insert(id);
                pieces.push((at as u32, len as u32));
                id
            }
        })
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
