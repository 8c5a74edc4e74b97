//! perf's own tools read what was recorded here, and find in it what lockprof finds.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use lockprof_collectors::perf::record::kind;

use super::machine::{FILE, LOCKPROF, Machine, Running, records, say, text};
use crate::perf_table::{Columns, is_without_time, rows};

const HAMMER: [&str; 5] = [LOCKPROF, "hammer", "mmap-sem", "--seconds", "1s"];

/// perf's stdout and stderr for the test's recording; it must succeed.
fn perf(machine: &Machine, args: &[&str]) -> (String, String) {
    let mut perf = machine.command(["perf"]);
    let output = perf.args(args).args(["-i", FILE]).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "perf {args:?}: {err}");
    (out, err)
}

/// perf without a word on stderr.
fn silent_perf(machine: &Machine, args: &[&str]) -> String {
    let (out, err) = perf(machine, args);
    assert_eq!(err, "", "perf {args:?}");
    out
}

/// `perf lock contention` prints its table on stderr. Its rows, and nothing else may stand there.
fn perf_table(machine: &Machine, args: &[&str]) -> Vec<Columns> {
    let (_, table) = perf(machine, &[&["lock", "contention"], args].concat());
    let strange = |line: &&str| {
        let expected = line.trim().is_empty()
            || line.trim_start().starts_with("contended ")
            || !rows(line, 3).is_empty();
        !expected && !is_statistics(line)
    };
    let strange: Vec<&str> = table.lines().filter(strange).collect();
    assert!(strange.is_empty(), "perf {args:?} says {strange:?}");
    rows(&table, 3)
}

/// How many waits perf could not pair, and for which of its reasons: below the table.
fn is_statistics(line: &str) -> bool {
    let starts = ["=== output for debug", "bad: ", "bad rate: ", "histogram of failure reasons"];
    let reasons = ["acquire: ", "acquired: ", "contended: ", "release: "];
    starts.iter().any(|start| line.starts_with(start))
        || reasons.iter().any(|reason| line.trim_start().starts_with(reason))
}

/// Samples by the name of their event, in perf's words and in ours.
fn assert_same_events(machine: &Machine) {
    let count = |words: &mut dyn Iterator<Item = &str>| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for word in words {
            *counts.entry(word.trim_end_matches(':').to_owned()).or_default() += 1;
        }
        counts
    };
    let theirs = silent_perf(machine, &["script", "-F", "event"]);
    // Callchains are lines of their own, which begin with an address.
    let theirs = count(&mut theirs.lines().map(str::trim).filter(|line| line.ends_with(':')));
    let output = machine.lockprof(["script"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let ours = text(&output.stdout);
    let mut samples = ours
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|name| theirs.contains_key(name.trim_end_matches(':')));
    assert_eq!(theirs, count(&mut samples));
    let stored = records(&machine.place(FILE));
    let stored = stored.iter().filter(|(header, _)| header.kind == kind::SAMPLE).count();
    assert_eq!(theirs.values().sum::<u64>(), stored as u64, "all samples are told by one of them");
    assert!(theirs["lock:contention_begin"] > 20, "{theirs:?}");
}

fn assert_perf_reads(machine: &Machine) {
    silent_perf(machine, &["report", "--stdio"]);
    silent_perf(machine, &["script"]);
    let evlist = silent_perf(machine, &["evlist"]);
    let events: Vec<&str> = evlist.lines().filter(|line| !line.starts_with('#')).collect();
    let releases = events.iter().filter(|event| **event == "lock:contended_release").count();
    assert_eq!(events.len(), 8 + releases, "{events:?}");
    silent_perf(machine, &["inject", "-b", "-o", "injected.data"]);
    assert!(!perf_table(machine, &["-t"]).is_empty());
    assert_same_events(machine);
}

#[test]
fn perf_reads_a_recording_without_a_word_and_finds_the_same_events() {
    let Some(machine) = Machine::with_tools_or_skip(&["perf"]) else { return };
    machine.record(["--"].iter().chain(&HAMMER));
    assert_perf_reads(&machine);
}

/// Takes the words off, and rows without time unless perf prints them: 6.1 does, later ones do not.
/// Sorted, because several callers have one name.
fn numbers(rows: &[Columns], perf_prints_rows_without_time: bool) -> Vec<Columns> {
    let shown = rows.iter().filter(|row| perf_prints_rows_without_time || !is_without_time(row));
    let mut numbers: Vec<Columns> = shown.map(|row| row[..row.len() - 1].to_vec()).collect();
    numbers.sort();
    numbers
}

/// `report --perf-compat` against perf's own tables, by what both can be asked for.
fn assert_same_tables(machine: &Machine) {
    let help = Command::new("perf").args(["lock", "contention", "-h"]).output().unwrap();
    let help = text(&[help.stdout, help.stderr].concat());
    let modes: [(&str, &str, &[&str]); 3] = [
        ("site", "--stack-skip", &["--stack-skip", "0"]),
        ("task", "--threads", &["-t"]),
        ("lock", "--lock-addr", &["-l"]),
    ];
    for (by, needs, args) in modes {
        if !help.contains(needs) {
            say(&format!("SKIPPED by {by}: the installed perf has no {needs}"));
            continue;
        }
        let theirs = perf_table(machine, args);
        let output = machine.lockprof(["report", "--perf-compat", "--by", by]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let ours = rows(&text(&output.stdout), 3);
        assert!(!theirs.is_empty() && theirs.iter().any(|row| !is_without_time(row)), "{by}");
        let without_time = theirs.iter().any(is_without_time);
        let (theirs, ours) = (numbers(&theirs, without_time), numbers(&ours, without_time));
        say(&format!("by {by}: {} rows of perf's, {} of ours", theirs.len(), ours.len()));
        assert_eq!(theirs, ours, "by {by}");
    }
}

#[test]
fn perf_lock_contention_of_a_perf_compat_recording_is_our_table_of_it() {
    let Some(machine) = Machine::with_tools_or_skip(&["perf"]) else { return };
    machine.record(["--perf-compat", "--"].iter().chain(&HAMMER));
    assert!(!perf_table(&machine, &[]).is_empty(), "by caller, as perf does when nothing is said");
    assert_same_tables(&machine);
}

/// Records the hammer, kills lockprof in the middle, and repairs what it left.
fn record_killed(machine: &Machine, args: &[&str]) {
    let hammer = [LOCKPROF, "hammer", "mmap-sem", "--seconds", "60s"];
    let mut hammer = Running::start(machine.command(hammer).stdout(Stdio::null()));
    let target = ["record", "-p", &hammer.pid()];
    let mut record = machine.lockprof(target);
    let mut recorder = Running::start(record.args(args).stderr(Stdio::null()));
    // Enough is in the file when it has grown for a while behind the symbols.
    let size = || machine.place(FILE).metadata().map_or(0, |file| file.len());
    let mut grown = 0;
    let mut before = 0;
    while grown < 20 {
        assert!(recorder.0.try_wait().unwrap().is_none(), "it records until it is killed");
        assert!(hammer.0.try_wait().unwrap().is_none(), "there is something to record");
        std::thread::sleep(std::time::Duration::from_millis(20));
        grown += usize::from(before > 0 && size() > before);
        before = size();
    }
    recorder.0.kill().unwrap();
    recorder.0.wait().unwrap();
    let repair = machine.lockprof(["repair"]).output().unwrap();
    assert!(repair.status.success(), "{}", text(&repair.stderr));
    assert!(text(&repair.stderr).contains("is finished now"), "{}", text(&repair.stderr));
}

#[test]
fn perf_reads_the_recording_of_a_killed_recorder_after_repair() {
    let Some(machine) = Machine::with_tools_or_skip(&["perf"]) else { return };
    record_killed(&machine, &[]);
    assert_perf_reads(&machine);
}

#[test]
fn the_tables_of_a_killed_perf_compat_recording_agree_after_repair() {
    let Some(machine) = Machine::with_tools_or_skip(&["perf"]) else { return };
    record_killed(&machine, &["--perf-compat"]);
    assert!(!perf_table(&machine, &[]).is_empty());
    assert_same_tables(&machine);
}
