//! The answer while a recording runs, through the public pipe: what lasts counts, blocks add up, and at
//! the end it is what the report says.

#![allow(clippy::unwrap_used)]

mod streams;

use std::path::Path;

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::{Kernel, Places, Wanted, find};
use lockprof::model::{Filter, GroupBy, Nanos, Query, TimeRange, WaitStat};
use lockprof::pipeline::Pipeline;
use lockprof::report::Report;
use lockprof::source::{At, Replay, Round, Synthetic};
use streams::MUTEX;

const MS: u64 = 1_000_000;

/// A convoy at the mmap_lock, in rounds.
fn convoy(slicing: Option<Slicing>, time: Option<(Nanos, Nanos)>) -> (Pipeline, Vec<Round>) {
    let root = Path::new("tests/fixtures/recordings/6.18");
    let kallsyms = root.join("kallsyms.xz");
    let wanted = Wanted { explicit: Some(&kallsyms), ..Wanted::default() };
    let (kernel, source) = find(&wanted, &Places::of_this_machine()).unwrap();
    let mut replay = Replay::open(&root.join("convoy.data")).unwrap();
    let detail = Detail { slicing, ..Detail::default() };
    let filter = Filter { time, ..Filter::default() };
    let symbols = (kernel, source.to_string());
    let pipeline = Pipeline::new(replay.take_origin(), symbols, detail, &filter).unwrap();
    let (mut rounds, mut round) = (Vec::new(), Round::default());
    while replay.next_round(&mut round).unwrap() {
        rounds.push(std::mem::take(&mut round));
    }
    (pipeline, rounds)
}

fn by(by: GroupBy) -> Query {
    Query { by, ..Query::default() }
}

#[test]
fn a_wait_that_lasts_counts_as_long_as_it_has_come_to_be() {
    let mut stream = Synthetic::new();
    let symbols = (Kernel::from_kallsyms(b""), String::new());
    let origin = stream.origin();
    let detail = Detail { slicing: Some(Slicing::LIVE), ..Detail::default() };
    let mut pipeline = Pipeline::new(origin, symbols, detail, &Filter::default()).unwrap();
    stream.begin(At::new(1000 * MS, 0, 7), 0xabc0, MUTEX, &[1]);
    stream.begin(At::new(2000 * MS, 1, 8), 0xabc0, MUTEX, &[1]);
    pipeline.push(stream.take_round());
    // Two rounds later everything before has passed the sorting.
    for ms in [3300, 3400, 3500] {
        stream.begin(At::new(ms * MS, 0, 9), 0xdef0 + ms, MUTEX, &[1]);
        stream.end(At::new(ms * MS + 1, 0, 9), 0xdef0 + ms, 0);
        pipeline.push(stream.take_round());
    }
    let (report, _) = pipeline.now(&by(GroupBy::Lock), None);
    let row = report.rows.iter().find(|row| row.key.lock_addr.unwrap().0 == 0xabc0).unwrap();
    assert_eq!((row.stat.waiting, row.stat.open, row.stat.ended.count), (2, 2, 0));
    assert!(row.stat.oldest >= Nanos(2300 * MS), "{:?}", row.stat.oldest);
    // Asking changes nothing: the end comes as if nobody had asked.
    stream.end(At::new(4000 * MS, 0, 7), 0xabc0, 0);
    pipeline.push(stream.take_round());
    pipeline.finish();
    let report = pipeline.report(&by(GroupBy::Lock));
    let row = report.rows.iter().find(|row| row.key.lock_addr.unwrap().0 == 0xabc0).unwrap();
    assert_eq!((row.stat.waiting, row.stat.open, row.stat.ended.count), (0, 1, 1));
    assert_eq!(row.stat.ended.total, Nanos(3000 * MS));
}

#[test]
fn at_the_end_the_answer_is_the_report_of_the_file() {
    let (mut live, rounds) = convoy(Some(Slicing::LIVE), None);
    for round in rounds {
        live.push(round);
        // A screen asks all the time.
        live.now(&by(GroupBy::Lock), Some(Nanos(5_000 * MS)));
        live.now(&by(GroupBy::Site), None);
    }
    live.finish();
    let (mut file, rounds) = convoy(None, None);
    rounds.into_iter().for_each(|round| file.push(round));
    file.finish();
    for group in [
        GroupBy::Lock,
        GroupBy::Site,
        GroupBy::Task,
        GroupBy::Cgroup,
        GroupBy::Releaser,
        GroupBy::Blame,
    ] {
        // With stacks: as for a row that is shown alone.
        let query = Query { stacks: true, ..by(group) };
        let mut now = live.now(&query, None).0;
        now.rows.iter_mut().for_each(|row| row.history.clear());
        assert_eq!(now, file.report(&query), "{group:?}");
    }
}

fn waited(report: &Report) -> (u64, u64, u64) {
    let WaitStat { ended, open_time, .. } = &report.total;
    (ended.count, ended.total.0, ended.own.0 + open_time.0)
}

#[test]
fn blocks_add_up_to_the_whole() {
    let (mut whole, rounds) = convoy(None, None);
    rounds.into_iter().for_each(|round| whole.push(round));
    whole.finish();
    let (mut pieces, rounds) = convoy(None, None);
    let mut sum = (0, 0, 0);
    let mut add = |report: &Report| {
        let (count, total, wait) = waited(report);
        sum = (sum.0 + count, sum.1 + total, sum.2 + wait);
    };
    let blocks = rounds.len();
    for round in rounds {
        pieces.push(round);
        add(&pieces.now(&by(GroupBy::Site), None).0);
        pieces.restart();
    }
    pieces.finish();
    add(&pieces.report(&by(GroupBy::Site)));
    let (count, total, wait) = waited(&whole.report(&by(GroupBy::Site)));
    assert_eq!((sum.0, sum.1), (count, total));
    // What is cut loses less than a nanosecond at each cut.
    assert!(wait.abs_diff(sum.2) <= (blocks * 8) as u64, "{wait} in {blocks} blocks: {}", sum.2);
}

#[test]
fn the_last_slices_are_the_report_of_their_time() {
    let slicing = Slicing { width: Nanos(20 * MS), recent: Nanos(10_000 * MS) };
    let (mut live, rounds) = convoy(Some(slicing), None);
    rounds.into_iter().for_each(|round| live.push(round));
    live.finish();
    let first = live.slices()[0].from;
    for length in [20, 60, 200] {
        let (now, range) = live.now(&by(GroupBy::Site), Some(Nanos(length * MS)));
        let TimeRange { from, to } = range.unwrap();
        let time = (from.since(first), to.since(first));
        let (mut part, rounds) = convoy(None, Some(time));
        rounds.into_iter().for_each(|round| part.push(round));
        part.finish();
        let part = part.report(&by(GroupBy::Site));
        // Phases need what a part of the file does not tell; holders are not kept by time.
        let numbers = |report: &Report| -> Vec<_> {
            let rows = report.rows.iter();
            rows.map(|row| (row.key.clone(), row.stat.ended.clone(), row.stat.open)).collect()
        };
        assert!(!now.rows.is_empty() && now.total.ended.own < Nanos(length * 7 * MS));
        assert_eq!(numbers(&now), numbers(&part), "{length}");
    }
}
