//! The report of a real recording equals the merged reports of its parts.

use lockprof::model::{GroupBy, Query};
use lockprof::report::Report;
use lockprof::source::Round;

use crate::fixtures::{empty_pipeline, recording, replay};

/// The report by site of these rounds alone.
fn report(rounds: &[Round]) -> Report {
    let mut pipeline = empty_pipeline("6.18", &mut replay("6.18", "lost"));
    rounds.iter().for_each(|round| pipeline.push(round.clone()));
    pipeline.finish();
    pipeline.report(&Query { by: GroupBy::Site, top: 0, ..Query::default() })
}

/// The only recording with many rounds; where it is cut, no wait is open. By lock, a half may name a
/// lock after another place that takes it.
#[test]
fn two_halves_merged_equal_the_whole() {
    let mut replay = replay("6.18", "lost");
    let (mut rounds, mut round) = (Vec::new(), Round::default());
    while replay.next_round(&mut round).unwrap() {
        rounds.push(std::mem::take(&mut round));
    }
    assert!(rounds.len() > 100);
    let (front, back) = rounds.split_at(rounds.len() / 2);
    let mut merged = report(front);
    merged.merge(&report(back)).unwrap();
    let whole = &recording("6.18", "lost").by_site;
    assert_eq!(merged.total, whole.total);
    assert_eq!(merged.rows, whole.rows);
    assert_eq!(merged.trust.counts, whole.trust.counts);
}
