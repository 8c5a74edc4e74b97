//! perf's own tools read our recordings without a word on stderr.

use std::path::Path;
use std::process::{Command, Output};

use lockprof::recording::repair;

use crate::made::{FIXTURES, fixture, rewritten, tracing_data};

/// perf's answer; `None`, said aloud, when there is no perf.
fn perf(arguments: &[&str], file: &Path) -> Option<Output> {
    let mut perf = Command::new("perf");
    perf.args(arguments)
        .arg("-i")
        .arg(file)
        .env("PERF_PAGER", "cat")
        .env("PERF_BUILDID_DIR", "/dev/null");
    match perf.output() {
        Ok(output) => Some(output),
        Err(error) => {
            crate::aloud::skipped(format_args!("perf cannot be run: {error}"));
            None
        }
    }
}

/// What perf prints of `file`, which it must read without complaint.
fn read_by_perf(arguments: &[&str], file: &Path) -> Option<String> {
    let output = perf(arguments, file)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {arguments:?}: {stderr}");
    assert_eq!(stderr, "", "perf {arguments:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

const READERS: [&[&str]; 5] = [
    &["script"],
    &["evlist", "-v"],
    &["report", "--stdio", "-q"],
    &["report", "--header-only"],
    &["buildid-list"],
];

fn check_same(original: &Path, ours: &Path) -> Option<()> {
    for arguments in READERS {
        let (before, after) = (read_by_perf(arguments, original)?, read_by_perf(arguments, ours)?);
        if arguments[0] == "script" || arguments[0] == "evlist" {
            assert_eq!(before, after, "perf {arguments:?}");
            assert!(before.lines().count() > 1);
        }
    }
    let out = ours.with_extension("injected");
    read_by_perf(&["inject", "-b", "-o", out.to_str().unwrap()], ours)?;
    let script = read_by_perf(READERS[0], &out)?;
    assert_eq!(script, read_by_perf(READERS[0], ours)?);
    Some(())
}

#[test]
fn perf_sees_the_same_events_in_a_rewritten_recording() {
    for name in [FIXTURES[0], FIXTURES[3]] {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("lockprof.data");
        rewritten(&fixture(name), &ours);
        if check_same(&fixture(name), &ours).is_none() {
            return;
        }
    }
}

#[test]
fn perf_reads_a_killed_recording_after_repair() {
    let dir = tempfile::tempdir().unwrap();
    let ours = dir.path().join("lockprof.data");
    rewritten(&fixture(FIXTURES[0]), &ours);
    let whole = std::fs::read(&ours).unwrap();
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let mut killed = whole[..word(40) + word(48)].to_vec();
    killed[48..56].fill(0);
    killed[72..104].fill(0);
    std::fs::write(&ours, killed).unwrap();
    repair(&ours).unwrap();
    let _ = check_same(&fixture(FIXTURES[0]), &ours);
}

/// perf records begins and ends with their stacks; its lock report of our copy must be the same.
#[test]
fn perf_lock_contention_reports_the_same_of_a_rewritten_recording() {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("perf.data"), dir.path().join("lockprof.data"));
    let events = "lock:contention_begin,lock:contention_end";
    let load = "for i in 1 2 3 4; do dd if=/dev/zero bs=64 count=20000 2>/dev/null | \
                dd of=/dev/null bs=64 2>/dev/null & done; wait";
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-a", "-g", "-e", events, "-o"]).arg(&theirs);
    record.args(["--", "sh", "-c", load]);
    let recorded = record.output();
    if !theirs.exists() || recorded.is_err() {
        crate::aloud::skipped(format_args!(
            "perf cannot record contention events here (not root?)"
        ));
        return;
    }
    assert!(!tracing_data(&theirs).formats.is_empty());
    rewritten(&theirs, &ours);
    let report = |file: &Path| {
        let output = perf(&["lock", "contention"], file).unwrap();
        assert!(output.status.success());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("contended"), "{text}");
        // When events were lost perf counts all records: ours has one FINISHED_ROUND more where
        // perf stopped in the middle of a round.
        text.lines().filter(|line| !line.starts_with("Processed")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(report(&theirs), report(&ours));
}
