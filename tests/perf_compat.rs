//! The oracle: what `perf lock contention` itself prints of a recording, against `perf_compat`.
//!
//! In: every recording with contention events under `tests/fixtures` and under the directory that
//! `LOCKPROF_RECORDINGS` names, each with the `kallsyms` or `kallsyms.xz` beside it; and one made
//! here by `perf lock record`. Numeric columns are compared row by row at the precision that perf
//! prints. Rows carry no id of their own (several callers have one name), so they are compared as a
//! multiset. What the installed perf or this machine cannot do is skipped aloud.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod aloud;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockprof::decode::Decoder;
use lockprof::kernel::Kernel;
use lockprof::model::{GroupBy, Nanos};
use lockprof::order::{Dated, Dater, Order, Ordered};
use lockprof::perf_compat::{CompatKey, CompatReport, CompatRow, PerfCompat, Walk, perf_time};
use lockprof::source::{Replay, Round};

use perf_table::{Columns, is_without_time, rows};

mod perf_table;

/// total, max, min, avg.
const TIMES: usize = 4;

fn aliases(kallsyms: &str) -> HashMap<String, String> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in kallsyms.lines() {
        let mut words = line.split_whitespace();
        if let (Some(addr), Some(_), Some(name)) = (words.next(), words.next(), words.next()) {
            names.entry(addr).or_default().push(name);
        }
    }
    let several = names.into_values().filter(|names| names.len() > 1);
    several
        .flat_map(|names| {
            let first = names.iter().min().unwrap().to_string();
            names.into_iter().map(move |name| (name.to_string(), first.clone()))
        })
        .collect()
}

/// What perf is asked for.
struct Mode {
    name: &'static str,
    by: GroupBy,
    walk: Walk,
    options: &'static [&'static str],
    /// The option's line in perf's help, for modes that not every perf has.
    needs: &'static str,
}

const SKIP_0: Walk = Walk { max_stack: 8, stack_skip: 0 };
const MODES: [Mode; 5] = [
    Mode {
        name: "by caller",
        by: GroupBy::Site,
        walk: SKIP_0,
        options: &["--stack-skip", "0"],
        needs: "--stack-skip",
    },
    Mode {
        name: "by caller, 3 frames skipped",
        by: GroupBy::Site,
        walk: Walk { max_stack: 8, stack_skip: 3 },
        options: &["--stack-skip", "3"],
        needs: "--stack-skip",
    },
    Mode {
        name: "by caller, 20 frames deep",
        by: GroupBy::Site,
        walk: Walk { max_stack: 20, stack_skip: 1 },
        options: &["--stack-skip", "1", "--max-stack", "20"],
        needs: "--max-stack",
    },
    Mode { name: "by task", by: GroupBy::Task, walk: SKIP_0, options: &["-t"], needs: "--threads" },
    Mode {
        name: "by lock",
        by: GroupBy::Lock,
        walk: SKIP_0,
        options: &["-l"],
        needs: "--lock-addr",
    },
];

/// A recording and its kernel's symbols.
struct Case {
    data: PathBuf,
    symbols: Rc<Symbols>,
    /// Whether the words are compared too. Of a running kernel, perf may know symbols that
    /// kallsyms does not tell apart.
    words: bool,
}

/// Symbols as a file for perf and as a book for us.
struct Symbols {
    file: tempfile::NamedTempFile,
    kernel: Kernel,
    /// Name -> the first name at the same address: which of them is printed is a matter of taste.
    aliases: HashMap<String, String>,
}

impl Symbols {
    fn new(kallsyms: &[u8]) -> Rc<Symbols> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(kallsyms).unwrap();
        let (kernel, aliases) = (Kernel::from_kallsyms(kallsyms), aliases(&text(kallsyms)));
        Rc::new(Symbols { file, kernel, aliases })
    }

    /// `__x64_sys_sync+0xa` -> `__do_sys_sync+0xa`
    fn first_name(&self, word: &str) -> String {
        let (name, offset) = word.split_once('+').unwrap_or((word, ""));
        let first = self.aliases.get(name).map_or(name, String::as_str);
        format!("{first}+{offset}")
    }
}

#[test]
fn perfs_own_numbers_of_every_recording_are_ours() {
    let Some(perf) = Perf::find() else { return };
    let cases = recordings();
    if cases.is_empty() {
        aloud::skipped("there is no recording with contention events and kallsyms");
    }
    for case in cases {
        perf.compare(&case);
    }
}

#[test]
fn perfs_own_numbers_of_a_recording_made_now_are_ours() {
    let Some(perf) = Perf::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("perf.data");
    let Some(kallsyms) = record(&data) else { return };
    perf.compare(&Case { data, symbols: Symbols::new(&kallsyms), words: false });
}

/// The installed perf.
struct Perf {
    help: String,
}

impl Perf {
    fn find() -> Option<Perf> {
        let Ok(output) = Command::new("perf").args(["lock", "contention", "-h"]).output() else {
            aloud::skipped("perf is not installed");
            return None;
        };
        let help = text(&[&output.stdout[..], &output.stderr].concat());
        if !help.contains("--stack-skip") {
            aloud::skipped(format_args!(
                "the installed perf has no `lock contention --stack-skip`"
            ));
            return None;
        }
        Some(Perf { help })
    }

    fn compare(&self, case: &Case) {
        for mode in &MODES {
            if !self.help.contains(mode.needs) {
                aloud::skipped(format_args!(
                    "{}: the installed perf has no {}",
                    mode.name, mode.needs
                ));
                continue;
            }
            let table = self.table(case, mode);
            let ours = ours(case, mode);
            compare(case, mode, &table, &ours);
        }
    }

    fn table(&self, case: &Case, mode: &Mode) -> String {
        let output = Command::new("perf")
            .args(["lock", "contention", "--force", "-i"])
            .arg(&case.data)
            .arg("--kallsyms")
            .arg(case.symbols.file.path())
            .args(["-F", "contended,wait_total,wait_max,wait_min,avg_wait"])
            .args(mode.options)
            .output()
            .unwrap();
        let table = text(&[&output.stdout[..], &output.stderr].concat());
        assert!(table.contains("total wait"), "perf printed no table: {table}");
        table
    }
}

fn compare(case: &Case, mode: &Mode, table: &str, report: &CompatReport) {
    let what = format!("{} {}", case.data.display(), mode.name);
    let mut perfs = rows(table, TIMES);
    let prints_rows_without_time = perfs.iter().any(is_without_time);
    let shown = report.rows.iter().filter(|row| row.total_ns > 0 || prints_rows_without_time);
    let mut ours: Vec<Columns> = shown
        .map(|row| {
            let times = [row.total_ns, row.max_ns, row.min_ns, row.avg_ns];
            let [total, max, min, avg] = times.map(|ns| perf_time(Nanos(ns)).trim().to_string());
            vec![row.contended.to_string(), total, max, min, avg, words_of(row)]
        })
        .collect();
    for row in perfs.iter_mut().chain(&mut ours) {
        let words = row[5].split(' ').map(|word| case.symbols.first_name(word));
        row[5] = if case.words { words.collect::<Vec<_>>().join(" ") } else { String::new() };
    }
    perfs.sort();
    ours.sort();
    let missing: Vec<_> = perfs.iter().filter(|row| !ours.contains(row)).collect();
    let extra: Vec<_> = ours.iter().filter(|row| !perfs.contains(row)).collect();
    println!("{what}: {} rows of perf's, {} of ours", perfs.len(), ours.len());
    assert!(perfs == ours, "{what}: only perf has {missing:#?}\nonly we have {extra:#?}");
    if let Some(bad) = table.lines().find(|line| line.starts_with("bad: ")) {
        assert_eq!(bad, format!("bad: {}, total: {}", report.bad, report.total), "{what}");
    }
}

/// The columns that are no numbers.
fn words_of(row: &CompatRow) -> String {
    let text = match &row.key {
        CompatKey::Caller { caller } => format!("{} {caller}", row.lock_type),
        CompatKey::Task { tid, comm } => format!("{tid} {comm}"),
        CompatKey::Lock { lock_addr, symbol } => {
            format!("{} {symbol} {}", lock_addr.trim_start_matches("0x"), row.lock_type)
        }
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ours(case: &Case, mode: &Mode) -> CompatReport {
    let kernel = &case.symbols.kernel;
    let mut replay = Replay::open(&case.data).unwrap();
    let events = &replay.origin().events;
    let decoder = Decoder::new(events).unwrap();
    let mut dater = Dater::new(events).unwrap();
    let mut order = Order::default();
    let mut compat = PerfCompat::new(mode.by, mode.walk);
    let mut push = |ordered: Ordered| {
        ordered.records().for_each(|raw| compat.push(&decoder.decode(raw).unwrap(), kernel));
    };
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        order.push(Dated::new(std::mem::take(&mut round), &mut dater), &mut push);
    }
    order.finish(&mut push);
    compat.finish()
}

/// Recordings with contention events beside their kernel's symbols.
fn recordings() -> Vec<Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let more = std::env::var_os("LOCKPROF_RECORDINGS").map(PathBuf::from);
    let mut cases = Vec::new();
    for directory in [Some(fixtures), more].into_iter().flatten() {
        collect(&directory, &mut cases);
    }
    cases.sort_by(|a, b| a.data.cmp(&b.data));
    cases
}

fn collect(directory: &Path, cases: &mut Vec<Case>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, cases);
        } else if path.extension().is_some_and(|e| e == "data") && has_contention(&path) {
            found.push(path);
        }
    }
    match kallsyms_in(directory) {
        Some(kallsyms) if !found.is_empty() => {
            let symbols = Symbols::new(&kallsyms);
            cases.extend(found.into_iter().map(|data| Case {
                data,
                symbols: symbols.clone(),
                words: true,
            }));
        }
        _ => found
            .iter()
            .for_each(|data| aloud::skipped(format_args!("{}: no kallsyms", data.display()))),
    }
}

fn has_contention(data: &Path) -> bool {
    Replay::open(data).is_ok_and(|replay| {
        replay.origin().events.iter().any(|event| event.name == "lock:contention_begin")
    })
}

fn kallsyms_in(directory: &Path) -> Option<Vec<u8>> {
    if let Ok(plain) = fs::read(directory.join("kallsyms")) {
        return Some(plain);
    }
    let packed = fs::File::open(directory.join("kallsyms.xz")).ok()?;
    let mut plain = Vec::new();
    lzma_rust2::XzReader::new(packed, true).read_to_end(&mut plain).unwrap();
    Some(plain)
}

/// Records half a second of four threads that map and unmap, with `perf lock record`.
fn record(data: &Path) -> Option<Vec<u8>> {
    let stop = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Larger than malloc keeps: one mmap, one fault, one munmap.
                    std::hint::black_box(vec![1u8; 64 << 20].first());
                }
            });
        }
        let output = Command::new("perf")
            .args(["lock", "record", "-a", "-o"])
            .arg(data)
            .args(["--", "sleep", "0.5"])
            .output();
        stop.store(true, Ordering::Relaxed);
        output
    });
    let output = output.unwrap();
    if !output.status.success() || !has_contention(data) {
        aloud::skipped(format_args!(
            "perf lock record does not work here: {}",
            text(&output.stderr)
        ));
        return None;
    }
    let kallsyms = fs::read("/proc/kallsyms").unwrap();
    if Kernel::from_kallsyms(&kallsyms).is_empty() {
        aloud::skipped("the kernel shows no addresses of its symbols");
        return None;
    }
    Some(kallsyms)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
