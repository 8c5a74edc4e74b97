//! The catalogue of locks, `catalogue.tsv`: what a lock is called, how it is recognised, what it
//! protects, what usually relieves it.
//!
//! In: the embedded text, one lock a row (its own head says what the columns mean), and the names of
//! the frames of a wait. Out: [`entry`] for those who look a lock up by name, `claim` for those
//! who want to know what a call path says of the lock that is waited for there.

mod row;

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::call_path::CallPath;
use crate::model::{LockKind, LockType};

use row::{parse, rows};

const TEXT: &str = include_str!("catalogue.tsv");

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::new(TEXT));

/// Prefixes of system call entries, over the eras and architectures.
const SYSCALL_PREFIXES: [&str; 10] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__arm64_sys_",
    "__s390x_sys_",
    "__do_sys_",
    "__se_sys_",
    "SyS_",
    "ksys_",
    "compat_sys_",
    "sys_",
];

/// How many locks of an entry there are, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One in each process: a path that its own tasks take says whose it is, and it ends with it.
    Process,
    /// One in the kernel.
    Global,
    /// One in each object: an inode, a queue, a CPU.
    Object,
    /// A lock of this sort, of which a longer path may say more.
    Sort,
    /// One of several locks; the path does not say which.
    Class,
    /// No lock of a process, whatever else; it has no name.
    Other,
}

/// One function of a path, or a set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This function.
    Function(&'static str),
    /// Every function whose name begins so.
    Prefix(&'static str),
    /// The entry of this system call, whatever the architecture and the kernel call it.
    Syscall(&'static str),
}

/// Functions that together say which lock is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// From the innermost out; others may stand in between. The first one is lock code, a wrapper
    /// or the site.
    pub steps: Vec<Step>,
    /// The lock is that of another process than the waiter's.
    pub of_another: bool,
    /// Kernels (`3.0-4.16`) or the module (`btrfs`) that have it, where it is not on every kernel.
    pub only: Option<&'static str>,
}

/// Another name of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// The last kernel on which it was the lock's name, as `5.7`; empty for one that is only in use
    /// beside it.
    pub until: &'static str,
}

/// A lock.
#[derive(Debug)]
pub struct Entry {
    /// As reports name it.
    pub name: &'static str,
    /// Other names: of older kernels, of the subsystem's developers.
    pub aliases: Vec<Alias>,
    /// How many there are.
    pub scope: Scope,
    /// What it is.
    pub kinds: Vec<LockKind>,
    /// First kernel that has it under this name, as `4.7`; empty for older than 3.0.
    pub first: &'static str,
    /// Last kernel; empty while it is there.
    pub last: &'static str,
    /// Kernel source file where it is defined.
    pub source: &'static str,
    /// Where it is taken.
    pub paths: Vec<Path>,
    /// What it protects.
    pub protects: &'static str,
    /// What usually relieves it.
    pub relief: &'static str,
}

/// What a call path says of the lock that is waited for there.
#[derive(Clone, Copy, Debug)]
pub enum Claim {
    /// This path takes no other lock of its kind.
    Lock {
        /// Which lock.
        entry: &'static Entry,
        /// It is that of another process.
        of_another: bool,
    },
    /// It is of that sort; a longer path, or another one of the same address, may say more.
    Sort(&'static Entry),
    /// Nobody has looked, or the path takes several locks of that kind.
    Unknown,
}

/// A lock of which there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Only {
    /// Its name.
    pub name: &'static str,
    /// One in each process, as opposed to one in the kernel.
    pub of_process: bool,
}

/// The entry of a lock by its name or an alias, capitals or not; `mmap_lock.wait_lock` is part of
/// `mmap_lock`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    let name = name.strip_suffix(".wait_lock").unwrap_or(name);
    entries().find(|entry| entry.names().any(|known| known.eq_ignore_ascii_case(name)))
}

/// All of them, in the order of the file: by subsystem.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    CATALOGUE.entries.iter().filter(|entry| entry.scope != Scope::Other)
}

/// Entries with a name or alias that contains `text`, those that begin with it first.
pub fn suggestions(text: &str) -> Vec<&'static Entry> {
    let text = text.to_ascii_lowercase();
    let rank = |entry: &&Entry| {
        let places = entry.names().filter_map(|name| name.to_ascii_lowercase().find(&text));
        places.min().map(|place| place > 0)
    };
    let mut found: Vec<(bool, &Entry)> =
        entries().filter_map(|entry| Some((rank(&entry)?, entry))).collect();
    found.sort_by_key(|(inside, _)| *inside);
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// What waiting for a lock of `lock_type` on `path` says about which one it is: the longest paths
/// of the catalogue count, and where two locks have one each, none does.
pub fn claim(lock_type: LockType, path: &CallPath<'_>) -> Claim {
    let mut best: Option<(Rank, Claim)> = None;
    for (entry, known) in CATALOGUE.starting_on(path) {
        if !entry.is_of(lock_type, path) || !known.is_on(path) {
            continue;
        }
        let rank = entry.rank(known);
        let same = |claim: &Claim| claim.entry().is_some_and(|other| std::ptr::eq(other, entry));
        match &mut best {
            Some((most, _)) if *most > rank => {}
            Some((most, claim)) if *most == rank && !same(claim) => *claim = Claim::Unknown,
            _ => best = Some((rank, Claim::of(entry, known))),
        }
    }
    best.map_or(Claim::Unknown, |(_, claim)| claim)
}

/// What a path counts against others: that it names one lock, its length, that it names its
/// functions exactly.
type Rank = (bool, usize, bool);

impl Claim {
    fn of(entry: &'static Entry, path: &Path) -> Claim {
        match entry.scope {
            Scope::Sort | Scope::Class | Scope::Other => Claim::Sort(entry),
            _ => Claim::Lock { entry, of_another: path.of_another },
        }
    }

    /// The lock, where that is the only one of its name: in the waiter's process, or in the kernel.
    pub fn only(&self) -> Option<Only> {
        match self {
            Claim::Lock { entry, of_another: false } => match entry.scope {
                Scope::Process => Some(Only { name: entry.name, of_process: true }),
                Scope::Global => Some(Only { name: entry.name, of_process: false }),
                _ => None,
            },
            _ => None,
        }
    }

    fn entry(&self) -> Option<&'static Entry> {
        match self {
            Claim::Lock { entry, .. } | Claim::Sort(entry) => Some(entry),
            Claim::Unknown => None,
        }
    }
}

impl Entry {
    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().map(|alias| alias.name))
    }

    /// Its name on kernel `release`: an alias `mmap_sem@5.7` was its name up to there.
    pub fn name_on(&self, release: &str) -> &'static str {
        let Some(release) = version(release) else { return self.name };
        let old = |alias: &Alias| (release <= version(alias.until)?).then_some(alias.name);
        self.aliases.iter().find_map(old).unwrap_or(self.name)
    }

    /// Whether a lock of that type may be this one. PREEMPT_RT makes rt-mutexes of mutexes and of
    /// spinlocks; the lock code tells them apart.
    fn is_of(&self, lock_type: LockType, path: &CallPath<'_>) -> bool {
        let has = |kind| self.kinds.contains(&kind);
        match lock_type.kind {
            LockKind::RtMutex if path.is_rt_spinlock() => has(LockKind::Spinlock),
            LockKind::RtMutex => has(LockKind::Mutex) || has(LockKind::RtMutex),
            LockKind::RwlockRt => has(LockKind::Rwlock) || has(LockKind::Rwsem),
            kind => has(kind),
        }
    }

    fn rank(&self, path: &Path) -> Rank {
        let one_lock = !matches!(self.scope, Scope::Sort | Scope::Class | Scope::Other);
        let exact = !path.steps.iter().any(|step| matches!(step, Step::Prefix(_)));
        (one_lock, path.steps.len(), exact)
    }
}

impl Step {
    fn is(self, function: &str) -> bool {
        match self {
            Step::Function(name) => function == name,
            Step::Prefix(prefix) => function.starts_with(prefix),
            Step::Syscall(name) => syscall(function) == Some(name),
        }
    }
}

/// The system call that a function is the entry of.
pub fn syscall(function: &str) -> Option<&str> {
    SYSCALL_PREFIXES.iter().find_map(|prefix| function.strip_prefix(prefix))
}

impl Path {
    /// Whether all steps are on `path`, one after the other.
    fn is_on(&self, path: &CallPath<'_>) -> bool {
        let Some((first, rest)) = self.steps.split_first() else { return false };
        let Some(start) = path.inner().iter().position(|name| first.is(name)) else { return false };
        let mut names = path.names.iter().skip(start + 1);
        rest.iter().all(|step| names.any(|name| step.is(name)))
    }
}

/// `5.7`, `5.8.0-rc1`, `6.18.44-generic` -> (5, 7) ...
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Entries, and where their paths begin.
#[derive(Debug)]
struct Catalogue {
    entries: Vec<Entry>,
    /// Paths by the name of their first function, or of its system call.
    exact: HashMap<&'static str, Vec<(usize, usize)>>,
    /// Paths that begin with a set of functions.
    prefixes: Vec<(&'static str, (usize, usize))>,
}

impl Catalogue {
    fn new(text: &'static str) -> Catalogue {
        let entries: Vec<Entry> = rows(text).filter_map(parse).collect();
        let mut exact: HashMap<&'static str, Vec<(usize, usize)>> = HashMap::new();
        let mut prefixes = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            for (at, path) in entry.paths.iter().enumerate() {
                match path.steps.first() {
                    Some(Step::Function(name) | Step::Syscall(name)) => {
                        exact.entry(name).or_default().push((number, at));
                    }
                    Some(Step::Prefix(prefix)) => prefixes.push((*prefix, (number, at))),
                    None => {}
                }
            }
        }
        Catalogue { entries, exact, prefixes }
    }

    /// The paths whose first function is lock code, a wrapper or the site of `path`.
    fn starting_on<'a>(
        &'static self,
        path: &'a CallPath<'_>,
    ) -> impl Iterator<Item = (&'static Entry, &'static Path)> + 'a {
        let names = path.inner().iter();
        let places = names.flat_map(|name| {
            let exact = [Some(*name), syscall(name)].into_iter().flatten();
            let exact = exact.filter_map(|name| self.exact.get(name)).flatten().copied();
            let prefixes = self.prefixes.iter().filter(|(prefix, _)| name.starts_with(prefix));
            exact.chain(prefixes.map(|(_, place)| *place))
        });
        places.filter_map(|(number, at)| {
            let entry = self.entries.get(number)?;
            Some((entry, entry.paths.get(at)?))
        })
    }
}

#[cfg(test)]
mod tests;
