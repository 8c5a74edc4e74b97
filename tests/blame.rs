//! Who let a waiter wait: hand-overs of locks, case by case, through the public pipe; and a real
//! convoy, of which it is known who held the lock.

mod streams;

use std::process::Command;

use lockprof::model::{GroupBy, HandOverKind, Query, Uncharged};
use lockprof::report::{ChargedName, Report, Row};
use lockprof::source::{At, Synthetic};
use proptest::prelude::*;
use streams::symbols::Symbols;
use streams::{MUTEX, READ, Reading, SEM, SPIN, WRITE, ask, at, in_softirq};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "rwsem_down_write_slowpath",
    "rwsem_down_read_slowpath",
    "down_write",
    "down_read",
    "do_mprotect_pkey",
    "try_to_wake_up",
    "wake_up_q",
    "rwsem_wake",
    "up_write",
    "munmap_caller",
    "__mutex_unlock_slowpath",
    "asm_sysvec_apic_timer_interrupt",
    "wq_worker_sleeping",
    "schedule",
    "xfs_iunlock",
    "up",
]);
const RELEASE: [&str; 5] =
    ["try_to_wake_up", "wake_up_q", "rwsem_wake", "up_write", "do_mprotect_pkey"];
const WAIT: [&str; 3] = ["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"];
const LOCK: u64 = 0xa0;

/// A stack of these functions, innermost first.
fn stack(names: &[&str]) -> Vec<u64> {
    FUNCTIONS.stack(names)
}

fn reading() -> Reading {
    Reading { kallsyms: FUNCTIONS.kallsyms(), wakings: true, ..Reading::with_switches() }
}

fn report(by: GroupBy, write: impl FnOnce(&mut Synthetic)) -> Report {
    let mut synthetic = Synthetic::new();
    write(&mut synthetic);
    let query = Query { stacks: true, ..ask(by) };
    let report = reading().pipeline([synthetic.take_round()]).report(&query);
    let rows: u64 = report.rows.iter().map(|row| row.stat.wait().0).sum();
    assert_eq!(rows, report.total.wait().0, "rows add up to all waiting");
    if by == GroupBy::Blame {
        let stacks: u64 = report.blame_stacks.iter().map(|stack| stack.wait.0).sum();
        assert_eq!(stacks, rows, "stacks add up to all waiting");
    }
    report
}

fn begin(s: &mut Synthetic, at: At) {
    s.begin(at, LOCK, WRITE, &stack(&WAIT));
}

/// `task` or why nobody, for each row that waited.
fn who(row: &Row) -> String {
    match &row.key.releaser {
        Some(ChargedName::Releaser { task, kind: HandOverKind::Release, .. }) => {
            task.tid.to_string()
        }
        Some(ChargedName::Releaser { task, .. }) => format!("{} passed on", task.tid),
        Some(ChargedName::Nobody(why)) => why.name().into(),
        None => panic!("a row without releaser: {row:?}"),
    }
}

/// `(who is charged, how long)`, rows of no time left out.
fn charges(report: &Report) -> Vec<(String, u64)> {
    let mut rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| (who(row), row.stat.wait().0))
        .filter(|(_, t)| *t > 0)
        .collect();
    rows.sort();
    rows
}

type Case = (&'static str, fn(&mut Synthetic), &'static [(&'static str, u64)]);

/// `(what happens, the records, who is charged with how much)`. Task 7 waits.
const CASES: &[Case] = &[
    (
        "up to the hand-over the wait is the releaser's, behind it the waiter's own",
        |s| {
            begin(s, at(100, 0, 7));
            s.waking(at(180, 1, 1), 7, &stack(&RELEASE)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("1", 80), ("own", 20)],
    ),
    (
        "a wait is cut at the hand-over to another waiter too",
        |s| {
            begin(s, at(100, 0, 7));
            begin(s, at(100, 1, 8));
            s.waking(at(190, 1, 1), 8, &stack(&RELEASE))
                .end(at(190, 0, 8), LOCK, 0)
                .waking(at(195, 0, 8), 7, &stack(&RELEASE))
                .end(at(200, 0, 7), LOCK, 0);
        },
        &[("1", 180), ("8", 5), ("own", 5)],
    ),
    (
        "a waking from an interrupt is no hand-over",
        |s| {
            begin(s, at(100, 0, 7));
            s.waking(in_softirq(180, 1, 1), 7, &stack(&RELEASE)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("no_waking", 100)],
    ),
    (
        "what stands outside of the interrupt is the interrupted task's",
        |s| {
            begin(s, at(100, 0, 7));
            let mut names = vec!["try_to_wake_up", "asm_sysvec_apic_timer_interrupt"];
            names.extend(RELEASE);
            s.waking(at(180, 1, 1), 7, &stack(&names)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("no_waking", 100)],
    ),
    (
        "release code of another class hands nothing over",
        |s| {
            begin(s, at(100, 0, 7));
            let mutex = ["try_to_wake_up", "wake_up_q", "__mutex_unlock_slowpath", "munmap_caller"];
            s.waking(at(180, 1, 1), 7, &stack(&mutex)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("no_waking", 100)],
    ),
    (
        "a waiter that goes to sleep wakes a worker: no hand-over",
        |s| {
            begin(s, at(100, 0, 7));
            let names = [
                "try_to_wake_up",
                "wq_worker_sleeping",
                "schedule",
                "rwsem_down_write_slowpath",
                "munmap_caller",
            ];
            s.waking(at(180, 1, 1), 7, &stack(&names)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("no_waking", 100)],
    ),
    (
        "a reader takes those behind it along",
        |s| {
            s.begin(at(100, 0, 7), LOCK, READ, &stack(&WAIT));
            let names = [
                "try_to_wake_up",
                "wake_up_q",
                "rwsem_down_read_slowpath",
                "down_read",
                "munmap_caller",
            ];
            s.waking(at(180, 1, 1), 7, &stack(&names)).end(at(200, 0, 7), LOCK, 0);
        },
        &[("1 passed on", 80), ("own", 20)],
    ),
    (
        "a waiter that passes the lock on is not charged with its own waiting",
        |s| {
            s.begin(at(100, 0, 7), LOCK, READ, &stack(&WAIT));
            s.begin(at(100, 1, 8), LOCK, READ, &stack(&WAIT));
            let names =
                ["try_to_wake_up", "wake_up_q", "rwsem_down_read_slowpath", "munmap_caller"];
            s.waking(at(150, 2, 1), 7, &stack(&RELEASE))
                .waking(at(180, 0, 7), 8, &stack(&names))
                .end(at(200, 0, 7), LOCK, 0)
                .end(at(200, 1, 8), LOCK, 0);
        },
        &[("1", 100), ("7 passed on", 30), ("own", 20 + 50)],
    ),
    (
        "a signal ends a wait",
        |s| {
            begin(s, at(100, 0, 7));
            s.waking(at(160, 1, 1), 7, &stack(&RELEASE)).end(at(200, 0, 7), LOCK, -4);
        },
        &[("1", 60), ("signal", 40)],
    ),
    (
        "a wait that is still open at the end",
        |s| {
            begin(s, at(100, 0, 7));
            s.waking(at(160, 1, 1), 7, &stack(&RELEASE)).switch(at(200, 1, 1), true);
        },
        &[("1", 60), ("open", 40)],
    ),
    (
        "where records were lost the releaser is unknown",
        |s| {
            begin(s, at(100, 0, 7));
            s.switch(at(105, 0, 7), true)
                .switch(at(110, 1, 1), false)
                .lost(at(150, 1, 1), 5)
                .waking(at(160, 1, 1), 7, &stack(&RELEASE))
                .waking(at(190, 1, 2), 7, &stack(&RELEASE))
                .end(at(200, 0, 7), LOCK, 0);
        },
        &[("2", 30), ("lost", 60), ("own", 10)],
    ),
    (
        "the spinlock inside a semaphore is another lock",
        |s| {
            let up = stack(&["try_to_wake_up", "up", "munmap_caller"]);
            s.begin(at(100, 0, 7), LOCK, SEM, &stack(&WAIT))
                .begin(at(110, 0, 7), LOCK, SPIN, &stack(&WAIT))
                .begin(at(110, 1, 8), LOCK, SPIN, &stack(&WAIT))
                .end(at(120, 0, 7), LOCK, 0)
                .waking(at(150, 2, 1), 7, &up)
                .end(at(160, 1, 8), LOCK, 0)
                .end(at(200, 0, 7), LOCK, 0);
        },
        // 10 ns of the semaphore's wait are the spinlock's; both its pieces are the shorter for it.
        &[("1", 45), ("no_waking", 60), ("own", 45)],
    ),
];

#[test]
fn every_piece_of_a_wait_is_charged_to_who_ended_it() {
    for (name, write, expected) in CASES {
        let got = charges(&report(GroupBy::Releaser, write));
        let got: Vec<(&str, u64)> = got.iter().map(|(who, t)| (who.as_str(), *t)).collect();
        assert_eq!(got, *expected, "{name}");
    }
}

/// Holds of the only releaser: how many, and how long together.
fn holds(write: impl FnOnce(&mut Synthetic)) -> (u64, u64) {
    let report = report(GroupBy::Releaser, write);
    let holds: Vec<_> = report.rows.iter().filter_map(|row| row.hold.as_ref()).collect();
    assert_eq!(holds.len(), 1, "{:#?}", report.rows);
    (holds[0].count, holds[0].total.0)
}

#[test]
fn readers_woken_in_one_batch_are_one_hand_over() {
    let held = holds(|s| {
        for tid in 10..14 {
            s.begin(at(100 + tid as u64, 0, tid), LOCK, READ, &stack(&WAIT));
        }
        for tid in 10..14 {
            s.waking(at(50_000 + 10 * tid as u64, 1, 1), tid, &stack(&RELEASE));
        }
        for tid in 10..14 {
            s.end(at(60_000, 0, tid), LOCK, 0);
        }
    });
    assert_eq!(held, (1, 50_000 + 100 - 110));
}

#[test]
fn a_lock_that_is_stolen_back_is_handed_over_again() {
    let held = holds(|s| {
        begin(s, at(1_000, 0, 7));
        s.switch(at(1_100, 0, 7), true)
            .waking(at(5_000, 1, 1), 7, &stack(&RELEASE))
            .switch(at(5_500, 0, 7), false)
            .switch(at(6_000, 0, 7), true)
            .waking(at(9_000, 1, 1), 7, &stack(&RELEASE))
            .end(at(9_500, 0, 7), LOCK, 0);
    });
    assert_eq!(held, (2, 8_000));
}

#[test]
fn a_waking_that_came_twice_is_one() {
    let held = holds(|s| {
        begin(s, at(1_000, 0, 7));
        s.switch(at(1_100, 0, 7), true)
            .waking(at(5_000, 1, 1), 7, &stack(&RELEASE))
            .waking(at(5_001, 1, 1), 7, &stack(&RELEASE))
            .end(at(9_500, 0, 7), LOCK, 0);
    });
    assert_eq!(held, (1, 4_000));
}

#[test]
fn the_releasers_site_lies_above_its_wrappers() {
    let report = report(GroupBy::Blame, |s| {
        begin(s, at(100, 0, 7));
        let names = [
            "try_to_wake_up",
            "wake_up_q",
            "rwsem_wake",
            "up_write",
            "xfs_iunlock",
            "munmap_caller",
        ];
        s.waking(at(180, 1, 1), 7, &stack(&names)).end(at(200, 0, 7), LOCK, 0);
    });
    let stack = &report.blame_stacks[0];
    assert_eq!(stack.kernel, ["do_mprotect_pkey+0x10"], "from the site on");
    let released = ["up_write+0x10", "xfs_iunlock+0x10", "munmap_caller+0x10"];
    assert_eq!(stack.releaser, released, "from the release code on");
    let row = &report.rows[0];
    assert_eq!(row.key.caller.as_deref(), Some("do_mprotect_pkey"));
    let Some(ChargedName::Releaser { caller, wrappers, .. }) = &row.key.releaser else {
        panic!("{row:?}")
    };
    assert_eq!(
        (caller.as_deref(), wrappers.as_slice()),
        (Some("munmap_caller"), &["xfs_iunlock".to_owned()][..])
    );
}

#[test]
fn a_recording_without_wakings_says_that_releasers_are_unknown() {
    let reading = Reading { wakings: false, ..reading() };
    let report = reading.report(GroupBy::Releaser, |s| {
        begin(s, at(100, 0, 7));
        s.end(at(200, 0, 7), LOCK, 0);
    });
    assert_eq!(report.trust.charged, None);
    assert_eq!(report.rows.len(), 1);
    assert_eq!(who(&report.rows[0]), Uncharged::NoWaking.name());
}

/// Task of the convoy's long holder.
const LONG: i32 = 1;
const SHORT: std::ops::Range<i32> = 10..18;

/// Rounds of a convoy: the long holder keeps the lock for 10 ms, eight others wait for it in a queue
/// and keep it for 10 us each. Gives what each `(waiter, last waker)` waited.
fn convoy(s: &mut Synthetic, rounds: u64) -> Vec<(i32, u64)> {
    const HOLD: u64 = 10_000_000;
    let mut last_waker = Vec::new();
    for round in 0..rounds {
        let start = 1_000_000_000 + round * 20_000_000;
        for (at_queue, tid) in SHORT.enumerate() {
            let since = start + 100_000 * at_queue as u64;
            begin(s, at(since, 0, tid));
            s.switch(at(since + 10, 0, tid), true);
        }
        let (mut time, mut holder) = (start + HOLD, LONG);
        for (at_queue, tid) in SHORT.enumerate() {
            s.waking(at(time, 1, holder), tid, &stack(&RELEASE));
            last_waker.push((holder, time + 1_000 - (start + 100_000 * at_queue as u64)));
            s.end(at(time + 1_000, 0, tid), LOCK, 0);
            (time, holder) = (time + 10_000, tid);
        }
    }
    last_waker
}

#[test]
fn a_convoy_is_charged_to_the_long_holder_and_not_to_its_victims() {
    let mut by_last_waking = Vec::new();
    let report = report(GroupBy::Releaser, |s| by_last_waking = convoy(s, 20));
    let all = report.total.wait().0 as f64;
    let of_long = |charges: &[(String, u64)]| -> f64 {
        charges.iter().filter(|(who, _)| *who == LONG.to_string()).map(|(_, t)| *t as f64).sum()
    };
    let share = of_long(&charges(&report)) / all;
    assert!(share > 0.98, "{share}");
    let last: Vec<_> = by_last_waking.iter().map(|(who, t)| (who.to_string(), *t)).collect();
    let last = of_long(&last) / all;
    assert!(last < 0.2, "the rule by last waking blames the victims: {last}");
    let row = report.rows.iter().find(|row| who(row) == LONG.to_string()).expect("the long holder");
    let hold = row.hold.as_ref().expect("its holds");
    assert_eq!((hold.count, hold.total.0), (20, 20 * 10_000_000));
}

proptest! {
    /// Whatever wakes whom: nothing is charged twice, nothing gets lost.
    #[test]
    fn charges_add_up_to_all_waiting(steps in proptest::collection::vec((0u8..6, 0i32..5, 0i32..5, 1u64..200_000), 1..120)) {
        for by in [GroupBy::Releaser, GroupBy::Blame] {
            report(by, |s| {
                let mut time = 1_000;
                for &(what, a, b, dt) in &steps {
                    time += dt;
                    let here = at(time, a as u32 % 3, a + 1);
                    let lock = LOCK + 8 * (b as u64 % 2);
                    match what {
                        0 => drop(s.begin(here, lock, [WRITE, READ, MUTEX][b as usize % 3], &stack(&WAIT))),
                        1 => drop(s.end(here, lock, [0, -4][b as usize % 2])),
                        2 | 3 => drop(s.waking(here, b + 1, &stack(&RELEASE))),
                        4 => drop(s.switch(here, b % 2 == 0)),
                        _ => drop(s.lost(here, 1)),
                    }
                }
            });
        }
    }
}

fn recorded(file: &str, options: &[&str]) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings");
    let output = Command::new(env!("CARGO_BIN_EXE_lockprof"))
        .args(["report", &format!("{folder}/{file}"), "--kallsyms"])
        .arg(format!("{folder}/6.18/kallsyms.xz"))
        .args(options)
        .output()
        .expect("lockprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a report is UTF-8")
}

/// `6.18/convoy.data`: the thread `longhold` keeps mmap_lock for 10 ms at a time, six threads want it
/// for microseconds.
#[test]
fn a_recorded_convoy_is_charged_to_the_long_holder() {
    let mut options = vec!["--by", "releaser", "--format", "json", "--lock", "mmap_lock"];
    let short: Vec<String> = (0..8).map(|n| format!("short{n}")).collect();
    short.iter().for_each(|comm| options.extend(["--comm", comm]));
    let text = recorded("6.18/convoy.data", &options);
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let row = &report["rows"][0];
    assert_eq!(row["releaser"]["task"]["comm"], "longhold");
    assert_eq!(row["releaser"]["caller"], "do_mprotect_pkey");
    assert!(row["share"].as_f64() > Some(0.9), "{row}");
    let hold = row["hold"]["avg_ns"].as_f64().expect("holds") / 1e6;
    // Its own clock said 9.93 ms a call.
    assert!((8.0..13.0).contains(&hold), "{hold} ms");
}

/// `LOCKPROF_BLESS=1 cargo test --test blame` writes it anew.
fn assert_golden(name: &str, got: &str) {
    let path = format!("{}/tests/goldens/blame/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LOCKPROF_BLESS").is_some() {
        std::fs::write(&path, got).expect("goldens can be written");
    }
    assert_eq!(got, std::fs::read_to_string(path).unwrap_or_default());
}

#[test]
fn the_table_of_blame_is_the_golden_one() {
    let got = recorded("6.18/convoy.data", &["--blame", "--top", "3"]);
    let got = got.replace(env!("CARGO_MANIFEST_DIR"), "");
    let table: String =
        got.split_inclusive('\n').take_while(|line| !line.starts_with("trust")).collect();
    assert_golden("convoy.txt", &table);
}

#[test]
fn the_stacks_of_blame_are_the_golden_ones() {
    let got = recorded("6.18/convoy.data", &["--blame", "--format", "folded"]);
    assert_golden("convoy.folded", &got);
}

#[test]
fn a_flame_graph_of_blame_wants_a_recording_that_tells_of_releasers() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings/6.18/lost.data");
    let picture = std::env::temp_dir().join(format!("lockprof-blame-{}.svg", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_lockprof"))
        .args(["flamegraph", "--blame", file, "-o"])
        .arg(&picture)
        .output()
        .expect("lockprof runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no wakings with stacks") && said.contains("hint:"), "{said}");
    assert!(!picture.exists(), "no picture that says nothing");
}
