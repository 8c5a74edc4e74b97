//! Where the recorded kernel's symbols come from: the only file of this room that opens anything.
//!
//! In: what the user named, what the recording carries, the recorded kernel's build id. Out: the
//! book and where it came from, in words for the trust header. Symbols of another kernel are never
//! taken: a cache entry and this machine's own count only under the same build id.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::Kernel;

/// A kallsyms file has 5 to 15 MB; what unpacks to more is none.
const LONGEST: u64 = 256 << 20;
/// What unpacking xz may need: `xz -9` needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// What is known of the recorded kernel's symbols.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// `--kallsyms FILE`: plain, gzip or xz. Counts before all others, and must work.
    pub explicit: Option<&'a Path>,
    /// kallsyms text that the recording carries.
    pub embedded: Option<&'a [u8]>,
    /// The recorded kernel's build id.
    pub build_id: Option<&'a [u8]>,
    /// The recorded kernel's release, for the words.
    pub release: &'a str,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// perf's build-id cache.
    pub cache: Option<PathBuf>,
    /// This machine's symbols.
    pub kallsyms: PathBuf,
    /// This machine's kernel notes, with its build id.
    pub notes: PathBuf,
}

impl Places {
    /// Those of this machine. The cache is where perf has it: `PERF_BUILDID_DIR`, which it hands
    /// to its own scripts, else `~/.debug`.
    pub fn of_this_machine() -> Places {
        let in_home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debug"));
        Places {
            cache: std::env::var_os("PERF_BUILDID_DIR").map(PathBuf::from).or_else(in_home),
            kallsyms: PathBuf::from("/proc/kallsyms"),
            notes: PathBuf::from("/sys/kernel/notes"),
        }
    }
}

/// Where the symbols are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolSource {
    /// The recording carries them.
    Recording,
    /// The user named this file.
    File(PathBuf),
    /// perf's build-id cache has this file under the recorded kernel's build id.
    Cache(PathBuf),
    /// This machine runs the recorded kernel.
    ThisMachine,
    /// There are none.
    None(NoSymbols),
}

/// Why there are no symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSymbols {
    /// The recording has neither symbols nor a build id of its kernel.
    NoBuildId,
    /// This machine runs another kernel.
    OtherKernel {
        /// The recorded kernel's release; empty when unknown.
        release: String,
    },
    /// This machine runs the recorded kernel, but hides its addresses from us.
    Hidden,
    /// This machine's build id or its symbols could not be read.
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl fmt::Display for SymbolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymbolSource::Recording => f.write_str("from the recording"),
            SymbolSource::File(path) => write!(f, "from {}", path.display()),
            SymbolSource::Cache(path) => {
                write!(f, "from perf's build-id cache ({})", path.display())
            }
            SymbolSource::ThisMachine => f.write_str("this machine's (same build id)"),
            SymbolSource::None(reason) => write!(f, "none: {reason}"),
        }
    }
}

impl fmt::Display for NoSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSymbols::NoBuildId => f.write_str(
                "the recording has neither symbols nor a kernel build id; use --kallsyms FILE",
            ),
            NoSymbols::OtherKernel { release } => {
                let space = if release.is_empty() { "" } else { " " };
                let kernel = format_args!("kernel{space}{release}");
                write!(f, "the recording is of {kernel} with another build id; ")?;
                f.write_str("use --kallsyms FILE")
            }
            NoSymbols::Hidden => f.write_str(
                "/proc/kallsyms shows no addresses (kernel.kptr_restrict, CAP_SYSLOG); \
                 use sudo or --kallsyms FILE",
            ),
            NoSymbols::Unreadable { path, reason } => {
                write!(f, "{}: {reason}; use --kallsyms FILE", path.display())
            }
        }
    }
}

/// Why the file that the user named is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KallsymsError {
    /// It cannot be read, or not be unpacked.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the unpacker said.
        source: io::Error,
    },
    /// It unpacks to more than any kallsyms has.
    #[error("{} is no kallsyms: it has more than {} MiB", path.display(), LONGEST >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It has no line of the form `ffffffff81000000 T _text`.
    #[error("{} is no kallsyms: no line reads like `ffffffff81000000 T _text`", path.display())]
    NotKallsyms {
        /// The file.
        path: PathBuf,
    },
    /// All addresses in it are zero.
    #[error(
        "all addresses in {} are zero: it was copied without the right to see them (as root, or \
         with kernel.kptr_restrict=0)", path.display()
    )]
    Hidden {
        /// The file.
        path: PathBuf,
    },
}

/// The recorded kernel's symbols, from the first place that has them.
///
/// # Errors
///
/// Only for a file that the user named; anything else that fails ends as `SymbolSource::None`.
pub fn find(wanted: &Wanted<'_>, places: &Places) -> Result<(Kernel, SymbolSource), KallsymsError> {
    if let Some(path) = wanted.explicit {
        return Ok((named(path)?, SymbolSource::File(path.to_owned())));
    }
    if let Some(kernel) = wanted.embedded.map(Kernel::from_kallsyms).filter(|k| !k.is_empty()) {
        return Ok((kernel, SymbolSource::Recording));
    }
    let Some(build_id) = wanted.build_id.filter(|id| !id.is_empty()) else {
        return Ok((Kernel::default(), SymbolSource::None(NoSymbols::NoBuildId)));
    };
    if let Some((kernel, path)) = places.cache.as_deref().and_then(|dir| cached(dir, build_id)) {
        return Ok((kernel, SymbolSource::Cache(path)));
    }
    Ok(match this_machine(build_id, wanted.release, places) {
        Ok(kernel) => (kernel, SymbolSource::ThisMachine),
        Err(reason) => (Kernel::default(), SymbolSource::None(reason)),
    })
}

fn named(path: &Path) -> Result<Kernel, KallsymsError> {
    let unreadable = |source| KallsymsError::Read { path: path.to_owned(), source };
    let text = File::open(path).and_then(unpacked).map_err(unreadable)?;
    let Some(text) = text else {
        return Err(KallsymsError::TooLong { path: path.to_owned() });
    };
    let kernel = Kernel::from_kallsyms(&text);
    match kernel.is_empty() {
        false => Ok(kernel),
        true if kernel.addresses_hidden() => Err(KallsymsError::Hidden { path: path.to_owned() }),
        true => Err(KallsymsError::NotKallsyms { path: path.to_owned() }),
    }
}

/// `CACHE/[kernel.kallsyms]/BUILDID/kallsyms`.
fn cached(cache: &Path, build_id: &[u8]) -> Option<(Kernel, PathBuf)> {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = cache.join("[kernel.kallsyms]").join(hex).join("kallsyms");
    let text = File::open(&path).and_then(unpacked).ok()??;
    let kernel = Kernel::from_kallsyms(&text);
    (!kernel.is_empty()).then_some((kernel, path))
}

fn this_machine(build_id: &[u8], release: &str, places: &Places) -> Result<Kernel, NoSymbols> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| NoSymbols::Unreadable { path, reason: error.to_string() }
    };
    let notes = std::fs::read(&places.notes).map_err(unreadable(&places.notes))?;
    if build_id_of_notes(&notes) != Some(build_id) {
        return Err(NoSymbols::OtherKernel { release: release.to_owned() });
    }
    let text = std::fs::read(&places.kallsyms).map_err(unreadable(&places.kallsyms))?;
    let kernel = Kernel::from_kallsyms(&text);
    if kernel.is_empty() { Err(NoSymbols::Hidden) } else { Ok(kernel) }
}

/// A file's text, unpacked by what it begins with; `None` when it is too long.
fn unpacked(mut file: File) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    file.by_ref().take(6).read_to_end(&mut head)?;
    let packed = head.as_slice().chain(file);
    match head.as_slice() {
        [0x1f, 0x8b, ..] => bounded(MultiGzDecoder::new(packed)),
        b"\xfd7zXZ\0" => bounded(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB)),
        _ => bounded(packed),
    }
}

fn bounded(reader: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    reader.take(LONGEST + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= LONGEST).then_some(text))
}

/// The GNU build id in `notes`, laid out as ELF notes in this machine's byte order:
///
/// ```text
/// u32 name size | u32 description size | u32 type | name, padded to 4 | description, padded to 4
/// ```
fn build_id_of_notes(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (name_size, after) = word(rest)?;
        let (size, after) = word(after)?;
        let (kind, after) = word(after)?;
        let (name, after) = padded(after, name_size)?;
        let (description, after) = padded(after, size)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(description);
        }
        rest = after;
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*word), rest))
}

/// `size` bytes, and what follows at the next multiple of four. The last one may lack its padding.
fn padded(bytes: &[u8], size: u32) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let taken = bytes.get(..size)?;
    Some((taken, bytes.get(size.checked_next_multiple_of(4)?..).unwrap_or_default()))
}
