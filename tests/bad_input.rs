//! Bad input, through the program itself: what it says, what it suggests, its exit status.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RECORDING: &str = "tests/fixtures/recordings/6.1/contention-mmap.data";

/// Subcommands that read a recording.
const READERS: [&str; 3] = ["report", "script", "flamegraph"];

fn lockprof<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockprof"));
    command.args(args).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// What a failed run said: the `error:` line, and the text behind `hint:`.
struct Said {
    error: String,
    hint: String,
    status: i32,
}

impl Said {
    /// Of a run that must have failed by itself and left stdout empty.
    fn by(output: &Output) -> Said {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code().unwrap_or_else(|| panic!("killed: {output:?}"));
        assert!(output.stdout.is_empty(), "stdout is for data: {output:?}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        // Warnings may come first.
        let from = stderr.lines().position(|line| line.starts_with("error: "));
        let from = from.unwrap_or_else(|| panic!("no line starts with `error: `: {stderr:?}"));
        let said: String = stderr.split_inclusive('\n').skip(from).collect();
        let (error, hint) = said.split_once("\n\nhint: ").unwrap_or((&said, ""));
        assert!(!error.contains("(os error"), "{error}");
        Said { error: error.trim_end().to_owned(), hint: hint.to_owned(), status }
    }

    fn assert(&self, status: i32, error: &str, hint: &str) {
        let Said { error: said, hint: suggested, .. } = self;
        assert_eq!(self.status, status, "{said}");
        assert!(said.contains(error), "{said:?} lacks {error:?}");
        assert!(suggested.contains(hint), "{said:?}: hint {suggested:?} lacks {hint:?}");
        assert_eq!(suggested.is_empty(), hint.is_empty(), "{said:?}: hint {suggested:?}");
    }
}

fn fails(args: &[&str]) -> Said {
    Said::by(&lockprof(args).output().unwrap())
}

/// A reader's complaint about a recording.
fn refused(reader: &str, recording: &Path) -> Said {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = lockprof([reader]);
    command.arg(recording.canonicalize().unwrap_or(recording.to_owned()));
    let said = Said::by(&command.current_dir(scratch.path()).output().unwrap());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "{reader} left a file behind");
    assert!(said.error.starts_with("error: cannot read `"), "{}", said.error);
    said
}

/// A directory with one file in it.
fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.data");
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn recording() -> Vec<u8> {
    fs::read(RECORDING).unwrap()
}

#[test]
fn a_recording_that_is_missing_is_to_be_made_first() {
    for reader in READERS {
        let said = refused(reader, Path::new("/no-such-directory/x.data"));
        said.assert(2, "`/no-such-directory/x.data`", "lockprof record -- COMMAND");
        let scratch = tempfile::tempdir().unwrap();
        let output = lockprof([reader]).current_dir(scratch.path()).output().unwrap();
        Said::by(&output).assert(2, "`lockprof.data`", "lockprof record -- COMMAND");
    }
}

#[test]
fn files_that_are_no_recordings_are_named_for_what_they_are() {
    let elf = fs::read(env!("CARGO_BIN_EXE_lockprof")).unwrap();
    let mut first_format = recording();
    first_format[..8].copy_from_slice(b"PERFFILE");
    let mut big_endian = recording();
    big_endian[..8].reverse();
    let mut pipe = recording();
    pipe.truncate(16);
    pipe[8..16].copy_from_slice(&16_u64.to_le_bytes());
    let cases: [(&[u8], &str, &str); 6] = [
        (b"", "the file is empty", "record again"),
        (&elf[..100_000], "not a perf.data file: it starts with", "lockprof record"),
        (b"time,wait\n1,2\n", "\"time,wai\" instead of \"PERFILE2\"", "perf record"),
        (&first_format, "\"PERFFILE\"", "record again"),
        (&big_endian, "big-endian", "byte order"),
        (&pipe, "perf record -o -", "perf record -o FILE"),
    ];
    for reader in READERS {
        for (bytes, error, hint) in cases {
            refused(reader, &file(bytes).1).assert(2, error, hint);
        }
    }
}

#[test]
fn a_file_whose_text_acts_on_a_terminal_is_quoted_harmless() {
    let (_directory, path) = file(b"\x1b[2J\x1b]0;x\x07 hello");
    let said = refused("report", &path);
    assert!(!said.error.contains('\x1b') && !said.error.contains('\x07'), "{:?}", said.error);
    let name = std::ffi::OsStr::from_bytes(b"/no-such-directory/\x1b[31m\xff.data");
    let said = refused("report", Path::new(name));
    assert!(!said.error.contains('\x1b'), "{:?}", said.error);
}

#[test]
fn a_directory_is_no_recording() {
    for reader in READERS {
        let said = refused(reader, Path::new("/proc"));
        said.assert(2, "Is a directory", "");
    }
}

#[test]
fn a_recording_that_was_cut_anywhere_gives_a_report_or_an_error() {
    let whole = recording();
    let sizes = (1..12).map(|n| n * 13).chain((1..16).map(|n| whole.len() * n / 16));
    for size in sizes {
        let (_directory, path) = file(&whole[..size]);
        let output = lockprof(["report"]).arg(&path).output().unwrap();
        if output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("warning: "), "{size} bytes: {said}");
        } else {
            let said = Said::by(&output);
            assert_eq!(said.status, 2, "{size} bytes: {}", said.error);
        }
    }
    refused("report", &file(&whole[..50]).1).assert(2, "after 50 bytes", "copy it again");
}

/// Puts `value` over the 8 bytes at each place of the header and over the sizes of the first records.
#[test]
fn hostile_numbers_give_a_report_or_an_error_within_bounded_memory() {
    let whole = recording();
    for at in (8..104).step_by(8) {
        for value in [0, 1, 103, u64::from(u32::MAX), 1 << 62, u64::MAX - 7, u64::MAX] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let (_directory, path) = file(&bytes);
            // 1 GiB of address space: a count that is believed would ask for more.
            let limited = "ulimit -v 1048576 && exec \"$0\" report \"$1\"";
            let program = env!("CARGO_BIN_EXE_lockprof");
            let output =
                Command::new("sh").args(["-c", limited, program]).arg(&path).output().unwrap();
            if !output.status.success() {
                let said = Said::by(&output);
                assert_eq!(said.status, 2, "{value:#x} at {at}: {}", said.error);
            }
        }
    }
}

#[test]
fn what_is_typed_wrong_is_said_with_what_would_be_right() {
    let cases: [(&[&str], &str, &str); 12] = [
        (&["--frob"], "'--frob'", "Usage: lockprof"),
        (&["reprot"], "'reprot'", "'report'"),
        (&["report", "--frob"], "'--frob'", "Usage: lockprof report"),
        (&["report", "--sort", "size"], "'size'", "wait_total"),
        (&["report", "--format", "xml"], "'xml'", "folded"),
        (&["report", "--lock-type", "futex"], "'futex'", "--lock-type"),
        (&["report", "--min-wait", "soon"], "`soon`", "250us"),
        (&["report", "--time", "5s..2s"], "ends before it begins", "--time"),
        (&["record", "-F", "0", "-a"], "'0'", "1..=100000"),
        (&["record", "-a", "-p", "1"], "cannot be used with", "Usage"),
        (&["record", "-p", "0"], "'0'", "--pid"),
        (&["hammer", "mmap-sem", "--hold", "x"], "`x`", "10ms"),
    ];
    for (args, error, rest) in cases {
        let said = fails(args);
        assert_eq!(said.status, 2, "{args:?}: {}", said.error);
        assert!(said.error.starts_with("error: "), "{}", said.error);
        for part in [error, rest] {
            assert!(said.error.contains(part), "{args:?}: {:?} lacks {part:?}", said.error);
        }
    }
}

#[test]
fn recording_without_a_target_says_what_to_type() {
    let said = fails(&["record"]);
    said.assert(2, "record what?", "lockprof record -- COMMAND");
    for line in ["lockprof record -p PID", "lockprof record -a"] {
        assert!(said.hint.contains(line), "{}", said.hint);
    }
}

#[test]
fn a_picture_without_a_place_says_which_directory_to_make() {
    let said = fails(&["flamegraph", RECORDING, "-o", "/no-such-directory/x.svg"]);
    said.assert(2, "cannot write `/no-such-directory/x.svg`", "mkdir -p /no-such-directory");
}

#[test]
fn symbols_that_are_none_are_an_error() {
    let said = fails(&["report", RECORDING, "--kallsyms", "/no-such-file"]);
    assert_eq!(said.status, 2);
    assert!(said.error.contains("/no-such-file"), "{}", said.error);
    let said = fails(&["report", RECORDING, "--kallsyms", RECORDING]);
    assert!(said.error.contains("is no kallsyms"), "{}", said.error);
}

#[test]
fn a_file_that_cannot_be_repaired_stays_as_it_is() {
    let (_directory, path) = file(b"not a recording");
    let output = lockprof(["repair"]).arg(&path).output().unwrap();
    let said = Said::by(&output);
    said.assert(2, "not a perf.data file", "lockprof record");
    assert!(said.error.starts_with("error: cannot repair `"), "{}", said.error);
    assert_eq!(fs::read(&path).unwrap(), b"not a recording");
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let commands: [&[&str]; 6] = [
        &["report", RECORDING],
        &["report", RECORDING, "--format", "json"],
        &["report", RECORDING, "--format", "csv"],
        &["script", RECORDING],
        &["completions", "bash"],
        &["doctor"],
    ];
    for args in commands {
        let mut child =
            lockprof(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}: {said}");
        assert!(!said.contains("error:") && !said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn a_full_disk_behind_stdout_is_an_error() {
    for args in [&["report", RECORDING][..], &["script", RECORDING], &["doctor"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = lockprof(args).stdout(full).output().unwrap();
        let said = Said::by(&output);
        said.assert(2, "No space left on device", "");
    }
}
