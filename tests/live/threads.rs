//! Many threads: what recording costs those who create them, and whether each is seen, once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lockprof::source::Replay;
use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind};
use lockprof_collectors::procfs::task;
use rustix::time::{ClockId, clock_gettime};

use super::machine::{
    FILE, Machine, Running, half, median, part, plays_part, records, say, skip, text, word,
};

const CREATIONS: u32 = 4_000;

/// Creates threads one after the other; says in ns how long that took.
#[test]
fn creates_threads() {
    if !plays_part() {
        return;
    }
    let begun = Instant::now();
    for _ in 0..CREATIONS {
        thread::spawn(|| ()).join().unwrap();
    }
    println!("took {}", begun.elapsed().as_nanos());
}

/// The time that [`creates_threads`] says.
fn took(command: &mut Command) -> f64 {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    let took = out.lines().find_map(|line| line.split("took ").nth(1)).unwrap();
    took.trim().parse().unwrap()
}

#[test]
fn creating_threads_takes_at_most_twice_the_time_under_record() {
    let Some(machine) = Machine::with_tools_or_skip(&["taskset"]) else { return };
    let anywhere = part("threads::creates_threads");
    // Where thread and creator share a CPU, creation is fastest and recording dearest.
    let on_one_cpu =
        [["taskset", "-c", "0"].map(str::to_owned).to_vec(), anywhere.clone()].concat();
    for (alone, args) in [(anywhere, &[][..]), (on_one_cpu, &["-C", "0"])] {
        let mut pairs = Vec::new();
        for _ in 0..7 {
            let without = took(&mut machine.command(&alone));
            let mut record = machine.lockprof(["record"]);
            let with = took(record.args(args).arg("--").args(&alone));
            pairs.push((without / 1e6, with / 1e6, with / without));
        }
        let ratio = median(pairs.iter().map(|pair| pair.2).collect());
        let said = format!("{args:?}: {ratio:.2} of (ms without, ms with, ratio) {pairs:.2?}");
        say(&said);
        assert!(ratio <= 2.0, "{said}");
    }
}

/// Each thread lives 2 ms and starts the next. At the end of stdin it tells of every thread that has
/// ended: `TID BEGIN END`, in ns of CLOCK_MONOTONIC.
#[test]
fn is_a_chain_of_threads() {
    if !plays_part() {
        return;
    }
    static LIVES: Mutex<Vec<(i32, u64, u64)>> = Mutex::new(Vec::new());
    fn link() {
        let begun = now();
        thread::sleep(Duration::from_millis(2));
        thread::spawn(link);
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        LIVES.lock().unwrap().push((tid, begun, now()));
    }
    thread::spawn(link);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let lives = LIVES.lock().unwrap();
    let told: String =
        lives.iter().map(|(tid, begun, ended)| format!("{tid} {begun} {ended}\n")).collect();
    std::io::stdout().write_all(told.as_bytes()).unwrap();
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A running [`is_a_chain_of_threads`].
struct Chain(Running);

impl Chain {
    fn start(machine: &Machine) -> Chain {
        let words = part("threads::is_a_chain_of_threads");
        let mut command = machine.command(&words);
        Chain(Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped())))
    }

    fn end(mut self) -> Vec<(i32, u64, u64)> {
        drop(self.0.0.stdin.take());
        let mut told = String::new();
        self.0.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let life = |line: &str| {
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let mut next = || numbers.next()?.ok();
            Some((next()? as i32, next()?, next()?))
        };
        told.lines().filter_map(life).collect()
    }
}

/// Until ten threads were seen: it is at work.
fn wait_for_threads(process: &Running) {
    let mut seen = BTreeSet::new();
    while seen.len() < 10 {
        let threads = task::threads(process.0.id() as i32).unwrap_or_default();
        assert!(!threads.is_empty(), "it runs");
        seen.extend(threads);
    }
}

/// Threads that FORK and EXIT records tell of: pid, ppid, tid, ptid.
fn threads_of(records: &[(RecordHeader, Vec<u8>)], wanted: u32) -> BTreeSet<i32> {
    let found = records.iter().filter(|(header, _)| header.kind == wanted);
    found.map(|(_, record)| half(record, HEADER_SIZE + 8) as i32).collect()
}

/// Time of a record that is no sample: `... TID TIME CPU IDENTIFIER`.
fn time_of(record: &[u8]) -> u64 {
    word(record, record.len() - 24)
}

#[test]
fn a_process_whose_threads_live_2_ms_and_start_one_another_is_seen_whole() {
    let Some(machine) = Machine::or_skip() else { return };
    let chain = Chain::start(&machine);
    wait_for_threads(&chain.0);
    machine.record(["-p", &chain.0.pid(), "-d", "1s"]);
    let lives = chain.end();
    let origin = Replay::open(&machine.place(FILE)).unwrap().origin().clone();
    if origin.clock.clockid != Some(ClockId::Monotonic as i32) {
        return skip("this machine's recordings have perf's own clock").unwrap_or_default();
    }
    let records = records(&machine.place(FILE));
    let is_exit = |header: &RecordHeader| header.kind == kind::EXIT;
    let times = records.iter().filter(|(header, _)| is_exit(header)).map(|(_, r)| time_of(r));
    let (first, last) = (times.clone().min().unwrap(), times.max().unwrap());
    // Attaching takes its time; from the first quarter on it is over.
    let from = first + (last - first) / 4;
    let whole = lives.iter().filter(|(_, begun, ended)| *begun >= from && *ended <= last);
    let counted: BTreeSet<i32> = whole.map(|life| life.0).collect();
    let (forked, ended) = (threads_of(&records, kind::FORK), threads_of(&records, kind::EXIT));
    let unseen = |seen: &BTreeSet<i32>| counted.difference(seen).copied().collect::<Vec<_>>();
    say(&format!("{} threads counted from {from} to {last}", counted.len()));
    assert!(counted.len() > 20, "{}", counted.len());
    assert_eq!(unseen(&forked), [0; 0], "began unseen, of {}", counted.len());
    // The last one may have ended after the recording.
    assert!(unseen(&ended).len() <= 1, "ended unseen: {:?}", unseen(&ended));
    tell_what_perf_sees(&machine);
}

/// For comparison: threads that `perf record -p` sees end.
fn tell_what_perf_sees(machine: &Machine) {
    let chain = Chain::start(machine);
    wait_for_threads(&chain.0);
    let pid = chain.0.pid();
    let perf =
        ["perf", "record", "-q", "-o", "perf.data", "-e", "dummy", "-p", &pid, "--", "sleep", "1"];
    let recorded = machine.command(perf).output();
    let counted = chain.end().len();
    let place = machine.place("perf.data");
    match recorded {
        Ok(_) if place.exists() => {
            let seen = threads_of(&records(&place), kind::EXIT).len();
            say(&format!("perf record -p sees {seen} threads end, of some {counted}"));
        }
        Ok(output) => say(&format!("perf record -p fails: {}", text(&output.stderr).trim())),
        Err(error) => say(&format!("perf record -p is not compared: {error}")),
    }
}

/// Some threads create others all the time, which live 2 ms.
// They never end by themselves.
#[allow(clippy::exit)]
#[test]
fn is_a_crowd() {
    if !plays_part() {
        return;
    }
    for _ in 0..8 {
        thread::spawn(|| {
            loop {
                thread::spawn(|| thread::sleep(Duration::from_millis(2)));
                thread::sleep(Duration::from_micros(300));
            }
        });
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Samples that another instance wrote than the one that wrote the first of their thread's, of the
/// same event on the same CPU. A thread's life goes from FORK to EXIT.
fn copies(machine: &Machine) -> u64 {
    let events = Replay::open(&machine.place(FILE)).unwrap().origin().events.clone();
    let event_of = |id| events.iter().position(|event| event.ids.contains(&id));
    let mut records = records(&machine.place(FILE));
    records.sort_by_key(|(header, record)| match header.kind {
        kind::SAMPLE => word(record, 32),
        kind::FORK | kind::EXIT => time_of(record),
        _ => 0,
    });
    let mut first: BTreeMap<u32, BTreeMap<(Option<usize>, u32), u64>> = BTreeMap::new();
    let mut copies = 0;
    for (header, record) in records {
        match header.kind {
            kind::FORK | kind::EXIT => drop(first.remove(&half(&record, 16))),
            kind::SAMPLE if half(&record, 28) as i32 > 0 => {
                let (id, tid, cpu) = (word(&record, 8), half(&record, 28), half(&record, 40));
                let ids = first.entry(tid).or_default();
                copies += u64::from(*ids.entry((event_of(id), cpu)).or_insert(id) != id);
            }
            _ => {}
        }
    }
    copies
}

#[test]
fn threads_that_were_created_while_they_were_attached_to_count_once() {
    let Some(machine) = Machine::or_skip() else { return };
    let words = part("threads::is_a_crowd");
    let mut crowd = machine.command(&words);
    let crowd = Running::start(crowd.stdin(Stdio::piped()).stdout(Stdio::null()));
    wait_for_threads(&crowd);
    // Whether it happens is a matter of luck.
    for _ in 0..5 {
        machine.record(["-p", &crowd.pid(), "-d", "300ms"]);
        let trust = &machine.report(&[])["trust"];
        let copies = copies(&machine);
        let told = trust["notes"].as_array().unwrap().iter().filter_map(|note| {
            let (count, _) = note.as_str()?.split_once(" samples came twice")?;
            count.parse::<u64>().ok()
        });
        assert_eq!(told.sum::<u64>(), copies, "{trust}");
        let lost = trust["lost"].as_array().unwrap();
        say(&format!("{copies} copies, {} begins, {lost:?} lost", trust["begins"]));
        if lost.is_empty() {
            assert_eq!(trust["restarts"], 0, "{trust}");
        }
    }
}
