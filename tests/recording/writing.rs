//! What the writer writes, the reader reads.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use lockprof::recording::{EventDesc, Old, Origin, Reader, WriteError, Writer};
use lockprof::source::Replay;

use crate::made::{FIXTURES, Small, drain, fixture, records, rewritten};

#[test]
fn a_rewritten_recording_has_the_same_origin_and_records() {
    for name in FIXTURES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lockprof.data");
        let mut written = rewritten(&fixture(name), &path);
        let replay = Replay::open(&path).unwrap();
        let read = replay.origin().clone();
        written.end = read.end.clone();
        assert_eq!(read, written, "{name}");
        assert_eq!(read.end.unwrap().exit_status, Some(0), "{name}");
        let before = drain(Replay::open(&fixture(name)).unwrap()).0;
        assert_eq!(records(&drain(replay).0), records(&before), "{name}");
    }
}

#[test]
fn what_is_known_at_the_end_is_read_back() {
    let small = Small::new();
    let bytes = small.finished();
    let origin = Reader::open(&small.path).unwrap().origin().clone();
    assert!(bytes.len() < 8192, "{} bytes", bytes.len());
    assert_eq!(origin.end, Some(small.end()));
    assert_eq!(origin.build_ids, small.build_ids());
    assert_eq!(origin.kernel_build_id(), Some(&[0xab; 20][..]));
    assert_eq!(origin.sample_time, Some((5, 9)));
    assert_eq!(origin.settings, small.origin.settings);
    assert_eq!(origin.kallsyms, small.origin.kallsyms);
    assert_eq!(origin.warnings, [""; 0]);
}

#[test]
fn a_recording_without_a_single_record_can_be_finished_and_read() {
    let small = Small::new();
    let writer = Writer::create(&small.path, &small.origin, &small.tracing).unwrap();
    let written = writer.finish(&small.end(), &[], None).unwrap();
    assert_eq!((written.record_bytes, written.cut_bytes), (8, 0));
    assert_eq!(std::fs::metadata(&small.path).unwrap().len(), written.file_bytes);
    let (rounds, warnings) = drain(Replay::open(&small.path).unwrap());
    assert_eq!((records(&rounds).len(), warnings), (1, Vec::new()));
}

#[test]
fn only_known_feature_bits_are_set_and_the_table_stands_where_the_records_end() {
    let bytes = Small::new().finished();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let bits: Vec<usize> =
        (0..256).filter(|bit| word(72 + bit / 64 * 8) >> (bit % 64) & 1 == 1).collect();
    assert_eq!(bits, [1, 2, 3, 5, 11, 12, 21]);
    let table = (word(40) + word(48)) as usize;
    for (place, bit) in bits.iter().enumerate() {
        let (offset, size) = (word(table + 16 * place), word(table + 16 * place + 8));
        assert!(size > 0 && offset + size <= bytes.len() as u64, "section {bit}");
    }
}

#[test]
fn the_file_is_private_and_an_existing_one_is_kept_as_old() {
    let small = Small::new();
    let first = small.finished();
    assert_eq!(std::fs::metadata(&small.path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = Writer::create(&small.path, &small.origin, &small.tracing).unwrap_err();
    assert!(matches!(again, WriteError::Exists { .. }), "{again}");
    let old = Old::put_aside(&small.path).unwrap().keep().unwrap().unwrap();
    assert_eq!(old, small.dir.path().join("small.data.old"));
    assert_eq!(std::fs::read(&old).unwrap(), first);
    assert_eq!(Old::put_aside(&small.path).unwrap().keep().unwrap(), None);
    small.finished();
    assert_eq!(Old::put_aside(&small.path).unwrap().keep().unwrap(), Some(old));
}

#[test]
fn a_recording_that_came_to_nothing_costs_neither_the_one_before_nor_an_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let (place, older) = (dir.path().join("x.data"), dir.path().join("x.data.old"));
    std::fs::write(&place, "old").unwrap();
    std::fs::write(&older, "older").unwrap();
    let old = Old::put_aside(&place).unwrap();
    assert!(!place.exists());
    std::fs::write(&place, "begun").unwrap();
    drop(old);
    assert_eq!(std::fs::read(&place).unwrap(), b"old");
    assert_eq!(std::fs::read(&older).unwrap(), b"older");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn a_directory_is_not_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    let old = Old::put_aside(dir.path()).unwrap();
    assert!(dir.path().is_dir());
    assert_eq!(old.keep().unwrap(), None);
}

/// Runs itself with the variables that sudo sets.
#[test]
fn under_sudo_the_file_belongs_to_the_user_who_called_it() {
    let name = "writing::under_sudo_the_file_belongs_to_the_user_who_called_it";
    let small = Small::new();
    if !rustix::process::geteuid().is_root() {
        crate::aloud::skipped("only root can give files away");
    } else if std::env::var_os("SUDO_UID").is_some_and(|uid| uid == "4321") {
        small.finished();
        let metadata = std::fs::metadata(&small.path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (4321, 1234));
    } else {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", name]).env("SUDO_UID", "4321").env("SUDO_GID", "1234");
        let output = test.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
}

#[test]
fn a_missing_or_forbidden_directory_is_named_by_the_system() {
    let origin = Origin {
        events: vec![EventDesc::clone(&Small::new().origin.events[0])],
        ..Origin::default()
    };
    let error = Writer::create("/nonexistent/x.data".as_ref(), &origin, &Small::new().tracing);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("cannot create the recording: No such file"), "{error}");
}
