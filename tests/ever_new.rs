//! A flood of waits of ever new locks, tasks and stacks: tables, books and memory stay as they are, and
//! what they add up to is exact.

#![allow(clippy::unwrap_used)]

mod streams;

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, Nanos, PathQuery};
use lockprof::pipeline::Pipeline;
use lockprof::source::{At, Synthetic};
use streams::{MUTEX, ask};

/// Waits in all: ten million where that takes no more than a minute (`cargo test --release`).
const WAITS: u64 = if cfg!(debug_assertions) { 50_000 } else { 10_000_000 };
/// So many fill every table and every book.
const FULL: u64 = WAITS / 10 * 3;
/// Memory may differ by so much afterwards: what the allocator has not given back.
const SLACK: u64 = 64 << 20;
/// Waits of a round.
const ROUND: u64 = 1 << 14;
/// From a begin to the next, and to its end.
const APART: u64 = 10_000;
const LENGTH: u64 = 7_000;

/// Each with a lock, a task, a name and stacks that none had before.
fn wait(stream: &mut Synthetic, n: u64) {
    let (begin, task) = (1_000_000 + n * APART, 1 + (n % 4_000_000) as i32);
    let at = |time| At::new(time, (n % 4) as u32, task);
    if n.is_multiple_of(16) {
        stream.comm(begin, task, task, &format!("task{n}"), false);
    }
    let stack = [0xffff_ffff_8100_0000 + n % (1 << 20), 0xffff_ffff_8200_0000 + n];
    stream.begin(at(begin), 0xffff_8880_0000_0000 + n * 64, MUTEX, &stack);
    stream.cpu_sample(at(begin + 1), &stack, &[0x1000 + n]);
    stream.end(at(begin + LENGTH), 0xffff_8880_0000_0000 + n * 64, 0);
}

/// What this process has in memory, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn waits_of_ever_new_locks_tasks_and_stacks_take_no_more_memory_and_add_up() {
    let mut stream = Synthetic::new();
    let slicing = Some(Slicing::LIVE);
    let detail = Detail { user_stacks: true, cpu_stacks: true, slicing, cells: 1 << 14 };
    let symbols = (Kernel::from_kallsyms(b""), String::new());
    let mut pipeline = Pipeline::new(stream.origin(), symbols, detail, &Filter::default()).unwrap();
    let mut full = 0;
    for n in 0..WAITS {
        wait(&mut stream, n);
        if n % ROUND == ROUND - 1 {
            pipeline.push(stream.take_round());
        }
        if n == FULL {
            full = resident();
        }
    }
    pipeline.push(stream.take_round());
    pipeline.finish();
    let now = resident();
    println!("{} MiB, then {} MiB", full >> 20, now >> 20);
    assert!(cfg!(debug_assertions) || now < full + SLACK, "{full} bytes, then {now}");
    let report = pipeline.report(&ask(GroupBy::Lock));
    let ended = &report.total.ended;
    let time = Nanos(WAITS * LENGTH);
    assert_eq!((ended.count, ended.total, ended.own), (WAITS, time, time));
    assert_eq!(report.trust.cpu_samples, WAITS);
    let paths = pipeline.paths(&PathQuery::default());
    assert_eq!(paths.total.samples, WAITS);
    assert!(report.rows.len() <= detail.cells && pipeline.slices().len() <= 256);
    assert!(report.trust.folded_keys > 0);
}
