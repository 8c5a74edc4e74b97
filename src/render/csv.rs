//! The report for spreadsheets and scripts: one record a row, units in the titles (RFC 4180).
//!
//! In: a report. Out: a title line and all rows, whatever `--top` says. The columns are the same
//! for every `--by`, and new ones come last; what a row does not have is an empty field. Text that
//! a spreadsheet would run is made text.

use std::io;

use crate::model::{Mode, Nanos, WaitStat};
use crate::render::escape::csv_field;
use crate::render::json::evidence;
use crate::render::paths_json::word;
use crate::render::{Renderer, path_words, units};
use crate::report::{ChargedName, PathPart, PathRow, Paths, Report, Row};

/// `--format csv`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

const TITLES: [&str; 50] = [
    "lock_type",
    "lock_kind",
    "caller",
    "wrappers",
    "lock",
    "lock_evidence",
    "lock_addr",
    "comm",
    "pid",
    "tid",
    "wait_ns",
    "share",
    "traced_ns",
    "spun_ns",
    "spun_interval_ns",
    "contended",
    "ended",
    "wait_own_ns",
    "wait_total_ns",
    "wait_min_ns",
    "wait_max_ns",
    "avg_wait_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p999_ns",
    "failed",
    "backed_off",
    "open",
    "open_at_least_ns",
    "uncertain",
    "uncertain_at_most_ns",
    "spun_samples",
    "read_wait_ns",
    "write_wait_ns",
    "releaser_comm",
    "releaser_pid",
    "releaser_tid",
    "releaser_caller",
    "releaser_wrappers",
    "hand_over",
    "uncharged",
    "holds",
    "hold_total_ns",
    "avg_hold_ns",
    "p99_hold_ns",
    "via_ns",
    "lock_owner_comm",
    "lock_owner_pid",
    "cgroup",
];

impl Renderer for Csv {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        write_record(out, TITLES.map(String::from))?;
        for row in &report.rows {
            write_record(out, record(report, row))?;
        }
        Ok(())
    }
}

const PATH_TITLES: [&str; 8] =
    ["path", "lock_type", "function", "caller", "cpu_ns", "share", "machine_share", "samples"];

/// One record a function and caller, so that sums by any column are right.
impl Renderer<Paths> for Csv {
    fn render(&self, paths: &Paths, out: &mut dyn io::Write) -> io::Result<()> {
        write_record(out, PATH_TITLES.map(String::from))?;
        for row in &paths.rows {
            for part in &row.parts {
                write_record(out, path_record(paths, row, part))?;
            }
        }
        Ok(())
    }
}

fn path_record(paths: &Paths, row: &PathRow, part: &PathPart) -> [String; PATH_TITLES.len()] {
    let machine = paths.machine_share(part.spun);
    [
        word(row.path).into(),
        path_words::lock_type(row.path).unwrap_or_default(),
        csv_field(&part.function).into_owned(),
        csv_field(part.caller.as_deref().unwrap_or_default()).into_owned(),
        part.spun.time.0.to_string(),
        format!("{:.6}", paths.share(part.spun)),
        machine.map_or(String::new(), |share| format!("{share:.6}")),
        part.spun.samples.to_string(),
    ]
}

fn write_record<const N: usize>(out: &mut dyn io::Write, fields: [String; N]) -> io::Result<()> {
    write!(out, "{}\r\n", fields.join(","))
}

fn record(report: &Report, row: &Row) -> [String; TITLES.len()] {
    let waits = name_fields(row).into_iter().chain(number_fields(row, report.total.wait()));
    let via = report.by.is_blame().then_some(row.via.0);
    let via = via.map_or(String::new(), |via| via.to_string());
    let cgroup = row.key.cgroup.as_deref().map_or(String::new(), |path| csv_field(path).into());
    let fields = waits.chain(releaser_fields(row)).chain(hold_fields(row)).chain([via]);
    let mut fields = fields.chain(owner_fields(row)).chain([cgroup]);
    std::array::from_fn(|_| fields.next().unwrap_or_default())
}

fn name_fields(row: &Row) -> [String; 10] {
    let key = &row.key;
    let text = |text: Option<&str>| text.map_or(String::new(), |t| csv_field(t).into_owned());
    let (lock, task) = (key.lock.as_ref(), key.task.as_ref());
    [
        key.lock_type.map_or(String::new(), |t| t.to_string()),
        text(key.lock_kind.map(|kind| kind.name())),
        text(key.caller.as_deref()),
        csv_field(&key.wrappers.join(" < ")).into_owned(),
        text(lock.map(|lock| lock.name.as_str())),
        text(lock.map(|lock| evidence(lock.evidence))),
        key.lock_addr.map_or(String::new(), |addr| addr.to_string()),
        text(task.map(|task| task.comm.as_str())),
        task.map_or(String::new(), |task| task.pid.to_string()),
        task.map_or(String::new(), |task| task.tid.to_string()),
    ]
}

fn number_fields(row: &Row, all: Nanos) -> [String; 25] {
    let (stat, ended) = (&row.stat, &row.stat.ended);
    let number = |n: u64| n.to_string();
    let optional = |t: Option<Nanos>| t.map_or(String::new(), |t| t.0.to_string());
    let seen = |t: Nanos| optional((ended.count > 0).then_some(t));
    [
        number(stat.wait().0),
        format!("{:.6}", units::share(stat.wait(), all)),
        number(stat.traced().0),
        number(stat.spun.time.0),
        number(stat.spun.interval().0),
        number(stat.contended()),
        number(ended.count),
        number(ended.own.0),
        number(ended.total.0),
        seen(ended.min),
        seen(ended.max),
        optional(ended.avg()),
        optional(ended.quantile(0.5)),
        optional(ended.quantile(0.95)),
        optional(ended.quantile(0.99)),
        optional(ended.quantile(0.999)),
        number(stat.failed),
        number(stat.backed_off),
        number(stat.open),
        number(stat.open_time.0),
        number(stat.uncertain),
        number(stat.uncertain_time.0),
        number(stat.spun.samples),
        number(wait_of(row, Mode::Read).0),
        number(wait_of(row, Mode::Write).0),
    ]
}

fn owner_fields(row: &Row) -> [String; 2] {
    match &row.key.lock_owner {
        Some(owner) => [csv_field(&owner.comm).into_owned(), owner.pid.to_string()],
        None => Default::default(),
    }
}

fn releaser_fields(row: &Row) -> [String; 7] {
    let mut fields = [const { String::new() }; 7];
    let text = |text: &str| csv_field(text).into_owned();
    match &row.key.releaser {
        Some(ChargedName::Releaser { task, caller, wrappers, kind }) => {
            fields[0] = text(&task.comm);
            fields[1] = task.pid.to_string();
            fields[2] = task.tid.to_string();
            fields[3] = text(caller.as_deref().unwrap_or_default());
            fields[4] = text(&wrappers.join(" < "));
            fields[5] = kind.name().to_owned();
        }
        Some(ChargedName::Nobody(why)) => fields[6] = why.name().to_owned(),
        None => {}
    }
    fields
}

fn hold_fields(row: &Row) -> [String; 4] {
    let Some(hold) = &row.hold else { return [const { String::new() }; 4] };
    let optional = |t: Option<Nanos>| t.map_or(String::new(), |t| t.0.to_string());
    [
        hold.count.to_string(),
        hold.total.0.to_string(),
        optional(hold.avg()),
        optional(hold.quantile(0.99)),
    ]
}

/// The part of a row's wait that asked for its lock in one mode.
fn wait_of(row: &Row, mode: Mode) -> Nanos {
    let splits = row.splits.iter().filter(|split| split.lock_type.mode == mode);
    splits.map(|split| WaitStat::wait(&split.stat)).sum()
}
