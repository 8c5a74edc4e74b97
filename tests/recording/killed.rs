//! Recordings whose recorder did not come to its end, or whose end is missing.

use std::fs;

use lockprof::recording::{Reader, Repaired, repair};
use lockprof::source::Replay;

use crate::made::{FIXTURES, Small, drain, fixture, records};

#[test]
fn a_killed_recorder_leaves_all_whole_records_and_all_that_was_known_at_the_start() {
    let small = Small::new();
    let writer = small.recording();
    drop(writer);
    let mut bytes = fs::read(&small.path).unwrap();
    bytes.extend_from_slice(&small.samples[0][..100]);
    let replay = Replay::from_bytes(bytes).unwrap();
    let origin = replay.origin().clone();
    assert_eq!(origin.warnings, ["the recorder was stopped before it could finish the file"]);
    assert_eq!((origin.settings, origin.end), (small.origin.settings.clone(), None));
    assert_eq!(origin.events, small.origin.events);
    assert_eq!(origin.kallsyms, small.origin.kallsyms);
    let (rounds, warnings) = drain(replay);
    assert_eq!(records(&rounds).len(), 1 + 5 + 2);
    assert_eq!(warnings, ["the last 100 bytes are a part of a record and were left out"]);
}

#[test]
fn a_cut_at_every_byte_gives_the_whole_records_before_it_or_an_error() {
    let small = Small::new();
    let bytes = small.finished();
    let data = Reader::open(&small.path).unwrap().data();
    let all = records(&drain(Replay::from_bytes(bytes.clone()).unwrap()).0);
    for len in 0..bytes.len() {
        let Ok(replay) = Replay::from_bytes(bytes[..len].to_vec()) else {
            assert!((len as u64) < data.start, "cut at {len}: the attrs are all there");
            continue;
        };
        let warned = !replay.origin().warnings.is_empty();
        let (rounds, _) = drain(replay);
        let whole = records(&rounds);
        let mut end = data.start as usize;
        let fit = all.iter().take_while(|(_, record)| {
            end += record.len();
            end <= len
        });
        assert_eq!(whole.len(), fit.count(), "cut at {len}");
        assert_eq!(whole, all[..whole.len()], "cut at {len}");
        assert!(warned || len as u64 >= data.end, "cut at {len}");
    }
}

#[test]
fn a_cut_at_every_byte_is_repaired_or_refused_and_a_second_repair_finds_nothing_to_do() {
    let small = Small::new();
    let bytes = small.finished();
    let data = Reader::open(&small.path).unwrap().data();
    for len in 0..bytes.len() {
        // Some filesystems flush a file that is cut to nothing and written again.
        fs::remove_file(&small.path).unwrap();
        fs::write(&small.path, &bytes[..len]).unwrap();
        let whole = Replay::from_bytes(bytes[..len].to_vec()).map(|r| records(&drain(r).0));
        match repair(&small.path) {
            Err(error) => {
                let first = data.start + 100;
                assert!((len as u64) < first, "cut at {len}: {error}");
                assert_eq!(fs::read(&small.path).unwrap(), bytes[..len], "cut at {len}");
            }
            Ok(Repaired::Good) => assert!(len as u64 > data.end, "cut at {len}"),
            Ok(Repaired::Mended { .. }) => {
                let replay = Replay::open(&small.path).unwrap();
                assert_eq!(replay.origin().warnings, [""; 0], "cut at {len}");
                assert_eq!(replay.origin().events, small.origin.events, "cut at {len}");
                assert_eq!(records(&drain(replay).0), whole.unwrap(), "cut at {len}");
                let mended = fs::read(&small.path).unwrap();
                assert_eq!(repair(&small.path).unwrap(), Repaired::Good, "cut at {len}");
                assert_eq!(fs::read(&small.path).unwrap(), mended, "cut at {len}");
            }
        }
    }
}

#[test]
fn repair_says_how_many_bytes_it_dropped() {
    let small = Small::new();
    let writer = small.recording();
    let record_bytes = writer.record_bytes();
    drop(writer);
    let mut bytes = fs::read(&small.path).unwrap();
    bytes.extend_from_slice(&small.samples[0][..41]);
    fs::write(&small.path, bytes).unwrap();
    assert_eq!(repair(&small.path).unwrap(), Repaired::Mended { record_bytes, dropped_bytes: 41 });
}

#[test]
fn a_recorder_killed_while_finishing_keeps_what_it_wrote_at_the_end() {
    let small = Small::new();
    let mut bytes = small.finished();
    // The header is written last: size and flags are still 0.
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    fs::write(&small.path, bytes).unwrap();
    let before = Replay::open(&small.path).unwrap();
    assert_eq!(before.origin().end, Some(small.end()));
    assert_eq!(records(&drain(before).0).len(), 1 + 5 + 2);
    assert!(matches!(repair(&small.path).unwrap(), Repaired::Mended { .. }));
    let after = Replay::open(&small.path).unwrap();
    assert_eq!(after.origin().end, Some(small.end()));
    assert_eq!(after.origin().build_ids, small.build_ids());
    assert_eq!(drain(after).1, [""; 0]);
}

#[test]
fn a_good_file_of_perf_is_left_as_it_is_and_one_without_formats_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let bytes = fs::read(fixture(FIXTURES[0])).unwrap();
    fs::write(&path, &bytes).unwrap();
    assert_eq!(repair(&path).unwrap(), Repaired::Good);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let mut killed = bytes[..20_000].to_vec();
    killed[48..56].fill(0);
    fs::write(&path, &killed).unwrap();
    let error = repair(&path).unwrap_err();
    assert!(error.to_string().contains("which perf writes last, are missing"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), killed);
}
