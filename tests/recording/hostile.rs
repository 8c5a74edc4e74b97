//! Files that were made to harm: each gives an error or a warning, in bounded time and memory.

use lockprof::recording::{ReadError, Repaired, repair};
use lockprof::source::{Replay, Round};

use crate::made::{Small, drain, records};

/// Where things stand in a small recording.
const ATTRS: usize = 24;
const DATA: usize = 40;
const FLAGS: usize = 72;
const BLOCK: usize = 104;

type Damage = fn(&mut [u8]);

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Offset of the block's entry of `kind`.
fn entry(bytes: &[u8], kind: u64) -> usize {
    (BLOCK + 16..).step_by(24).find(|&at| word(bytes, at) == kind).unwrap()
}

#[test]
fn damaged_headers_are_errors_that_name_the_part() {
    let damaged: [(Damage, &str); 8] = [
        (|b| put(b, 8, 60), "its size is 60"),
        (|b| put(b, 16, 0), "the size of an attr is 0"),
        (|b| put(b, ATTRS + 8, u64::MAX), "the attrs"),
        (|b| put(b, ATTRS + 8, 8), "describes no event"),
        (|b| put(b, ATTRS, 0), "the header and the attrs overlap"),
        (|b| put(b, DATA, word(b, ATTRS)), "the attrs and the records overlap"),
        (|b| put(b, ids_entry(b), u64::MAX - 8), "the ids of an event"),
        (|b| put(b, ids_entry(b) + 8, 1 << 62), "the ids of an event"),
    ];
    let bytes = Small::new().finished();
    for (damage, words) in damaged {
        let mut bytes = bytes.clone();
        damage(&mut bytes);
        let error = Replay::from_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} should say {words:?}");
    }
}

/// Where the extent of the first event's ids stands.
fn ids_entry(bytes: &[u8]) -> usize {
    (word(bytes, ATTRS) + word(bytes, 16)) as usize - 16
}

#[test]
fn sections_outside_or_over_the_records_or_malformed_cost_a_warning_each() {
    const HOSTNAME: u64 = 3;
    const ORIGIN: u64 = 0x1001;
    const KALLSYMS: u64 = 0x1000;
    let damaged: [(Damage, &str); 6] = [
        (|b| put(b, entry(b, HOSTNAME) + 8, u64::MAX), "HOSTNAME: 68 bytes at offset 1844674"),
        (|b| put(b, entry(b, HOSTNAME) + 16, u64::MAX), "HOSTNAME overlaps the records"),
        (|b| put(b, entry(b, HOSTNAME) + 16, 3), "HOSTNAME is malformed"),
        (|b| put(b, entry(b, ORIGIN) + 8, word(b, DATA)), "origin overlaps the records"),
        (|b| put(b, entry(b, KALLSYMS) + 8, 0), "kallsyms is malformed"),
        (|b| b[BLOCK + 12..BLOCK + 16].fill(0xff), "LOCKPROF block says it has 4294967295"),
    ];
    let bytes = Small::new().finished();
    for (damage, words) in damaged {
        let mut bytes = bytes.clone();
        damage(&mut bytes);
        let replay = Replay::from_bytes(bytes).unwrap();
        let warnings = replay.origin().warnings.join("\n");
        assert!(warnings.contains(words), "{warnings:?} should say {words:?}");
        assert_eq!(records(&drain(replay).0).len(), 1 + 5 + 2);
    }
}

#[test]
fn a_block_that_lists_itself_and_one_kind_many_times_is_read_once() {
    let mut bytes = Small::new().finished();
    let entries = u32::from_le_bytes(bytes[BLOCK + 12..BLOCK + 16].try_into().unwrap());
    for at in (0..entries as usize).map(|place| BLOCK + 16 + 24 * place) {
        put(&mut bytes, at, 0x1000);
        put(&mut bytes, at + 8, BLOCK as u64);
        put(&mut bytes, at + 16, 16 + 24 * u64::from(entries));
    }
    put(&mut bytes, FLAGS, 0);
    let replay = Replay::from_bytes(bytes).unwrap();
    assert_eq!(replay.origin().warnings[0], "section kallsyms is malformed and was left out");
    assert!(replay.origin().warnings[1].starts_with("tracepoints whose format is not in the file"));
}

#[test]
fn a_record_that_is_shorter_than_its_header_ends_the_reading_with_its_offset() {
    for size in [0u16, 1, 7] {
        let mut bytes = Small::new().finished();
        let start = word(&bytes, DATA) as usize;
        let second = start + usize::from(u16::from_le_bytes([bytes[start + 6], bytes[start + 7]]));
        bytes[second + 6..second + 8].copy_from_slice(&size.to_le_bytes());
        let (rounds, warnings) = drain(Replay::from_bytes(bytes).unwrap());
        assert_eq!(records(&rounds).len(), 1);
        let words = format!("the record at offset {second} says that it is {size} bytes long");
        assert!(warnings[0].starts_with(&words), "{warnings:?}");
    }
}

/// A recording whose records are `payload`, after one whole sample and before another one.
fn with_records(payload: &[u8]) -> (Small, Vec<u8>) {
    let small = Small::new();
    let path = &small.path;
    let mut writer =
        lockprof::recording::Writer::create(path, &small.origin, &small.tracing).unwrap();
    writer.append(&[&small.samples[0], payload, &small.samples[1]].concat()).unwrap();
    writer.finish(&small.end(), &[], None).unwrap();
    let bytes = std::fs::read(path).unwrap();
    (small, bytes)
}

fn record(kind: u32, size: u16, payload: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), payload].concat()
}

#[test]
fn bytes_that_follow_a_record_without_being_one_are_skipped() {
    const TRACING_DATA: u32 = 66;
    const AUXTRACE: u32 = 71;
    // One that is read at once with the rest, one that is longer than what is read at once.
    for len in [5u32, 700_000] {
        let junk = vec![0xff; len.next_multiple_of(8) as usize];
        let tracing = [record(TRACING_DATA, 12, &len.to_le_bytes()), junk.clone()].concat();
        let size = (junk.len() as u64).to_le_bytes();
        let auxtrace = [record(AUXTRACE, 48, &[&size[..], &[0; 32]].concat()), junk].concat();
        for (kind, payload) in [(TRACING_DATA, tracing), (AUXTRACE, auxtrace)] {
            let (small, bytes) = with_records(&payload);
            let (rounds, warnings) = drain(Replay::from_bytes(bytes).unwrap());
            let kinds: Vec<u32> = records(&rounds).iter().map(|(kind, _)| *kind).collect();
            assert_eq!((kinds, warnings), (vec![9, kind, 9, 68], Vec::new()), "{len} bytes");
            assert_eq!(records(&rounds)[2].1, small.samples[1]);
        }
    }
}

#[test]
fn following_bytes_without_end_end_the_reading() {
    let payload = record(71, 48, &[0xff; 40]);
    let (_small, bytes) = with_records(&payload);
    let (rounds, _) = drain(Replay::from_bytes(bytes).unwrap());
    let kinds: Vec<u32> = records(&rounds).iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [9, 71]);
}

#[test]
fn a_compressed_record_without_the_feature_bit_is_refused_where_it_stands() {
    for kind in [81, 83] {
        let (_small, bytes) = with_records(&record(kind, 16, &[1; 8]));
        let mut replay = Replay::from_bytes(bytes).unwrap();
        let error = replay.next_round(&mut Round::default()).unwrap_err();
        assert!(matches!(error, ReadError::Compressed), "{error}");
    }
}

#[test]
fn every_byte_of_a_small_recording_can_be_wrong() {
    let bytes = Small::new().finished();
    for at in 0..bytes.len() {
        for value in [0x00, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let Ok(mut replay) = Replay::from_bytes(bytes) else { continue };
            let mut round = Round::default();
            while replay.next_round(&mut round).is_ok_and(|more| more) {}
        }
    }
}

#[test]
fn what_repair_has_mended_is_good_whichever_byte_was_wrong() {
    let small = Small::new();
    let whole = small.finished();
    let data_end = (word(&whole, DATA) + word(&whole, DATA + 8)) as usize;
    let mut killed = whole[..data_end].to_vec();
    put(&mut killed, DATA + 8, 0);
    put(&mut killed, FLAGS, 0);
    for at in 0..killed.len() {
        let mut bytes = killed.clone();
        bytes[at] ^= 0xff;
        std::fs::remove_file(&small.path).unwrap();
        std::fs::write(&small.path, &bytes).unwrap();
        match repair(&small.path) {
            Ok(Repaired::Mended { .. }) => {
                assert_eq!(repair(&small.path).unwrap(), Repaired::Good, "byte {at}");
                Replay::open(&small.path).unwrap();
            }
            Ok(Repaired::Good) => {}
            Err(_) => assert_eq!(std::fs::read(&small.path).unwrap(), bytes, "byte {at}"),
        }
    }
}
