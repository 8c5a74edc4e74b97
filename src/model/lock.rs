//! Which lock: its address, the flags of `lock:contention_begin`, and the type they spell.

use std::fmt;
use std::str::FromStr;

/// The address of a lock object in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockAddr(pub u64);

impl LockAddr {
    /// Of a lock that no event names: waits for it are known by the sleeps of those who wait. The
    /// kernel has none there.
    pub const UNKNOWN: LockAddr = LockAddr(0);

    /// The address, where there is one.
    #[inline]
    pub fn known(self) -> Option<LockAddr> {
        (self != LockAddr::UNKNOWN).then_some(self)
    }
}

impl fmt::Display for LockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// `flags` of `lock:contention_begin`: the `LCB_F_*` bits of `include/trace/events/lock.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockFlags(pub u32);

#[allow(missing_docs)]
impl LockFlags {
    pub const SPIN: u32 = 1;
    pub const READ: u32 = 2;
    pub const WRITE: u32 = 4;
    pub const RT: u32 = 8;
    pub const PERCPU: u32 = 16;
    pub const MUTEX: u32 = 32;

    /// Whether every bit of `bits` is set.
    #[inline]
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// Waits of these flags spin with the CPU and belong to it: SPIN without MUTEX.
    #[inline]
    pub fn spins(self) -> bool {
        self.0 & (LockFlags::SPIN | LockFlags::MUTEX) == LockFlags::SPIN
    }
}

impl fmt::Display for LockFlags {
    /// As the tracepoint's own format prints them: `SPIN|MUTEX`, `0` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 6] = ["SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX"];
        if self.0 == 0 {
            return f.write_str("0");
        }
        let mut rest = self.0;
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if rest & (1 << bit) != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
                rest &= !(1 << bit);
            }
        }
        if rest != 0 {
            write!(f, "{separator}{rest:#x}")?;
        }
        Ok(())
    }
}

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// One holder at a time, and no other way to ask.
    #[default]
    Exclusive,
    /// Shared.
    Read,
    /// One holder, on a lock that also has readers.
    Write,
}

/// The kind of lock, whatever way it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum LockKind {
    Spinlock,
    Rwlock,
    Rwsem,
    Mutex,
    RtMutex,
    PcpuSem,
    Semaphore,
    RwlockRt,
    /// A wait in lock code whose kind no symbol of its stack tells.
    Unknown,
}

impl LockKind {
    /// The kernel's word for it, without R or W.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Spinlock => "spinlock",
            LockKind::Rwlock => "rwlock",
            LockKind::Rwsem => "rwsem",
            LockKind::Mutex => "mutex",
            LockKind::RtMutex => "rt-mutex",
            LockKind::PcpuSem => "pcpu-sem",
            LockKind::Semaphore => "semaphore",
            LockKind::RwlockRt => "rwlock-rt",
            LockKind::Unknown => "unknown",
        }
    }

    /// All kinds that have a name of their own.
    pub const ALL: [LockKind; 8] = [
        LockKind::Spinlock,
        LockKind::Rwlock,
        LockKind::Rwsem,
        LockKind::Mutex,
        LockKind::RtMutex,
        LockKind::PcpuSem,
        LockKind::Semaphore,
        LockKind::RwlockRt,
    ];

    fn has_readers(self) -> bool {
        matches!(self, LockKind::Rwlock | LockKind::Rwsem | LockKind::PcpuSem | LockKind::RwlockRt)
    }
}

/// A lock type in perf's words: `spinlock rwlock:R rwlock:W rwsem:R rwsem:W mutex rt-mutex
/// pcpu-sem:R pcpu-sem:W semaphore rwlock-rt:R rwlock-rt:W`; `(rt)` after an rwsem of PREEMPT_RT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockType {
    /// What it is.
    pub kind: LockKind,
    /// How it was asked for.
    pub mode: Mode,
    /// An rwsem that PREEMPT_RT builds from an rt-mutex.
    pub rt: bool,
}

impl LockType {
    /// A type off PREEMPT_RT.
    pub const fn new(kind: LockKind, mode: Mode) -> LockType {
        LockType { kind, mode, rt: false }
    }

    /// What the flags of a begin say. Unknown combinations are [`LockKind::Unknown`].
    pub fn from_flags(flags: LockFlags) -> LockType {
        let mode = match flags {
            f if f.has(LockFlags::READ) => Mode::Read,
            f if f.has(LockFlags::WRITE) => Mode::Write,
            _ => Mode::Exclusive,
        };
        let shared = LockFlags::READ | LockFlags::WRITE;
        let kind = match (flags.0 & !shared, mode) {
            (0, Mode::Exclusive) => LockKind::Semaphore,
            (0, _) => LockKind::Rwsem,
            (LockFlags::SPIN, Mode::Exclusive) => LockKind::Spinlock,
            (LockFlags::SPIN, _) => LockKind::Rwlock,
            (LockFlags::RT, Mode::Exclusive) => LockKind::RtMutex,
            (LockFlags::RT, _) => LockKind::RwlockRt,
            (LockFlags::PERCPU, Mode::Read | Mode::Write) => LockKind::PcpuSem,
            (f, Mode::Exclusive) if f & LockFlags::MUTEX != 0 => LockKind::Mutex,
            _ => LockKind::Unknown,
        };
        LockType::new(kind, mode)
    }
}

impl fmt::Display for LockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        f.write_str(match self.mode {
            Mode::Exclusive => "",
            Mode::Read => ":R",
            Mode::Write => ":W",
        })?;
        if self.rt { f.write_str(" (rt)") } else { Ok(()) }
    }
}

/// A lock type asked for by the user: a kind, with or without a mode.
///
/// Takes perf's names and the spellings of its manual: `percpu-rwsem` is `pcpu-sem`, `rtmutex` is
/// `rt-mutex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTypePattern {
    kind: LockKind,
    mode: Option<Mode>,
}

impl LockTypePattern {
    /// Whether `lock_type` is meant.
    pub fn matches(self, lock_type: LockType) -> bool {
        self.kind == lock_type.kind && self.mode.is_none_or(|mode| mode == lock_type.mode)
    }
}

impl FromStr for LockTypePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<LockTypePattern, String> {
        let (name, mode) = match text.rsplit_once(':') {
            Some((name, "R" | "r")) => (name, Some(Mode::Read)),
            Some((name, "W" | "w")) => (name, Some(Mode::Write)),
            Some(_) => return Err(format!("`{text}` is no lock type: only :R and :W can follow")),
            None => (text, None),
        };
        let name = match name {
            "percpu-rwsem" => "pcpu-sem",
            "rtmutex" => "rt-mutex",
            name => name,
        };
        let known = LockKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = known.ok_or_else(|| {
            let names: Vec<_> = LockKind::ALL.iter().map(|kind| kind.name()).collect();
            format!("`{text}` is no lock type; there are {}", names.join(", "))
        })?;
        if mode.is_some() && !kind.has_readers() {
            return Err(format!("`{text}`: a {} has no readers and writers", kind.name()));
        }
        Ok(LockTypePattern { kind, mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_spell_perfs_types() {
        let name = |flags| LockType::from_flags(LockFlags(flags)).to_string();
        let expected = [
            (0, "semaphore"),
            (1, "spinlock"),
            (1 | 2, "rwlock:R"),
            (1 | 4, "rwlock:W"),
            (2, "rwsem:R"),
            (4, "rwsem:W"),
            (8, "rt-mutex"),
            (8 | 2, "rwlock-rt:R"),
            (8 | 4, "rwlock-rt:W"),
            (16 | 2, "pcpu-sem:R"),
            (16 | 4, "pcpu-sem:W"),
            (32, "mutex"),
            (32 | 1, "mutex"),
            (64, "unknown"),
        ];
        for (flags, text) in expected {
            assert_eq!(name(flags), text, "flags {flags}");
        }
    }

    #[test]
    fn a_pattern_takes_a_kind_with_or_without_mode() {
        let rwsem_r = LockType::new(LockKind::Rwsem, Mode::Read);
        let matches = |text: &str| text.parse::<LockTypePattern>().unwrap().matches(rwsem_r);
        assert!(matches("rwsem") && matches("rwsem:R") && !matches("rwsem:W"));
        assert!("mutex:R".parse::<LockTypePattern>().is_err());
        assert!("percpu-rwsem:W".parse::<LockTypePattern>().is_ok());
        assert!("lock".parse::<LockTypePattern>().unwrap_err().contains("rwsem"));
    }

    #[test]
    fn flags_print_as_the_tracepoint_prints_them() {
        assert_eq!(LockFlags(33).to_string(), "SPIN|MUTEX");
        assert_eq!(LockFlags(0).to_string(), "0");
        assert_eq!(LockFlags(0x44).to_string(), "WRITE|0x40");
    }
}
