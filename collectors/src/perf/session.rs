//! A session: the events of a plan, open, with one ring for each CPU.
//!
//! In: a [`Plan`]. Out: ring bytes as they stand, ids, and at the end what was lost.
//!
//! ```text
//!   CPU 0:  owner (dummy on ourselves, disabled, mapped) <- event 0 <- event 1 ... of every task
//!   CPU 1:  owner                                        <- event 0 <- event 1 ...
//!   the same again for events of the lane `Flood`, if there are any
//! ```
//!
//! Every event writes into the ring of its CPU (PERF_EVENT_IOC_SET_OUTPUT), so that records of one
//! CPU are in one order. The rings belong to events of their own: they outlive any task of the
//! target, and poll never reports a hang-up for them.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::attr::{event_type, flag, software};
use super::event_fd::{ANY, EventFd, Place};
use super::features::{own_pid, probe};
use super::flood::Flood;
use super::plan::{EventSpec, Lane, Plan, Scope};
use super::ring_buffer::Ring;
use super::sys::SyscallError;

/// Why a session could not be opened or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The kernel refused a call.
    #[error(transparent)]
    Syscall(SyscallError),
    /// Every open event is a file; too many tasks, CPUs and events were asked for. Following the
    /// target system-wide needs far fewer.
    #[error("out of file descriptors (the limit is {limit})")]
    TooManyFiles {
        /// RLIMIT_NOFILE, already raised as far as we may.
        limit: u64,
        /// The call that found none left.
        source: SyscallError,
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

impl From<SyscallError> for SessionError {
    fn from(source: SyscallError) -> SessionError {
        match source.errno {
            libc::EMFILE | libc::ENFILE => {
                let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
                SessionError::TooManyFiles { limit, source }
            }
            _ => SessionError::Syscall(source),
        }
    }
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
    lane: Lane,
    owner: EventFd,
    ring: Ring,
}

#[derive(Debug)]
struct Instance {
    event: usize,
    ring: usize,
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
    /// Events that were to count everything, and may not.
    narrowed: bool,
    flood: Flood,
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
            Scope::Cgroup { directory, .. } => session.open_on_cgroup(directory)?,
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
        let (instances, held, flood) = (Vec::new(), Vec::new(), Flood::default());
        let narrowed = false;
        let mut session = Session { events, unsupported, rings, instances, narrowed, flood, held };
        if matches!(plan.scope, Scope::Tasks { .. }) {
            session.open_everywhere(plan)?;
        }
        Ok((session, warm))
    }

    /// Opens the events that count everything beside those of the tasks. Where that is not allowed they
    /// count the tasks, too.
    fn open_everywhere(&mut self, plan: &Plan) -> Result<(), SessionError> {
        for event in (0..self.events.len()).filter(|&event| plan.events[event].everywhere) {
            for ring in 0..self.rings.len() {
                match self.open_instance(event, ring, (ANY, false)) {
                    Ok(instance) => self.instances.extend(instance),
                    Err(SessionError::Syscall(e)) if e.is_denied() => {
                        self.narrow(plan);
                        return Ok(());
                    }
                    Err(SessionError::Syscall(e)) if e.errno == libc::ENODEV => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.connect_from(0)
    }

    fn narrow(&mut self, plan: &Plan) {
        self.narrowed = true;
        self.instances.clear();
        for spec in self.events.iter_mut().filter(|spec| spec.everywhere) {
            spec.everywhere = false;
            *spec = plan.effective(spec);
        }
    }

    /// Opens every event on every CPU for a cgroup.
    fn open_on_cgroup(&mut self, directory: &Path) -> Result<(), SessionError> {
        let opened = File::open(directory).map_err(|source| SyscallError {
            call: format!("open of {}", directory.display()),
            errno: source.raw_os_error().unwrap_or(libc::EIO),
        })?;
        // The kernel holds the cgroup, not the fd, once the events are open.
        self.open_for(opened.as_raw_fd(), true).map(drop)
    }

    /// Opens every event on every CPU for a task ([`ANY`]: for all), and lets them write into their
    /// rings once all are open. False when the task is gone.
    pub(crate) fn open_on(&mut self, task: i32) -> Result<bool, SessionError> {
        self.open_for(task, false)
    }

    fn open_for(&mut self, task: i32, cgroup: bool) -> Result<bool, SessionError> {
        let before = self.instances.len();
        for event in 0..self.events.len() {
            if task != ANY && self.events[event].everywhere {
                continue;
            }
            for ring in 0..self.rings.len() {
                match self.open_instance(event, ring, (task, cgroup)) {
                    Ok(instance) => self.instances.extend(instance),
                    Err(SessionError::Syscall(e)) if e.errno == libc::ESRCH => {
                        self.instances.truncate(before);
                        return Ok(false);
                    }
                    // The CPU went away since its ring was opened.
                    Err(SessionError::Syscall(e)) if e.errno == libc::ENODEV => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.connect_from(before)?;
        Ok(true)
    }

    /// Opens an event into a ring; `None` when its records go to another one.
    fn open_instance(
        &self,
        event: usize,
        ring: usize,
        (task, cgroup): (i32, bool),
    ) -> Result<Option<Instance>, SessionError> {
        let CpuRing { cpu, lane, .. } = &self.rings[ring];
        let spec = &self.events[event];
        if spec.lane != *lane {
            return Ok(None);
        }
        let place = Place { task, cpu: *cpu as i32, cgroup };
        let fd = EventFd::open(&spec.attr, &spec.name, place)?;
        if let Some(filter) = &spec.filter {
            fd.set_filter(filter)?;
        }
        Ok(Some(Instance { event, ring, id: fd.id()?, fd }))
    }

    /// Connects instances from that number on with the rings of their CPUs. What inherited them is
    /// connected by that too, at the same moment: children write where the event they stem from does.
    fn connect_from(&self, first: usize) -> Result<(), SessionError> {
        let fresh = self.sideband_first(first);
        Ok(fresh.into_iter().try_for_each(|i| i.fd.set_output(&self.rings[i.ring].owner))?)
    }

    /// Starts recording. Not needed with `enable_on_exec`.
    pub fn enable(&self) -> Result<(), SessionError> {
        Ok(self.sideband_first(0).into_iter().try_for_each(|instance| instance.fd.enable())?)
    }

    /// Instances from that number on in the order in which they are to start: sideband first, so that
    /// no sample is of a task never heard of; the others in the order of the plan.
    fn sideband_first(&self, first: usize) -> Vec<&Instance> {
        let fresh = self.instances.get(first..).unwrap_or_default();
        let is_sideband = |instance: &&Instance| self.events[instance.event].is_sideband();
        let (sideband, samples): (Vec<_>, Vec<_>) = fresh.iter().partition(is_sideband);
        [sideband, samples].concat()
    }

    /// Starts those events that count everything although the others count tasks.
    pub fn enable_everywhere(&self) -> Result<(), SessionError> {
        let mut instances = self.instances.iter();
        Ok(instances.try_for_each(|instance| match self.events[instance.event].everywhere {
            true => instance.fd.enable(),
            false => Ok(()),
        })?)
    }

    /// Events that were to count everything count the tasks only: more was not allowed.
    pub fn narrowed(&self) -> bool {
        self.narrowed
    }

    /// Stops the events of the lane `Flood` when their records come too fast: gives the ids of their
    /// instances, once.
    pub fn stop_flood(&mut self) -> Result<Vec<u64>, SessionError> {
        if !self.flood.is_due() {
            return Ok(Vec::new());
        }
        let floods = |instance: &&Instance| self.events[instance.event].lane == Lane::Flood;
        let flooding = self.instances.iter().filter(floods);
        Ok(flooding
            .map(|instance| instance.fd.disable().map(|()| instance.id))
            .collect::<Result<_, _>>()?)
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
        let Session { rings, flood, .. } = self;
        let drained = rings.iter_mut().map(|cpu| {
            let bytes = cpu.ring.drain(into);
            if cpu.lane == Lane::Flood {
                flood.drained(bytes, cpu.ring.size());
            }
            bytes
        });
        held + drained.sum::<usize>()
    }

    /// Takes a round out of the rings and keeps it for the next [`Session::drain`]. Gives its bytes.
    pub(crate) fn hold_round(&mut self) -> &[u8] {
        let before = self.held.len();
        for cpu in &mut self.rings {
            cpu.ring.drain(&mut self.held);
        }
        self.held.get(before..).unwrap_or_default()
    }

    /// Keeps the rings from running full until `stop` is readable or hung up; all goes to the next
    /// [`Session::drain`]. For a session that records while what takes its records is being made.
    pub fn hold_until(&mut self, stop: BorrowedFd<'_>) -> Result<(), SessionError> {
        const PERIOD: Duration = Duration::from_millis(20);
        while self.poll(PERIOD, &[stop])?.others.is_empty() {
            self.hold_round();
        }
        Ok(())
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
        self.rings.iter().filter(|ring| ring.lane == Lane::Main).map(|ring| ring.cpu)
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
        for Instance { event, ring, id, fd } in &self.instances {
            let lost = fd.counts(&self.events[*event].attr)?.lost;
            if lost > 0 {
                let cpu = self.rings[*ring].cpu;
                counts.push(LostCount { event: *event, id: *id, cpu, lost });
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
    for lane in [Lane::Main, Lane::Flood] {
        if lane == Lane::Flood && events.iter().all(|event| event.lane != lane) {
            continue;
        }
        for &cpu in plan.scope.cpus() {
            match open_ring(&owner, (cpu, lane), plan.ring_pages) {
                Ok(ring) => rings.push(ring),
                // The CPU went away since it was listed.
                Err(SessionError::Syscall(e)) if matches!(e.errno, libc::ENODEV | libc::EINVAL) => {
                }
                Err(error) => return Err(error),
            }
        }
    }
    if rings.is_empty() {
        return Err(SessionError::NoSuchCpu { cpus: plan.scope.cpus().to_vec() });
    }
    Ok(rings)
}

fn open_ring(
    owner: &EventSpec,
    (cpu, lane): (u32, Lane),
    pages: usize,
) -> Result<CpuRing, SessionError> {
    let place = Place::task(own_pid(), cpu as i32);
    let owner = EventFd::open(&owner.attr, &owner.name, place)?;
    let page = rustix::param::page_size();
    let ring = Ring::map(owner.as_fd(), pages).map_err(|errno| match errno {
        libc::EPERM => {
            let kib = pages.saturating_add(1).saturating_mul(page) / 1024;
            SessionError::LockedMemory { kib, cpu }
        }
        errno => SyscallError { call: format!("mmap of the ring of CPU {cpu}"), errno }.into(),
    })?;
    Ok(CpuRing { cpu, lane, owner, ring })
}

#[cfg(test)]
mod tests;
