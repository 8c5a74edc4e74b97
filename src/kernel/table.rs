//! The table of lock functions, `symbols.tsv`, as a lookup by name.
//!
//! In: the embedded text, one symbol a row (its own head says what the columns mean). Out: what
//! the table says of a folded name. A row with the exact name counts before any pattern, and of
//! patterns the longest: so `perf_trace_init` can be told apart from `perf_trace_*`.

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::role::{LockFunction, Role};
use crate::model::{LockKind, Mode};

const TEXT: &str = include_str!("symbols.tsv");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(TEXT));

/// What the table says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a row.
    Lock(&'static LockFunction),
    /// It looks like lock code or lies between it, and is not: a negative row.
    NotALock,
    /// It has no row.
    Unknown,
}

/// What the table says of `name`, which is folded.
pub fn verdict(name: &str) -> Verdict {
    match TABLE.row(name) {
        None => Verdict::Unknown,
        Some(Row { function: None, .. }) => Verdict::NotALock,
        Some(Row { function: Some(function), .. }) => Verdict::Lock(function),
    }
}

/// All rows but the negative ones, in the order of the file.
pub fn lock_functions() -> impl Iterator<Item = &'static LockFunction> {
    TABLE.rows.iter().filter_map(|row| row.function.as_ref())
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    /// `None` in a negative row.
    function: Option<LockFunction>,
}

#[derive(Debug)]
struct Table {
    rows: Vec<Row>,
    exact: HashMap<&'static str, u32>,
    /// Rows whose name is a pattern, longest first.
    patterns: Vec<u32>,
}

impl Table {
    fn new(text: &'static str) -> Table {
        let mut table = Table { rows: Vec::new(), exact: HashMap::new(), patterns: Vec::new() };
        for row in lines(text).filter_map(parse) {
            let number = table.rows.len() as u32;
            if is_pattern(row.name) {
                table.patterns.push(number);
            } else {
                table.exact.insert(row.name, number);
            }
            table.rows.push(row);
        }
        let rows = &table.rows;
        table.patterns.sort_by_key(|&number| {
            std::cmp::Reverse(rows.get(number as usize).map_or(0, |row| row.name.len()))
        });
        table
    }

    fn row(&self, name: &str) -> Option<&Row> {
        let pattern = || {
            let row = |&number: &u32| self.rows.get(number as usize);
            self.patterns.iter().filter_map(row).find(|row| matches(row.name, name))
        };
        match self.exact.get(name) {
            Some(&number) => self.rows.get(number as usize),
            None => pattern(),
        }
    }
}

/// The rows of the file, without comments and empty lines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '#', '%'])
}

/// Whether `name` is one of `pattern`: `#` is a hexadecimal digit, `%` a decimal one, `*` at the
/// end anything.
fn matches(pattern: &str, name: &str) -> bool {
    let (head, open) = match pattern.strip_suffix('*') {
        Some(head) => (head.as_bytes(), true),
        None => (pattern.as_bytes(), false),
    };
    let Some((start, rest)) = name.as_bytes().split_at_checked(head.len()) else { return false };
    (open || rest.is_empty())
        && head.iter().zip(start).all(|(wanted, byte)| match wanted {
            b'#' => byte.is_ascii_hexdigit(),
            b'%' => byte.is_ascii_digit(),
            wanted => wanted == byte,
        })
}

/// `name  class  role  mode  first  last  source`, tabs between; `None` for a row out of form, of
/// which there are none (a test).
fn parse(line: &'static str) -> Option<Row> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (name, class, role, mode) = (next()?, next()?, next()?, next()?);
    let (first, last, source) = (next()?, next()?, next()?);
    if fields.next().is_some() {
        return None;
    }
    if role == "not-a-lock" {
        return (class == "-" && mode == "-").then_some(Row { name, function: None });
    }
    let last = if last == "-" { "" } else { last };
    let (kind, role, mode) = (kind_of(class)?, role_of(role)?, mode_of(mode)?);
    Some(Row { name, function: Some(LockFunction { name, kind, role, mode, first, last, source }) })
}

fn kind_of(word: &str) -> Option<Option<LockKind>> {
    match word {
        "-" => Some(None),
        word => LockKind::ALL.into_iter().find(|kind| kind.name() == word).map(Some),
    }
}

fn mode_of(word: &str) -> Option<Option<Mode>> {
    Some(match word {
        "-" => None,
        "exclusive" => Some(Mode::Exclusive),
        "read" => Some(Mode::Read),
        "write" => Some(Mode::Write),
        _ => return None,
    })
}

fn role_of(word: &str) -> Option<Role> {
    Some(match word {
        "acquire" => Role::Acquire,
        "spin" => Role::Spin,
        "block" => Role::Block,
        "spin-block" => Role::SpinBlock,
        "wake" => Role::Wake,
        "release" => Role::Release,
        "irq-on" => Role::IrqOn,
        "trylock" => Role::Trylock,
        "wrapper" => Role::Wrapper,
        "interrupt" => Role::Interrupt,
        "softirq" => Role::Softirq,
        "nmi" => Role::Nmi,
        "interrupt-return" => Role::InterruptReturn,
        "schedule" => Role::Schedule,
        "futex" => Role::Futex,
        "recording" => Role::Recording,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::kernel::fold;

    /// `5.15`, `5.15-rt`: the words of first and last.
    fn version(text: &str) -> Option<(u32, u32)> {
        let (major, minor) = text.strip_suffix("-rt").unwrap_or(text).split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    #[test]
    fn every_row_parses_and_none_has_the_name_of_another() {
        let mut names = HashSet::new();
        for line in lines(TEXT) {
            let row = parse(line).unwrap_or_else(|| panic!("out of form: {line}"));
            assert!(names.insert(row.name), "twice: {}", row.name);
        }
        assert!(names.len() > 1000, "{}", names.len());
    }

    #[test]
    fn every_field_is_in_range() {
        for line in lines(TEXT) {
            let fields: Vec<_> = line.split('\t').collect();
            let (name, first, last, source) = (fields[0], fields[4], fields[5], fields[6]);
            if !is_pattern(name) {
                assert_eq!(fold(name), name, "{name} is not folded");
            }
            let first = version(first).unwrap_or_else(|| panic!("first of {name}: {first}"));
            assert!(((2, 6)..=(7, 2)).contains(&first), "first of {name}");
            if last != "-" {
                let last = version(last).unwrap_or_else(|| panic!("last of {name}: {last}"));
                assert!(first <= last && last <= (7, 2), "last of {name}");
            }
            let bytes = source.bytes();
            let is_path = bytes.clone().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
            assert!(is_path && source.contains('/'), "source of {name}: {source}");
        }
    }

    #[test]
    fn only_locks_with_readers_are_asked_for_in_two_ways() {
        for row in lock_functions() {
            let two_ways = matches!(
                row.kind,
                Some(LockKind::Rwlock | LockKind::Rwsem | LockKind::PcpuSem | LockKind::RwlockRt)
            );
            match row.mode {
                Some(Mode::Exclusive) => assert!(!two_ways, "{}", row.name),
                Some(_) => assert!(two_ways || row.kind.is_none(), "{}", row.name),
                None => {}
            }
            let place = matches!(
                row.role,
                Role::Schedule | Role::Futex | Role::Recording | Role::InterruptReturn
            );
            if place || row.interrupt().is_some() {
                assert_eq!((row.kind, row.mode), (None, None), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_pattern_matches_digits_and_ends() {
        assert!(matches("asm_sysvec_*", "asm_sysvec_apic_timer_interrupt"));
        assert!(matches("asm_sysvec_*", "asm_sysvec_"));
        assert!(!matches("asm_sysvec_*", "asm_sysve"));
        assert!(!matches("bpf_prog_####", "bpf_prog_6deef"));
        assert!(matches("bpf_prog_####", "bpf_prog_6dee"));
        assert!(!matches("bpf_prog_####*", "bpf_prog_load"));
        assert!(matches("bpf_trampoline_%*", "bpf_trampoline_6442536467"));
        assert!(!matches("bpf_trampoline_%*", "bpf_trampoline_enter"));
    }
}
