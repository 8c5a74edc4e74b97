//! `--time A..B`: neighbouring ranges add up to the whole, to the nanosecond.

mod streams;

use lockprof::model::{Filter, GroupBy, Nanos, WaitStat};
use lockprof::source::Round;
use proptest::collection::vec;
use proptest::prelude::*;
use streams::scenario::{Record, arbitrary, realistic};
use streams::{RT_KALLSYMS, Reading, WRITE, ask, at};

fn total(records: &[Record], time: Option<(Nanos, Nanos)>) -> WaitStat {
    let bytes = records.iter().flat_map(|record| record.bytes.clone()).collect();
    let filter = Filter { time, ..Filter::default() };
    let reading = Reading { filter, kallsyms: RT_KALLSYMS, ..Reading::with_switches() };
    let pipeline = reading.pipeline([Round { bytes, offset: 0, finished: true }]);
    pipeline.report(&ask(GroupBy::Site)).total
}

/// The ranges between `cuts`, from the beginning to the end of time.
fn ranges(mut cuts: Vec<u64>) -> Vec<Option<(Nanos, Nanos)>> {
    cuts.push(0);
    cuts.sort_unstable();
    let ends = cuts.clone().into_iter().skip(1).chain([u64::MAX]);
    cuts.into_iter().zip(ends).map(|(from, to)| Some((Nanos(from), Nanos(to)))).collect()
}

fn check(records: &[Record], cuts: Vec<u64>) -> Result<(), TestCaseError> {
    let mut sum = WaitStat::default();
    for range in ranges(cuts) {
        sum.merge(&total(records, range));
    }
    // Counts, own and full times, extremes, histogram, open, uncertain and spun: all of it.
    prop_assert_eq!(sum, total(records, None));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn neighbouring_ranges_add_up_to_the_whole(
        records in arbitrary(0..120, |time, by| time + u64::from(by)),
        cuts in vec(0..20_000u64, 0..6),
    ) {
        check(&records, cuts)?;
    }

    #[test]
    fn ranges_over_nested_waits_add_up_to_the_whole(
        scenario in realistic(0..200),
        cuts in vec(0..30_000u64, 0..6),
    ) {
        check(&scenario.records, cuts)?;
    }
}

#[test]
fn a_wait_is_clipped_to_the_range_and_counted_where_it_ends() {
    let mut synthetic = lockprof::source::Synthetic::new();
    synthetic.begin(at(1000, 0, 7), 0xa, WRITE, &[]).end(at(1100, 0, 7), 0xa, 0);
    let bytes = synthetic.take_round().bytes;
    let records = [Record { time: 1000, cpu: 0, bytes }];
    let part = |from, to| {
        let stat = total(&records, Some((Nanos(from), Nanos(to))));
        (stat.ended.count, stat.ended.own.0, stat.ended.total.0)
    };
    assert_eq!(part(0, 30), (0, 30, 0));
    assert_eq!(part(30, 100), (0, 70, 0));
    assert_eq!(part(100, 200), (1, 0, 100));
    assert_eq!(part(30, 101), (1, 70, 100));
    assert_eq!(part(200, 300), (0, 0, 0));
}
