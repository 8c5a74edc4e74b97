//! What must hold of every kernel: one function a check.
//!
//! In: what is known of the kernel and what its guest brought. Out: a word for the table, or what is wrong.
//! Guests share few real CPUs: shares, presence and order are checked, never rates.

use lockprof::attribute::{CpuPath, PathRole};
use lockprof::model::{LockKind, Mode};
use lockprof::render::{Json, Renderer};
use lockprof::report::{PathRow, Report, Row, Trust};
use serde_json::Value;

use crate::booted::Booted;
use crate::expected::{Expected, MPROTECT, SPINLOCK};
use crate::recorded::Recorded;

/// What a check says.
pub(crate) type Said = Result<String, Wrong>;

/// Why a check does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// What should be is not.
    Failed(String),
    /// It cannot be told here: neither passed nor failed.
    NotTold(String),
}

impl From<String> for Wrong {
    fn from(why: String) -> Wrong {
        Wrong::Failed(why)
    }
}

impl From<&str> for Wrong {
    fn from(why: &str) -> Wrong {
        Wrong::Failed(why.to_owned())
    }
}

/// A check of a guest.
pub(crate) struct Check {
    /// Its line of the table.
    pub(crate) name: &'static str,
    /// Which guest it looks at.
    pub(crate) guest: &'static str,
    /// Whether it needs nothing but the recordings `all` and `pid`.
    pub(crate) travels: bool,
    /// Whether there is something to check on this kernel.
    pub(crate) applies: fn(&Expected) -> bool,
    /// It.
    pub(crate) run: fn(&Expected, &Booted) -> Said,
}

fn always(_: &Expected) -> bool {
    true
}

const EVENTS: Check =
    Check { name: "", guest: "events", travels: false, applies: always, run: steps };
const SPIN: Check = Check { guest: "spin", ..EVENTS };

/// All of them, in the order of the table.
pub(crate) const CHECKS: [Check; 15] = [
    Check { name: "every command ends well", run: steps, ..EVENTS },
    Check { name: "the rung is named", travels: true, run: rung, ..EVENTS },
    Check { name: "mmap: rows", run: mmap, ..EVENTS },
    Check { name: "mmap, -a: rows", travels: true, run: all, ..EVENTS },
    Check { name: "directory: rows", run: directory, ..EVENTS },
    Check { name: "directory, -p: rows", travels: true, run: pid, ..EVENTS },
    Check { name: "directory of XFS: rows", run: xfs, ..EVENTS },
    Check { name: "waiting is what waiters measure", run: convoy, ..EVENTS },
    Check { name: "releasers", travels: true, applies: has_releasers, run: releasers, ..EVENTS },
    Check { name: "lock code is known", travels: true, run: known, ..EVENTS },
    Check { name: "the host says the same", run: same, ..EVENTS },
    Check { name: "missing rights are named", run: rights, ..EVENTS },
    Check { name: "8 CPUs: every command ends well", run: steps, ..SPIN },
    Check { name: "8 CPUs: spinning by role", applies: spins, run: spin, ..SPIN },
    Check { name: "8 CPUs: a spinlock", applies: spins, run: spinlock, ..SPIN },
];

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn steps(_: &Expected, guest: &Booted) -> Said {
    ensure(!guest.steps.is_empty(), || "no command was run".into())?;
    if let Some(step) = guest.steps.iter().find(|step| step.status != 0) {
        let said = guest.text(&format!("{}.err", step.name)).unwrap_or_default();
        return Err(format!("{} ended with {}: {}", step.name, step.status, said.trim()).into());
    }
    Ok(format!("{} of {0}", guest.steps.len()))
}

fn rung(kernel: &Expected, guest: &Booted) -> Said {
    let recorded = guest.recorded("all")?;
    let rung = &recorded.by_site.trust.rung;
    let wanted = if kernel.contention_events {
        "contention events and CPU samples"
    } else {
        Trust::SLEEPS_AND_SAMPLES
    };
    ensure(rung.starts_with(wanted), || format!("it says \"{rung}\""))?;
    ensure(recorded.has_event("lock:contended_release") == kernel.contended_release, || {
        format!("{:?}", recorded.events)
    })?;
    let release = guest.text("release")?;
    let said = &recorded.by_site.header.kernel;
    ensure(said == release.trim(), || format!("{said} is not {}", release.trim()))?;
    Ok(if kernel.contention_events { "events" } else { "sleeps" }.into())
}

/// Share of the waiting that is for rwsems in such a mode, of such callers.
fn share(report: &Report, mode: Mode, callers: &[&str]) -> f64 {
    let wanted = |row: &&Row| {
        let lock_type = row.key.lock_type;
        lock_type.is_some_and(|found| found.kind == LockKind::Rwsem && found.mode == mode)
            && row.key.caller.as_deref().is_some_and(|caller| callers.contains(&caller))
    };
    report.rows.iter().filter(wanted).map(|row| report.share(&row.stat)).sum()
}

fn first_rows(report: &Report) -> String {
    let words = |row: &Row| {
        let lock_type = row.key.lock_type.map(|found| found.to_string()).unwrap_or_default();
        let share = 100.0 * report.share(&row.stat);
        format!("{share:.0} % {lock_type} {}", row.key.caller.as_deref().unwrap_or("-"))
    };
    report.rows.iter().take(4).map(words).collect::<Vec<_>>().join(", ")
}

/// The hammer's two sides at the top of the report, under their names, of the one lock.
fn mmap_rows(kernel: &Expected, recorded: &Recorded, least: f64) -> Said {
    let report = &recorded.by_site;
    let of = |mode, caller| share(report, mode, &[caller]);
    let (read, write) = (of(Mode::Read, kernel.mincore), of(Mode::Write, MPROTECT));
    let rows = || first_rows(report);
    ensure(read > 0.0, || format!("no rwsem:R {}: {}", kernel.mincore, rows()))?;
    ensure(write > 0.0, || format!("no rwsem:W {MPROTECT}: {}", rows()))?;
    ensure(read + write > least, rows)?;
    let first = report.rows.first().and_then(|row| row.key.lock.as_ref());
    let named = first.is_some_and(|lock| lock.name == "mmap_lock");
    ensure(named, || format!("the first lock is {first:?}: {}", rows()))?;
    let rt = report.rows.first().is_some_and(|row| row.key.lock_type.is_some_and(|t| t.rt));
    ensure(rt == kernel.rt, || format!("PREEMPT_RT is told wrongly: {}", rows()))?;
    Ok(format!("R {:.0} % W {:.0} %", 100.0 * read, 100.0 * write))
}

fn mmap(kernel: &Expected, guest: &Booted) -> Said {
    mmap_rows(kernel, &*guest.recorded("mmap")?, 0.5)
}

/// Whatever else the machine waited for, the hammer is most of it.
fn all(kernel: &Expected, guest: &Booted) -> Said {
    mmap_rows(kernel, &*guest.recorded("all")?, 0.4)
}

fn directory_rows(kernel: &Expected, recorded: &Recorded) -> Said {
    let report = &recorded.by_site;
    let share = share(report, Mode::Write, kernel.directory);
    ensure(share > 0.4, || first_rows(report))?;
    Ok(format!("W {:.0} %", 100.0 * share))
}

fn directory(kernel: &Expected, guest: &Booted) -> Said {
    directory_rows(kernel, &*guest.recorded("directory")?)
}

fn pid(kernel: &Expected, guest: &Booted) -> Said {
    directory_rows(kernel, &*guest.recorded("pid")?)
}

fn xfs(kernel: &Expected, guest: &Booted) -> Said {
    directory_rows(kernel, &*guest.recorded("xfs")?)
}

/// The waiting of the convoy's short threads, against what these say of it: the time of their calls less that
/// of the same calls when nobody held them up.
fn convoy(_: &Expected, guest: &Booted) -> Said {
    let outcome = guest.printed("record-convoy")?;
    let groups = outcome["groups"].as_array().ok_or("the hammer printed no groups")?;
    let short = groups.iter().find(|group| group["comm"] == "hammer-short");
    let measured = short.and_then(|group| group["waiting"]["wait_total_ns"].as_f64());
    let measured = measured.ok_or("the hammer printed no waiting")?;
    let recorded = guest.recorded("convoy")?;
    let of_short = |row: &&Row| row.key.task.as_ref().is_some_and(|t| t.comm == "hammer-short");
    let rows = recorded.by_task.rows.iter().filter(of_short);
    let told: u64 = rows.map(|row| row.stat.wait().0).sum();
    let ratio = told as f64 / measured;
    let said = format!("{:.0} % of {:.1} s", 100.0 * ratio, measured / 1e9);
    // An emulator that stands still lengthens calls that wait for nothing: the threads take it for waiting.
    let starved = guest.cpu_share().filter(|&share| share < 0.4);
    if let (false, Some(share)) = ((0.9..=1.1).contains(&ratio), starved) {
        let share = 100.0 * share;
        return Err(Wrong::NotTold(format!("{said}, with {share:.0} % of one real CPU")));
    }
    ensure((0.9..=1.1).contains(&ratio), || format!("{said}: {}", first_rows(&recorded.by_site)))?;
    Ok(said)
}

fn has_releasers(kernel: &Expected) -> bool {
    kernel.contention_events
}

/// Who let go is known of waits that ended with a waking, or since 7.2 with a release; spinning has no releaser.
fn releasers(_: &Expected, guest: &Booted) -> Said {
    let recorded = guest.recorded("all")?;
    let trust = &recorded.by_site.trust;
    let charged = trust.charged.ok_or("wakings were not recorded")?;
    let share = charged.0 as f64 / trust.wait.0.max(1) as f64;
    ensure(share > 0.1, || format!("{:.0} % of the waiting has a releaser", 100.0 * share))?;
    Ok(format!("{:.0} %", 100.0 * share))
}

/// No lock function of any recorded stack is missing in the table.
fn known(_: &Expected, guest: &Booted) -> Said {
    let mut functions = 0;
    for name in guest.names() {
        let recorded = guest.recorded(&name)?;
        ensure(recorded.unknown.is_empty(), || format!("{name}: {:?}", recorded.unknown))?;
        let unclassified = &recorded.paths.unclassified;
        ensure(unclassified.is_empty(), || format!("{name}: {unclassified:?}"))?;
        functions = functions.max(recorded.lock_code.len());
    }
    ensure(functions >= 4, || format!("{functions} functions of lock code in all stacks"))?;
    Ok(format!("{functions} functions"))
}

/// What the guest's `report` printed is what this machine makes of the same file.
fn same(_: &Expected, guest: &Booted) -> Said {
    let mut rows = 0;
    for name in guest.names() {
        let there = guest.printed(&format!("report-{name}"))?;
        let mut here = Vec::new();
        let rendered = Json.render(&guest.recorded(&name)?.by_site, &mut here);
        rendered.map_err(|error| error.to_string())?;
        let here: Value = serde_json::from_slice(&here).map_err(|error| error.to_string())?;
        for part in ["total", "rows"] {
            ensure(there[part] == here[part], || {
                format!("{name}: {part} there: {}, here: {}", there[part], here[part])
            })?;
        }
        rows += here["rows"].as_array().map_or(0, Vec::len);
    }
    ensure(rows > 0, || "no rows".into())?;
    Ok(format!("{rows} rows"))
}

/// What `record` says to a user whom perf_event_paranoid refuses, and to root from whom kptr_restrict hides
/// symbols: the value, and what to type.
fn rights(_: &Expected, guest: &Booted) -> Said {
    let refused = "and this user has no CAP_PERFMON";
    let wanted = [
        ("paranoid-2", format!("perf_event_paranoid is 2 {refused}"), "perf_event_paranoid=-1"),
        ("paranoid-3", format!("perf_event_paranoid is 3 {refused}"), "perf_event_paranoid=-1"),
        ("paranoid-4", format!("perf_event_paranoid is 4 {refused}"), "perf_event_paranoid=-1"),
        ("kptr-2", "without names: kptr_restrict is 2".to_owned(), "kptr_restrict=1"),
    ];
    for (step, reason, setting) in &wanted {
        let said = guest.text(&format!("{step}.err"))?;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let command = format!("sudo sysctl kernel.{setting}");
        ensure(said.contains(reason) && said.contains(&command), || format!("{step}: {said}"))?;
    }
    Ok(format!("{} settings", wanted.len()))
}

fn spins(kernel: &Expected) -> bool {
    !kernel.spins.is_empty()
}

/// CPU samples show the kernel's spinning functions, as spinning. Gives their share of the CPU time.
fn spinning(recorded: &Recorded, wanted: &[&str]) -> Result<f64, String> {
    let is_spin = |row: &&PathRow| matches!(row.path, CpuPath::Lock(PathRole::Spin, _));
    let rows = recorded.paths.rows.iter().filter(is_spin);
    let seen: Vec<&str> = rows.flat_map(|row| &row.parts).map(|part| &*part.function).collect();
    for function in wanted {
        ensure(seen.contains(function), || format!("{function} is in no sample of {seen:?}"))?;
    }
    let all = recorded.paths.total.time.0.max(1) as f64;
    Ok(recorded.paths.of_role(PathRole::Spin).time.0 as f64 / all)
}

/// Where events are blind, spinning is told by samples.
fn spin(kernel: &Expected, guest: &Booted) -> Said {
    let recorded = guest.recorded("spin-directory")?;
    let share = spinning(&recorded, kernel.spins)?;
    ensure(recorded.by_site.total.spun.samples > 0, || "no untraced spin".into())?;
    Ok(format!("{:.0} % of CPU time", 100.0 * share))
}

/// All CPUs fight for the spinlock of one table of file descriptors.
fn spinlock(_: &Expected, guest: &Booted) -> Said {
    let share = spinning(&*guest.recorded("spin-files")?, &[SPINLOCK])?;
    Ok(format!("{:.0} % of CPU time", 100.0 * share))
}
