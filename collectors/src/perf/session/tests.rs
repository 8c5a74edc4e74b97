//! Sessions on a kernel of the test's own: what is asked for, in which order, and what errors become.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;

use super::*;
use crate::attach::attach;
use crate::perf::sys::Syscall;
use crate::perf::sys_fake::{any_fd, install};

/// What a session asked the kernel for, one word a call.
type Log = Rc<RefCell<Vec<String>>>;

/// A kernel that grants everything that `refuse` does not, with rings of zeroes.
fn kernel(refuse: impl Fn(&Syscall<'_>) -> Option<i32> + 'static) -> Log {
    let log = Log::default();
    let written = Rc::clone(&log);
    let mut ids = 100..;
    let mut opened: HashMap<RawFd, u64> = HashMap::new();
    let mut rings: Vec<Vec<u64>> = Vec::new();
    install(move |call| {
        if let Some(errno) = refuse(&call) {
            return Err(errno);
        }
        let mut log = written.borrow_mut();
        match call {
            Syscall::Open { attr, pid, cpu, cgroup } => {
                let whose = match pid {
                    _ if cgroup => "cgroup".to_owned(),
                    pid if pid == own_pid() => "own".to_owned(),
                    pid => pid.to_string(),
                };
                log.push(format!("open {} {whose} {cpu}", attr.config));
                let fd = any_fd();
                opened.insert(fd as RawFd, attr.config);
                return Ok(fd);
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
            Syscall::SetOutput { fd, .. } => {
                log.push(format!("output {}", opened[&fd.as_raw_fd()]))
            }
            Syscall::Enable { fd } => log.push(format!("enable {}", opened[&fd.as_raw_fd()])),
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
        log.borrow()[probes_and_rings..][..4],
        ["open 41 7 0", "filter flags != 32", "open 41 7 1", "filter flags != 32"]
    );
    drop(session);
    assert_eq!(log.borrow().iter().filter(|call| *call == "unmap").count(), 2);
}

#[test]
fn a_task_writes_nothing_before_all_its_events_are_open_and_its_sideband_is_the_first_to_write() {
    let mut plan = tasks(&[7]);
    let mut sideband = EventSpec::new("dummy", event_type::SOFTWARE, software::DUMMY);
    sideband.attr.flags |= flag::TASK;
    plan.events.push(sideband);
    let log = kernel(|_| None);
    let session = Session::open(&plan).unwrap();
    let starts = ["output 9", "output 9", "output 41", "output 41", "output 42", "output 42"];
    let (opens, connects) = {
        let log = log.borrow();
        let (opens, connects) = log.split_at(log.len() - starts.len());
        (opens.to_vec(), connects.to_vec())
    };
    assert_eq!(connects, starts);
    assert_eq!(opens.last().unwrap(), "open 9 7 1", "the last thing before the first output");
    session.enable().unwrap();
    let enables: Vec<_> = starts.iter().map(|call| call.replace("output", "enable")).collect();
    assert!(log.borrow().ends_with(&enables), "{:?}", log.borrow());
}

#[test]
fn events_that_are_attached_count_from_the_start_because_enabling_may_miss_a_child() {
    let log = kernel(|call| {
        if let Syscall::Open { attr, cpu, .. } = call {
            let inherited = [41, 42].contains(&attr.config) && *cpu != ANY;
            assert_eq!(inherited, attr.has(flag::INHERIT), "probes and owners are ours alone");
            assert_eq!(inherited, !attr.has(flag::DISABLED));
        }
        None
    });
    let mut plan = tasks(&[]);
    if let Scope::Tasks { enable_on_exec, .. } = &mut plan.scope {
        *enable_on_exec = false;
    }
    let attached = attach(&plan, &[own_pid()]).unwrap();
    assert_eq!(attached.session.instances(), 4 * attached.threads);
    assert!(!log.borrow().iter().any(|call| call.starts_with("enable")), "{:?}", log.borrow());
}

#[test]
fn events_of_a_cgroup_are_opened_on_its_directory_for_each_cpu() {
    let log = kernel(|_| None);
    let directory = std::env::temp_dir();
    let scope = |directory| Scope::Cgroup { directory, cpus: vec![0, 1] };
    let session = Session::open(&plan(scope(directory.clone()))).unwrap();
    assert_eq!(session.instances(), 4);
    let calls = log.borrow().clone();
    let opened: Vec<_> = calls.iter().filter(|call| call.contains("cgroup")).collect();
    assert_eq!(
        opened,
        ["open 41 cgroup 0", "open 41 cgroup 1", "open 42 cgroup 0", "open 42 cgroup 1"]
    );
    let error = Session::open(&plan(scope(directory.join("lockprof-none")))).unwrap_err();
    assert!(error.to_string().contains("lockprof-none failed: No such file"), "{error}");
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
    assert!(matches!(error, SessionError::TooManyFiles { .. }), "{error:?}");
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

/// As [`tasks`], with a third event that counts everything into rings of its own.
fn tasks_and_all() -> Plan {
    let mut plan = tasks(&[7]);
    let mut all = EventSpec::new("e:f", event_type::TRACEPOINT, 43).everywhere();
    all.lane = Lane::Flood;
    plan.events.push(all);
    plan
}

fn opens(log: &Log, config: u64) -> Vec<String> {
    let opens = format!("open {config} ");
    let log = log.borrow();
    log.iter().filter_map(|call| call.strip_prefix(&opens)).map(str::to_owned).collect()
}

#[test]
fn what_counts_everything_is_opened_once_a_cpu_and_enabled_by_hand() {
    let log = kernel(|_| None);
    let session = Session::open(&tasks_and_all()).unwrap();
    // The probe on ourselves comes first.
    assert_eq!(opens(&log, 43), ["own -1", "-1 0", "-1 1"]);
    assert_eq!(opens(&log, 41), ["own -1", "7 0", "7 1"]);
    assert!(!session.narrowed());
    log.borrow_mut().clear();
    session.enable_everywhere().unwrap();
    assert_eq!(*log.borrow(), ["enable 43", "enable 43"]);
}

#[test]
fn without_the_right_to_count_everything_the_tasks_are_counted() {
    let log = kernel(|call| match call {
        Syscall::Open { pid: ANY, .. } => Some(libc::EACCES),
        _ => None,
    });
    let session = Session::open(&tasks_and_all()).unwrap();
    assert!(session.narrowed());
    assert_eq!(opens(&log, 43), ["own -1", "7 0", "7 1"]);
    assert!(session.events()[2].attr.has(flag::INHERIT | flag::ENABLE_ON_EXEC));
    log.borrow_mut().clear();
    session.enable_everywhere().unwrap();
    assert!(log.borrow().is_empty(), "an exec enables them");
}

#[test]
fn a_flood_has_rings_of_its_own_and_is_stopped_when_they_are_full_again_and_again() {
    let log = kernel(|_| None);
    let mut session = Session::open(&tasks_and_all()).unwrap();
    assert_eq!(log.borrow().iter().filter(|call| *call == "map").count(), 4);
    assert_eq!(session.cpus().collect::<Vec<_>>(), [0, 1]);
    let ids = session.ids()[2].clone();
    let page = rustix::param::page_size();
    let full = |session: &mut Session| {
        session.drain(&mut Vec::new());
        session.flood.drained(page, page);
        session.stop_flood().unwrap()
    };
    log.borrow_mut().clear();
    assert_eq!([full(&mut session), full(&mut session)], [[0; 0]; 2]);
    assert_eq!(full(&mut session), ids);
    assert_eq!(*log.borrow(), ["disable", "disable"], "nothing else is stopped");
    assert_eq!(full(&mut session), [0; 0]);
}
