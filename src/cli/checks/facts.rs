//! The machine as the checks see it: gathered once, whole or in part, by any user.
//!
//! In: `/proc`, `/sys`, `uname(2)`, `getrlimit(2)`, `statvfs(2)`, and one session that is opened on
//! trial on one CPU. Out: [`Facts`]. What cannot be read stays unknown; nothing here is an error.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use lockprof_collectors::Collector;
use lockprof_collectors::contended_release::RELEASE;
use lockprof_collectors::contention::{BEGIN, Contention, END};
use lockprof_collectors::cpu::{Cpu, CpuEvent, DEFAULT_FREQUENCY};
use lockprof_collectors::perf::plan::{Plan, Scope};
use lockprof_collectors::perf::session::{Session, SessionError};
use lockprof_collectors::procfs::kallsyms::symbols;
use lockprof_collectors::procfs::sysctl::{Capabilities, Sysctls};
use lockprof_collectors::procfs::system::online_cpus;
use lockprof_collectors::procfs::tracefs::{Tracefs, TracefsError, Tracepoints};
use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};

use super::program::Program;

/// Enough of `/proc/kallsyms` to see whether addresses are shown.
const KALLSYMS_START: u64 = 4096;

/// What the checks look at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `uname -r`.
    pub release: String,
    /// CPUs that run.
    pub cpus: Vec<u32>,
    /// Bytes.
    pub page_size: usize,
    /// The effective user is root.
    pub root: bool,
    /// Effective capabilities; unknown without `/proc`.
    pub capabilities: Option<Capabilities>,
    /// Settings of perf and kptr.
    pub sysctls: Sysctls,
    /// A seccomp filter stands between this process and the kernel.
    pub seccomp: bool,
    /// This process lives in a user namespace of its own, where capabilities do not reach perf.
    pub user_namespace: bool,
    /// The kernel is locked down so far that nobody may read its memory.
    pub lockdown: bool,
    /// How it stands with tracefs.
    pub tracefs: Tracing,
    /// Whether both contention tracepoints are there; unknown when tracefs cannot be read.
    pub contention: Option<bool>,
    /// The same of `lock:contended_release`.
    pub release_event: Option<bool>,
    /// Why an event of record could not be opened on trial.
    pub refusal: Option<SessionError>,
    /// What CPU samples are taken from; unknown when no event may be opened.
    pub cpu_event: Option<CpuEvent>,
    /// Addresses in `/proc/kallsyms`.
    pub kallsyms: Addresses,
    /// RLIMIT_MEMLOCK in bytes; `None` is without limit.
    pub memlock: Option<u64>,
    /// The hard RLIMIT_NOFILE, to which record raises the soft one; `None` is without limit.
    pub nofile: Option<u64>,
    /// The kernel describes its types in `/sys/kernel/btf/vmlinux`.
    pub btf: bool,
    /// Where a recording would be written.
    pub space: Space,
    /// The program that was asked about.
    pub program: Option<Program>,
}

/// How it stands with tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// Mounted here, and this user may read the tracepoints.
    Readable(PathBuf),
    /// Mounted, and closed to this user at this place.
    NoPermission(PathBuf),
    /// Not mounted; whether the kernel knows it at all.
    NotMounted {
        /// Listed in `/proc/filesystems`.
        known: bool,
    },
    /// Another fault.
    Broken(String),
}

/// What `/proc/kallsyms` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Where functions are.
    Visible,
    /// Zeroes.
    Hidden,
    /// Nothing.
    Missing,
}

/// A directory to write into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The directory.
    pub directory: PathBuf,
    /// Bytes that this user may still write.
    pub free: Option<u64>,
    /// This user may make files in it.
    pub writable: bool,
}

impl Facts {
    /// Looks at this machine, and at a program when one is given.
    pub fn gather(program: Option<&Path>) -> Facts {
        let cpus = online_cpus().unwrap_or_else(|_| usable_cpus());
        let (tracefs, formats) = tracing(Tracefs::find());
        let refusal = trial(&formats, &cpus).err();
        Facts {
            release: rustix::system::uname().release().to_string_lossy().into_owned(),
            page_size: rustix::param::page_size(),
            root: rustix::process::geteuid().is_root(),
            capabilities: Capabilities::own().ok(),
            sysctls: Sysctls::read(),
            seccomp: seccomp(&text_of("/proc/self/status")),
            user_namespace: user_namespace(&text_of("/proc/self/uid_map")),
            lockdown: text_of("/sys/kernel/security/lockdown").contains("[confidentiality]"),
            contention: known(&tracefs, &formats, &[BEGIN, END]),
            release_event: known(&tracefs, &formats, &[RELEASE]),
            cpu_event: refusal.is_none().then(CpuEvent::detect),
            kallsyms: kallsyms(),
            memlock: getrlimit(Resource::Memlock).current,
            nofile: getrlimit(Resource::Nofile).maximum,
            btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            space: Space::of(Path::new(".")),
            program: program.map(Program::find),
            cpus,
            tracefs,
            refusal,
        }
    }

    /// The first two numbers of the kernel's version.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    pub(super) fn perfmon(&self) -> bool {
        self.capabilities.is_some_and(Capabilities::perfmon)
    }

    pub(super) fn syslog(&self) -> bool {
        self.capabilities.is_some_and(Capabilities::syslog)
    }

    /// Most likely in a container: root without root's rights, or behind a filter.
    pub(super) fn contained(&self) -> bool {
        let sys_admin = self.capabilities.is_some_and(Capabilities::sys_admin);
        self.root && (self.seccomp || !sys_admin)
    }

    /// Whether users without CAP_PERFMON may have the data of tracepoints (`perf_allow_tracepoint`
    /// in `include/linux/perf_event.h`).
    pub(super) fn permissive(&self) -> bool {
        self.sysctls.perf_event_paranoid.is_some_and(|level| level < 0)
    }
}

impl Space {
    /// Looks at a directory.
    pub fn of(directory: &Path) -> Space {
        let stat = rustix::fs::statvfs(directory).ok();
        Space {
            free: stat.map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize)),
            writable: rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            directory: fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf()),
        }
    }
}

/// Without `/sys`: as many CPUs as this process may run on.
fn usable_cpus() -> Vec<u32> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..u32::try_from(count).unwrap_or(1)).collect()
}

/// How it stands with tracefs, and the tracepoints of ours that it has.
fn tracing(found: Result<Tracefs, TracefsError>) -> (Tracing, Tracepoints) {
    let looked_up = found.and_then(|tracefs| {
        let mut present = Vec::new();
        for name in [BEGIN, END, RELEASE] {
            match tracefs.tracepoints(&[name]) {
                Ok(formats) => present.push(formats.get(name)?.clone()),
                Err(TracefsError::NoTracepoint { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((Tracing::Readable(tracefs.root().to_path_buf()), present.into_iter().collect()))
    });
    looked_up.unwrap_or_else(|error| (Tracing::from(error), Tracepoints::default()))
}

impl From<TracefsError> for Tracing {
    fn from(error: TracefsError) -> Tracing {
        match error {
            TracefsError::NoPermission { path } => Tracing::NoPermission(path),
            TracefsError::NotMounted => Tracing::NotMounted { known: tracefs_known() },
            other => Tracing::Broken(other.to_string()),
        }
    }
}

fn tracefs_known() -> bool {
    let list = text_of("/proc/filesystems");
    // Without the list there is no reason to think that the kernel has none.
    list.is_empty() || list.split_whitespace().any(|word| word == "tracefs")
}

fn known(tracefs: &Tracing, formats: &Tracepoints, names: &[&str]) -> Option<bool> {
    let readable = matches!(tracefs, Tracing::Readable(_));
    readable.then(|| names.iter().all(|name| formats.get(name).is_ok()))
}

/// Opens what record opens, disabled, on the first CPU, with the smallest ring.
fn trial(formats: &Tracepoints, cpus: &[u32]) -> Result<(), SessionError> {
    let samples = Cpu { event: CpuEvent::CpuClock, frequency: DEFAULT_FREQUENCY };
    let mut events = Contention::default().events(formats).unwrap_or_default();
    events.extend(samples.events(formats).unwrap_or_default());
    let scope = Scope::SystemWide { cpus: cpus.first().copied().into_iter().collect() };
    Session::open(&Plan { events, scope, ring_pages: 1, clockid: None }).map(drop)
}

fn kallsyms() -> Addresses {
    let mut start = Vec::new();
    let read = fs::File::open("/proc/kallsyms")
        .and_then(|file| file.take(KALLSYMS_START).read_to_end(&mut start));
    if read.is_err() || start.is_empty() {
        return Addresses::Missing;
    }
    // Per-CPU symbols stand at address 0 on some architectures; not a whole page of them.
    if symbols(&start).any(|symbol| symbol.addr != 0) {
        Addresses::Visible
    } else {
        Addresses::Hidden
    }
}

/// A small file of the kernel as text; empty when there is none.
fn text_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Mode 2 in `/proc/PID/status` is a filter.
fn seccomp(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// The first user namespace maps every user to itself.
fn user_namespace(uid_map: &str) -> bool {
    let words: Vec<&str> = uid_map.split_whitespace().collect();
    !words.is_empty() && words != ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_and_a_namespace_show_in_proc() {
        assert!(seccomp("Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!seccomp("Name:\tSeccomp:\t2\nSeccomp:\t0\n"));
        assert!(!seccomp(""));
        assert!(!user_namespace("         0          0 4294967295\n"));
        assert!(user_namespace("         0       1000          1\n"));
        assert!(!user_namespace(""), "a kernel without user namespaces");
    }

    #[test]
    fn this_machine_can_be_looked_at_by_whoever_runs_the_test() {
        let facts = Facts::gather(None);
        assert!(facts.version().is_some_and(|version| version > (2, 6)), "{}", facts.release);
        assert!(!facts.cpus.is_empty() && facts.page_size >= 4096);
        assert_eq!(facts.contention.is_some(), matches!(facts.tracefs, Tracing::Readable(_)));
    }
}
