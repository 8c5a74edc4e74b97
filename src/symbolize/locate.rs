//! Where symbols are: the file itself, its debug file, copies that other tools keep.
//!
//! In: a path and the build id that was recorded. Out: the symbols of that very build, and where
//! its parts are loaded. A build id, once known, is asked of every file that is opened.
//!
//! ```text
//! the file          PATH   ~/.debug/.build-id/xx/yyyy/elf   CACHE/xxyyyy/executable
//! its debug file    /usr/lib/debug/.build-id/xx/yyyy.debug  CACHE/xxyyyy/debuginfo
//!                   by debug link, beside PATH: NAME  .debug/NAME  /usr/lib/debug/DIRECTORY/NAME
//! ```

use std::env;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flate2::Crc;

use super::elf::{Elf, Load, Symbols};
use super::image::Image;
use super::table::Table;
use super::{Reason, vdso};

/// What the kernel appends to the path of a file that was deleted.
const DELETED: &[u8] = b" (deleted)";

/// The directories in which symbols are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Separate debug files: `/usr/lib/debug`.
    pub debug: Vec<PathBuf>,
    /// perf's cache of build ids: `~/.debug`.
    pub perf: Option<PathBuf>,
    /// What debuginfod's client has downloaded: `~/.cache/debuginfod_client`.
    pub debuginfod: Option<PathBuf>,
    /// The `perf-PID.map` files of JIT compilers: `/tmp`.
    pub perf_maps: PathBuf,
}

impl Places {
    /// Where tools put them by default, for the user whose environment this is.
    pub fn from_env() -> Places {
        let directory = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let home = directory("HOME");
        let below_home = |name| home.as_ref().map(|home| home.join(name));
        let cache = directory("XDG_CACHE_HOME").or_else(|| below_home(".cache"));
        Places {
            debug: vec![PathBuf::from("/usr/lib/debug")],
            perf: below_home(".debug"),
            debuginfod: directory("DEBUGINFOD_CACHE_PATH")
                .or_else(|| cache.map(|cache| cache.join("debuginfod_client"))),
            perf_maps: PathBuf::from("/tmp"),
        }
    }

    /// Copies of the file with build id `id`. perf names its copy by what it is a copy of.
    fn copies(&self, id: &Hex, perf_name: &str) -> Vec<PathBuf> {
        let perf = self.perf.iter().map(|root| root.join(id.below_build_id("")).join(perf_name));
        let debuginfod = self.debuginfod.iter().map(|root| root.join(&id.0).join("executable"));
        perf.chain(debuginfod).collect()
    }

    /// Debug files of the file with build id `id`.
    fn debug_files(&self, id: &Hex) -> Vec<PathBuf> {
        let debug = self.debug.iter().map(|root| root.join(id.below_build_id(".debug")));
        let debuginfod = self.debuginfod.iter().map(|root| root.join(&id.0).join("debuginfo"));
        debug.chain(debuginfod).collect()
    }

    /// Debug files that the debug link `name` of the file at `path` may mean.
    fn linked_files(&self, path: &Path, name: &[u8]) -> Vec<PathBuf> {
        // A link is a bare name; one with directories in it could lead anywhere.
        if name.is_empty() || name.contains(&b'/') {
            return Vec::new();
        }
        let name = OsStr::from_bytes(name);
        let Some(directory) = path.parent() else { return Vec::new() };
        let below = directory.strip_prefix("/").unwrap_or(directory);
        let debug = self.debug.iter().map(|root| root.join(below).join(name));
        [directory.join(name), directory.join(".debug").join(name)]
            .into_iter()
            .chain(debug)
            .collect()
    }
}

/// A build id as it is written in paths.
struct Hex(String);

impl Hex {
    /// Ids of less than 2 bytes, or of more than any linker writes, name no file.
    fn new(id: &[u8]) -> Option<Hex> {
        let digits = |mut hex: String, byte: &u8| {
            let _ = write!(hex, "{byte:02x}");
            hex
        };
        (2..=64).contains(&id.len()).then(|| Hex(id.iter().fold(String::new(), digits)))
    }

    fn below_build_id(&self, suffix: &str) -> PathBuf {
        let (first, rest) = self.0.split_at(2);
        Path::new(".build-id").join(first).join(format!("{rest}{suffix}"))
    }
}

/// Whether two build ids are equal. Older versions of perf pad shorter ones with zeroes to 20 bytes.
fn same_id(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let rest = long.strip_prefix(short);
    !short.is_empty() && rest.is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}

/// The symbols of one object.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) table: Table,
    pub(super) loads: Vec<Load>,
    /// Whether the recording told the build id, and this is that build.
    pub(super) verified: bool,
}

/// The symbols of the file that was mapped from `path`.
pub(super) fn file(path: &[u8], recorded: Option<&[u8]>, places: &Places) -> Result<Found, Reason> {
    let at = Path::new(OsStr::from_bytes(path));
    let image = if path.ends_with(DELETED) {
        Err(Reason::FileDeleted)
    } else {
        Elf::open(at).and_then(|elf| check(elf, recorded))
    };
    let image = image.or_else(|reason| copy(recorded, "elf", places).ok_or(reason))?;
    let table = symbols(&image, at, places)?;
    Ok(Found { table, loads: image.loads().to_vec(), verified: recorded.is_some() })
}

/// The symbols of the vdso with build id `recorded`.
pub(super) fn vdso(recorded: Option<&[u8]>, places: &Places) -> Result<Found, Reason> {
    // Without an id it could be that of any kernel, and all are called [vdso].
    let recorded = Some(recorded.ok_or(Reason::NoBuildId)?);
    let own = vdso::own().and_then(Elf::new).and_then(|elf| check(elf, recorded));
    let image = own.or_else(|reason| copy(recorded, "vdso", places).ok_or(reason))?;
    let table = symbols(&image, Path::new(""), places)?;
    Ok(Found { table, loads: image.loads().to_vec(), verified: true })
}

/// `elf`, when it is the build that was recorded or the recording does not say which one was.
fn check(elf: Elf, recorded: Option<&[u8]>) -> Result<Elf, Reason> {
    let Some(recorded) = recorded else { return Ok(elf) };
    let same = elf.build_id().is_some_and(|id| same_id(&id, recorded));
    if same { Ok(elf) } else { Err(Reason::OtherBuildId) }
}

fn copy(recorded: Option<&[u8]>, perf_name: &str, places: &Places) -> Option<Elf> {
    let copies = places.copies(&Hex::new(recorded?)?, perf_name);
    copies.iter().find_map(|path| check(Elf::open(path).ok()?, recorded).ok())
}

/// The best table there is: all symbols of the file, those of its debug file, or at least those
/// that the dynamic linker needs.
fn symbols(image: &Elf, path: &Path, places: &Places) -> Result<Table, Reason> {
    let own = image.symbols(Symbols::All);
    if let Ok(table) = &own
        && table.len() > 0
    {
        return own;
    }
    if let Some(table) = debug_symbols(image, path, places) {
        return Ok(table);
    }
    match image.symbols(Symbols::Dynamic) {
        Ok(table) if table.len() > 0 => Ok(table),
        Ok(_) => Err(own.err().unwrap_or(Reason::NoSymbols)),
        Err(reason) => Err(reason),
    }
}

fn debug_symbols(image: &Elf, path: &Path, places: &Places) -> Option<Table> {
    let id = image.build_id();
    let table = |elf: Elf| elf.symbols(Symbols::All).ok().filter(|table| table.len() > 0);
    let by_id = |path: &PathBuf| table(check(Elf::open(path).ok()?, id.as_deref()).ok()?);
    if let Some(hex) = id.as_deref().and_then(Hex::new)
        && let Some(table) = places.debug_files(&hex).iter().find_map(by_id)
    {
        return Some(table);
    }
    let (name, crc) = image.debug_link()?;
    let linked = places.linked_files(path, &name);
    match id {
        Some(_) => linked.iter().find_map(by_id),
        None => {
            linked.iter().filter(|path| has_crc(path, crc)).find_map(|p| table(Elf::open(p).ok()?))
        }
    }
}

/// Whether the file's bytes have this CRC-32, the one proof of a debug file without a build id.
fn has_crc(path: &Path, expected: u32) -> bool {
    const PIECE: u64 = 1 << 20;
    let Ok(image) = Image::open(path) else { return false };
    let mut crc = Crc::new();
    let mut at = 0;
    while at < image.len() {
        let size = PIECE.min(image.len() - at);
        let Ok(bytes) = image.read(at, size) else { return false };
        crc.update(&bytes);
        at += size;
    }
    crc.sum() == expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_build_ids_are_the_same() {
        let cases: [(&[u8], &[u8], bool); 6] = [
            (&[1, 2], &[1, 2], true),
            (&[1, 2], &[1, 2, 0, 0], true),
            (&[1, 2, 0, 0], &[1, 2], true),
            (&[1, 2], &[1, 2, 0, 3], false),
            (&[1, 2], &[1, 3], false),
            (&[], &[0, 0], false),
        ];
        for (a, b, expected) in cases {
            assert_eq!(same_id(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn files_are_looked_for_where_tools_put_them() {
        let places = Places {
            debug: vec![PathBuf::from("/usr/lib/debug")],
            perf: Some(PathBuf::from("/h/.debug")),
            debuginfod: Some(PathBuf::from("/h/.cache/debuginfod_client")),
            perf_maps: PathBuf::from("/tmp"),
        };
        let id = Hex::new(&[0xab, 0x0c, 0xde]).unwrap();
        let paths = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            paths(places.copies(&id, "elf")),
            ["/h/.debug/.build-id/ab/0cde/elf", "/h/.cache/debuginfod_client/ab0cde/executable",]
        );
        assert_eq!(
            paths(places.debug_files(&id)),
            [
                "/usr/lib/debug/.build-id/ab/0cde.debug",
                "/h/.cache/debuginfod_client/ab0cde/debuginfo",
            ]
        );
        assert_eq!(
            paths(places.linked_files(Path::new("/usr/bin/x"), b"x.debug")),
            ["/usr/bin/x.debug", "/usr/bin/.debug/x.debug", "/usr/lib/debug/usr/bin/x.debug",]
        );
        assert!(places.linked_files(Path::new("/usr/bin/x"), b"../../etc/x").is_empty());
        assert!(Hex::new(&[1]).is_none() && Hex::new(&[]).is_none());
    }
}
