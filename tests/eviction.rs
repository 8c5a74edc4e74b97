//! A full table folds keys into their parents; nothing but keys is lost.

mod streams;

use lockprof::analyse::Detail;
use lockprof::model::{GroupBy, Nanos, Query};
use lockprof::report::Report;
use lockprof::source::Round;
use proptest::prelude::*;
use streams::scenario::{Record, arbitrary};
use streams::{RT_KALLSYMS, Reading, WRITE, ask, at, by_type};

fn reading(cells: usize) -> Reading {
    let detail = Detail { user_stacks: true, cpu_stacks: true, cells, ..Detail::default() };
    Reading { kallsyms: RT_KALLSYMS, detail, ..Reading::with_switches() }
}

fn report(reading: &Reading, records: &[Record]) -> Report {
    let bytes = records.iter().flat_map(|record| record.bytes.clone()).collect();
    let query = Query { stacks: true, ..ask(GroupBy::Site) };
    reading.pipeline([Round { bytes, offset: 0, finished: true }]).report(&query)
}

fn cpu_time(report: &Report) -> (u64, Nanos) {
    let stacks = &report.cpu_stacks;
    (stacks.iter().map(|s| s.samples).sum(), stacks.iter().map(|s| s.time).sum())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_of_any_width_has_equal_totals_types_and_histograms(
        records in arbitrary(0..200, |time, by| time + u64::from(by)),
        cells in 1..64usize,
    ) {
        let wide = report(&reading(1 << 16), &records);
        let narrow = report(&reading(cells), &records);
        prop_assert_eq!(wide.trust.folded_keys, 0);
        prop_assert_eq!(&narrow.total, &wide.total);
        prop_assert_eq!(by_type(&narrow), by_type(&wide));
        prop_assert_eq!(cpu_time(&narrow), cpu_time(&wide));
        prop_assert_eq!(narrow.trust.counts, wide.trust.counts);
        prop_assert_eq!(&narrow.header, &wide.header);
        // The same records fold the same keys.
        prop_assert_eq!(&report(&reading(cells), &records), &narrow);
    }
}

/// A hundred tasks wait for one lock each, task n for n us.
fn hundred(cells: usize) -> Report {
    let mut synthetic = lockprof::source::Synthetic::new();
    for n in 1..=100u64 {
        let (begin, end) = (at(n * 1_000_000, 0, n as i32), at(n * 1_001_000, 0, n as i32));
        synthetic.begin(begin, 0x1000 + n * 64, WRITE, &[]).end(end, 0x1000 + n * 64, 0);
    }
    reading(cells).pipeline([synthetic.take_round()]).report(&ask(GroupBy::Lock))
}

#[test]
fn what_waited_most_keeps_its_key_and_the_rest_is_counted_as_folded() {
    let report = hundred(20);
    let named: Vec<u64> =
        report.rows.iter().filter_map(|row| row.key.lock_addr).map(|lock| lock.0).collect();
    let largest: Vec<u64> = (91..=100).rev().map(|n| 0x1000 + n * 64).collect();
    let found = largest.iter().filter(|lock| named.contains(lock)).count();
    assert_eq!(found, largest.len(), "{named:x?}");
    assert!(report.rows.len() <= 20, "{} rows", report.rows.len());
    assert!(report.trust.folded_keys >= 80, "{} folded", report.trust.folded_keys);
    assert_eq!(report.total, hundred(1 << 16).total);
}

#[test]
fn a_table_of_one_cell_still_tells_the_types_apart() {
    assert_eq!(by_type(&hundred(1)), by_type(&hundred(1 << 16)));
}
