//! A row of `catalogue.tsv` -> an entry.
//!
//! In: the embedded text. Out: its rows, and the [`Entry`] of each.

use super::{Alias, Entry, Path, Scope, Step};
use crate::model::LockKind;

/// The rows of the file, without comments and empty lines.
pub(super) fn rows(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Nine fields, tabs between; `None` for a row out of form, of which there are none (a test).
pub(super) fn parse(line: &'static str) -> Option<Entry> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let [name, aliases, scope, kinds, kernels, source, paths, protects, relief] = fields[..] else {
        return None;
    };
    let (first, last) = kernels.split_once('-')?;
    Some(Entry {
        name,
        aliases: list(aliases, ',').map(alias).collect(),
        scope: scope_of(scope)?,
        kinds: list(kinds, ',').map(kind).collect::<Option<_>>()?,
        first,
        last,
        source,
        paths: list(paths, ' ').map(path).collect::<Option<_>>()?,
        protects,
        relief,
    })
}

/// What stands between separators; `-` is nothing.
fn list(text: &'static str, separator: char) -> impl Iterator<Item = &'static str> {
    text.split(separator).filter(|part| !part.is_empty() && *part != "-")
}

/// `ILOCK`, `mmap_sem@5.7`.
fn alias(text: &'static str) -> Alias {
    let (name, until) = text.split_once('@').unwrap_or((text, ""));
    Alias { name, until }
}

fn scope_of(word: &str) -> Option<Scope> {
    Some(match word {
        "process" => Scope::Process,
        "global" => Scope::Global,
        "object" => Scope::Object,
        "sort" => Scope::Sort,
        "class" => Scope::Class,
        "other" => Scope::Other,
        _ => return None,
    })
}

fn kind(word: &'static str) -> Option<LockKind> {
    LockKind::ALL.into_iter().find(|kind| kind.name() == word)
}

/// `down_read<xfs_create`, `sys:brk`, `~access_remote_vm`, `SyS_*@3.0-4.16`.
fn path(text: &'static str) -> Option<Path> {
    let (of_another, text) = match text.strip_prefix('~') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (steps, only) = match text.split_once('@') {
        Some((steps, only)) => (steps, Some(only)),
        None => (text, None),
    };
    let steps: Vec<Step> = steps.split('<').map(step).collect();
    let empty =
        |step: &Step| matches!(step, Step::Function("") | Step::Prefix("") | Step::Syscall(""));
    (!steps.iter().any(empty)).then_some(Path { steps, of_another, only })
}

fn step(text: &'static str) -> Step {
    match (text.strip_suffix('*'), text.strip_prefix("sys:")) {
        (Some(prefix), _) => Step::Prefix(prefix),
        (_, Some(name)) => Step::Syscall(name),
        _ => Step::Function(text),
    }
}
