//! A recording that was cut somewhere, at every byte of it: a report of what is left, or a clear error.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod recorded;
mod streams;

use std::error::Error;
use std::fs;

use lockprof::recording::Reader;
use lockprof::source::{Replay, Synthetic};
use recorded::{end, finish, origin, printed, record, replayed, reports};
use streams::{READ, READER, RT_KALLSYMS, WRITE, WRITER, at};

const WAITS: u64 = 6;

/// Six waits in three rounds.
fn recording() -> (Vec<u8>, u64, u64) {
    let mut synthetic = Synthetic::new();
    let mut rounds = Vec::new();
    for round in 0..3 {
        for wait in 0..2 {
            let (time, tid) = (1_000 * (2 * round + wait + 1), 7 + wait as i32);
            let (flags, stack) = if wait == 0 { (READ, READER) } else { (WRITE, WRITER) };
            synthetic.begin(at(time, 0, tid), 0xa0, flags, stack);
            synthetic.end(at(time + 500, 0, tid), 0xa0, 0);
        }
        rounds.push(synthetic.take_round().bytes);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lockprof.data");
    let origin = origin(RT_KALLSYMS);
    let (_, time, writer) = record(&origin, &rounds, &path);
    finish(writer, &origin, &end(0), time);
    let data = Reader::open(&path).unwrap().data();
    (fs::read(&path).unwrap(), data.start, data.end)
}

#[test]
fn a_cut_at_every_byte_gives_a_report_or_a_clear_error() {
    let (bytes, start, data_end) = recording();
    let mut waits = 0;
    let mut errors = 0;
    for len in 0..=bytes.len() {
        let replay = match Replay::from_bytes(bytes[..len].to_vec()) {
            Ok(replay) => replay,
            Err(error) => {
                assert!((len as u64) < start, "cut at {len}: {error}");
                assert!(is_a_sentence(&error), "cut at {len}: {error}");
                errors += 1;
                continue;
            }
        };
        let (pipeline, warnings) = replayed(replay);
        let of_every_kind = reports(&pipeline, true);
        let counts = of_every_kind[0].trust.counts;
        assert!(counts.balance(), "cut at {len}: {counts:?}");
        assert!(counts.begun >= waits, "cut at {len}: a wait less than with a byte less");
        waits = counts.begun;
        let text = printed(&of_every_kind);
        if (len as u64) < data_end {
            let said = text.contains("the file was cut") || text.contains("missing");
            assert!(said || !warnings.is_empty(), "cut at {len}: {text}");
        }
    }
    assert_eq!(waits, WAITS);
    assert!(errors > 100, "{errors}");
}

/// Starts with a small letter, ends without a period, tells something.
fn is_a_sentence(error: &dyn Error) -> bool {
    let text = error.to_string();
    text.len() > 10 && !text.ends_with('.') && !text.starts_with(char::is_uppercase)
}
