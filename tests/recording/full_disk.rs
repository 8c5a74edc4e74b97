//! A disk that fills up while recording: a small tmpfs.

use std::path::Path;
use std::process::Command;

use lockprof::recording::{WriteError, Writer, Written};
use lockprof::source::Replay;

use crate::made::{Small, drain, records};

/// A mounted tmpfs; unmounted at the end.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(kib: u32) -> Option<Tmpfs> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "lockprof-test"]).arg(dir.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            crate::aloud::skipped("a tmpfs cannot be mounted here (not root?)");
        }
        mounted.then_some(Tmpfs(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "umount of the test's tmpfs");
    }
}

/// Appends rounds of `samples` samples until the disk is full; gives the rounds that were kept.
fn fill(writer: &mut Writer, small: &Small, samples: usize) -> usize {
    let round = small.samples[0].repeat(samples);
    for kept in 0.. {
        match writer.append(&round).and_then(|()| writer.finished_round()) {
            Ok(()) => {}
            Err(WriteError::DiskFull { bytes }) => {
                assert_eq!(bytes, writer.record_bytes());
                assert!(writer.append(&round).is_err(), "a full recording takes no more");
                return kept;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn on_a_full_disk_whole_rounds_stay_and_the_file_is_finished() {
    // Rounds shorter and longer than a page, so that one or many must go for the tail.
    for samples in [1, 40, 300] {
        let Some(disk) = Tmpfs::mount(256) else { return };
        let small = Small::new();
        let path = disk.path().join("lockprof.data");
        let mut writer = Writer::create(&path, &small.origin, &small.tracing).unwrap();
        let kept = fill(&mut writer, &small, samples);
        assert!(kept > 1, "{kept} rounds of {samples}");
        let written = writer.finish(&small.end(), &small.build_ids(), Some((5, 9))).unwrap();
        check(&path, &written, &small, samples, kept);
    }
}

fn check(path: &Path, written: &Written, small: &Small, samples: usize, kept: usize) {
    let replay = Replay::open(path).unwrap();
    let origin = replay.origin().clone();
    assert_eq!(origin.warnings, [""; 0]);
    assert_eq!(origin.end.unwrap().cut_bytes, written.cut_bytes);
    assert_eq!(origin.build_ids, small.build_ids());
    let (rounds, warnings) = drain(replay);
    assert_eq!(warnings, [""; 0]);
    assert!(rounds.iter().all(|round| round.finished && round.bytes == rounds[0].bytes));
    let round = samples * small.samples[0].len();
    assert_eq!(rounds[0].bytes.len(), round + 8);
    assert!(rounds.len() <= kept && rounds.len() + 1 + 8192 / round >= kept, "of {kept} rounds");
    let offered = written.cut_bytes + written.record_bytes;
    assert!(offered as usize >= (kept + 2) * round, "{written:?}: nothing is cut unsaid");
    assert_eq!(records(&rounds).len(), rounds.len() * (samples + 1));
}

#[test]
fn a_disk_without_room_for_the_start_is_an_error_and_leaves_no_file() {
    let Some(disk) = Tmpfs::mount(4) else { return };
    let mut small = Small::new();
    small.origin.command_line = vec!["x".repeat(8192)];
    let path = disk.path().join("lockprof.data");
    let error = Writer::create(&path, &small.origin, &small.tracing).unwrap_err();
    assert!(matches!(error, WriteError::NoRoom), "{error}");
    assert!(!path.exists());
}
