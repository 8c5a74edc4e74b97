//! What a recording that lost 97 % of its records may say.

use std::collections::HashMap;

use lockprof::decode::Body;
use lockprof::model::{Cpu, LockAddr, LockFlags, TaskId};

use crate::fixtures::{events, recording};

/// A wait between a begin and an end that were read, paired here once more by the simplest rule.
#[derive(Clone, Copy, Debug)]
struct Pair {
    begin: u64,
    end: u64,
    cpus: [Cpu; 2],
    spins: bool,
}

/// While a ring was full: its records from the last one before to the LOST record.
#[derive(Clone, Copy, Debug)]
struct Gap {
    cpu: Cpu,
    from: u64,
    to: u64,
}

#[derive(Default)]
struct Reader {
    gaps: Vec<Gap>,
    pairs: Vec<Pair>,
    last: HashMap<Cpu, u64>,
    spinning: HashMap<(Cpu, LockAddr), u64>,
    sleeping: HashMap<(TaskId, LockAddr), (u64, Cpu)>,
}

fn read() -> Reader {
    let mut reader = Reader::default();
    events("6.18", "lost", |event| {
        let (Some(cpu), time) = (event.cpu, event.time.0) else { return };
        let is_lost = matches!(event.body, Body::Lost(_));
        match event.body {
            Body::Lost(_) => {
                let from = reader.last.get(&cpu).copied().unwrap_or(0);
                reader.gaps.push(Gap { cpu, from, to: time });
            }
            Body::ContentionBegin(begin) if begin.flags.spins() => {
                reader.spinning.insert((cpu, begin.lock), time);
            }
            Body::ContentionBegin(begin) if begin.flags != LockFlags(LockFlags::MUTEX) => {
                reader.sleeping.insert((begin.who.task, begin.lock), (time, cpu));
            }
            Body::ContentionEnd(end) => {
                let spun = reader.spinning.remove(&(cpu, end.lock)).map(|begin| (begin, cpu));
                let (begin, on) = match spun {
                    Some(spun) => spun,
                    None => reader.sleeping.remove(&(end.who.task, end.lock)).unwrap(),
                };
                let spins = spun.is_some();
                reader.pairs.push(Pair { begin, end: time, cpus: [on, cpu], spins });
            }
            _ => {}
        }
        if time > 0 || is_lost {
            reader.last.insert(cpu, time);
        }
    });
    reader
}

/// A spinning wait is touched by what its own CPU lost; without switch records, a sleeping one by any
/// loss.
fn touches(gap: &Gap, pair: &Pair) -> bool {
    let overlap = gap.from < pair.end && pair.begin < gap.to;
    overlap && (!pair.spins || pair.cpus.contains(&gap.cpu))
}

#[test]
fn waits_that_losses_may_have_cut_or_joined_are_told_apart() {
    let Reader { gaps, pairs, spinning, sleeping, .. } = read();
    assert_eq!(gaps.len(), 8);
    let touched = pairs.iter().filter(|pair| gaps.iter().any(|gap| touches(gap, pair))).count();
    let cut = spinning.len() + sleeping.len();
    let report = &recording("6.18", "lost").by_site;
    let counts = report.trust.counts;
    assert_eq!(counts.uncertain as usize, touched + cut, "{counts:?}");
    assert_eq!(counts.ended as usize, pairs.len() - touched);
    assert_eq!(counts.restarts, 0);
    let longest = pairs.iter().filter(|pair| !gaps.iter().any(|gap| touches(gap, pair)));
    let longest = longest.map(|pair| pair.end - pair.begin).max().unwrap();
    assert_eq!(report.total.ended.max.0, longest);
}

#[test]
fn a_lost_record_counts_once() {
    let report = &recording("6.18", "lost").by_site;
    // LOST_SAMPLES records at the end tell of the same ones again.
    assert_eq!(report.trust.lost, [(Some(Cpu(0)), 25_235), (Some(Cpu(1)), 24_916)]);
}
