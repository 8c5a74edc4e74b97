//! Two recordings merged equal one recording of both.
//!
//! Equal: rows with their splits and stacks, totals, CPU stacks, and the sums of the trust header.
//! `elapsed` and `threads` add up, and so differ from one recording, which also has the time between
//! the two and counts a thread of both once; so does the time of threads, which live on between the
//! two. Locks must have the same names in both.

mod streams;

use lockprof::analyse::Detail;
use lockprof::model::{GroupBy, Nanos, Query};
use lockprof::report::{MergeError, Report};
use lockprof::source::Round;
use proptest::prelude::*;
use streams::scenario::{Record, Scenario, realistic};
use streams::{Reading, WRITE, ask, at};

fn reading() -> Reading {
    let detail = Detail { user_stacks: true, cpu_stacks: true, ..Detail::default() };
    Reading { detail, ..Reading::with_switches() }
}

fn report(records: &[&[Record]], by: GroupBy) -> Report {
    let round = |records: &&[Record]| Round {
        bytes: records.iter().flat_map(|record| record.bytes.clone()).collect(),
        offset: 0,
        finished: true,
    };
    reading().pipeline(records.iter().map(round)).report(&Query { stacks: true, ..ask(by) })
}

/// The records up to the last moment at which nobody waits.
fn settled(scenario: Scenario) -> Vec<Record> {
    let prefix = |len: &usize| {
        let report = report(&[&scenario.records[..*len]], GroupBy::Site);
        report.trust.counts.open == 0
    };
    let len = (0..=scenario.records.len()).rev().find(prefix).unwrap_or(0);
    scenario.records[..len].to_vec()
}

fn move_by(records: &[Record], time: u64) -> Vec<Record> {
    // Times stand at byte 32 of a sample and 24 bytes before the end of other records.
    let moved = |record: &Record| {
        let mut record = record.clone();
        let sample = record.bytes[0] == 9;
        let at = if sample { 32 } else { record.bytes.len() - 24 };
        record.time += time;
        record.bytes[at..at + 8].copy_from_slice(&record.time.to_le_bytes());
        record
    };
    records.iter().map(moved).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn two_recordings_merged_equal_one_recording_of_both(
        first in realistic(0..120),
        second in realistic(0..120),
    ) {
        let first = settled(first);
        let second = move_by(&settled(second), 1_000_000);
        for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task] {
            let (a, b) = (report(&[&first], by), report(&[&second], by));
            let mut both = report(&[&first, &second], by);
            let mut merged = a.clone();
            merged.merge(&b).unwrap();
            prop_assert_eq!(merged.header.elapsed, a.header.elapsed + b.header.elapsed);
            prop_assert_eq!(merged.header.threads, a.header.threads + b.header.threads);
            both.header = merged.header.clone();
            let lives = |report: &Report| report.thread_time.as_ref().map(|time| time.total());
            prop_assert_eq!(lives(&merged), Some(lives(&a).unwrap() + lives(&b).unwrap()));
            both.thread_time = merged.thread_time.clone();
            prop_assert_eq!(&merged, &both);
        }
    }

    #[test]
    fn merging_has_no_order_and_an_empty_recording_changes_nothing(
        first in realistic(0..120),
        second in realistic(0..120),
    ) {
        let (a, b) = (report(&[&first.records], GroupBy::Lock), report(&[&second.records], GroupBy::Lock));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b).unwrap();
        ba.merge(&a).unwrap();
        prop_assert_eq!(&ab, &ba);
        let mut same = a.clone();
        same.merge(&report(&[], GroupBy::Lock)).unwrap();
        prop_assert_eq!(&same, &a);
    }
}

#[test]
fn what_is_no_sum_is_listed_and_the_larger_floor_holds() {
    let mut a = report(&[], GroupBy::Site);
    let mut b = a.clone();
    (a.header.target, b.header.target) = ("make".into(), "xfs_repair".into());
    (a.header.kernel, b.header.kernel) = ("6.18.1".into(), "6.18.1".into());
    (a.header.cpu_time, b.header.cpu_time) = (None, Some(Nanos(5)));
    (a.trust.floor, b.trust.floor) = (Some(Nanos(900)), Some(Nanos(3400)));
    a.trust.cpu_event = Some(("cpu-clock".into(), Nanos(1_000_000)));
    b.trust.cpu_event = Some(("cycles".into(), Nanos(1_000_000)));
    a.merge(&b).unwrap();
    assert_eq!(
        (a.header.target.as_str(), a.header.kernel.as_str()),
        ("make; xfs_repair", "6.18.1")
    );
    assert_eq!((a.header.cpu_time, a.trust.floor), (Some(Nanos(5)), Some(Nanos(3400))));
    assert_eq!(a.trust.notes, ["CPU samples of cpu-clock and of cycles were added up"]);
}

#[test]
fn rows_of_different_kinds_are_refused() {
    let wait = |by| {
        reading().report(by, |s| {
            s.begin(at(100, 0, 7), 0xa, WRITE, &[]).end(at(150, 0, 7), 0xa, 0);
        })
    };
    let mut by_site = wait(GroupBy::Site);
    let error = by_site.merge(&wait(GroupBy::Lock)).unwrap_err();
    assert_eq!(error, MergeError::Rows { own: GroupBy::Site, other: GroupBy::Lock });
    assert_eq!(error.to_string(), "rows by lock cannot be added to rows by site");
    assert_eq!(by_site, wait(GroupBy::Site));
}
