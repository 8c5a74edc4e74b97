//! What a live screen shows and what a report says later are equal, byte for byte.
//!
//! ```text
//!   made-up rings ──> Recorder ──rounds──> pipe ──────────────> report
//!                        └────────file──> Replay ──> pipe ──> the same report
//! ```

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod recorded;
mod streams;

use std::fs;

use lockprof::recording::{Reader, Repaired, repair};
use lockprof::source::{Replay, Round, Synthetic};
use lockprof_collectors::perf::record::RecordHeader;
use proptest::prelude::*;
use recorded::{end, finish, live, origin, printed, record, replayed, reports};
use streams::scenario::{Record, arbitrary, realistic};
use streams::{MUTEX, READ, READER, RT, RT_KALLSYMS, RT_MUTEX, SPIN, WRITE, WRITER, at};

/// A bit of everything: readers and writers, phases, a failed wait, samples, names, forks, losses, a
/// wait that never ends.
fn stream() -> Vec<Vec<u8>> {
    let mut s = Synthetic::new();
    let mut rounds = Vec::new();
    s.comm(900, 7, 7, "reader", true).comm(901, 8, 8, "writer", false);
    s.begin(at(1_000, 0, 7), 0xa0, RT | READ, READER);
    s.begin(at(1_010, 1, 8), 0xb0, SPIN | MUTEX, WRITER);
    rounds.push(s.take_round().bytes);
    s.begin(at(1_200, 1, 8), 0xb0, MUTEX, WRITER).switch(at(1_210, 1, 8), true);
    s.cpu_sample(at(1_300, 0, 7), READER, &[0x40_1000, 0x40_2000]);
    s.end(at(1_500, 0, 7), 0xa0, 0);
    rounds.push(s.take_round().bytes);
    s.fork(at(1_600, 0, 9), 7, 7).lost(at(1_700, 2, 9), 5);
    s.switch(at(1_800, 1, 8), false).end(at(1_900, 1, 8), 0xb0, -4);
    s.begin(at(2_000, 2, 9), 0xc0, WRITE, RT_MUTEX);
    rounds.push(s.take_round().bytes);
    rounds
}

/// The two reports of one stream.
fn both(rounds: &[Vec<u8>], lost: u64) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lockprof.data");
    let origin = origin(RT_KALLSYMS);
    let (heard, time, writer) = record(&origin, rounds, &path);
    finish(writer, &origin, &end(lost), time);
    let live = live(&origin, &heard, Some(end(lost)));
    let (later, warnings) = replayed(Replay::open(&path).unwrap());
    assert_eq!(warnings, [""; 0]);
    (printed(&reports(&live, true)), printed(&reports(&later, true)))
}

#[test]
fn a_report_of_the_file_equals_that_of_the_live_rounds() {
    let (live, later) = both(&stream(), 0);
    assert_eq!(live, later);
    for part in ["rwsem", "mutex", "reader", "do_mprotect_pkey", "failed"] {
        assert!(live.contains(part), "{part}: {live}");
    }
}

#[test]
fn what_the_counters_lost_is_said_live_as_it_is_later() {
    // Five of the eight are told of by a LOST record, too.
    let (live, later) = both(&stream(), 8);
    assert_eq!(live, later);
    assert!(live.contains(", 8 records lost"), "{live}");
}

#[test]
fn what_the_recorder_adds_to_the_file_does_not_say_when_a_ring_was_read() {
    let mut s = Synthetic::new();
    s.switch(at(1_000, 0, 7), false).begin(at(1_200, 0, 7), 0xa0, MUTEX, WRITER);
    let first = s.take_round().bytes;
    s.lost(at(1_300, 0, 7), 5).switch(at(1_400, 0, 7), true);
    let (live, later) = both(&[first, s.take_round().bytes], 8);
    assert_eq!(live, later);
}

/// The rounds up to byte `len` of their records in a file, cut behind the last whole record.
fn cut(heard: &[Round], len: u64) -> Vec<Round> {
    let mut kept = Vec::new();
    for round in heard.iter().filter(|round| round.offset < len) {
        let mut round = round.clone();
        let most = (len - round.offset) as usize;
        let mut whole = 0;
        while let Some(header) = round.bytes.get(whole..).and_then(RecordHeader::parse) {
            if whole + usize::from(header.size) > most {
                break;
            }
            whole += usize::from(header.size);
        }
        round.bytes.truncate(whole);
        kept.push(round);
    }
    kept
}

#[test]
fn a_killed_recorder_leaves_what_was_seen_until_then_and_repair_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lockprof.data");
    let origin = origin(RT_KALLSYMS);
    let (heard, _, writer) = record(&origin, &stream(), &path);
    drop(writer);
    let start = Reader::open(&path).unwrap().data().start;
    let bytes = fs::read(&path).unwrap();
    let records = bytes.len() as u64 - start;
    for len in (200..=records).step_by(7) {
        fs::write(&path, &bytes[..(start + len) as usize]).unwrap();
        let seen = printed(&reports(&live(&origin, &cut(&heard, len), None), false));
        let (killed, _) = replayed(Replay::open(&path).unwrap());
        assert_eq!(printed(&reports(&killed, false)), seen, "cut at {len}");
        assert!(printed(&reports(&killed, true)).contains("the recorder was stopped before"));
        assert!(matches!(repair(&path).unwrap(), Repaired::Mended { .. }), "cut at {len}");
        let (repaired, warnings) = replayed(Replay::open(&path).unwrap());
        assert_eq!(warnings, [""; 0], "cut at {len}");
        assert_eq!(printed(&reports(&repaired, true)), seen, "cut at {len}");
    }
}

/// Rounds of so many records each.
fn in_rounds(records: &[Record], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = records;
    let mut rounds = Vec::new();
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let size = sizes.next().unwrap().clamp(1, rest.len());
        let (round, after) = rest.split_at(size);
        rounds.push(round.iter().flat_map(|record| record.bytes.clone()).collect());
        rest = after;
    }
    rounds
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_stream_reads_the_same_live_and_later(
        possible in realistic(0..80),
        anything in arbitrary(0..80, |time, by| time + u64::from(by)),
        sizes in proptest::collection::vec(1usize..20, 0..12),
        lost in 0u64..1000,
    ) {
        for records in [&possible.records, &anything] {
            let (live, later) = both(&in_rounds(records, &sizes), lost);
            prop_assert_eq!(live, later);
        }
    }
}
