//! One open event: an fd, and what can be asked of it.
//!
//! Every error names the call, the event and where it was to count.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::attr::{Attr, read_format};
use super::sys::{self, Syscall, SyscallError, syscall};

/// The kernel takes this as "every task" or "every CPU".
pub(crate) const ANY: i32 = -1;

/// Where an event counts: arguments of `perf_event_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A task id, or [`ANY`]; with `cgroup` the fd of its directory.
    pub(crate) task: i32,
    /// A CPU, or [`ANY`].
    pub(crate) cpu: i32,
    /// The tasks of a cgroup are counted.
    pub(crate) cgroup: bool,
}

impl Place {
    /// A task.
    pub(crate) fn task(task: i32, cpu: i32) -> Place {
        Place { task, cpu, cgroup: false }
    }

    fn words(self) -> String {
        match (self.task, self.cpu) {
            (_, cpu) if self.cgroup => format!("of a cgroup on CPU {cpu}"),
            (ANY, cpu) => format!("on CPU {cpu}"),
            (task, ANY) => format!("of task {task}"),
            (task, cpu) => format!("of task {task} on CPU {cpu}"),
        }
    }
}

/// An open event.
#[derive(Debug)]
pub(crate) struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// Opens the event; `name` is for the error. When fds have run out, RLIMIT_NOFILE is raised as
    /// far as we may.
    pub(crate) fn open(attr: &Attr, name: &str, place: Place) -> Result<EventFd, SyscallError> {
        let open = || sys::open_event(attr, place.task, place.cpu, place.cgroup);
        let opened = match open() {
            Err(libc::EMFILE) if raise_file_limit() => open(),
            opened => opened,
        };
        let call = || format!("perf_event_open({name}) {}", place.words());
        let fd = opened.map_err(|errno| SyscallError { call: call(), errno })?;
        Ok(EventFd { fd })
    }

    /// Starts counting.
    pub(crate) fn enable(&self) -> Result<(), SyscallError> {
        self.ask("PERF_EVENT_IOC_ENABLE", Syscall::Enable { fd: self.as_fd() })
    }

    /// Stops counting.
    pub(crate) fn disable(&self) -> Result<(), SyscallError> {
        self.ask("PERF_EVENT_IOC_DISABLE", Syscall::Disable { fd: self.as_fd() })
    }

    /// The id in its records.
    pub(crate) fn id(&self) -> Result<u64, SyscallError> {
        let mut id = 0;
        self.ask("PERF_EVENT_IOC_ID", Syscall::Id { fd: self.as_fd(), id: &mut id })?;
        Ok(id)
    }

    /// Writes into the ring of `into` from now on.
    pub(crate) fn set_output(&self, into: &EventFd) -> Result<(), SyscallError> {
        let call = Syscall::SetOutput { fd: self.as_fd(), into: into.as_fd() };
        self.ask("PERF_EVENT_IOC_SET_OUTPUT", call)
    }

    /// Sets a tracepoint's filter.
    pub(crate) fn set_filter(&self, filter: &str) -> Result<(), SyscallError> {
        let call = format!("PERF_EVENT_IOC_SET_FILTER({filter})");
        let Ok(filter) = CString::new(filter) else {
            return Err(SyscallError { call, errno: libc::EINVAL });
        };
        self.ask(&call, Syscall::SetFilter { fd: self.as_fd(), filter: &filter })
    }

    /// What the event has counted.
    pub(crate) fn counts(&self, attr: &Attr) -> Result<Counts, SyscallError> {
        let mut bytes = [0; 64];
        let call = Syscall::Read { fd: self.as_fd(), into: &mut bytes };
        self.ask("read of an event's counts", call)?;
        Ok(Counts::parse(&bytes, attr.read_format))
    }

    fn ask(&self, name: &str, call: Syscall<'_>) -> Result<(), SyscallError> {
        match syscall(call) {
            Ok(_) => Ok(()),
            Err(errno) => Err(SyscallError { call: name.to_owned(), errno }),
        }
    }
}

/// Raises the soft limit of open files to the hard one. False when it stands there already.
fn raise_file_limit() -> bool {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok()
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What `read` of a single event gives.
///
/// ```text
/// u64 value; { u64 time_enabled; } { u64 time_running; } { u64 id; } { u64 lost; }
/// ```
///
/// Source: `perf_event_open(2)`, "Reading results".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events, or ns for clocks.
    pub(crate) value: u64,
    /// Samples that found no room in the ring; zero where the kernel does not count them.
    pub(crate) lost: u64,
}

impl Counts {
    fn parse(bytes: &[u8; 64], format: u64) -> Counts {
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        let mut next_if = |present: bool| if present { words.next() } else { None };
        let value = next_if(true).unwrap_or(0);
        next_if(format & read_format::TOTAL_TIME_ENABLED != 0);
        next_if(format & read_format::TOTAL_TIME_RUNNING != 0);
        next_if(format & read_format::ID != 0);
        let lost = next_if(format & read_format::LOST != 0).unwrap_or(0);
        Counts { value, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sys_fake::{any_fd, install};
    use super::*;

    #[test]
    fn lost_is_found_behind_the_fields_that_the_read_format_asks_for() {
        let mut bytes = [0; 64];
        for (at, word) in [7_u64, 100, 90, 55, 3].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_ne_bytes());
        }
        let all = read_format::TOTAL_TIME_ENABLED
            | read_format::TOTAL_TIME_RUNNING
            | read_format::ID
            | read_format::LOST;
        assert_eq!(Counts::parse(&bytes, all), Counts { value: 7, lost: 3 });
        let two = read_format::ID | read_format::LOST;
        assert_eq!(Counts::parse(&bytes, two), Counts { value: 7, lost: 90 });
        assert_eq!(Counts::parse(&bytes, read_format::ID), Counts { value: 7, lost: 0 });
    }

    #[test]
    fn an_error_names_the_call_the_event_and_the_place() {
        install(|_| Err(libc::EACCES));
        let open = |task, cpu| {
            EventFd::open(&Attr::default(), "lock:contention_begin", Place::task(task, cpu))
                .unwrap_err()
                .to_string()
        };
        let end = "failed: Permission denied (os error 13)";
        let name = "perf_event_open(lock:contention_begin)";
        assert_eq!(open(ANY, 3), format!("{name} on CPU 3 {end}"));
        assert_eq!(open(7, ANY), format!("{name} of task 7 {end}"));
        assert_eq!(open(7, 0), format!("{name} of task 7 on CPU 0 {end}"));
    }

    #[test]
    fn a_filter_with_a_nul_is_refused_before_the_kernel_sees_it() {
        install(|call| match call {
            Syscall::Open { .. } => Ok(any_fd()),
            _ => panic!("no other call is expected"),
        });
        let event = EventFd::open(&Attr::default(), "x", Place::task(1, 0)).unwrap();
        assert_eq!(event.set_filter("a\0b").unwrap_err().errno, libc::EINVAL);
    }
}
