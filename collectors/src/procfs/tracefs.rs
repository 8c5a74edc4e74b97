//! Tracepoint formats: `events/SYSTEM/NAME/format` of tracefs, and TRACING_DATA of perf.data.
//!
//! ```text
//! name: contention_begin
//! ID: 408
//! format:
//! <tab>field:unsigned short common_type;<tab>offset:0;<tab>size:2;<tab>signed:0;
//! <tab>field:void * lock_addr;<tab>offset:8;<tab>size:8;<tab>signed:0;
//! <tab>field:char comm[16];<tab>offset:12;<tab>size:16;<tab>signed:0;
//! ```
//!
//! In: text. Out: [`Format`]; [`Tracefs`] finds and opens the files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a field stands in a tracepoint's raw record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without type and array bounds.
    pub name: String,
    /// Bytes from the start of the raw record.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
    /// Whether the C type is signed.
    pub signed: bool,
}

/// A tracepoint's raw record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name, without the system.
    pub name: String,
    /// `attr.config` of events on it.
    pub id: u64,
    /// Common fields first.
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads a format file. `None` without a name, an ID or any well-formed field.
    pub fn parse(text: &str) -> Option<Format> {
        let value = |prefix| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
        let fields: Vec<Field> = text.lines().filter_map(parse_field).collect();
        if fields.is_empty() {
            return None;
        }
        Some(Format { name: value("name:")?.to_owned(), id: value("ID:")?.parse().ok()?, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn parse_field(line: &str) -> Option<Field> {
    let declaration = line.trim_start().strip_prefix("field:")?;
    let mut parts = declaration.split(';').map(str::trim);
    let declared = parts.next()?;
    let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse::<u16>().ok();
    let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:")?);
    let declared = declared.split_once('[').map_or(declared, |(name, _)| name);
    let name = declared.rsplit([' ', '*']).next()?;
    Some(Field { name: name.to_owned(), offset, size, signed: signed != 0 })
}

/// A tracepoint of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The directory it stands in: `lock`.
    pub system: String,
    /// The layout of its raw record.
    pub format: Arc<Format>,
    /// The format file as the kernel gave it, for TRACING_DATA.
    pub text: Vec<u8>,
}

impl Tracepoint {
    /// perf's name: `lock:contention_begin`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.system, self.format.name)
    }
}

/// Tracepoints by name.
#[derive(Clone, Debug, Default)]
pub struct Tracepoints {
    by_name: BTreeMap<String, Arc<Tracepoint>>,
}

impl Tracepoints {
    /// The tracepoint of a system whose format file holds `text`; `None` when it is no format.
    pub fn parse(system: &str, text: &[u8]) -> Option<Arc<Tracepoint>> {
        let format = Arc::new(Format::parse(&String::from_utf8_lossy(text))?);
        Some(Arc::new(Tracepoint { system: system.to_owned(), format, text: text.to_vec() }))
    }

    /// The tracepoint of that name, `system:name`.
    pub fn get(&self, name: &str) -> Result<&Arc<Tracepoint>, TracefsError> {
        self.by_name.get(name).ok_or_else(|| TracefsError::NoTracepoint { name: name.to_owned() })
    }
}

impl FromIterator<Arc<Tracepoint>> for Tracepoints {
    fn from_iter<I: IntoIterator<Item = Arc<Tracepoint>>>(tracepoints: I) -> Tracepoints {
        Tracepoints { by_name: tracepoints.into_iter().map(|t| (t.name(), t)).collect() }
    }
}

/// Why tracepoints could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// Neither of the usual places holds it.
    #[error("tracefs is not mounted at {} or {}", MOUNTS[0], MOUNTS[1])]
    NotMounted,
    /// It is there, but this user may not look into it.
    #[error("no permission to read {}", .path.display())]
    NoPermission {
        /// The directory or file.
        path: PathBuf,
    },
    /// This kernel has no such tracepoint.
    #[error("this kernel has no tracepoint {name}")]
    NoTracepoint {
        /// `system:name`.
        name: String,
    },
    /// Any other fault of a file.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Where tracefs is mounted: its own place first, then inside debugfs, as before Linux 4.1.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Header files of the ring buffer are about a page long; one read must take them whole.
const HEADER_FILE_ROOM: usize = 64 * 1024;

/// The mounted tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds the mount.
    pub fn find() -> Result<Tracefs, TracefsError> {
        Tracefs::find_among(&MOUNTS.map(Path::new))
    }

    fn find_among(mounts: &[&Path]) -> Result<Tracefs, TracefsError> {
        let mut denied = None;
        for mount in mounts {
            match fs::metadata(mount.join("events")) {
                Ok(_) => return Ok(Tracefs { root: mount.to_path_buf() }),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    denied = denied.or(Some(mount.to_path_buf()));
                }
                Err(_) => {}
            }
        }
        Err(denied.map_or(TracefsError::NotMounted, |path| TracefsError::NoPermission { path }))
    }

    /// The mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Looks up tracepoints given as `system:name`.
    pub fn tracepoints(&self, names: &[&str]) -> Result<Tracepoints, TracefsError> {
        names.iter().map(|name| self.tracepoint(name)).collect()
    }

    fn tracepoint(&self, name: &str) -> Result<Arc<Tracepoint>, TracefsError> {
        let unknown = || TracefsError::NoTracepoint { name: name.to_owned() };
        let (system, event) = name.split_once(':').ok_or_else(unknown)?;
        let path = self.root.join("events").join(system).join(event).join("format");
        let text = fs::read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => unknown(),
            io::ErrorKind::PermissionDenied => TracefsError::NoPermission { path },
            _ => TracefsError::Io { path, source },
        })?;
        Tracepoints::parse(system, &text).ok_or_else(unknown)
    }

    /// `events/header_page`: how the kernel's own trace pages begin, for TRACING_DATA.
    pub fn header_page(&self) -> Result<Vec<u8>, TracefsError> {
        read_once(&self.root.join("events/header_page"))
    }

    /// `events/header_event`: how an event on such a page begins.
    pub fn header_event(&self) -> Result<Vec<u8>, TracefsError> {
        read_once(&self.root.join("events/header_event"))
    }
}

/// Reads a file that gives its text to the first read only, and only as much as that asks for.
fn read_once(path: &Path) -> Result<Vec<u8>, TracefsError> {
    let mut text = vec![0; HEADER_FILE_ROOM];
    let read = File::open(path).and_then(|mut file| file.read(&mut text));
    match read {
        Ok(len) => text.truncate(len),
        Err(source) => return Err(TracefsError::Io { path: path.to_path_buf(), source }),
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mount_that_has_events_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (own, debug) = (dir.path().join("tracing"), dir.path().join("debug"));
        let mounts = [own.as_path(), debug.as_path()];
        let found = || Tracefs::find_among(&mounts);
        assert!(matches!(found(), Err(TracefsError::NotMounted)));
        fs::create_dir_all(debug.join("events")).unwrap();
        assert_eq!(found().unwrap().root(), debug);
        fs::create_dir_all(own.join("events")).unwrap();
        assert_eq!(found().unwrap().root(), own);
    }

    #[test]
    fn tracepoints_are_found_by_system_and_name() {
        let dir = tempfile::tempdir().unwrap();
        let event = dir.path().join("events/sched/sched_waking");
        fs::create_dir_all(&event).unwrap();
        fs::write(event.join("format"), TEXT).unwrap();
        let tracefs = Tracefs { root: dir.path().to_path_buf() };
        let found = tracefs.tracepoints(&["sched:sched_waking"]).unwrap();
        let waking = found.get("sched:sched_waking").unwrap();
        assert_eq!((waking.format.id, waking.text.as_slice()), (318, TEXT.as_bytes()));
        for unknown in ["sched:sched_waked", "sched", "lock:sched_waking"] {
            let error = tracefs.tracepoints(&[unknown]).unwrap_err();
            assert_eq!(error.to_string(), format!("this kernel has no tracepoint {unknown}"));
        }
    }

    const TEXT: &str = "name: sched_waking\nID: 318\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:void * lock_addr;\toffset:24;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"comm=%s\", REC->comm\n";

    #[test]
    fn a_format_file_is_read() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_waking", 318));
        let field = |name| format.field(name).map(|f| (f.offset, f.size, f.signed));
        assert_eq!(field("common_pid"), Some((4, 4, true)));
        assert_eq!(field("comm"), Some((8, 16, false)));
        assert_eq!(field("lock_addr"), Some((24, 8, false)));
        assert_eq!(field("print"), None);
    }

    #[test]
    fn text_without_an_id_or_fields_is_no_format() {
        assert_eq!(Format::parse("name: x\nformat:\n"), None);
        assert_eq!(Format::parse(&TEXT.replace("ID: 318", "ID: many")), None);
        assert_eq!(Format::parse(""), None);
    }
}
