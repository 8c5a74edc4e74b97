//! The symbols of a program, for the user part of callchains.
//!
//! In: a name or path as it was typed. Out: [`Program`], which says where its symbols are, and the
//! check made from it. Debug files are looked for by build id where distributions and debuginfod
//! put them: `/usr/lib/debug/.build-id/xx/yyyy.debug`, `~/.cache/debuginfod_client/xxyyyy/debuginfo`.

use std::env;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSection, ReadCache};

use super::{Check, workload};

/// A program that was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// As found in PATH, or as typed.
    pub path: PathBuf,
    /// Its symbols.
    pub debug: Debug,
}

/// Where a program's symbols are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Debug {
    /// There is no such program, or it cannot be read.
    Unreadable(String),
    /// A script, most likely.
    NotElf,
    /// In the program itself.
    Inside,
    /// In a file of their own.
    File(PathBuf),
    /// Nowhere; they could be got by the build id, in hexadecimal.
    Missing {
        /// `None`: it was linked without.
        build_id: Option<String>,
    },
}

impl Program {
    /// Looks for a program as a shell does, and for its symbols.
    pub fn find(typed: &Path) -> Program {
        let path = in_path(typed).unwrap_or_else(|| typed.to_path_buf());
        let debug = Debug::of(&path).unwrap_or_else(|error| Debug::Unreadable(error.to_string()));
        Program { path, debug }
    }
}

/// Names without a slash are looked up in PATH.
fn in_path(typed: &Path) -> Option<PathBuf> {
    let bare = typed.components().count() == 1 && !typed.as_os_str().is_empty();
    let directories = env::var_os("PATH").filter(|_| bare && !typed.exists())?;
    env::split_paths(&directories)
        .map(|directory| directory.join(typed))
        .find(|path| path.is_file())
}

impl Debug {
    fn of(path: &Path) -> io::Result<Debug> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let cache = ReadCache::new(file);
        let Ok(elf) = object::File::parse(&cache) else { return Ok(Debug::NotElf) };
        let has = |name| elf.section_by_name(name).is_some_and(|section| section.size() > 0);
        if has(".symtab") || has(".debug_info") {
            return Ok(Debug::Inside);
        }
        let build_id = elf.build_id().ok().flatten().map(hexadecimal);
        let places = build_id.as_deref().map(debug_places).unwrap_or_default();
        let found = places.into_iter().find(|path| path.is_file());
        Ok(found.map_or(Debug::Missing { build_id }, Debug::File))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing into a String does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn debug_places(build_id: &str) -> Vec<PathBuf> {
    let Some((first, rest)) = build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
    else {
        return Vec::new();
    };
    let system = Path::new("/usr/lib/debug/.build-id").join(first).join(format!("{rest}.debug"));
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let downloaded = set("DEBUGINFOD_CACHE_PATH")
        .or_else(|| Some(cache?.join("debuginfod_client")))
        .map(|root| root.join(build_id).join("debuginfo"));
    [system].into_iter().chain(downloaded).collect()
}

pub(super) fn debug_files(program: &Program) -> Check {
    const NAME: &str = "debug file";
    let path = program.path.display();
    let quoted = workload::quoted(program.path.as_os_str());
    match &program.debug {
        Debug::Unreadable(why) => {
            let look = if quoted.contains('/') { "ls -ld" } else { "type -a" };
            Check::fail(NAME, format!("{path}: {why}"), format!("{look} {quoted}"))
        }
        Debug::NotElf => Check::warn(
            NAME,
            format!("{path} is no ELF file; ask about the interpreter that it names"),
            format!("head -n 1 {quoted}"),
        ),
        Debug::Inside => Check::ok(NAME, format!("{path} has its symbols in itself")),
        Debug::File(debug) => Check::ok(NAME, format!("{} for {path}", debug.display())),
        Debug::Missing { build_id: Some(id) } => Check::warn(
            NAME,
            format!("none for {path} (build id {id}); only exported functions have names"),
            format!(
                "sudo apt install debian-goodies && find-dbgsym-packages {quoted}\n\
                 DEBUGINFOD_URLS=https://debuginfod.debian.net debuginfod-find debuginfo {id}"
            ),
        ),
        Debug::Missing { build_id: None } => Check::warn(
            NAME,
            format!("{path} has neither symbols nor a build id to find them by"),
            "build it with: -g -Wl,--build-id",
        ),
    }
}
