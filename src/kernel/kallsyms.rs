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
use lockprof_collectors::procfs::system::parse_build_id;
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
/// A kernel with KASLR has its functions elsewhere after each boot, and neither a cache entry nor
/// this machine's symbols need be of the boot that was recorded: [`Kernel::anchor`] puts that right.
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
    if parse_build_id(&notes).as_deref() != Some(build_id) {
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
        [0x1f, 0x8b, ..] => bounded(MultiGzDecoder::new(packed), LONGEST),
        b"\xfd7zXZ\0" => bounded(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB), LONGEST),
        _ => bounded(packed, LONGEST),
    }
}

fn bounded(reader: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    reader.take(most + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"ffffffff81000000 T _text\nffffffff81001000 T up_write\n";
    /// `TEXT` through `xz -0 --check=crc32`.
    #[rustfmt::skip]
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x0c, 0x00, 0x00, 0x00, 0x8f, 0x98, 0x41, 0x9c, 0xe0, 0x00, 0x34, 0x00, 0x23, 0x5d,
        0x00, 0x33, 0x6a, 0x8a, 0x06, 0x23, 0x2f, 0x42, 0x97, 0x14, 0x48, 0x81, 0xc8, 0x82, 0xe9,
        0xe8, 0x9f, 0x71, 0x65, 0x23, 0xd2, 0x81, 0x94, 0xd3, 0x85, 0xae, 0x4c, 0x80, 0x46, 0xa3,
        0x76, 0x69, 0xb9, 0xdc, 0xe8, 0x80, 0x00, 0x00, 0xaf, 0x83, 0x7a, 0x9e, 0x00, 0x01, 0x3b,
        0x35, 0x30, 0x9e, 0x87, 0x4a, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01,
        0x59, 0x5a,
    ];
    const HIDDEN: &[u8] = b"0000000000000000 T _text\n0000000000000000 T up_write\n";
    const BUILD_ID: [u8; 4] = [0xe4, 0xf1, 0x8d, 0x9d];

    /// A machine that runs the kernel with `BUILD_ID`, and an empty cache.
    fn machine(dir: &Path, kallsyms: &[u8]) -> Places {
        let mut notes = Vec::new();
        for (kind, name, description) in
            [(1, &b"Linux\0"[..], &[6u8][..]), (3, &b"GNU\0"[..], &BUILD_ID[..])]
        {
            for size in [name.len() as u32, description.len() as u32, kind] {
                notes.extend(size.to_ne_bytes());
            }
            for bytes in [name, description] {
                notes.extend(bytes);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        let places = Places {
            cache: Some(dir.join("cache")),
            kallsyms: dir.join("kallsyms"),
            notes: dir.join("notes"),
        };
        std::fs::write(&places.kallsyms, kallsyms).unwrap();
        std::fs::write(&places.notes, notes).unwrap();
        places
    }

    fn source(wanted: &Wanted<'_>, places: &Places) -> SymbolSource {
        let (kernel, source) = find(wanted, places).unwrap();
        assert_eq!(kernel.is_empty(), matches!(source, SymbolSource::None(_)));
        source
    }

    #[test]
    fn the_recordings_own_symbols_count_before_the_cache_and_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        let places = machine(dir.path(), TEXT);
        let wanted = Wanted { build_id: Some(&BUILD_ID), release: "6.18.44", ..Wanted::default() };
        assert_eq!(source(&wanted, &places), SymbolSource::ThisMachine);
        let cached = dir.path().join("cache/[kernel.kallsyms]/e4f18d9d");
        std::fs::create_dir_all(&cached).unwrap();
        std::fs::write(cached.join("kallsyms"), TEXT).unwrap();
        assert_eq!(source(&wanted, &places), SymbolSource::Cache(cached.join("kallsyms")));
        let embedded = Wanted { embedded: Some(TEXT), ..wanted };
        assert_eq!(source(&embedded, &places), SymbolSource::Recording);
        let hidden = Wanted { embedded: Some(HIDDEN), ..wanted };
        assert_eq!(source(&hidden, &places), SymbolSource::Cache(cached.join("kallsyms")));
    }

    #[test]
    fn another_kernels_symbols_are_never_taken() {
        let dir = tempfile::tempdir().unwrap();
        let places = machine(dir.path(), TEXT);
        let none = Wanted { release: "5.10.0", ..Wanted::default() };
        assert_eq!(source(&none, &places), SymbolSource::None(NoSymbols::NoBuildId));
        let other = Wanted { build_id: Some(&[1, 2, 3, 4]), ..none };
        let words = source(&other, &places).to_string();
        let expected = "none: the recording is of kernel 5.10.0 with another build id; \
                        use --kallsyms FILE";
        assert_eq!(words, expected);
    }

    #[test]
    fn this_machines_hidden_or_missing_symbols_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let places = machine(dir.path(), HIDDEN);
        let wanted = Wanted { build_id: Some(&BUILD_ID), ..Wanted::default() };
        assert_eq!(source(&wanted, &places), SymbolSource::None(NoSymbols::Hidden));
        std::fs::remove_file(&places.kallsyms).unwrap();
        let missing = source(&wanted, &places);
        assert!(matches!(missing, SymbolSource::None(NoSymbols::Unreadable { .. })), "{missing}");
    }

    #[test]
    fn a_named_file_may_be_packed_and_must_work() {
        let dir = tempfile::tempdir().unwrap();
        let places = machine(dir.path(), TEXT);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(TEXT).unwrap();
        let gzip = gzip.finish().unwrap();
        let path = dir.path().join("named");
        let named = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            find(&Wanted { explicit: Some(&path), ..Wanted::default() }, &places)
        };
        for bytes in [TEXT, &gzip, XZ] {
            let (kernel, source) = named(bytes).unwrap();
            assert_eq!((kernel.len(), source), (2, SymbolSource::File(path.clone())));
        }
        assert!(matches!(named(b""), Err(KallsymsError::NotKallsyms { .. })));
        assert!(matches!(named(b"\x1f\x8b"), Err(KallsymsError::Read { .. })));
        assert!(matches!(named(&XZ[..XZ.len() / 2]), Err(KallsymsError::Read { .. })));
        assert!(matches!(named(HIDDEN), Err(KallsymsError::Hidden { .. })));
        let missing = Wanted { explicit: Some(Path::new("/nonexistent")), ..Wanted::default() };
        let error = find(&missing, &places).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nonexistent: "), "{error}");
    }

    #[test]
    fn what_unpacks_to_more_than_a_kallsyms_is_refused() {
        assert_eq!(bounded(io::repeat(b'0'), 1000).unwrap(), None);
        assert_eq!(bounded(&b"0123"[..], 4).unwrap(), Some(b"0123".to_vec()));
    }
}
