//! Bytes that no kernel wrote: the pipe takes them, counts what it cannot read, and ends.

mod streams;

use std::time::{Duration, Instant};

use lockprof::analyse::{Detail, Slicing};
use lockprof::model::GroupBy;
use lockprof::source::{Round, Synthetic};
use proptest::collection::vec;
use proptest::prelude::*;
use streams::scenario::arbitrary;
use streams::{READER, Reading, SPIN, WRITE, ask, at};

fn reading() -> Reading {
    let detail =
        Detail { user_stacks: true, cpu_stacks: true, slicing: Some(Slicing::WHOLE), cells: 16 };
    Reading { kallsyms: streams::RT_KALLSYMS, detail, ..Reading::with_switches() }
}

fn take(bytes: Vec<u8>, finished: bool) {
    let started = Instant::now();
    let pipeline = reading().pipeline([Round { bytes, offset: u64::MAX, finished }]);
    for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task] {
        let report = pipeline.report(&lockprof::model::Query { stacks: true, ..ask(by) });
        assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// A header of some kind and size over arbitrary bytes.
fn framed() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![0..24u32, Just(9u32), 64..84u32, any::<u32>()];
    (kind, any::<u16>(), vec(any::<u8>(), 0..120)).prop_map(|(kind, misc, body)| {
        let size = body.len() as u16 + 8;
        let mut record = kind.to_le_bytes().to_vec();
        record.extend(misc.to_le_bytes());
        record.extend(size.to_le_bytes());
        record.extend(body);
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_taken(bytes in vec(any::<u8>(), 0..4096), finished in any::<bool>()) {
        take(bytes, finished);
    }

    #[test]
    fn any_records_are_taken(records in vec(framed(), 0..60), finished in any::<bool>()) {
        take(records.concat(), finished);
    }

    #[test]
    fn records_with_flipped_bytes_are_taken(
        records in arbitrary(1..60, |time, by| time + u64::from(by)),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut bytes: Vec<u8> = records.into_iter().flat_map(|record| record.bytes).collect();
        for (index, value) in flips {
            let at = index.index(bytes.len());
            // Sizes stay: behind a wrong one nothing is read any more.
            if at % 8 < 6 {
                bytes[at] = value;
            }
        }
        take(bytes, true);
    }
}

#[test]
fn counts_of_lost_records_saturate() {
    let report = reading().report(GroupBy::Site, |s| {
        s.lost(at(1, 0, 1), u64::MAX).lost(at(2, 0, 1), u64::MAX);
    });
    assert_eq!(report.trust.lost[0].1, u64::MAX);
}

#[test]
fn reasons_why_records_are_unreadable_come_in_one_order() {
    let bytes = || {
        let mut synthetic = Synthetic::new();
        synthetic.begin(at(1, 0, 1), 0xa, SPIN, &[]).begin(at(2, 0, 1), 0xa, SPIN, &[]);
        let mut bytes = synthetic.take_round().bytes;
        // The first one is of no event, the second one is cut in its fields.
        bytes[8] = 99;
        let second = bytes.len() / 2;
        bytes[second + 6..second + 8].copy_from_slice(&40u16.to_le_bytes());
        bytes.truncate(second + 40);
        bytes
    };
    let unreadable = || {
        let pipeline = reading().pipeline([Round { bytes: bytes(), offset: 0, finished: true }]);
        pipeline.report(&ask(GroupBy::Site)).trust.unreadable
    };
    let first = unreadable();
    assert_eq!(first.len(), 2, "{first:?}");
    (0..20).for_each(|_| assert_eq!(unreadable(), first));
}

#[test]
fn as_many_tasks_locks_and_cpus_as_records_take_a_moment() {
    let mut synthetic = Synthetic::new();
    for i in 0..60_000u32 {
        let time = u64::from(i) * 10;
        let flags = if i % 2 == 0 { SPIN } else { WRITE };
        synthetic.begin(at(time, i, i as i32), u64::from(i) << 4, flags, READER);
    }
    let started = Instant::now();
    let report = reading().pipeline([synthetic.take_round()]).report(&ask(GroupBy::Site));
    assert_eq!(report.total.contended(), 60_000);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
