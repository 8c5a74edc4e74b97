//! Readers against writers, below the table: who waits behind whom, and convoys.
//!
//! ```text
//!   R<-W    readers behind a writer that holds the lock     W<-R   writers behind readers that hold it
//!   R<-qW   readers behind a writer that is queued          W<-W   writers behind a writer
//! ```
//!
//! In: the rows of a report that are shown. Out: lines, a row for each that has readers or writers;
//! shares are of what that side waited, the rest was woken already or is unknown.

use crate::model::{GroupBy, Nanos, QueueStat};
use crate::render::escape::visible;
use crate::render::grid::{Cell, Column, Grid, Kind};
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::{pack, wrap};
use crate::render::units;
use crate::report::{Report, Row, Side, Sides};

/// The section; empty when no row has readers or writers.
pub(super) fn section(report: &Report, rows: &[&Row], width: usize, paint: Paint) -> Vec<String> {
    let sides = rows.iter().filter_map(|row| Some((*row, row.sides()?)));
    let sides: Vec<(&Row, Sides)> = sides.collect();
    if sides.is_empty() {
        return vec!["readers and writers: no row has a lock that knows them".into()];
    }
    let mut grid = Grid::new(columns(report.by));
    sides.iter().for_each(|(row, sides)| grid.row(cells(report.by, row, sides)));
    let (lines, gone) = grid.print(width, paint);
    let title = "who waits behind whom, in shares of what readers (R) and writers (W) waited; the rest \
                 was woken already or is unknown";
    let mut all = wrap("", title, width);
    all.extend(lines);
    all.extend(pack("", &legend(report, &gone), width));
    all
}

fn columns(by: GroupBy) -> Vec<Column> {
    let number = |title, give_up| Column { title, kind: Kind::Number, give_up };
    let mut columns = vec![
        number("R wait", 0),
        number("W wait", 0),
        number("R<-W", 0),
        number("R<-qW", 0),
        number("W<-R", 0),
        number("W<-W", 0),
    ];
    if by == GroupBy::Lock {
        columns.extend([number("most", 1), number("convoys", 2), number("longest", 0)]);
    }
    columns.push(Column { title: "type", kind: Kind::Word, give_up: 0 });
    columns.extend(names(by).iter().map(|&title| Column { title, kind: Kind::Name, give_up: 0 }));
    columns
}

/// The columns that say which row it is.
fn names(by: GroupBy) -> &'static [&'static str] {
    match by {
        GroupBy::Site => &["caller", "lock"],
        GroupBy::Task => &["task"],
        GroupBy::Cgroup => &["cgroup"],
        _ => &["lock"],
    }
}

fn cells(by: GroupBy, row: &Row, sides: &Sides) -> Vec<Cell> {
    let (readers, writers) = (sides.readers, sides.writers);
    let wait = |side: Option<Side>, style| match side {
        Some(side) => Cell::styled(units::time_cell(side.wait), style),
        None => Cell::new("-   "),
    };
    let share = |side: Option<Side>, part: fn(&Side) -> Nanos| match side {
        Some(side) if side.traced > Nanos::ZERO => {
            Cell::new(units::percent(units::share(part(&side), side.traced)))
        }
        _ => Cell::new("-"),
    };
    let mut cells = vec![
        wait(readers, Style::Read),
        wait(writers, Style::Write),
        share(readers, |side| side.behind.writer),
        share(readers, |side| side.behind.queued_writer),
        share(writers, |side| side.behind.reader),
        share(writers, |side| side.behind.writer),
    ];
    if by == GroupBy::Lock {
        cells.extend(queue(row.queue.as_ref()));
    }
    cells.push(Cell::new(kind(row)));
    cells.extend(words(by, row).map(Cell::new));
    cells
}

/// The most that waited at a time, how many convoys, the longest of them.
fn queue(queue: Option<&QueueStat>) -> [Cell; 3] {
    let Some(queue) = queue else { return ["-", "-", "-   "].map(Cell::new) };
    let most = match (queue.most_readers, queue.most_writers) {
        (readers, 0) => format!("{}R", units::count(readers)),
        (0, writers) => format!("{}W", units::count(writers)),
        (readers, writers) => format!("{}R {}W", units::count(readers), units::count(writers)),
    };
    if queue.convoys == 0 {
        return [Cell::new(most), Cell::new("-"), Cell::new("-   ")];
    }
    [
        Cell::new(most),
        Cell::new(units::count(queue.convoys)),
        Cell::new(format!(
            "{} in {}",
            units::count(queue.longest_waits),
            units::time_cell(queue.longest_time)
        )),
    ]
}

fn kind(row: &Row) -> String {
    let key = &row.key;
    let of_row = key.lock_type.map(|t| t.to_string());
    let of_row = of_row.or(key.lock_kind.map(|kind| kind.name().to_owned()));
    let mut kinds = row.splits.iter().map(|split| split.lock_type.kind);
    of_row.unwrap_or_else(|| match kinds.next() {
        Some(first) if kinds.all(|kind| kind == first) => first.name().to_owned(),
        _ => "-".into(),
    })
}

fn words(by: GroupBy, row: &Row) -> impl Iterator<Item = String> {
    let key = &row.key;
    let lock = key.lock.as_ref().map_or("-".into(), |lock| visible(&lock.name).into_owned());
    let caller = visible(key.caller.as_deref().unwrap_or("[unknown]")).into_owned();
    let task = key.task.as_ref().map_or("-".into(), |task| visible(&task.comm).into_owned());
    match by {
        GroupBy::Site => vec![caller, lock],
        GroupBy::Task => vec![task],
        GroupBy::Cgroup => vec![visible(key.cgroup.as_deref().unwrap_or("-")).into_owned()],
        _ => vec![lock],
    }
    .into_iter()
}

fn legend(report: &Report, gone: &[&str]) -> Vec<String> {
    let mut words = vec!["R<-qW: behind a queued writer, while readers hold it"];
    if report.by == GroupBy::Lock {
        words.extend([
            "most: waiting at a time",
            "convoys: handed over twice or more, never free",
            "longest: waits in one, and its time",
        ]);
    }
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if report.trust.charged.is_none() {
        words.push("whom writers wait behind: record without --no-blame".into());
    }
    if !gone.is_empty() {
        words.push(format!("no room for {}", gone.join(", ")));
    }
    words
}
