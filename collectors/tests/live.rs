//! Sessions on the real kernel. Each test says aloud when it is skipped, and why.
//!
//! One at a time, because recordings of the whole machine disturb each other. Processes to attach to
//! are this test binary again (`EXE --exact --nocapture -- chain`).

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lockprof_collectors::Collector;
use lockprof_collectors::attach::attach;
use lockprof_collectors::contention::{BEGIN, Contention, END};
use lockprof_collectors::cpu::{Cpu, CpuEvent, DEFAULT_FREQUENCY};
use lockprof_collectors::floor;
use lockprof_collectors::perf::plan::{DEFAULT_RING_PAGES, EventSpec, Plan, Scope};
use lockprof_collectors::perf::record::{RecordHeader, kind, misc};
use lockprof_collectors::perf::session::Session;
use lockprof_collectors::procfs::sysctl::Capabilities;
use lockprof_collectors::procfs::system::{System, online_cpus};
use lockprof_collectors::procfs::tracefs::{Tracefs, Tracepoints};
use lockprof_collectors::sideband::Sideband;
use lockprof_collectors::workload::Workload;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The right to record, for one test.
struct Kernel {
    formats: Tracepoints,
    system: System,
    _alone: MutexGuard<'static, ()>,
}

impl Kernel {
    fn or_skip() -> Option<Kernel> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !Capabilities::own().unwrap().perfmon() {
            return skip("this user has no CAP_PERFMON");
        }
        match Tracefs::find().and_then(|tracefs| tracefs.tracepoints(&[BEGIN, END])) {
            Ok(formats) => Some(Kernel { formats, system: System::read().unwrap(), _alone: alone }),
            Err(error) => skip(&error.to_string()),
        }
    }

    fn events(&self, collectors: &[&dyn Collector]) -> Vec<EventSpec> {
        collectors.iter().flat_map(|c| c.events(&self.formats).unwrap()).collect()
    }

    fn plan(&self, collectors: &[&dyn Collector], scope: Scope) -> Plan {
        let events = self.events(collectors);
        Plan { events, scope, ring_pages: DEFAULT_RING_PAGES, clockid: self.system.clockid() }
    }

    fn everything(&self) -> Scope {
        Scope::SystemWide { cpus: self.system.cpus_online.clone() }
    }

    fn tasks(&self, tasks: &[i32], enable_on_exec: bool) -> Scope {
        let cpus = self.system.cpus_online.clone();
        Scope::Tasks { tasks: tasks.to_vec(), cpus, inherit: true, enable_on_exec }
    }
}

fn skip<T>(reason: &str) -> Option<T> {
    let name = thread::current().name().unwrap_or_default().to_owned();
    // Not through eprintln, which the test harness keeps to itself.
    io::stderr().write_all(format!("SKIPPED {name}: {reason}\n").as_bytes()).unwrap();
    None
}

const SIDEBAND: Sideband = Sideband { mmaps: false };

/// Two threads that fight for the mutex of a pipe.
struct PipeFight {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl PipeFight {
    fn start() -> PipeFight {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let cpus = online_cpus().unwrap();
        let fight = |cpu: Option<&u32>, step: Box<dyn Fn() + Send>| {
            let stop = Arc::clone(&stop);
            let mut own = CpuSet::new();
            own.set(*cpu.unwrap() as usize);
            thread::spawn(move || {
                // On one CPU they would hardly ever meet.
                sched_setaffinity(None, &own).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    step();
                }
            })
        };
        // A pipe that is full or empty was locked to find out.
        let write = fight(
            cpus.first(),
            Box::new(move || {
                let _ = rustix::io::write(&writer, b"x");
            }),
        );
        let read = fight(
            cpus.last(),
            Box::new(move || {
                let _ = rustix::io::read(&reader, &mut [0]);
            }),
        );
        PipeFight { threads: vec![write, read], stop }
    }
}

impl Drop for PipeFight {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// A record with what every one of ours has.
#[derive(Debug)]
struct Record<'a> {
    header: RecordHeader,
    bytes: &'a [u8],
}

impl Record<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Samples begin with it, other records end with it.
    fn id(&self) -> u64 {
        let at = if self.header.kind == kind::SAMPLE { 8 } else { self.bytes.len() - 8 };
        self.u64(at)
    }

    fn time(&self) -> u64 {
        let at = if self.header.kind == kind::SAMPLE { 32 } else { self.bytes.len() - 24 };
        self.u64(at)
    }

    fn cpu(&self) -> u32 {
        let at = if self.header.kind == kind::SAMPLE { 40 } else { self.bytes.len() - 16 };
        self.u32(at)
    }
}

fn records(mut bytes: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let header = RecordHeader::parse(bytes).unwrap();
        let (record, behind) = bytes.split_at(usize::from(header.size));
        records.push(Record { header, bytes: record });
        bytes = behind;
    }
    records
}

/// Drains until `enough` of the whole, and once more. On a busy machine two threads may take long to
/// meet at a lock; ten seconds are too long.
fn record_until(session: &mut Session, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let end = Instant::now() + Duration::from_secs(10);
    while !enough(&bytes) && Instant::now() < end {
        session.poll(Duration::from_millis(100), &[]).unwrap();
        session.drain(&mut bytes);
    }
    session.disable().unwrap();
    session.drain(&mut bytes);
    bytes
}

/// Samples of these instances.
fn samples_of<'a>(bytes: &'a [u8], ids: &[u64]) -> Vec<Record<'a>> {
    let of_ids = |r: &Record<'_>| r.header.kind == kind::SAMPLE && ids.contains(&r.id());
    records(bytes).into_iter().filter(of_ids).collect()
}

fn name_of(session: &Session) -> BTreeMap<u64, String> {
    let names = session.events().iter().map(|event| event.name.clone());
    let ids = session.ids().into_iter();
    names
        .zip(ids)
        .flat_map(|(name, ids)| ids.into_iter().map(move |id| (id, name.clone())))
        .collect()
}

#[test]
fn contention_of_the_whole_machine_comes_in_the_order_of_time_on_each_cpu() {
    let Some(kernel) = Kernel::or_skip() else { return };
    if kernel.system.cpus_online.len() < 2 {
        return skip("one CPU has no contention").unwrap_or_default();
    }
    let cpu = Cpu { event: CpuEvent::detect(), frequency: DEFAULT_FREQUENCY };
    let collectors: [&dyn Collector; 3] = [&Contention::default(), &cpu, &SIDEBAND];
    let mut session = Session::open(&kernel.plan(&collectors, kernel.everything())).unwrap();
    let fight = PipeFight::start();
    session.enable().unwrap();
    let ends = session.ids().remove(0);
    let bytes = record_until(&mut session, |bytes| samples_of(bytes, &ends).len() > 200);
    drop(fight);
    let names = name_of(&session);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    let mut backwards = 0;
    for record in records(&bytes) {
        if record.header.kind == kind::SAMPLE {
            *counts.entry(names[&record.id()].as_str()).or_default() += 1;
        }
        let before = last.insert(record.cpu(), record.time());
        backwards += usize::from(before.is_some_and(|before| before > record.time()));
    }
    assert!(counts[BEGIN] > 100 && counts[END] > 100, "{counts:?}");
    assert!(counts[BEGIN] >= counts[END] / 2, "{counts:?}");
    assert!(counts.contains_key(cpu.event.name()), "{counts:?}");
    assert_eq!(last.len(), kernel.system.cpus_online.len(), "every CPU has a ring");
    // An interrupt may write a record of its own between a record's time stamp and its place.
    assert!(backwards * 1000 < bytes.len() / 80, "{backwards} steps backwards");
}

#[test]
fn no_spin_leaves_spinlocks_out_in_the_kernel_and_keeps_mutexes_that_spin() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let contention = Contention { no_spin: true, ..Contention::default() };
    let mut session = Session::open(&kernel.plan(&[&contention], kernel.everything())).unwrap();
    let fight = PipeFight::start();
    session.enable().unwrap();
    let first_begins = session.ids().remove(1);
    let enough = |bytes: &[u8]| samples_of(bytes, &first_begins).len() > 200;
    let bytes = record_until(&mut session, enough);
    drop(fight);
    let at = usize::from(kernel.formats.get(BEGIN).unwrap().format.field("flags").unwrap().offset);
    let mut flags: BTreeMap<u32, usize> = BTreeMap::new();
    for begin in samples_of(&bytes, &first_begins) {
        let raw = 48 + 8 + 8 * begin.u64(48) as usize + 4;
        *flags.entry(begin.u32(raw + at)).or_default() += 1;
    }
    assert!(flags.contains_key(&33), "a mutex that spins: {flags:?}");
    assert!([1, 3, 5, 32].iter().all(|left_out| !flags.contains_key(left_out)), "{flags:?}");
}

#[test]
fn what_finds_no_room_is_announced_and_counted() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let mut plan = kernel.plan(&[&Contention::default()], kernel.everything());
    plan.ring_pages = 1;
    let mut session = Session::open(&plan).unwrap();
    if session.unsupported().iter().any(|feature| feature.starts_with("counts of lost")) {
        return skip("this kernel does not count lost samples").unwrap_or_default();
    }
    let fight = PipeFight::start();
    session.enable().unwrap();
    let lost_any = |session: &Session| !session.lost_counts().unwrap().is_empty();
    let end = Instant::now() + Duration::from_secs(10);
    while !lost_any(&session) && Instant::now() < end {
        thread::yield_now();
    }
    // Room again: the next record of the ring is preceded by LOST.
    let is_lost = |record: &Record<'_>| record.header.kind == kind::LOST;
    let bytes = record_until(&mut session, |bytes| records(bytes).iter().any(is_lost));
    drop(fight);
    let counted: u64 = session.lost_counts().unwrap().iter().map(|count| count.lost).sum();
    let announced: u64 = records(&bytes).iter().filter(|r| is_lost(r)).map(|r| r.u64(16)).sum();
    assert!(announced > 0 && counted >= announced, "{announced} announced, {counted} counted");
}

fn again(role: &str) -> Vec<OsString> {
    let exe = std::env::current_exe().unwrap().into_os_string();
    let fixed = ["--exact", "--nocapture", "--", role].map(OsString::from);
    [exe].into_iter().chain(fixed).collect()
}

/// Does what `exec_stub` does, on its main thread: libtest would run ours on another one, which events
/// on the pid do not follow through exec.
fn stub() -> Vec<OsString> {
    let script =
        r#"fd=$1; shift; printf . >&"$fd"; read -r -N1 -u "$fd" || exit 9; exec "$@" {fd}>&-"#;
    ["bash", "-c", script, "stub"].map(OsString::from).to_vec()
}

#[test]
fn a_command_is_recorded_from_its_exec_on_with_all_its_children() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let script = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (true); done; exec true"];
    let command = script.map(OsString::from);
    let mut workload = Workload::start(&stub(), &command).unwrap();
    let pid = workload.pid();
    let collectors: [&dyn Collector; 2] = [&Contention::default(), &SIDEBAND];
    let mut session = Session::open(&kernel.plan(&collectors, kernel.tasks(&[pid], true))).unwrap();
    let mut bytes = Vec::new();
    assert_eq!(session.drain(&mut bytes), 0, "nothing is recorded before the exec");
    workload.release().unwrap();
    let ended = session.poll(Duration::from_secs(10), &[workload.pidfd()]).unwrap();
    assert_eq!((ended.others, workload.wait().unwrap()), (vec![0], 0));
    session.drain(&mut bytes);
    let all = records(&bytes);
    let of_kind = |wanted| all.iter().filter(move |record| record.header.kind == wanted);
    let execs = of_kind(kind::COMM).filter(|comm| comm.header.misc & misc::COMM_EXEC != 0);
    // By time: the two may stand in the rings of two CPUs.
    let names: BTreeMap<u64, &[u8]> =
        execs.map(|comm| (comm.time(), &comm.bytes[16..24])).collect();
    let names: Vec<&[u8]> = names.into_values().collect();
    assert_eq!(names, [b"sh\0\0\0\0\0\0", b"true\0\0\0\0"], "the stub itself is not seen");
    let children: BTreeSet<u32> = of_kind(kind::FORK).map(|fork| fork.u32(8)).collect();
    let ended: BTreeSet<u32> = of_kind(kind::EXIT).map(|exit| exit.u32(8)).collect();
    assert_eq!(children.len(), 8);
    assert!(ended.is_superset(&children) && ended.contains(&(pid as u32)));
}

#[test]
fn a_stub_that_is_never_released_leaves_nothing_in_the_rings() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let workload = Workload::start(&stub(), &[OsString::from("true")]).unwrap();
    let scope = kernel.tasks(&[workload.pid()], true);
    let mut session = Session::open(&kernel.plan(&[&SIDEBAND], scope)).unwrap();
    drop(workload);
    assert_eq!(session.drain(&mut Vec::new()), 0);
}

/// Each thread lives 2 ms and starts the next; a byte on stdin is answered by their number so far.
#[test]
fn chain() {
    if !std::env::args().any(|arg| arg == "--") {
        return;
    }
    fn link(count: &'static AtomicU64) {
        thread::sleep(Duration::from_millis(2));
        count.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || link(count));
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    thread::spawn(|| link(&COUNT));
    while io::stdin().read_exact(&mut [0]).is_ok() {
        io::stderr().write_all(&COUNT.load(Ordering::Relaxed).to_ne_bytes()).unwrap();
    }
}

struct Chain {
    process: Child,
}

impl Chain {
    fn start() -> Chain {
        let words = again("chain");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut chain = Chain { process: command.spawn().unwrap() };
        while chain.threads() < 5 {}
        chain
    }

    fn threads(&mut self) -> u64 {
        self.process.stdin.as_mut().unwrap().write_all(&[0]).unwrap();
        let mut count = [0; 8];
        self.process.stderr.as_mut().unwrap().read_exact(&mut count).unwrap();
        u64::from_ne_bytes(count)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_process_whose_threads_live_2_ms_and_start_one_another_is_seen_whole() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let mut chain = Chain::start();
    let pid = chain.process.id() as i32;
    let collectors: [&dyn Collector; 2] = [&Contention::default(), &SIDEBAND];
    let plan = kernel.plan(&collectors, kernel.tasks(&[], false));
    let mut attached = attach(&plan, &[pid]).unwrap();
    assert!(attached.complete, "{} passes", attached.passes);
    attached.session.drain(&mut Vec::new());
    let before = chain.threads();
    let exits =
        |bytes: &[u8]| records(bytes).iter().filter(|r| r.header.kind == kind::EXIT).count();
    let mut bytes = record_until(&mut attached.session, |bytes| exits(bytes) > 50);
    let started = chain.threads() - before;
    attached.session.drain(&mut bytes);
    let all = records(&bytes);
    let exits = all.iter().filter(|record| record.header.kind == kind::EXIT);
    let ended: BTreeSet<u32> = exits.map(|exit| exit.u32(16)).collect();
    assert!(started > 20, "{started}");
    assert!(ended.len() as u64 + 2 >= started, "{} of {started} threads were seen", ended.len());
}

#[test]
fn a_process_that_does_not_exist_is_told_by_its_pid() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let plan = kernel.plan(&[&SIDEBAND], kernel.tasks(&[], false));
    let error = attach(&plan, &[i32::MAX]).unwrap_err();
    assert_eq!(error.to_string(), format!("no such task: {}", i32::MAX));
}

#[test]
fn the_limit_of_open_files_is_raised_when_a_session_needs_more() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let held: Vec<OwnedFd> =
        (0..20).map(|_| rustix::io::dup(io::stdin().as_fd()).unwrap()).collect();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(held.len() as u64), ..limit }).unwrap();
    let opened = Session::open(&kernel.plan(&[&Contention::default()], kernel.everything()));
    let raised = getrlimit(Resource::Nofile).current;
    setrlimit(Resource::Nofile, limit).unwrap();
    assert_eq!(opened.unwrap().instances(), 3 * kernel.system.cpus_online.len());
    assert_eq!(raised, limit.maximum);
}

#[test]
fn an_ordinary_event_that_this_machine_has_not_is_told_by_name() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let mut plan = kernel.plan(&[&Contention::default()], kernel.everything());
    plan.events[0].attr.config = 0xffff;
    plan.events[0].name = "lock:nothing".to_owned();
    let error = Session::open(&plan).unwrap_err().to_string();
    assert!(error.contains("lock:nothing"), "{error}");
}

#[test]
fn the_floor_is_some_microseconds() {
    let Some(kernel) = Kernel::or_skip() else { return };
    let cpus = online_cpus().unwrap();
    let events = kernel.events(&[&Contention::default()]);
    let floor = floor::measure(&events, &cpus, kernel.system.clockid()).unwrap();
    match floor {
        Some(floor) => assert!((100..200_000).contains(&floor), "{floor} ns"),
        None => skip("one CPU, or too busy a machine, for two threads to meet").unwrap_or_default(),
    }
}
