//! A session: the events of a plan, open, with one ring for each CPU.
//!
//! In: a [`Plan`]. Out: ring bytes as they stand, ids, and at the end what was lost.
//!
//! ```text
//!   CPU 0:  owner (dummy on ourselves, disabled, mapped) <- event 0 <- event 1 ... of every task
//!   CPU 1:  owner                                        <- event 0 <- event 1 ...
//! ```
//!
//! Every event writes into the ring of its CPU (PERF_EVENT_IOC_SET_OUTPUT), so that records of one
//! CPU are in one order. The rings belong to events of their own: they outlive any task of the
//! target, and poll never reports a hang-up for them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::attr::{event_type, flag, software};
use super::event_fd::{ANY, EventFd, Place};
use super::features::{own_pid, probe};
use super::plan::{EventSpec, Plan, Scope};
use super::ring_buffer::Ring;
use super::sys::SyscallError;

/// Why a session could not be opened or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The kernel refused a call.
    #[error(transparent)]
    Syscall(#[from] SyscallError),
    /// Every open event is a file; too many tasks, CPUs and events were asked for. Following the
    /// target system-wide needs far fewer.
    #[error("out of file descriptors after {opened} events (the limit is {limit})")]
    TooManyFiles {
        /// Events open when it happened.
        opened: usize,
        /// RLIMIT_NOFILE, already raised as far as we may.
        limit: u64,
    },
    /// Rings are locked memory, and no more of it is allowed to this user.
    #[error("no permission to lock {kib} KiB of memory for the ring of CPU {cpu}")]
    LockedMemory {
        /// Data and state page.
        kib: usize,
        /// Whose ring.
        cpu: u32,
    },
    /// All tasks have ended, or never were.
    #[error("no such task: {}", list(.tasks))]
    NoSuchTask {
        /// Task ids asked for.
        tasks: Vec<i32>,
    },
    /// None of the CPUs is online.
    #[error("no such CPU: {}", list(.cpus))]
    NoSuchCpu {
        /// CPU numbers asked for.
        cpus: Vec<u32>,
    },
    /// `poll(2)` failed.
    #[error("poll of the rings failed: {}", std::io::Error::from_raw_os_error(*.errno))]
    Poll {
        /// An `E...` constant of libc.
        errno: i32,
    },
}

fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// What [`Session::poll`] woke up for; both empty after the timeout or a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// A ring is half full.
    pub rings: bool,
    /// Indexes of the other fds that are readable or hung up.
    pub others: Vec<usize>,
}

/// Samples of one event on one CPU (and task) that found its ring full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCount {
    /// Index of the event.
    pub event: usize,
    /// The instance.
    pub id: u64,
    /// Its CPU.
    pub cpu: u32,
    /// Samples.
    pub lost: u64,
}

#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    owner: EventFd,
    ring: Ring,
}

#[derive(Debug)]
struct Instance {
    event: usize,
    cpu: u32,
    id: u64,
    fd: EventFd,
}

/// Open events and their rings. Dropping it closes all.
#[derive(Debug)]
pub struct Session {
    events: Vec<EventSpec>,
    unsupported: Vec<&'static str>,
    rings: Vec<CpuRing>,
    instances: Vec<Instance>,
    /// Taken out of the rings before the caller asked: while tasks are being attached.
    held: Vec<u8>,
}

impl Session {
    /// Opens everything that the plan asks for, disabled.
    ///
    /// CPUs and tasks that are gone are passed over ([`Session::cpus`] says which CPUs are left);
    /// when none is left, that is an error. RLIMIT_NOFILE is raised when it does not suffice.
    pub fn open(plan: &Plan) -> Result<Session, SessionError> {
        let (mut session, _warm) = Session::prepare(plan)?;
        match &plan.scope {
            Scope::SystemWide { .. } => {
                session.open_on(ANY)?;
            }
            Scope::Tasks { tasks, .. } => {
                let mut opened = false;
                for &task in tasks {
                    opened |= session.open_on(task)?;
                }
                if !opened {
                    return Err(SessionError::NoSuchTask { tasks: tasks.clone() });
                }
            }
        }
        Ok(session)
    }

    /// Opens the rings and probes the events; no task or CPU is counted yet. As long as the fds live
    /// that come along, further opens are fast.
    pub(crate) fn prepare(plan: &Plan) -> Result<(Session, Vec<EventFd>), SessionError> {
        let mut events: Vec<_> = plan.events.iter().map(|spec| plan.effective(spec)).collect();
        let (warm, unsupported) = probe(&mut events)?;
        let rings = open_rings(plan, &events)?;
        let instances = Vec::new();
        Ok((Session { events, unsupported, rings, instances, held: Vec::new() }, warm))
    }

    /// Opens every event on every CPU for a task ([`ANY`]: for all). False when the task is gone.
    pub(crate) fn open_on(&mut self, task: i32) -> Result<bool, SessionError> {
        for event in 0..self.events.len() {
            for ring in 0..self.rings.len() {
                match self.open_instance(event, ring, task) {
                    Ok(instance) => self.instances.push(instance),
                    Err(SessionError::Syscall(e)) if e.errno == libc::ESRCH => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(true)
    }

    fn open_instance(
        &self,
        event: usize,
        ring: usize,
        task: i32,
    ) -> Result<Instance, SessionError> {
        let CpuRing { cpu, owner, .. } = &self.rings[ring];
        let spec = &self.events[event];
        let place = Place { task, cpu: *cpu as i32 };
        let fd = open_raising_limit(spec, place, self.instances.len())?;
        if let Some(filter) = &spec.filter {
            fd.set_filter(filter)?;
        }
        fd.set_output(owner)?;
        Ok(Instance { event, cpu: *cpu, id: fd.id()?, fd })
    }

    /// Starts recording: sideband first, so that no sample is of a task never heard of.
    pub fn enable(&self) -> Result<(), SessionError> {
        self.enable_from(0)
    }

    /// The same for instances from that number on.
    pub(crate) fn enable_from(&self, first: usize) -> Result<(), SessionError> {
        let fresh = self.instances.get(first..).unwrap_or_default();
        let sideband = |instance: &&Instance| self.events[instance.event].is_sideband();
        fresh.iter().filter(sideband).try_for_each(|instance| instance.fd.enable())?;
        let samples = fresh.iter().filter(|instance| !sideband(instance));
        Ok(samples.into_iter().try_for_each(|instance| instance.fd.enable())?)
    }

    /// Stops recording; what stands in the rings can still be drained.
    pub fn disable(&self) -> Result<(), SessionError> {
        Ok(self.instances.iter().try_for_each(|instance| instance.fd.disable())?)
    }

    /// Waits until a ring is half full, one of `others` is readable or hung up, or the time is over.
    pub fn poll(
        &self,
        timeout: Duration,
        others: &[BorrowedFd<'_>],
    ) -> Result<Ready, SessionError> {
        let owners = self.rings.iter().map(|ring| PollFd::new(&ring.owner, PollFlags::IN));
        let others = others.iter().map(|fd| PollFd::new(fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = owners.chain(others).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(errno) => return Err(SessionError::Poll { errno: errno.raw_os_error() }),
        }
        let (rings, others) = fds.split_at(self.rings.len());
        let awake = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let others = others.iter().enumerate().filter(|(_, fd)| awake(fd)).map(|(at, _)| at);
        Ok(Ready { rings: rings.iter().any(awake), others: others.collect() })
    }

    /// Appends what stands in the rings to `into`, each ring once: one round. Gives the bytes.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        let held = self.held.len();
        into.append(&mut self.held);
        held + self.rings.iter_mut().map(|cpu| cpu.ring.drain(into)).sum::<usize>()
    }

    /// Takes a round out of the rings and keeps it for the next [`Session::drain`]. Gives its bytes.
    pub(crate) fn hold_round(&mut self) -> &[u8] {
        let before = self.held.len();
        for cpu in &mut self.rings {
            cpu.ring.drain(&mut self.held);
        }
        self.held.get(before..).unwrap_or_default()
    }

    /// The events as they were opened, in the plan's order.
    pub fn events(&self) -> &[EventSpec] {
        &self.events
    }

    /// Ids of each event's instances, in the plan's order.
    pub fn ids(&self) -> Vec<Vec<u64>> {
        let mut ids = vec![Vec::new(); self.events.len()];
        for instance in &self.instances {
            ids[instance.event].push(instance.id);
        }
        ids
    }

    /// CPUs that have a ring.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.rings.iter().map(|ring| ring.cpu)
    }

    /// Events that are open, one file descriptor each.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// What this kernel does not know and was left out, in words for the user.
    pub fn unsupported(&self) -> &[&'static str] {
        &self.unsupported
    }

    /// Samples lost so far, instances without a loss left out. Kernels before 6.0 do not count them.
    pub fn lost_counts(&self) -> Result<Vec<LostCount>, SessionError> {
        let mut counts = Vec::new();
        for Instance { event, cpu, id, fd } in &self.instances {
            let lost = fd.counts(&self.events[*event].attr)?.lost;
            if lost > 0 {
                counts.push(LostCount { event: *event, id: *id, cpu: *cpu, lost });
            }
        }
        Ok(counts)
    }
}

fn open_rings(plan: &Plan, events: &[EventSpec]) -> Result<Vec<CpuRing>, SessionError> {
    let mut owner = EventSpec::new("dummy", event_type::SOFTWARE, software::DUMMY);
    // Events share a ring only when their clock is the same.
    if let Some(first) = events.first() {
        owner.attr.clockid = first.attr.clockid;
        owner.attr.flags |= first.attr.flags & flag::USE_CLOCKID;
        owner.attr.read_format = first.attr.read_format;
    }
    let mut rings = Vec::new();
    for &cpu in plan.scope.cpus() {
        match open_ring(&owner, cpu, plan.ring_pages) {
            Ok(ring) => rings.push(ring),
            // The CPU went away since it was listed.
            Err(SessionError::Syscall(e)) if matches!(e.errno, libc::ENODEV | libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    if rings.is_empty() {
        return Err(SessionError::NoSuchCpu { cpus: plan.scope.cpus().to_vec() });
    }
    Ok(rings)
}

fn open_ring(owner: &EventSpec, cpu: u32, pages: usize) -> Result<CpuRing, SessionError> {
    let owner = open_raising_limit(owner, Place { task: own_pid(), cpu: cpu as i32 }, 0)?;
    let page = rustix::param::page_size();
    let ring = Ring::map(owner.as_fd(), pages).map_err(|errno| match errno {
        libc::EPERM => {
            let kib = pages.saturating_add(1).saturating_mul(page) / 1024;
            SessionError::LockedMemory { kib, cpu }
        }
        errno => SyscallError { call: format!("mmap of the ring of CPU {cpu}"), errno }.into(),
    })?;
    Ok(CpuRing { cpu, owner, ring })
}

/// Opens an event; when fds have run out, once more with the limit raised.
fn open_raising_limit(
    spec: &EventSpec,
    place: Place,
    opened: usize,
) -> Result<EventFd, SessionError> {
    let open = || EventFd::open(&spec.attr, &spec.name, place);
    let out_of_files = |e: &SyscallError| matches!(e.errno, libc::EMFILE | libc::ENFILE);
    match open() {
        Err(error) if out_of_files(&error) => {}
        other => return Ok(other?),
    }
    let limit = raise_file_limit();
    open().map_err(|error| match out_of_files(&error) {
        true => SessionError::TooManyFiles { opened, limit },
        false => error.into(),
    })
}

/// Raises the soft limit of open files to the hard one. Gives the limit that holds now.
fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    now.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::sys::Syscall;
    use super::super::sys_fake::{any_fd, install};
    use super::*;

    /// What a session asked the kernel for, one word a call.
    type Log = Rc<RefCell<Vec<String>>>;

    /// A kernel that grants everything that `refuse` does not, with rings of zeroes.
    fn kernel(refuse: impl Fn(&Syscall<'_>) -> Option<i32> + 'static) -> Log {
        let log = Log::default();
        let written = Rc::clone(&log);
        let mut ids = 100..;
        let mut rings: Vec<Vec<u64>> = Vec::new();
        install(move |call| {
            if let Some(errno) = refuse(&call) {
                return Err(errno);
            }
            let mut log = written.borrow_mut();
            match call {
                Syscall::Open { attr, pid, cpu } => {
                    let whose = if pid == own_pid() { "own".to_owned() } else { pid.to_string() };
                    log.push(format!("open {} {whose} {cpu}", attr.config));
                    return Ok(any_fd());
                }
                Syscall::Id { id, .. } => *id = ids.next().unwrap(),
                Syscall::SetFilter { filter, .. } => {
                    log.push(format!("filter {}", filter.to_str().unwrap()));
                }
                Syscall::Map { bytes, .. } => {
                    log.push("map".to_owned());
                    let mut ring = vec![0_u64; bytes / 8];
                    let at = ring.as_mut_ptr().expose_provenance();
                    rings.push(ring);
                    return Ok(at);
                }
                Syscall::Unmap { .. } => log.push("unmap".to_owned()),
                Syscall::SetOutput { .. } => log.push("output".to_owned()),
                Syscall::Enable { .. } => log.push("enable".to_owned()),
                Syscall::Disable { .. } => log.push("disable".to_owned()),
                Syscall::Read { into, .. } => {
                    into[16..24].copy_from_slice(&5_u64.to_ne_bytes());
                }
            }
            Ok(0)
        });
        log
    }

    fn plan(scope: Scope) -> Plan {
        let filtered = EventSpec::new("a:b", event_type::TRACEPOINT, 41).with_filter("flags != 32");
        let events = vec![filtered, EventSpec::new("c:d", event_type::TRACEPOINT, 42)];
        Plan { events, scope, ring_pages: 1, clockid: None }
    }

    fn tasks(tasks: &[i32]) -> Plan {
        plan(Scope::Tasks {
            tasks: tasks.to_vec(),
            cpus: vec![0, 1],
            inherit: true,
            enable_on_exec: true,
        })
    }

    #[test]
    fn every_event_of_every_task_and_cpu_writes_into_the_ring_of_its_cpu() {
        let log = kernel(|_| None);
        let session = Session::open(&tasks(&[7, 8])).unwrap();
        assert_eq!(session.ids(), [vec![100, 101, 104, 105], vec![102, 103, 106, 107]]);
        let probes_and_rings = 2 + 4;
        assert_eq!(log.borrow()[..2], ["open 41 own -1", "open 42 own -1"]);
        assert_eq!(log.borrow()[2..4], ["open 9 own 0", "map"]);
        assert_eq!(
            log.borrow()[probes_and_rings..][..5],
            ["open 41 7 0", "filter flags != 32", "output", "open 41 7 1", "filter flags != 32"]
        );
        drop(session);
        assert_eq!(log.borrow().iter().filter(|call| *call == "unmap").count(), 2);
    }

    #[test]
    fn tasks_that_are_gone_are_passed_over_and_none_left_is_an_error() {
        let gone = |pid| {
            move |call: &Syscall<'_>| match call {
                Syscall::Open { pid: asked, .. } if *asked == pid => Some(libc::ESRCH),
                _ => None,
            }
        };
        kernel(gone(7));
        assert_eq!(Session::open(&tasks(&[7, 8])).unwrap().instances(), 4);
        let error = Session::open(&tasks(&[7])).unwrap_err();
        assert_eq!(error, SessionError::NoSuchTask { tasks: vec![7] });
        assert_eq!(error.to_string(), "no such task: 7");
    }

    #[test]
    fn a_cpu_that_went_away_has_no_ring() {
        kernel(|call| match call {
            Syscall::Open { cpu: 1, .. } => Some(libc::ENODEV),
            _ => None,
        });
        let both = plan(Scope::SystemWide { cpus: vec![0, 1] });
        let session = Session::open(&both).unwrap();
        assert_eq!(session.cpus().collect::<Vec<_>>(), [0]);
        assert_eq!(session.instances(), 2);
        let error = Session::open(&plan(Scope::SystemWide { cpus: vec![1] })).unwrap_err();
        assert_eq!(error, SessionError::NoSuchCpu { cpus: vec![1] });
    }

    #[test]
    fn files_that_run_out_and_memory_that_may_not_be_locked_are_errors_of_their_own() {
        kernel(|call| match call {
            Syscall::Open { pid: 8, .. } => Some(libc::EMFILE),
            _ => None,
        });
        let error = Session::open(&tasks(&[7, 8])).unwrap_err();
        assert!(matches!(error, SessionError::TooManyFiles { opened: 4, .. }), "{error:?}");
        kernel(|call| matches!(call, Syscall::Map { .. }).then_some(libc::EPERM));
        let error = Session::open(&tasks(&[7])).unwrap_err();
        let kib = 2 * rustix::param::page_size() / 1024;
        assert_eq!(error, SessionError::LockedMemory { kib, cpu: 0 });
    }

    #[test]
    fn no_rights_is_told_with_the_event_that_was_refused() {
        kernel(|call| matches!(call, Syscall::Open { .. }).then_some(libc::EACCES));
        let error = Session::open(&tasks(&[7])).unwrap_err().to_string();
        assert!(error.starts_with("perf_event_open(a:b) of task"), "{error}");
    }

    #[test]
    fn lost_samples_are_counted_for_each_instance() {
        kernel(|_| None);
        let session = Session::open(&plan(Scope::SystemWide { cpus: vec![3] })).unwrap();
        let lost = |event, id| LostCount { event, id, cpu: 3, lost: 5 };
        assert_eq!(session.lost_counts().unwrap(), [lost(0, 100), lost(1, 101)]);
    }

    #[test]
    fn what_was_held_comes_with_the_next_round() {
        kernel(|_| None);
        let mut session = Session::open(&plan(Scope::SystemWide { cpus: vec![0] })).unwrap();
        session.held = b"held".to_vec();
        let mut round = b"before ".to_vec();
        assert_eq!(session.drain(&mut round), 4);
        assert_eq!(session.drain(&mut round), 0);
        assert_eq!(round, b"before held");
    }
}
