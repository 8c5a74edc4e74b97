//! The report for programs: every row, every number in full, units in the names.
//!
//! In: a report. Out: one JSON object, `schema_version` 1, described by `schema/report-v1.json`.
//! The structs here are that promise: a field renamed in [`Report`] changes nothing below. All rows
//! are written whatever `--top` says. Each row stands on a line of its own, for grep and diff.

use std::io;

use serde::Serialize;

use crate::model::{GroupBy, HolderTimes, Nanos, PhaseTimes, SortKey, WaitStat};
use crate::render::blame_json::{ChainsOut, HoldOut, ReleaserOut, chains, hold, releaser};
use crate::render::findings::{Sentence, sentence};
use crate::render::json_lines::Lines;
use crate::render::readers_writers_json::{ReadersWritersOut, readers_writers};
use crate::render::threads_json::{
    SleepOut, ThreadTimeOut, UserLockOut, sleep, thread_time, user_lock,
};
use crate::render::trust_json::{TrustOut, trust};
use crate::render::{Renderer, units};
use crate::report::{
    ChargedName, Finding, Header, LockName, NameEvidence, Report, Row, Split, StackShare, TaskName,
};

/// Goes up when a field changes its name, type or meaning; new fields do not count.
pub const SCHEMA_VERSION: u32 = 1;

/// JSON Schema of the output.
pub const SCHEMA: &str = include_str!("../../schema/report-v1.json");

/// `--format json`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Renderer for Json {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
        document(report).serialize(&mut serializer).map_err(io::Error::from)?;
        out.write_all(b"\n")
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    lockprof_version: &'static str,
    header: HeaderOut<'a>,
    thread_time_ns: Option<ThreadTimeOut>,
    thread_sleeps: Vec<SleepOut<'a>>,
    by: &'static str,
    sort: &'static str,
    total: StatOut,
    rows: Vec<RowOut<'a>>,
    user_locks: Vec<UserLockOut<'a>>,
    #[serde(flatten)]
    chains: ChainsOut<'a>,
    findings: Vec<FindingOut>,
    trust: TrustOut<'a>,
}

#[derive(Serialize)]
struct FindingOut {
    id: &'static str,
    text: String,
    more: String,
}

#[derive(Serialize)]
pub(super) struct HeaderOut<'a> {
    target: &'a str,
    kernel: &'a str,
    cpus: u32,
    elapsed_ns: u64,
    threads: u64,
    cpu_time_ns: Option<u64>,
}

#[derive(Serialize)]
struct StatOut {
    wait_ns: u64,
    traced_ns: u64,
    spun_ns: u64,
    spun_interval_ns: u64,
    spun_samples: u64,
    contended: u64,
    ended: u64,
    wait_own_ns: u64,
    wait_total_ns: u64,
    wait_min_ns: Option<u64>,
    wait_max_ns: Option<u64>,
    avg_wait_ns: Option<u64>,
    p50_ns: Option<u64>,
    p95_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    failed: u64,
    backed_off: u64,
    open: u64,
    open_at_least_ns: u64,
    uncertain: u64,
    uncertain_at_most_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    phases_ns: Option<PhasesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_ns: Option<HolderOut>,
    /// `[lower bound in ns, count]`.
    histogram: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct PhasesOut {
    spin: u64,
    asleep: u64,
    runnable: u64,
    rest: u64,
    unknown: u64,
}

#[derive(Serialize)]
struct HolderOut {
    running: u64,
    runnable: u64,
    asleep: u64,
    unknown: u64,
}

#[derive(Serialize)]
struct SleptOut<'a> {
    on: &'a str,
    time_ns: u64,
}

#[derive(Serialize)]
pub(super) struct LockOut<'a> {
    name: &'a str,
    evidence: &'static str,
}

#[derive(Serialize)]
pub(super) struct TaskOut<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
}

#[derive(Serialize)]
struct RowOut<'a> {
    lock_type: Option<String>,
    lock_kind: Option<&'static str>,
    caller: Option<&'a str>,
    wrappers: &'a [String],
    lock: Option<LockOut<'a>>,
    lock_addr: Option<String>,
    lock_owner: Option<TaskOut<'a>>,
    task: Option<TaskOut<'a>>,
    cgroup: Option<&'a str>,
    releaser: Option<ReleaserOut<'a>>,
    uncharged: Option<&'static str>,
    hold: Option<HoldOut>,
    readers_writers: Option<ReadersWritersOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holder_slept: Vec<SleptOut<'a>>,
    via_ns: Option<u64>,
    share: f64,
    #[serde(flatten)]
    stat: StatOut,
    by_type: Vec<SplitOut>,
    stacks: Vec<StackOut<'a>>,
}

#[derive(Serialize)]
struct SplitOut {
    lock_type: String,
    #[serde(flatten)]
    stat: StatOut,
    hold: Option<HoldOut>,
}

#[derive(Serialize)]
struct StackOut<'a> {
    lock_type: String,
    lock: LockOut<'a>,
    kernel: &'a [String],
    user: &'a [String],
    #[serde(flatten)]
    stat: StatOut,
}

fn document(report: &Report) -> Document<'_> {
    let thread_sleeps = report.thread_time.iter().flat_map(|spent| &spent.sleeps);
    Document {
        schema_version: SCHEMA_VERSION,
        lockprof_version: env!("CARGO_PKG_VERSION"),
        header: header(&report.header),
        thread_time_ns: report.thread_time.as_ref().map(thread_time),
        thread_sleeps: thread_sleeps.map(sleep).collect(),
        by: match report.by {
            GroupBy::Site => "site",
            GroupBy::Lock => "lock",
            GroupBy::Task => "task",
            GroupBy::Cgroup => "cgroup",
            GroupBy::Releaser => "releaser",
            GroupBy::Blame => "blame",
        },
        sort: match report.sort {
            SortKey::Wait => "wait",
            SortKey::Contended => "contended",
            SortKey::WaitTotal => "wait_total",
            SortKey::WaitMax => "wait_max",
            SortKey::WaitMin => "wait_min",
            SortKey::AvgWait => "avg_wait",
        },
        total: stat(&report.total),
        rows: report.rows.iter().map(|row| row_out(report, row)).collect(),
        user_locks: report.user_locks.iter().map(user_lock).collect(),
        chains: chains(&report.chains),
        findings: report.findings().iter().map(finding).collect(),
        trust: trust(&report.trust),
    }
}

fn finding(finding: &Finding) -> FindingOut {
    let Sentence { id, text, more } = sentence(finding);
    FindingOut { id, text, more: format!("lockprof {more}") }
}

pub(super) fn header(header: &Header) -> HeaderOut<'_> {
    HeaderOut {
        target: &header.target,
        kernel: &header.kernel,
        cpus: header.cpus,
        elapsed_ns: header.elapsed.0,
        threads: header.threads,
        cpu_time_ns: header.cpu_time.map(|t| t.0),
    }
}

fn stat(stat: &WaitStat) -> StatOut {
    let ended = &stat.ended;
    let quantile = |q| ended.quantile(q).map(|t| t.0);
    StatOut {
        wait_ns: stat.wait().0,
        traced_ns: stat.traced().0,
        spun_ns: stat.spun.time.0,
        spun_interval_ns: stat.spun.interval().0,
        spun_samples: stat.spun.samples,
        contended: stat.contended(),
        ended: ended.count,
        wait_own_ns: ended.own.0,
        wait_total_ns: ended.total.0,
        wait_min_ns: (ended.count > 0).then_some(ended.min.0),
        wait_max_ns: (ended.count > 0).then_some(ended.max.0),
        avg_wait_ns: ended.avg().map(|t| t.0),
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        failed: stat.failed,
        backed_off: stat.backed_off,
        open: stat.open,
        open_at_least_ns: stat.open_time.0,
        uncertain: stat.uncertain,
        uncertain_at_most_ns: stat.uncertain_time.0,
        phases_ns: phases(&stat.phases),
        holder_ns: holder(&stat.holder),
        histogram: ended.histogram.iter().collect(),
    }
}

/// `None` where nothing is known.
fn phases(phases: &PhaseTimes) -> Option<PhasesOut> {
    let PhaseTimes { spin, asleep, runnable, rest, unknown } = *phases;
    (phases.total() > unknown).then_some(PhasesOut {
        spin: spin.0,
        asleep: asleep.0,
        runnable: runnable.0,
        rest: rest.0,
        unknown: unknown.0,
    })
}

fn holder(times: &HolderTimes) -> Option<HolderOut> {
    let HolderTimes { running, runnable, asleep, unknown } = *times;
    (times.known() > Nanos::ZERO).then_some(HolderOut {
        running: running.0,
        runnable: runnable.0,
        asleep: asleep.0,
        unknown: unknown.0,
    })
}

fn row_out<'a>(report: &'a Report, row: &'a Row) -> RowOut<'a> {
    let key = &row.key;
    RowOut {
        lock_type: key.lock_type.map(|t| t.to_string()),
        lock_kind: key.lock_kind.map(|kind| kind.name()),
        caller: key.caller.as_deref(),
        wrappers: &key.wrappers,
        lock: key.lock.as_ref().map(lock),
        lock_addr: key.lock_addr.map(|addr| addr.to_string()),
        lock_owner: key.lock_owner.as_ref().map(task),
        task: key.task.as_ref().map(task),
        cgroup: key.cgroup.as_deref(),
        releaser: key.releaser.as_ref().and_then(releaser),
        uncharged: match key.releaser {
            Some(ChargedName::Nobody(why)) => Some(why.name()),
            _ => None,
        },
        hold: row.hold.as_ref().map(hold),
        readers_writers: readers_writers(row),
        holder_slept: row
            .holder_slept
            .iter()
            .map(|(on, time)| SleptOut { on, time_ns: time.0 })
            .collect(),
        via_ns: report.by.is_blame().then_some(row.via.0),
        share: units::share(row.stat.wait(), report.total.wait()),
        stat: stat(&row.stat),
        by_type: row.splits.iter().map(split).collect(),
        stacks: row.stacks.iter().map(stack).collect(),
    }
}

pub(super) fn task(task: &TaskName) -> TaskOut<'_> {
    TaskOut { comm: &task.comm, pid: task.pid, tid: task.tid }
}

pub(super) fn lock(lock: &LockName) -> LockOut<'_> {
    LockOut { name: &lock.name, evidence: evidence(lock.evidence) }
}

/// The word for the evidence of a lock's name.
pub(super) fn evidence(evidence: NameEvidence) -> &'static str {
    match evidence {
        NameEvidence::Symbol => "symbol",
        NameEvidence::Events => "events",
        NameEvidence::Path => "path",
        NameEvidence::Embedded => "embedded",
        NameEvidence::Class => "class",
        NameEvidence::Caller => "caller",
    }
}

fn split(split: &Split) -> SplitOut {
    SplitOut {
        lock_type: split.lock_type.to_string(),
        stat: stat(&split.stat),
        hold: split.hold.as_ref().map(hold),
    }
}

fn stack(stack: &StackShare) -> StackOut<'_> {
    StackOut {
        lock_type: stack.lock_type.to_string(),
        lock: lock(&stack.lock),
        kernel: &stack.kernel,
        user: &stack.user,
        stat: stat(&stack.stat),
    }
}
