//! What a kernel may not know yet: parts of an attr that can be left out.
//!
//! In: the events of a plan. Out: the same events, less what this kernel refuses. A kernel answers
//! EINVAL to flags and formats that it does not know, E2BIG to fields beyond its struct, so parts are
//! dropped one after the other until the event opens, from all events alike: one layout for all.

use super::attr::{Attr, flag, read_format, sample};
use super::event_fd::{ANY, EventFd, Place};
use super::plan::EventSpec;
use super::sys::SyscallError;

/// A part of an attr, youngest first.
struct Feature {
    /// For the user.
    name: &'static str,
    /// Takes it out; false when it was not in.
    drop: fn(&mut Attr) -> bool,
}

const FEATURES: &[Feature] = &[
    Feature { name: "counts of lost samples (Linux 6.0)", drop: drop_lost },
    Feature { name: "the cgroup of samples (Linux 5.7)", drop: drop_cgroup },
    Feature { name: "records of kernel symbols that come and go (Linux 5.0)", drop: drop_ksymbol },
    Feature { name: "records of context switches (Linux 4.3)", drop: drop_switches },
    Feature { name: "a choice of clock (Linux 4.1)", drop: drop_clock },
];

fn drop_lost(attr: &mut Attr) -> bool {
    let had = attr.read_format & read_format::LOST != 0;
    attr.read_format &= !read_format::LOST;
    had
}

fn drop_cgroup(attr: &mut Attr) -> bool {
    let had = attr.samples(sample::CGROUP);
    attr.sample_type &= !sample::CGROUP;
    drop_flag(attr, flag::CGROUP) || had
}

fn drop_ksymbol(attr: &mut Attr) -> bool {
    drop_flag(attr, flag::KSYMBOL)
}

fn drop_switches(attr: &mut Attr) -> bool {
    drop_flag(attr, flag::CONTEXT_SWITCH)
}

fn drop_clock(attr: &mut Attr) -> bool {
    attr.clockid = 0;
    drop_flag(attr, flag::USE_CLOCKID)
}

fn drop_flag(attr: &mut Attr, flag: u64) -> bool {
    let had = attr.has(flag);
    attr.flags &= !flag;
    had
}

/// Opens every event once on this process, disabled, and takes out of all what the kernel does not
/// know.
///
/// The fds are handed back: as long as they live, opening the same tracepoint elsewhere takes
/// microseconds, where a first open takes milliseconds.
pub(crate) fn probe(
    events: &mut [EventSpec],
) -> Result<(Vec<EventFd>, Vec<&'static str>), SyscallError> {
    let mut unknown = Vec::new();
    let mut fds = Vec::new();
    for at in 0..events.len() {
        let mut untried = FEATURES.iter();
        loop {
            match open_on_ourselves(&events[at]) {
                Ok(fd) => break fds.push(fd),
                Err(error) if !matches!(error.errno, libc::EINVAL | libc::E2BIG) => {
                    return Err(error);
                }
                Err(error) => {
                    let dropped = untried.find(|f| (f.drop)(&mut events[at].attr.clone()));
                    let feature = dropped.ok_or(error)?;
                    for event in events.iter_mut() {
                        (feature.drop)(&mut event.attr);
                    }
                    unknown.push(feature.name);
                }
            }
        }
    }
    Ok((fds, unknown))
}

fn open_on_ourselves(event: &EventSpec) -> Result<EventFd, SyscallError> {
    let mut attr = event.attr;
    attr.flags |= flag::DISABLED;
    attr.flags &= !(flag::INHERIT | flag::ENABLE_ON_EXEC);
    EventFd::open(&attr, &event.name, Place::task(own_pid(), ANY))
}

/// Counts an event on the calling thread while it does some work.
pub(crate) fn count_own(event: &EventSpec, work: fn()) -> Result<u64, SyscallError> {
    let fd = EventFd::open(&event.attr, &event.name, Place::task(CALLER, ANY))?;
    fd.enable()?;
    work();
    fd.disable()?;
    Ok(fd.counts(&event.attr)?.value)
}

/// The kernel takes this as "the calling thread".
const CALLER: i32 = 0;

/// The main thread, which lives as long as the process.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

#[cfg(test)]
mod tests {
    use super::super::attr::{event_type, software};
    use super::super::plan::record_cgroups;
    use super::super::sys::Syscall;
    use super::super::sys_fake::{any_fd, install};
    use super::*;

    fn events() -> Vec<EventSpec> {
        let mut sideband = EventSpec::new("dummy", event_type::SOFTWARE, software::DUMMY);
        sideband.attr.flags |= flag::KSYMBOL | flag::USE_CLOCKID | flag::INHERIT;
        let mut clock = EventSpec::new("cpu-clock", event_type::SOFTWARE, software::CPU_CLOCK);
        clock.attr.flags |= flag::USE_CLOCKID;
        vec![clock, sideband]
    }

    /// A kernel that refuses attrs for which `refuses` says so.
    fn kernel(errno: i32, refuses: fn(&Attr) -> bool) {
        install(move |call| match call {
            Syscall::Open { attr, .. } if refuses(attr) => Err(errno),
            Syscall::Open { .. } => Ok(any_fd()),
            _ => Err(libc::ENOSYS),
        });
    }

    #[test]
    fn a_kernel_that_knows_all_gets_all() {
        kernel(libc::EINVAL, |attr| attr.has(flag::INHERIT) || !attr.has(flag::DISABLED));
        let mut probed = events();
        let (fds, unknown) = probe(&mut probed).unwrap();
        assert_eq!((fds.len(), unknown.len()), (2, 0));
        assert_eq!(probed, events(), "inherit is left out of the probe, not of the event");
    }

    #[test]
    fn what_the_kernel_does_not_know_is_dropped_from_all_events_and_named() {
        kernel(libc::EINVAL, |attr| {
            attr.read_format & read_format::LOST != 0 || attr.has(flag::KSYMBOL)
        });
        let mut probed = events();
        let (_fds, unknown) = probe(&mut probed).unwrap();
        assert_eq!(unknown.len(), 2, "{unknown:?}");
        for event in &probed {
            assert_eq!(event.attr.read_format, read_format::ID, "{}", event.name);
            assert!(event.attr.has(flag::USE_CLOCKID) && !event.attr.has(flag::KSYMBOL));
        }
    }

    #[test]
    fn a_kernel_that_does_not_know_cgroups_gets_events_without() {
        kernel(libc::EINVAL, |attr| attr.samples(sample::CGROUP) || attr.has(flag::CGROUP));
        let mut probed = events();
        record_cgroups(&mut probed);
        assert!(probed.iter().all(|event| event.attr.samples(sample::CGROUP)));
        let (_fds, unknown) = probe(&mut probed).unwrap();
        assert_eq!(unknown.last(), Some(&"the cgroup of samples (Linux 5.7)"));
        assert!(probed.iter().all(|event| !event.attr.samples(sample::CGROUP)));
    }

    #[test]
    fn an_event_that_is_refused_whatever_is_left_out_is_an_error() {
        for errno in [libc::EINVAL, libc::E2BIG, libc::EACCES, libc::ENOENT] {
            kernel(errno, |_| true);
            let error = probe(&mut events()).unwrap_err();
            assert_eq!(error.errno, errno);
            assert!(error.call.contains("cpu-clock"), "{}", error.call);
        }
    }
}
