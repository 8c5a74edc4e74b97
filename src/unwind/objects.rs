//! The book of objects: what was mapped, each kept once, and the build ids known of them.
//!
//! In: the name and build id of a mapping (MMAP2 carries the id when the recorder asked for it),
//! and the build ids that stand in the recording's own section. Out: [`ObjectId`]s.

use hashbrown::HashMap;

use crate::model::ObjectId;
use crate::recording::BuildId;

/// Objects kept at the most. What is mapped beyond it is unknown; recordings have hundreds.
const OBJECT_LIMIT: usize = 1 << 20;

/// Something that is mapped into processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// No mapping is known; offsets are addresses.
    Unknown,
    /// A caller's address that lies in no mapping of its process: the callchain went astray there,
    /// as it does in code without frame pointers. What followed it was cut; offsets are 0.
    BrokenStack,
    /// A file.
    File {
        /// Its path, as the recorded process saw it.
        path: Box<[u8]>,
        /// Its build id; `None` when the recording does not say.
        build_id: Option<Box<[u8]>>,
    },
    /// Memory without a file, as JIT compilers use it; offsets are addresses.
    Anonymous {
        /// The process that mapped it.
        pid: i32,
    },
    /// What the kernel maps itself: `[vdso]`, `[vsyscall]`, `[uprobes]`.
    Special {
        /// The kernel's name for it.
        name: Box<[u8]>,
        /// Its build id, for a vdso of which the recording says it.
        build_id: Option<Box<[u8]>>,
    },
}

impl Object {
    /// What a record says was mapped by `pid`.
    fn of(pid: i32, name: &[u8], build_id: Option<&[u8]>) -> Object {
        let build_id = build_id.map(Box::from);
        match name {
            [b'[', ..] if is_memory(name) => Object::Anonymous { pid },
            [b'[', ..] => Object::Special { name: name.into(), build_id },
            // "//enomem" and "//toolong" are the kernel's words for a name it could not make.
            b"//enomem" | b"//toolong" => Object::Special { name: name.into(), build_id: None },
            [b'/', ..] if !is_memory(name) => Object::File { path: name.into(), build_id },
            [b'/', ..] | [] => Object::Anonymous { pid },
            _ => Object::Special { name: name.into(), build_id: None },
        }
    }

    /// Whether offsets in it are the addresses themselves.
    pub(super) fn offsets_are_addresses(&self) -> bool {
        matches!(self, Object::Anonymous { .. } | Object::Unknown)
    }
}

/// Whether `name` is one that the kernel gives to memory without a file of its own: `//anon` in
/// MMAP records, the others in /proc/PID/maps too. JIT compilers map code through each of them.
fn is_memory(name: &[u8]) -> bool {
    const WHOLE: [&[u8]; 4] = [b"//anon", b"[heap]", b"[anon]", b"/dev/zero"];
    const STARTS: [&[u8]; 6] =
        [b"[stack", b"[anon:", b"/memfd:", b"/SYSV", b"/dev/zero (", b"/anon_hugepage"];
    WHOLE.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

/// A build id; all zeroes stand for none.
fn known(id: &[u8]) -> Option<&[u8]> {
    id.iter().any(|&byte| byte != 0).then_some(id)
}

/// The book of objects.
#[derive(Debug)]
pub struct Objects {
    all: Vec<Object>,
    ids: HashMap<Object, ObjectId>,
    /// Path -> build id, from the recording's own section.
    recorded: HashMap<Box<[u8]>, Box<[u8]>>,
    limit: usize,
    refused: u64,
}

impl Default for Objects {
    fn default() -> Objects {
        Objects::with_limit(OBJECT_LIMIT)
    }
}

impl Objects {
    /// The object of a caller's address that lies in no mapping of its process.
    pub const BROKEN_STACK: ObjectId = ObjectId(1);

    /// The page that the kernel shows to every x86-64 process at the same address.
    pub const VSYSCALL: ObjectId = ObjectId(2);

    fn with_limit(limit: usize) -> Objects {
        let vsyscall = Object::Special { name: b"[vsyscall]"[..].into(), build_id: None };
        let all = vec![Object::Unknown, Object::BrokenStack, vsyscall];
        let ids = (0u32..).zip(&all).map(|(id, object)| (object.clone(), ObjectId(id))).collect();
        Objects { all, ids, recorded: HashMap::new(), limit, refused: 0 }
    }

    /// Build ids by path, as the recording's own section has them. They count for mappings that
    /// are recorded afterwards and whose records carry no id.
    pub fn learn(&mut self, build_ids: &[BuildId]) {
        let user = build_ids.iter().filter(|known| !known.kernel);
        for BuildId { id, name, .. } in user {
            if let Some(id) = known(id) {
                self.recorded.insert(name.as_bytes().into(), id.into());
            }
        }
    }

    /// The id of what `pid` mapped under `name`.
    pub fn intern(&mut self, pid: i32, name: &[u8], build_id: Option<&[u8]>) -> ObjectId {
        let recorded = || self.recorded.get(name).map(|id| &**id);
        let object = Object::of(pid, name, build_id.and_then(known).or_else(recorded));
        if let Some(&id) = self.ids.get(&object) {
            return id;
        }
        if self.all.len() >= self.limit {
            self.refused += 1;
            return ObjectId::UNKNOWN;
        }
        let id = ObjectId(self.all.len() as u32);
        self.all.push(object.clone());
        self.ids.insert(object, id);
        id
    }

    /// What `id` stands for.
    pub fn get(&self, id: ObjectId) -> &Object {
        self.all.get(id.0 as usize).unwrap_or(&Object::Unknown)
    }

    /// All objects, the three that every book has included.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        (0u32..).map(ObjectId).zip(&self.all)
    }

    /// Mappings whose object found no room and became unknown.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, id: Option<&[u8]>) -> Object {
        Object::File { path: path.as_bytes().into(), build_id: id.map(Box::from) }
    }

    type Id = Option<&'static [u8]>;

    fn special(name: &str) -> Object {
        Object::Special { name: name.as_bytes().into(), build_id: None }
    }

    #[test]
    fn names_of_mappings_say_what_they_are() {
        let anonymous = Object::Anonymous { pid: 7 };
        let cases = [
            ("/usr/bin/bash", file("/usr/bin/bash", None)),
            ("/tmp/x (deleted)", file("/tmp/x (deleted)", None)),
            ("//anon", anonymous.clone()),
            ("", anonymous.clone()),
            ("[heap]", anonymous.clone()),
            ("[stack]", anonymous.clone()),
            ("[stack:12]", anonymous.clone()),
            ("[anon:dalvik-jit]", anonymous.clone()),
            ("/memfd:doublemapper (deleted)", anonymous.clone()),
            ("/dev/zero (deleted)", anonymous.clone()),
            ("/dev/zeroes", file("/dev/zeroes", None)),
            ("/SYSV00000000 (deleted)", anonymous),
            ("[vdso]", special("[vdso]")),
            ("[uprobes]", special("[uprobes]")),
            ("//toolong", special("//toolong")),
            ("anon_inode:[io_uring]", special("anon_inode:[io_uring]")),
        ];
        let mut objects = Objects::default();
        for (name, expected) in cases {
            let id = objects.intern(7, name.as_bytes(), None);
            assert_eq!(objects.get(id), &expected, "{name}");
            assert_eq!(objects.intern(7, name.as_bytes(), None), id, "{name}");
        }
    }

    #[test]
    fn a_record_knows_the_build_id_better_than_the_section_does() {
        let section = |id: &[u8], name: &str, kernel| BuildId {
            id: id.to_vec(),
            name: name.to_owned(),
            kernel,
        };
        let mut objects = Objects::default();
        objects.learn(&[
            section(&[1; 20], "/lib/a", false),
            section(&[0; 20], "/lib/b", false),
            section(&[3; 20], "/lib/k", true),
        ]);
        let cases: [(&str, Id, Id); 5] = [
            ("/lib/a", None, Some(&[1; 20])),
            ("/lib/a", Some(&[0; 20]), Some(&[1; 20])),
            ("/lib/a", Some(&[2; 20]), Some(&[2; 20])),
            ("/lib/b", None, None),
            ("/lib/k", None, None),
        ];
        for (path, record, expected) in cases {
            let id = objects.intern(1, path.as_bytes(), record);
            assert_eq!(objects.get(id), &file(path, expected), "{path} {record:?}");
        }
    }

    #[test]
    fn a_full_book_answers_unknown_and_counts() {
        let mut objects = Objects::with_limit(4);
        let kept = objects.intern(1, b"/a", None);
        assert_eq!(objects.intern(1, b"/b", None), ObjectId::UNKNOWN);
        assert_eq!(objects.intern(1, b"/a", None), kept);
        assert_eq!((objects.refused(), objects.iter().count()), (1, 4));
    }
}
