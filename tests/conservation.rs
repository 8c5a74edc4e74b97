//! What must hold for every stream: nothing is dropped without being counted, no second counts twice,
//! and neither rounds nor rings nor the width of a table change the answer.

mod streams;

use lockprof::model::{GroupBy, Nanos};
use lockprof::report::Report;
use lockprof::source::Round;
use proptest::collection::vec;
use proptest::prelude::*;
use streams::scenario::{Record, arbitrary, realistic, rounds};
use streams::{RT_KALLSYMS, Reading, ask};

/// `PREEMPT_RT` symbols, so that parts of rw locks are joined.
fn readings() -> [Reading; 3] {
    let rt = Reading { kallsyms: RT_KALLSYMS, ..Reading::default() };
    [Reading::default(), Reading { switches: true, ..rt.clone() }, Reading { ends: false, ..rt }]
}

fn one_round(records: &[Record]) -> Round {
    let bytes = records.iter().flat_map(|record| record.bytes.clone()).collect();
    Round { bytes, offset: 0, finished: true }
}

fn report(reading: &Reading, records: &[Record], by: GroupBy) -> Report {
    reading.pipeline([one_round(records)]).report(&ask(by))
}

fn later(time: u64, by: u8) -> u64 {
    time + 1 + u64::from(by)
}

/// Steps of zero, backwards, and to both ends of time.
fn anywhere(time: u64, by: u8) -> u64 {
    match by {
        0..=9 => u64::MAX - u64::from(by),
        10..=14 => 0,
        15..=99 => time.saturating_sub(u64::from(by)),
        _ => time.saturating_add(u64::from(by) - 100),
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn every_begin_and_every_end_is_counted_once(records in arbitrary(0..200, later)) {
        for reading in readings() {
            let report = report(&reading, &records, GroupBy::Site);
            let counts = report.trust.counts;
            prop_assert!(counts.balance(), "{counts:?}");
            prop_assert_eq!(report.total.ended.count, counts.ended);
            prop_assert_eq!(report.total.open, counts.open);
            prop_assert_eq!(report.total.uncertain, counts.uncertain);
            prop_assert_eq!(report.total.ended.histogram.count(), counts.ended);
            prop_assert_eq!(report.trust.records, records.len() as u64);
        }
    }

    #[test]
    fn times_that_run_backwards_or_to_the_end_of_time_change_no_count(
        records in arbitrary(0..120, anywhere),
    ) {
        for reading in readings() {
            let report = report(&reading, &records, GroupBy::Task);
            prop_assert!(report.trust.counts.balance(), "{:?}", report.trust.counts);
            prop_assert_eq!(report.trust.records, records.len() as u64);
        }
    }

    #[test]
    fn rows_by_site_lock_and_task_have_one_total(records in arbitrary(0..200, later)) {
        for reading in readings() {
            let pipeline = reading.pipeline([one_round(&records)]);
            let total = pipeline.report(&ask(GroupBy::Site)).total;
            for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task] {
                let report = pipeline.report(&ask(by));
                let mut sum = lockprof::model::WaitStat::default();
                report.rows.iter().for_each(|row| sum.merge(&row.stat));
                prop_assert_eq!(&sum, &total);
                prop_assert_eq!(&report.total, &total);
                for row in &report.rows {
                    let mut splits = lockprof::model::WaitStat::default();
                    row.splits.iter().for_each(|split| splits.merge(&split.stat));
                    prop_assert_eq!(&splits, &row.stat);
                }
            }
        }
    }

    #[test]
    fn own_times_add_up_to_the_time_in_which_threads_waited(scenario in realistic(0..300)) {
        let report = report(&Reading::with_switches(), &scenario.records, GroupBy::Task);
        let counts = report.trust.counts;
        prop_assert_eq!((counts.unmatched, counts.restarts, counts.uncertain), (0, 0, 0));
        prop_assert_eq!(report.total.traced(), Nanos(scenario.waited));
    }

    #[test]
    fn phases_add_up_to_the_time_in_which_threads_waited(
        scenario in realistic(0..300),
        hostile in arbitrary(0..200, later),
    ) {
        for records in [&scenario.records, &hostile] {
            let report = report(&Reading::with_switches(), records, GroupBy::Task);
            prop_assert_eq!(report.total.phases.total(), report.total.traced());
        }
    }

    #[test]
    fn no_task_waits_longer_than_it_lives(scenario in realistic(0..300)) {
        let report = report(&Reading::with_switches(), &scenario.records, GroupBy::Task);
        for row in &report.rows {
            let task = row.key.task.as_ref().unwrap();
            prop_assert!(task.comm == "[softirq]" || row.stat.traced() <= Nanos(scenario.elapsed));
        }
    }

    #[test]
    fn where_rounds_are_cut_and_how_rings_interleave_changes_nothing(
        records in arbitrary(1..150, later),
        cuts in vec(0.0..1.0f64, 0..8),
        jitter in vec(any::<u8>(), 1..24),
        order in vec(0..3u8, 1..20),
    ) {
        let (first, last) = (records[0].time, records[records.len() - 1].time);
        let at = |share: f64| first + ((last - first) as f64 * share) as u64;
        let mut bounds: Vec<u64> = cuts.into_iter().map(at).collect();
        bounds.sort_unstable();
        for reading in readings() {
            let whole = report(&reading, &records, GroupBy::Task);
            let cut = rounds(&records, &bounds, &jitter, &order);
            let bytes: usize = cut.iter().map(|round| round.bytes.len()).sum();
            prop_assert_eq!(bytes, records.iter().map(|r| r.bytes.len()).sum::<usize>());
            let pieces = reading.pipeline(cut).report(&ask(GroupBy::Task));
            prop_assert_eq!(&pieces, &whole);
        }
    }

    #[test]
    fn the_same_records_give_the_same_report(records in arbitrary(0..150, anywhere)) {
        for reading in readings() {
            for by in [GroupBy::Site, GroupBy::Lock, GroupBy::Task] {
                let one = report(&reading, &records, by);
                prop_assert_eq!(&report(&reading, &records, by), &one);
            }
        }
    }
}
