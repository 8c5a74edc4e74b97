//! The symbolizer: looks frames up, and remembers.
//!
//! In: frames, as often as they come. Each object is read once, each symbol demangled once, each
//! frame looked up once. Inline functions and lines would hang on a frame's answer here.

use hashbrown::HashMap;

use super::elf::{self, Load};
use super::locate::{self, Found, Places};
use super::table::Table;
use super::{Reason, demangle, perf_map};
use crate::model::{ObjectId, UserFrame};
use crate::unwind::{Object, Objects};

/// Bytes of an object's name in the stead of a function's at the most.
const OBJECT_NAME_LIMIT: usize = 255;

/// What a frame is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function, or `[libfoo.so+0x1234]`: never blank.
    pub name: &'a str,
    /// Why it is not the function.
    pub unknown: Option<Reason>,
}

/// What was read for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Addresses that have a name.
    pub symbols: usize,
    /// Whether it is the recorded build for sure. Otherwise the recording does not say which build
    /// it was, and the file that is at the path now was taken.
    pub verified: bool,
}

#[derive(Debug)]
struct Loaded {
    table: Table,
    /// `None`: offsets are addresses.
    loads: Option<Vec<Load>>,
    verified: bool,
}

impl Loaded {
    fn of(object: &Object, places: &Places) -> Result<Loaded, Reason> {
        match object {
            Object::Unknown => Err(Reason::NoMapping),
            Object::BrokenStack => Err(Reason::BrokenStack),
            Object::File { path, build_id } => {
                locate::file(path, build_id.as_deref(), places).map(Loaded::from)
            }
            Object::Anonymous { pid } => {
                let table = perf_map::load(&places.perf_maps, *pid)?;
                Ok(Loaded { table, loads: None, verified: false })
            }
            Object::Special { name, build_id } if **name == *b"[vdso]" => {
                locate::vdso(build_id.as_deref(), places).map(Loaded::from)
            }
            Object::Special { .. } => Err(Reason::NoFile),
        }
    }

    /// The number of the symbol at `offset`.
    fn find(&self, offset: u64) -> Option<usize> {
        let address = match &self.loads {
            Some(loads) => elf::address(loads, offset)?,
            None => offset,
        };
        self.table.find(address)
    }
}

impl From<Found> for Loaded {
    fn from(found: Found) -> Loaded {
        Loaded { table: found.table, loads: Some(found.loads), verified: found.verified }
    }
}

/// An answer: where its name stands in [`Symbolizer::names`].
#[derive(Clone, Copy, Debug)]
struct Answer {
    name: usize,
    unknown: Option<Reason>,
}

/// Looks frames up, and remembers. One serves one book of objects, however long that grows.
#[derive(Debug)]
pub struct Symbolizer {
    places: Places,
    loaded: HashMap<ObjectId, Result<Loaded, Reason>>,
    names: Vec<Box<str>>,
    functions: HashMap<(ObjectId, usize), usize>,
    answers: HashMap<UserFrame, Answer>,
}

impl Default for Symbolizer {
    fn default() -> Symbolizer {
        Symbolizer::new(Places::from_env())
    }
}

impl Symbolizer {
    /// Looks for symbols in `places`.
    pub fn new(places: Places) -> Symbolizer {
        Symbolizer {
            places,
            loaded: HashMap::new(),
            names: Vec::new(),
            functions: HashMap::new(),
            answers: HashMap::new(),
        }
    }

    /// The name of `frame`, an entry of `objects`: the function's, or `[libfoo.so+0x1234]`.
    pub fn frame(&mut self, objects: &Objects, frame: UserFrame) -> &str {
        self.symbol(objects, frame).name
    }

    /// The name of `frame`, and why it is not a function's when it is none.
    pub fn symbol(&mut self, objects: &Objects, frame: UserFrame) -> Symbol<'_> {
        let answer = match self.answers.get(&frame) {
            Some(&answer) => answer,
            None => {
                let answer = self.look_up(objects.get(frame.object), frame);
                self.answers.insert(frame, answer);
                answer
            }
        };
        let name = self.names.get(answer.name).map_or("[unknown]", |name| name);
        Symbol { name, unknown: answer.unknown }
    }

    /// What was read for each object that a frame was looked up in, in no order.
    pub fn sources(&self) -> impl Iterator<Item = (ObjectId, Result<Source, Reason>)> {
        self.loaded.iter().map(|(&id, loaded)| {
            let source = |l: &Loaded| Source { symbols: l.table.len(), verified: l.verified };
            (id, loaded.as_ref().map(source).map_err(|&reason| reason))
        })
    }

    fn look_up(&mut self, object: &Object, frame: UserFrame) -> Answer {
        let places = &self.places;
        let loaded = self.loaded.entry(frame.object).or_insert_with(|| Loaded::of(object, places));
        let found = match loaded {
            Ok(loaded) => loaded.find(frame.offset).ok_or(Reason::OutsideSymbols),
            Err(reason) => Err(*reason),
        };
        let (names, unknown) = (&mut self.names, found.err());
        let name = match (found, loaded) {
            (Ok(symbol), Ok(loaded)) => {
                let function = self.functions.entry((frame.object, symbol));
                *function
                    .or_insert_with(|| push(names, demangle::demangle(loaded.table.name(symbol))))
            }
            _ => push(names, place(object, frame.offset)),
        };
        Answer { name, unknown }
    }
}

fn push(names: &mut Vec<Box<str>>, name: String) -> usize {
    names.push(name.into_boxed_str());
    names.len() - 1
}

/// A name for what has none: `[libfoo.so+0x1234]`.
fn place(object: &Object, offset: u64) -> String {
    let name = match object {
        Object::Unknown => b"unknown",
        Object::BrokenStack => return "[broken stack]".to_owned(),
        Object::File { path, .. } => base_name(path),
        Object::Anonymous { .. } => b"anon",
        Object::Special { name, .. } => {
            let inside = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
            inside.unwrap_or(name)
        }
    };
    let name = name.get(..OBJECT_NAME_LIMIT).unwrap_or(name);
    format!("[{}+{offset:#x}]", String::from_utf8_lossy(name))
}

fn base_name(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty()).unwrap_or(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_a_function_has_a_place() {
        let file = |path: &[u8]| Object::File { path: path.into(), build_id: None };
        let special = |name: &[u8]| Object::Special { name: name.into(), build_id: None };
        let cases = [
            (Object::Unknown, "[unknown+0x10]"),
            (Object::BrokenStack, "[broken stack]"),
            (file(b"/usr/lib/libfoo.so.1"), "[libfoo.so.1+0x10]"),
            (file(b"/tmp/a.out (deleted)"), "[a.out+0x10]"),
            (file(b"/"), "[/+0x10]"),
            (file(b"/tmp/\xff"), "[\u{fffd}+0x10]"),
            (Object::Anonymous { pid: 7 }, "[anon+0x10]"),
            (special(b"[vdso]"), "[vdso+0x10]"),
            (special(b"anon_inode:[x]"), "[anon_inode:[x]+0x10]"),
        ];
        for (object, expected) in cases {
            assert_eq!(place(&object, 0x10), expected, "{object:?}");
        }
    }
}
