//! Files of `perf record`.

use std::process::Command;

use lockprof::recording::{ReadError, Reader};
use lockprof::source::Replay;

use crate::made::{FIXTURES, drain, fixture, records};

#[test]
fn events_host_and_command_of_four_kernels_are_read() {
    let cases = [
        ("6.1.0-57-cloud-amd64", 8, 326, "lock:contention_begin"),
        ("6.12.117+deb13-rt-amd64", 4, 0, "lock:contention_begin"),
        ("7.2.13+deb14-cloud-amd64", 8, 350, "lock:contention_begin"),
        ("5.10.0-32-cloud-amd64", 4, 311, "sched:sched_waking"),
    ];
    for (name, (release, cpus, id, event)) in FIXTURES.into_iter().zip(cases) {
        let reader = Reader::open(&fixture(name)).unwrap();
        let origin = reader.origin();
        assert_eq!((&*origin.host.release, origin.host.cpus_online), (release, cpus), "{name}");
        assert_eq!((&*origin.host.arch, origin.host.page_size), ("x86_64", 4096), "{name}");
        assert_eq!(origin.command_line[..2], ["/usr/bin/perf", "record"], "{name}");
        assert_eq!(origin.warnings, [""; 0], "{name}");
        let first = &origin.events[0];
        assert_eq!((&*first.name, first.ids.len() as u32), (event, cpus), "{name}");
        let format = first.format.as_ref().unwrap();
        assert!(id == 0 || format.id == id, "{name}: {}", format.id);
        assert_eq!(format.id, first.attr.config, "{name}");
        assert!(format.field("common_pid").is_some(), "{name}");
        let last = origin.events.last().unwrap();
        assert_eq!((&*last.name, &last.format), ("dummy:HG", &None), "{name}");
    }
}

#[test]
fn rounds_end_with_a_finished_round_and_join_to_all_bytes_of_the_file() {
    for (name, count) in FIXTURES.into_iter().zip([496, 902, 517, 390]) {
        let path = fixture(name);
        let data = Reader::open(&path).unwrap().data();
        let file = std::fs::read(&path).unwrap();
        let (rounds, warnings) = drain(Replay::open(&path).unwrap());
        let joined: Vec<u8> = rounds.iter().flat_map(|round| round.bytes.clone()).collect();
        assert_eq!(joined, file[data.start as usize..data.end as usize], "{name}");
        assert_eq!((records(&rounds).len(), warnings), (count, Vec::new()), "{name}");
        let mut offset = data.start;
        for round in &rounds {
            assert_eq!(round.offset, offset, "{name}");
            let kinds: Vec<u32> =
                records(std::slice::from_ref(round)).iter().map(|(kind, _)| *kind).collect();
            let ends = kinds.iter().filter(|&&kind| kind == 68).count();
            assert_eq!((ends, kinds.last() == Some(&68)), (1, round.finished), "{name}");
            offset += round.bytes.len() as u64;
        }
    }
}

#[test]
fn events_without_event_desc_are_named_by_format_and_attr() {
    let mut file = std::fs::read(fixture(FIXTURES[0])).unwrap();
    // The table has an entry for each flag bit: entry 12 becomes that of a section nobody reads.
    let flags = u64::from_le_bytes(file[72..80].try_into().unwrap());
    let data = u64::from_le_bytes(file[40..48].try_into().unwrap())
        + u64::from_le_bytes(file[48..56].try_into().unwrap());
    let place = (flags & ((1 << 12) - 1)).count_ones() as usize;
    let entry = data as usize + 16 * place;
    file[entry..entry + 16].fill(0);
    let replay = Replay::from_bytes(file).unwrap();
    let names: Vec<_> = replay.origin().events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["lock:contention_begin", "dummy"]);
    assert_eq!(replay.origin().events[0].ids.len(), 8);
}

#[test]
fn a_stream_and_compressed_records_are_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let record = |arguments: &[&str]| {
        let path = dir.path().join(arguments[0].trim_start_matches('-'));
        let perf = ["record", "-q", "-N", "-B", "-e", "cpu-clock:u"];
        let mut perf = Command::new("perf").args(perf).args(arguments).arg("true").output().ok()?;
        if perf.stdout.is_empty() {
            perf.stdout = std::fs::read(dir.path().join("zipped")).ok()?;
        }
        std::fs::write(&path, &perf.stdout).ok()?;
        perf.status.success().then_some(path)
    };
    let zipped = dir.path().join("zipped");
    let made = (record(&["-o-"]), record(&["-z", "-o", zipped.to_str().unwrap()]));
    let (Some(stream), Some(compressed)) = made else {
        crate::aloud::skipped("perf is not installed or cannot record here");
        return;
    };
    let stream = Replay::open(&stream).unwrap_err();
    assert!(matches!(stream, ReadError::Pipe), "{stream}");
    assert!(stream.hint().unwrap().contains("perf record -o FILE"));
    let compressed = Replay::open(&compressed).unwrap_err();
    assert!(matches!(compressed, ReadError::Compressed), "{compressed}");
    assert!(compressed.hint().unwrap().contains("without -z"));
}

#[test]
fn a_file_that_is_not_there_or_is_a_directory_is_an_error() {
    for path in ["/nonexistent/lockprof.data", "/"] {
        let error = Replay::open(path.as_ref()).unwrap_err();
        assert!(matches!(error, ReadError::Io { .. }), "{error}");
    }
}

#[test]
fn a_round_beyond_the_limit_comes_in_pieces_and_only_the_last_one_is_finished() {
    let small = crate::made::Small::new();
    let mut writer = small.recording();
    let before = writer.record_bytes();
    let many = small.samples[0].repeat(9 * 1024 * 1024 / small.samples[0].len());
    writer.append(&many).unwrap();
    writer.finished_round().unwrap();
    writer.finish(&small.end(), &[], None).unwrap();
    let (rounds, warnings) = drain(Replay::open(&small.path).unwrap());
    assert_eq!(warnings, [""; 0]);
    let Some(long) =
        rounds.split(|round| round.bytes.len() < 1 << 16).max_by_key(|part| part.len())
    else {
        panic!("{} pieces, none of them long", rounds.len());
    };
    assert!(long.len() > 9, "{} pieces of 9 MiB", long.len());
    assert!(long.iter().all(|piece| piece.bytes.len() <= 1 << 20));
    assert!(long[..long.len() - 1].iter().all(|piece| !piece.finished));
    let all: usize = rounds.iter().map(|round| round.bytes.len()).sum();
    assert_eq!(all as u64, before + many.len() as u64 + 8);
}
