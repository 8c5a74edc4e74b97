//! What to type after an error of `record`, said from the same facts as the checks.
//!
//! In: an error, anywhere in its chain of causes, and [`Facts`]. Out: the text behind `hint:`.
//!
//! ```text
//! perf_event_paranoid is 2 and this user has no CAP_PERFMON. Run with sudo, or:
//!         sudo sysctl kernel.perf_event_paranoid=-1
//!       `lockprof doctor` lists everything that recording needs.
//! ```

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::Path;

use lockprof_collectors::perf::session::SessionError;
use lockprof_collectors::procfs::ProcError;
use lockprof_collectors::procfs::tracefs::TracefsError;
use lockprof_collectors::workload::WorkloadError;
use rustix::io::Errno;

use super::kernel::{CONTENTION_EVENTS, LOOK_AT_CONFIG};
use super::mount::MountError;
use super::rights::{CONTAINER, MOUNT, Missing};
use super::{Facts, Tracing, limits, workload};
use crate::recording::WriteError;
use crate::render::paragraph::wrap;
use crate::source::LiveError;

/// Columns of a sentence behind `hint: `.
const COLUMNS: usize = 92;

/// A sentence, commands that do what it says, and whether more may be missing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) sentence: String,
    pub(super) commands: Vec<String>,
    pub(super) doctor: bool,
}

impl Advice {
    pub(super) fn new<C: Into<String>>(
        sentence: impl Into<String>,
        commands: impl IntoIterator<Item = C>,
    ) -> Advice {
        let commands = commands.into_iter().map(Into::into).collect();
        Advice { sentence: sentence.into(), commands, doctor: false }
    }

    pub(super) fn say(sentence: impl Into<String>) -> Advice {
        Advice::new(sentence, [""; 0])
    }

    fn with_doctor(self) -> Advice {
        Advice { doctor: true, ..self }
    }

    /// What mends it: the commands, or in words.
    pub(super) fn remedy(&self) -> String {
        if self.commands.is_empty() { self.sentence.clone() } else { self.commands.join("\n") }
    }

    /// As it stands behind `hint: `.
    fn text(&self) -> String {
        let mut lines = wrap("", &self.sentence, COLUMNS);
        for line in lines.iter_mut().skip(1) {
            line.insert_str(0, "      ");
        }
        let commands = self.commands.iter().flat_map(|command| command.lines());
        lines.extend(commands.map(|command| format!("        {command}")));
        if self.doctor {
            lines.push("      `lockprof doctor` lists everything that recording needs.".to_owned());
        }
        lines.join("\n")
    }
}

/// What to do about an error, when that is known. Looks at the machine when the error calls for it.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    hint_from(error, &|| Facts::gather(None))
}

/// The same on a machine of which these things are known.
pub fn hint_with(error: &(dyn Error + 'static), facts: &Facts) -> Option<String> {
    hint_from(error, &|| facts.clone())
}

fn hint_from(error: &(dyn Error + 'static), facts: &dyn Fn() -> Facts) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(advice) = advice(error, facts) {
            return Some(advice.text());
        }
        cause = error.source();
    }
    None
}

/// What to do when `path` cannot be written, because of that error or one of its causes.
pub fn output_hint(path: &Path, error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let advice = match error.downcast_ref::<io::Error>() {
            Some(error) => not_written(path, error),
            None => error.downcast_ref::<WriteError>().and_then(|error| write(error, Some(path))),
        };
        if let Some(advice) = advice {
            return Some(advice.text());
        }
        cause = error.source();
    }
    None
}

fn not_written(path: &Path, error: &io::Error) -> Option<Advice> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory.filter(|parent| !parent.exists()) {
        Some(missing) if error.kind() == ErrorKind::NotFound => {
            let make = format!("mkdir -p {}", workload::quoted(missing.as_os_str()));
            Some(Advice::new("the directory does not exist. Make it first:", [make]))
        }
        _ => elsewhere(error),
    }
}

fn advice(error: &(dyn Error + 'static), facts: &dyn Fn() -> Facts) -> Option<Advice> {
    if let Some(error) = error.downcast_ref::<SessionError>() {
        session(error, &facts())
    } else if let Some(error) = error.downcast_ref::<TracefsError>() {
        tracefs(error, &facts())
    } else if let Some(error) = error.downcast_ref::<ProcError>() {
        not_there(error)
    } else if let Some(error) = error.downcast_ref::<MountError>() {
        let MountError::Mount(_) = error;
        Some(not_mounted(&facts()))
    } else if let Some(error) = error.downcast_ref::<WorkloadError>() {
        workload::advice(error)
    } else if let Some(error) = error.downcast_ref::<LiveError>() {
        match error {
            LiveError::Session(error) => session(error, &facts()),
            LiveError::Write(error) => write(error, None),
        }
    } else {
        error.downcast_ref::<WriteError>().and_then(|error| write(error, None))
    }
}

/// What a refused event calls for.
pub(super) fn session(error: &SessionError, facts: &Facts) -> Option<Advice> {
    match error {
        SessionError::Syscall(call) => match Errno::from_raw_os_error(call.errno) {
            Errno::PERM | Errno::ACCESS => Some(refused(facts)),
            Errno::NOSYS => Some(no_such_call()),
            Errno::NOENT => Some(no_such_event(facts)),
            Errno::NOMEM => {
                Some(Advice::new("take smaller rings:", ["lockprof record -m 128 ..."]))
            }
            _ => None,
        },
        SessionError::TooManyFiles { .. } => Some(Advice::new(
            "each event takes a file on each CPU, and for each task that is followed. Raise the \
             limit of this shell, or record the whole machine, which takes the fewest:",
            [limits::more_files(facts), "lockprof record -a ...".to_owned()],
        )),
        SessionError::LockedMemory { .. } => Some(Advice::new(
            "rings are memory that stays in place, and users may have little of it. Take smaller \
             rings, or allow more:",
            limits::more_memory(facts),
        )),
        SessionError::NoSuchTask { .. } => {
            Some(Advice::new("it may have ended already. These run:", ["ps -e"]))
        }
        SessionError::NoSuchCpu { .. } => {
            Some(Advice::new("these are online:", ["cat /sys/devices/system/cpu/online"]))
        }
        SessionError::Poll { .. } => None,
    }
}

fn tracefs(error: &TracefsError, facts: &Facts) -> Option<Advice> {
    match error {
        TracefsError::NotMounted => Some(not_mounted(facts)),
        TracefsError::NoPermission { .. } => Some(refused(facts)),
        TracefsError::NoTracepoint { .. } => Some(no_such_event(facts)),
        TracefsError::Io { .. } => None,
    }
}

/// A file of `/proc` or `/sys`, where that file system is not mounted at all.
fn not_there(error: &ProcError) -> Option<Advice> {
    let ProcError::Io { path, .. } = error else { return None };
    // Each of them has a name that is there whenever it is.
    let places = [("/proc", "/proc/self", "proc"), ("/sys", "/sys/kernel", "sysfs")];
    let missing = |(place, always, _): &(&str, &str, &str)| {
        path.starts_with(place) && !Path::new(always).exists()
    };
    let (place, _, kind) = places.into_iter().find(missing)?;
    let sentence = format!("{place} is not mounted here, as in a bare chroot. Mount it first:");
    Some(Advice::new(sentence, [format!("mount -t {kind} {kind} {place}")]).with_doctor())
}

fn not_mounted(facts: &Facts) -> Advice {
    match facts.tracefs {
        Tracing::NotMounted { known: false } => Advice::new(
            "this kernel was built without CONFIG_TRACING. Its configuration tells:",
            [LOOK_AT_CONFIG],
        ),
        _ if facts.contained() => Advice::new(
            "containers do not see tracefs by themselves. Start this one with more rights:",
            [CONTAINER],
        ),
        _ => Advice::new("mount it, or run with sudo and lockprof mounts it:", [MOUNT]),
    }
    .with_doctor()
}

/// The kernel said no: to the user because of rights, or to anyone in this place.
fn refused(facts: &Facts) -> Advice {
    let missing = Missing::of(facts);
    let closed = matches!(facts.tracefs, Tracing::NoPermission(_));
    if !closed && (facts.perfmon() || facts.permissive()) {
        return fenced_in(facts).with_doctor();
    }
    let reasons = missing.reasons.join("; ");
    if facts.contained() {
        let sentence = format!("{reasons}. Start the container with more rights:");
        return Advice::new(sentence, [CONTAINER]).with_doctor();
    }
    Advice::new(format!("{reasons}. Run with sudo, or:"), missing.commands).with_doctor()
}

/// Settings and capabilities allow it, and still it was refused.
fn fenced_in(facts: &Facts) -> Advice {
    if facts.lockdown {
        return Advice::say(
            "the kernel is locked down in confidentiality mode, in which nobody may trace it. \
             Boot it with lockdown=integrity.",
        );
    }
    if facts.user_namespace {
        return Advice::new(
            "this process lives in a user namespace, as in a rootless container, where \
             capabilities do not reach perf. Run lockprof outside, as root:",
            ["sudo lockprof record ..."],
        );
    }
    let reason = if facts.seccomp {
        "a seccomp filter stands between this process and the kernel, as in a container, and is \
         the likely reason. Start the container without it:"
    } else {
        "the settings of perf allow it, so a seccomp filter of a container or a security module \
         is the likely reason. In a container:"
    };
    Advice::new(reason, [CONTAINER])
}

fn no_such_call() -> Advice {
    Advice::new(
        "perf_event_open does not exist here: a seccomp filter of a container hides it, or the \
         kernel was built without CONFIG_PERF_EVENTS. Start the container without the filter, or \
         look at the kernel's configuration:",
        [CONTAINER, LOOK_AT_CONFIG],
    )
    .with_doctor()
}

fn no_such_event(facts: &Facts) -> Advice {
    let release = &facts.release;
    if facts.version().is_some_and(|version| version < CONTENTION_EVENTS) {
        return Advice::say(format!(
            "contention events came with Linux 5.19, and this is {release}. Boot Linux 5.19 or \
             later."
        ));
    }
    Advice::new(
        format!(
            "Linux {release} is young enough for contention events (5.19 and later), so it was \
             built without CONFIG_EVENT_TRACING. Its configuration tells:"
        ),
        [LOOK_AT_CONFIG],
    )
}

fn write(error: &WriteError, path: Option<&Path>) -> Option<Advice> {
    match error {
        WriteError::DiskFull { .. } | WriteError::NoRoom => {
            Some(Advice::say("free some space, or choose a place on another disk with -o FILE."))
        }
        WriteError::Io { source, .. } => {
            path.map_or_else(|| elsewhere(source), |path| not_written(path, source))
        }
        WriteError::Exists { path } if path.is_dir() => {
            Some(Advice::say("it is a directory; name a file in it with -o FILE."))
        }
        WriteError::Exists { .. } => None,
    }
}

fn elsewhere(error: &io::Error) -> Option<Advice> {
    match error.kind() {
        ErrorKind::NotFound => {
            Some("make the directory first, or choose another one with -o FILE.")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("choose a place that you may write to with -o FILE, such as /var/tmp.")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free some space, or choose a place on another disk with -o FILE.")
        }
        _ => None,
    }
    .map(Advice::say)
}
