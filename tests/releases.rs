//! `lock:contended_release`: when a lock was let go, and by whom, where no waking tells; case by case,
//! through the public pipe, and in a recording of Linux 7.2.

mod streams;

use std::path::Path;

use lockprof::analyse::Detail;
use lockprof::kernel::{Places, Wanted, find};
use lockprof::model::{Filter, GroupBy, Uncharged};
use lockprof::pipeline::Pipeline;
use lockprof::report::{ChargedName, Report, Row};
use lockprof::source::{At, Replay, Round, Synthetic};
use proptest::prelude::*;
use streams::symbols::Symbols;
use streams::{MUTEX, READ, Reading, SPIN, WRITE, ask, at, in_softirq};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "try_to_wake_up",
    "wake_up_q",
    "rwsem_wake",
    "up_write",
    "up_read",
    "mincore",
    "__mutex_lock",
    "__mutex_unlock_slowpath",
    "pipe_read",
    "_etext",
]);
const LOCK: u64 = 0xa0;
const WAIT: [&str; 3] = ["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"];
const UP_WRITE: [&str; 2] = ["up_write", "do_mprotect_pkey"];
const UP_READ: [&str; 2] = ["up_read", "mincore"];
const UNLOCK: [&str; 2] = ["__mutex_unlock_slowpath", "pipe_read"];

fn stack(names: &[&str]) -> Vec<u64> {
    FUNCTIONS.stack(names)
}

/// The stack of a waking by this release code.
fn waking(release: &[&str]) -> Vec<u64> {
    let wake: &[&str] = match release[0] {
        "__mutex_unlock_slowpath" => &["try_to_wake_up", "wake_up_q"],
        _ => &["try_to_wake_up", "wake_up_q", "rwsem_wake"],
    };
    stack(&[wake, release].concat())
}

fn reading() -> Reading {
    Reading {
        kallsyms: FUNCTIONS.kallsyms(),
        wakings: true,
        releases: true,
        ..Reading::with_switches()
    }
}

/// Writes a wait for the rwsem, by a reader or a writer.
fn begin(s: &mut Synthetic, at: At, flags: u32) {
    s.begin(at, LOCK, flags, &stack(&WAIT));
}

fn lock(s: &mut Synthetic, at: At, flags: u32) {
    s.begin(at, LOCK, flags, &stack(&["__mutex_lock", "pipe_read"]));
}

/// `who at which site`, or why nobody; with how long.
fn charges(report: &Report) -> Vec<(String, u64)> {
    let words = |name: &ChargedName| match name {
        ChargedName::Releaser { task, caller, .. } => {
            format!("{} {}", task.tid, caller.as_deref().unwrap_or("?"))
        }
        ChargedName::Nobody(why) => why.name().to_owned(),
    };
    let rows = report.rows.iter().filter(|row| row.stat.wait().0 > 0);
    let who = |name: &Option<ChargedName>| words(name.as_ref().expect("who is charged"));
    let mut rows: Vec<_> = rows.map(|row| (who(&row.key.releaser), row.stat.wait().0)).collect();
    rows.sort();
    rows
}

fn report(reading: &Reading, write: impl FnOnce(&mut Synthetic)) -> Report {
    let report = reading.report(GroupBy::Releaser, write);
    let rows: u64 = report.rows.iter().map(|row| row.stat.wait().0).sum();
    assert_eq!(rows, report.total.wait().0, "rows add up to all waiting");
    report
}

type Case = (&'static str, fn(&mut Synthetic), &'static [(&'static str, u64)]);

/// `(what happens, the records, who is charged with how much)`.
const CASES: &[Case] = &[
    (
        "the lock is let go before the waking, and the waiter's delay begins there",
        |s| {
            begin(s, at(100, 0, 7), WRITE);
            s.release(at(170, 1, 1), LOCK, &[]).waking(at(180, 1, 1), 7, &waking(&UP_WRITE)).end(
                at(200, 0, 7),
                LOCK,
                0,
            );
        },
        &[("1 do_mprotect_pkey", 70), ("own", 30)],
    ),
    (
        "a mutex that a spinning waiter takes before the sleeping one is woken",
        |s| {
            lock(s, at(100, 0, 7), SPIN | MUTEX);
            lock(s, at(100, 2, 8), MUTEX);
            s.release(at(180, 1, 1), LOCK, &[])
                .end(at(185, 0, 7), LOCK, 0)
                .waking(at(190, 1, 1), 8, &waking(&UNLOCK))
                .release(at(280, 0, 7), LOCK, &[])
                .waking(at(285, 0, 7), 8, &waking(&UNLOCK))
                .end(at(300, 2, 8), LOCK, 0);
        },
        &[("1 pipe_read", 80 + 80), ("7 pipe_read", 100), ("own", 5 + 20)],
    ),
    (
        "readers that leave while others read end nothing, the last one does",
        |s| {
            begin(s, at(100, 0, 7), WRITE);
            s.release(at(150, 1, 1), LOCK, &[])
                .release(at(160, 2, 2), LOCK, &[])
                .release(at(170, 1, 3), LOCK, &[])
                .waking(at(175, 1, 3), 7, &waking(&UP_READ))
                .end(at(200, 0, 7), LOCK, 0);
        },
        &[("3 mincore", 70), ("own", 30)],
    ),
    (
        "the same with their stacks",
        |s| {
            begin(s, at(100, 0, 7), WRITE);
            s.release(at(150, 1, 1), LOCK, &stack(&UP_READ))
                .release(at(170, 1, 3), LOCK, &stack(&UP_READ))
                .waking(at(175, 1, 3), 7, &waking(&UP_READ))
                .end(at(200, 0, 7), LOCK, 0);
        },
        &[("3 mincore", 70), ("own", 30)],
    ),
    (
        "a writer that spins in its queue has the lock after the last release, which woke nobody",
        |s| {
            begin(s, at(100, 0, 7), WRITE);
            s.release(at(150, 1, 1), LOCK, &[]).release(at(170, 2, 2), LOCK, &[]).end(
                at(172, 0, 7),
                LOCK,
                0,
            );
        },
        &[("2 ?", 70), ("own", 2)],
    ),
    (
        "for a reader a release that woke nobody says nothing",
        |s| {
            begin(s, at(100, 0, 7), READ);
            s.release(at(150, 1, 1), LOCK, &[]).end(at(172, 0, 7), LOCK, 0);
        },
        &[("no_waking", 72)],
    ),
    (
        "writers that take turns by spinning are each charged with their turn, where stacks tell",
        |s| {
            begin(s, at(100, 0, 7), READ);
            s.release(at(150, 1, 1), LOCK, &stack(&UP_WRITE))
                .release(at(200, 2, 2), LOCK, &stack(&UP_WRITE))
                .release(at(250, 1, 1), LOCK, &stack(&UP_WRITE))
                .waking(at(255, 1, 1), 7, &waking(&UP_WRITE))
                .end(at(300, 0, 7), LOCK, 0);
        },
        &[("1 do_mprotect_pkey", 50 + 50), ("2 do_mprotect_pkey", 50), ("own", 50)],
    ),
    (
        "a release in an interrupt is not the interrupted task's",
        |s| {
            lock(s, at(100, 0, 7), MUTEX);
            s.release(in_softirq(150, 1, 1), LOCK, &[]).end(at(172, 0, 7), LOCK, 0);
        },
        &[("no_waking", 72)],
    ),
    (
        "a release of a mutex that is followed by no waking has a task and no site",
        |s| {
            lock(s, at(100, 0, 7), MUTEX);
            s.release(at(150, 1, 1), LOCK, &[]).end(at(172, 0, 7), LOCK, 0);
        },
        &[("1 ?", 50), ("own", 22)],
    ),
    (
        "a waking long after the release belongs to another call",
        |s| {
            lock(s, at(100, 0, 7), MUTEX);
            s.release(at(150, 1, 1), LOCK, &[]).end(at(172, 0, 7), LOCK, 0);
            lock(s, at(20_000_000, 0, 7), MUTEX);
            s.waking(at(20_000_100, 1, 1), 7, &waking(&UNLOCK)).end(at(20_000_110, 0, 7), LOCK, 0);
        },
        &[("1 ?", 50), ("1 pipe_read", 100), ("own", 22 + 10)],
    ),
    (
        "wakings of one call are one hand-over",
        |s| {
            begin(s, at(100, 0, 7), READ);
            begin(s, at(110, 0, 8), READ);
            s.release(at(150, 1, 1), LOCK, &[])
                .waking(at(160, 1, 1), 7, &waking(&UP_WRITE))
                .waking(at(165, 1, 1), 8, &waking(&UP_WRITE))
                .end(at(200, 0, 7), LOCK, 0)
                .end(at(200, 0, 8), LOCK, 0);
        },
        &[("1 do_mprotect_pkey", 50 + 40), ("own", 50 + 50)],
    ),
    (
        "a waiter's own release of the lock before it waited again is none",
        |s| {
            lock(s, at(100, 0, 7), MUTEX);
            s.release(at(100, 1, 7), LOCK, &[]).release(at(150, 1, 1), LOCK, &stack(&UNLOCK)).end(
                at(172, 0, 7),
                LOCK,
                0,
            );
        },
        &[("1 pipe_read", 50), ("own", 22)],
    ),
];

#[test]
fn a_release_is_charged_where_it_let_the_lock_go() {
    for (name, write, expected) in CASES {
        let got = charges(&report(&reading(), write));
        let got: Vec<(&str, u64)> = got.iter().map(|(who, t)| (who.as_str(), *t)).collect();
        assert_eq!(got, *expected, "{name}");
    }
}

#[test]
fn a_hold_ends_where_the_lock_was_let_go_and_once() {
    let (_, spinner, _) = CASES[1];
    let report = report(&reading(), spinner);
    let mut holds: Vec<(u64, u64)> = report
        .rows
        .iter()
        .filter_map(|row| row.hold.as_ref())
        .map(|h| (h.count, h.total.0))
        .collect();
    holds.sort_unstable();
    // Task 1 from 100 to 180, task 7 from there to 280.
    assert_eq!(holds, [(1, 80), (1, 100)]);
}

#[test]
fn releases_without_end_do_not_make_memory_grow() {
    let report = report(&reading(), |s| {
        for n in 0..20_000u64 {
            let lock = 0x10_000 + 0x40 * n;
            let time = 1_000 + 100 * n;
            s.begin(at(time, 0, 7), lock, MUTEX, &stack(&["__mutex_lock", "pipe_read"]))
                .release(at(time + 50, 1, 1), lock, &[])
                .end(at(time + 60, 0, 7), lock, 0);
        }
    });
    let charged: Vec<_> = charges(&report);
    assert_eq!(charged, [("1 ?".into(), 50 * 20_000), ("own".into(), 10 * 20_000)]);
}

proptest! {
    /// Whatever is let go by whom: nothing is charged twice, nothing gets lost.
    #[test]
    fn charges_add_up_to_all_waiting(
        steps in proptest::collection::vec((0u8..6, 0i32..5, 0i32..5, 1u64..4_000_000), 1..120),
    ) {
        report(&reading(), |s| {
            let mut time = 1_000;
            for &(what, a, b, dt) in &steps {
                time += dt;
                let here = at(time, a as u32 % 3, a + 1);
                let address = LOCK + 8 * (b as u64 % 2);
                let frames = [&[][..], &UP_READ, &UP_WRITE, &UNLOCK][a as usize % 4];
                match what {
                    0 => drop(s.begin(here, address, [WRITE, READ, MUTEX][b as usize % 3], &stack(&WAIT))),
                    1 => drop(s.end(here, address, [0, -4][b as usize % 2])),
                    2 | 3 => drop(s.release(here, address, &stack(frames))),
                    4 => drop(s.waking(here, b + 1, &waking(&UP_WRITE))),
                    _ => drop(s.waking(here, b + 1, &waking(&UNLOCK))),
                }
            }
        });
    }
}

/// Who is charged in a recording of Linux 7.2: with its releases, and as if they had not been recorded.
fn recorded(name: &str, releases: bool) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings/7.2");
    let mut replay = Replay::open(&folder.join(name)).expect("a recording");
    let mut origin = replay.take_origin();
    let known = |name: &str| releases || name != "lock:contended_release";
    origin.events.iter_mut().filter(|event| !known(&event.name)).for_each(|event| {
        event.format = None;
    });
    let kallsyms = folder.join("kallsyms.xz");
    let wanted = Wanted { explicit: Some(&kallsyms), ..Wanted::default() };
    let (kernel, source) = find(&wanted, &Places::of_this_machine()).expect("its symbols");
    let symbols = (kernel, source.to_string());
    let mut pipeline = Pipeline::new(origin, symbols, Detail::default(), &Filter::default())
        .expect("the layout of its records");
    let mut round = Round::default();
    while replay.next_round(&mut round).expect("its records") {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    pipeline.report(&ask(GroupBy::Releaser))
}

/// Time charged to somebody, to nobody but the waiter, and holds.
fn sums(report: &Report) -> (u64, u64, u64) {
    let time = |wanted: &dyn Fn(&Row) -> bool| -> u64 {
        let rows = report.rows.iter().filter(|row| wanted(row));
        rows.map(|row| row.stat.wait().0).sum()
    };
    let own = Some(ChargedName::Nobody(Uncharged::Own));
    let holds = report.rows.iter().filter_map(|row| row.hold.as_ref()).map(|hold| hold.count);
    (time(&|row| !row.is_uncharged()), time(&|row| row.key.releaser == own), holds.sum())
}

#[test]
fn releases_of_a_recording_of_7_2_charge_more_and_to_more_holders() {
    for (name, more_holds) in [("pairs-mmap.data", 2.0), ("pairs-pipe.data", 5.0)] {
        let with = sums(&recorded(name, true));
        let without = sums(&recorded(name, false));
        assert!(with.0 > without.0 && with.1 < without.1, "{name}: {with:?} {without:?}");
        let holds = with.2 as f64 / without.2 as f64;
        assert!(holds > more_holds, "{name}: {with:?} {without:?}");
    }
}

#[test]
fn every_release_of_a_recording_of_7_2_has_a_site() {
    for name in ["pairs-mmap.data", "pairs-pipe.data"] {
        for row in recorded(name, true).rows {
            if let Some(ChargedName::Releaser { caller, .. }) = &row.key.releaser {
                assert!(caller.is_some(), "{name}: {row:?}");
            }
        }
    }
}
