//! Where the time of threads went, and what they waited for in locks of their own, on a terminal.
//!
//! In: a report's thread time and user locks. Out: a sentence above the table, what the time was when it
//! was hardly locks, and the rows of a small table below it.

use crate::model::Nanos;
use crate::render::escape::visible;
use crate::render::grid::{Cell, Column, Grid, Kind};
use crate::render::paint::Paint;
use crate::render::paragraph::shorten;
use crate::render::units::{count, counted, percent, share, time, time_cell};
use crate::report::{Instead, Report, SleepTime, ThreadTime, UserLock, Verdict, waited};

const OFF_CPU: &str = "the time off CPU";
/// Functions named in which threads slept.
const SLEEPS_NAMED: usize = 3;
/// One that has less of the sleep is not named.
const SLEEP_NAMED: f64 = 0.05;
/// Columns of a function's name in a sentence.
const NAME_AT_MOST: usize = 40;
/// User locks with less than this share of the thread time are not worth a table.
const USER_LOCKS_SHOWN: f64 = 0.01;
/// Rows of user locks, unless all rows are asked for.
const USER_LOCK_ROWS: usize = 5;

/// On what the time was spent, in one sentence; parts without any are left out.
pub(super) fn sentence(spent: &ThreadTime) -> String {
    let other = match sleeps(spent).as_str() {
        "" => "other sleep".to_owned(),
        named => format!("other sleep ({named})"),
    };
    let parts = [
        (spent.on_cpu, "on CPU"),
        (spent.runnable, "runnable"),
        (spent.kernel_locks, "asleep for kernel locks"),
        (spent.user_locks, "futex"),
        (spent.other_sleep(), other.as_str()),
        (spent.unknown, "unknown"),
    ];
    let said = parts.iter().filter(|(part, _)| *part > Nanos::ZERO);
    let said: Vec<String> = said.map(|(part, what)| format!("{} {what}", time(*part))).collect();
    let threads = counted(spent.threads, "thread");
    format!("thread time {} of {threads}: {}", time(spent.total()), said.join(", "))
}

/// The functions in which most of the other sleep passed.
fn sleeps(spent: &ThreadTime) -> String {
    let all = spent.other_sleep();
    let much = |sleep: &&SleepTime| share(sleep.sum.time, all) >= SLEEP_NAMED;
    let named = spent.sleeps.iter().filter(much).take(SLEEPS_NAMED);
    let said = named.map(|sleep| {
        let function = sleep.function.as_deref().map_or("place not recorded".into(), name);
        format!("{function} {}", time(sleep.sum.time))
    });
    said.collect::<Vec<_>>().join(", ")
}

/// A function's name in a sentence.
fn name(function: &str) -> String {
    shorten(&visible(function), NAME_AT_MOST)
}

/// What the time was instead, when it was hardly locks.
pub(super) fn verdict(spent: &ThreadTime) -> Option<String> {
    let Verdict { locks, instead, share } = spent.verdict()?;
    let (whole, did) = match instead {
        Instead::Ran => ("the threads' time", "were on a CPU".to_owned()),
        Instead::NoCpu => (OFF_CPU, "could run and had no CPU".to_owned()),
        Instead::UserLocks => (OFF_CPU, "waited for locks of user space (futex)".to_owned()),
        Instead::Slept(function) => (OFF_CPU, format!("slept in {}", name(&function))),
    };
    let (locks, share) = (percent(locks), percent(share));
    Some(format!(
        "waiting for kernel locks is {locks} of {whole}; for {share} of it the threads {did}"
    ))
}

/// The table of locks of user space; nothing when they took next to no time.
pub(super) fn user_locks(report: &Report, width: usize, paint: Paint) -> Vec<String> {
    let locks = &report.user_locks;
    let all = waited(locks);
    let spent = report.thread_time.as_ref().map_or(Nanos::ZERO, ThreadTime::total);
    if all == Nanos::ZERO || share(all, spent) < USER_LOCKS_SHOWN {
        return Vec::new();
    }
    let column = |title, kind| Column { title, kind, give_up: 0 };
    let mut grid = Grid::new(vec![
        column("wait", Kind::Number),
        column("waits", Kind::Number),
        column("p50", Kind::Number),
        column("max", Kind::Number),
        column("task", Kind::Name),
        column("caller", Kind::Name),
    ]);
    let shown = if report.top == 0 { locks.len() } else { USER_LOCK_ROWS };
    locks.iter().take(shown).for_each(|lock| grid.row(row(lock)));
    let mut lines = vec![format!("user locks (futex), no locks of the kernel: {}", time(all))];
    lines.extend(grid.print(width, paint).0);
    let rest = locks.get(shown..).unwrap_or(&[]);
    if !rest.is_empty() {
        let more = counted(rest.len() as u64, "more row");
        lines.push(format!("... {more}, {}: --top 0", time(waited(rest))));
    }
    lines
}

fn row(lock: &UserLock) -> Vec<Cell> {
    let stat = &lock.stat;
    let cell = |time: Option<Nanos>| Cell::new(time.map_or("-".into(), time_cell));
    let ended = |time| (stat.count > 0).then_some(time);
    vec![
        cell(Some(stat.own)),
        Cell::new(count(stat.count)),
        cell(stat.quantile(0.5)),
        cell(ended(stat.max)),
        Cell::new(visible(&lock.task.comm)),
        Cell::new(call_site(lock)),
    ]
}

/// `pthread_mutex_lock < grow_heap`; without user stacks the entry of the kernel.
fn call_site(lock: &UserLock) -> String {
    let Some(caller) = &lock.caller else {
        let entry = lock.entry.as_deref().map_or("[unknown]".into(), visible);
        return format!("{entry} (no user stacks)");
    };
    // What the caller called; further in are the library's own helpers.
    let called = lock.wrappers.last().map(|called| format!("{} < ", visible(called)));
    format!("{}{}", called.unwrap_or_default(), visible(caller))
}
