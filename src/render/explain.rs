//! Entries of the catalogue of locks, for people.
//!
//! In: entries and the width of the terminal. Out: one entry in full, or one line for each of them.

use std::fmt::Write;

use super::paragraph::{columns, shorten, wrap};
use crate::attribute::catalogue::{Entry, Path, Scope, Step};

/// Columns of the labels.
const LABEL: usize = 12;

/// Everything known of a lock.
pub fn entry(entry: &Entry, width: usize) -> String {
    let mut text = format!("{}\n", entry.name);
    let mut field = |label: &str, value: &str| {
        for line in wrap(&format!("  {label:LABEL$}"), value, width) {
            let _ = writeln!(text, "{line}");
        }
    };
    field("type", &format!("{}, {}", kinds(entry), scope(entry.scope)));
    if !entry.aliases.is_empty() {
        field("also", &aliases(entry));
    }
    field("kernels", &kernels(entry));
    field("source", entry.source);
    field("protects", entry.protects);
    field("relief", entry.relief);
    field("taken in", &paths(&entry.paths));
    text
}

/// A line for each: name, type, what it protects.
pub fn list<'a>(entries: impl Iterator<Item = &'a Entry>, width: usize) -> String {
    let rows: Vec<(&str, String, &str)> =
        entries.map(|entry| (entry.name, kinds(entry), entry.protects)).collect();
    let widest = |column: fn(&(&str, String, &str)) -> usize| rows.iter().map(column).max();
    let name = widest(|row| columns(row.0)).unwrap_or(0);
    let kind = widest(|row| columns(&row.1)).unwrap_or(0);
    let mut text = String::new();
    for (lock, of, protects) in &rows {
        let line = format!("{lock:name$}  {of:kind$}  {protects}");
        let _ = writeln!(text, "{}", shorten(&line, width).trim_end());
    }
    text
}

fn kinds(entry: &Entry) -> String {
    let kinds: Vec<&str> = entry.kinds.iter().map(|kind| kind.name()).collect();
    kinds.join(" or ")
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "one for each process",
        Scope::Global => "one in the kernel",
        Scope::Object => "one for each of what it protects",
        Scope::Sort => "one for each of what it protects; some have names of their own",
        Scope::Class | Scope::Other => "one of several locks",
    }
}

fn aliases(entry: &Entry) -> String {
    let words = entry.aliases.iter().map(|alias| match alias.until {
        "" => alias.name.to_owned(),
        until => format!("{} (up to Linux {until})", alias.name),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn kernels(entry: &Entry) -> String {
    match (entry.first, entry.last) {
        ("", "") => "all since 3.0".into(),
        (first, "") => format!("{first} and later"),
        ("", last) => format!("up to {last}"),
        (first, last) => format!("{first} to {last}"),
    }
}

/// `xfs_buf_lock < xfs_read_agi, mprotect(2), access_remote_vm (of another process)`.
fn paths(paths: &[Path]) -> String {
    let words = paths.iter().map(|path| {
        let steps: Vec<String> = path.steps.iter().map(|step| self::step(*step)).collect();
        let another = if path.of_another { " (of another process)" } else { "" };
        steps.join(" < ") + another
    });
    words.collect::<Vec<_>>().join(", ")
}

fn step(step: Step) -> String {
    match step {
        Step::Function(name) => name.to_owned(),
        Step::Prefix(prefix) => format!("{prefix}*"),
        Step::Syscall(name) => format!("{name}(2)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::catalogue;

    #[test]
    fn an_entry_says_all_it_has_and_fits_the_width() {
        let text = entry(catalogue::entry("mmap_lock").unwrap(), 80);
        for expected in ["mmap_sem (up to Linux 5.7)", "one for each process", "mprotect(2)"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    }

    #[test]
    fn the_list_has_a_line_for_each_and_fits_the_width() {
        let text = list(catalogue::entries(), 80);
        assert_eq!(text.lines().count(), catalogue::entries().count());
        assert!(text.lines().all(|line| columns(line) <= 80 && !line.ends_with(' ')), "{text}");
    }
}
