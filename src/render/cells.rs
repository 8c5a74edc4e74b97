//! What a row of a report says, cell by cell.
//!
//! In: a report and the rows to show. Out: the columns that these rows need, by site, lock, task, cgroup
//! or releaser, and the cells of each row, escaped.

use crate::model::{
    GroupBy, HandOverKind, LockType, Mode, Nanos, SortKey, Stat, Uncharged, WaitStat,
};
use crate::render::escape::visible;
use crate::render::grid::{Cell, Column, Kind};
use crate::render::paint::Style;
use crate::render::units;
use crate::report::{ChargedName, NameEvidence, Report, Row, RowKey, Split};

/// A row with this share of all waiting is worth looking at.
const LARGE_SHARE: f64 = 0.1;

/// A time of a row.
type Value = fn(&WaitStat) -> Option<Nanos>;

/// Which columns this report needs.
pub(crate) struct Shape<'a> {
    report: &'a Report,
    /// Some row spun unseen: the wait has two parts.
    spun: bool,
    /// Some row is marked with `~`.
    marks: bool,
    /// Some row knows its lock's address.
    address: bool,
    /// Some row knows how long its lock was held.
    held: bool,
}

impl Shape<'_> {
    /// The shape for these rows of `report`.
    pub(crate) fn of<'a>(report: &'a Report, rows: &[&Row]) -> Shape<'a> {
        let spun = !report.by.is_blame() && rows.iter().any(|row| row.stat.spun.samples > 0);
        let address = rows.iter().any(|row| row.key.lock_addr.is_some());
        let held = report.by == GroupBy::Lock && rows.iter().any(|row| row.hold.is_some());
        let mut shape = Shape { report, spun, marks: false, address, held };
        shape.marks = rows.iter().any(|row| shape.is_near_floor(&row.stat));
        shape
    }

    /// Half of the waits are hardly longer than our own record of them.
    pub(crate) fn is_near_floor(&self, stat: &WaitStat) -> bool {
        self.report.trust.floor.is_some_and(|floor| stat.is_near(floor))
    }

    /// The column that rows are sorted by, where it is not there anyway.
    fn sorted_by(&self) -> Option<(&'static str, Value)> {
        match self.report.sort {
            SortKey::Wait | SortKey::Contended | SortKey::WaitMax => None,
            SortKey::WaitTotal => Some(("total", |stat| Some(stat.ended.total))),
            SortKey::WaitMin => Some(("min", |stat| Some(stat.ended.min))),
            SortKey::AvgWait => Some(("avg", |stat| stat.ended.avg())),
        }
    }

    /// Columns from left to right: numbers, then names.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let column = |title, kind, give_up| Column { title, kind, give_up };
        if self.report.by.is_blame() {
            return self.columns_of_blame();
        }
        let mut columns = vec![column("wait", Kind::Number, 0), column("share", Kind::Number, 4)];
        if self.spun {
            columns.push(column("traced", Kind::Number, 1));
            columns.push(column("spun +- 95 %", Kind::Number, 0));
        }
        columns.push(column("waits", Kind::Number, 0));
        columns.extend(self.sorted_by().map(|(title, _)| column(title, Kind::Number, 0)));
        // The mark has a column of its own width behind the unit.
        columns.push(column(if self.marks { "p50 " } else { "p50" }, Kind::Number, 0));
        columns.push(column("p95", Kind::Number, 2));
        columns.push(column("p99", Kind::Number, 3));
        // Rows by lock look alike without addresses, which are long.
        let max = if self.report.by == GroupBy::Lock { 5 } else { 0 };
        columns.push(column("max", Kind::Number, max));
        match self.report.by {
            GroupBy::Site => {
                columns.push(column("type", Kind::Word, 0));
                columns.push(column("caller", Kind::Name, 0));
                columns.push(column("lock", Kind::Name, 0));
            }
            GroupBy::Lock => {
                columns.extend(self.held.then(|| column("avg hold", Kind::Number, 0)));
                columns.extend(self.held.then(|| column("p99 hold", Kind::Number, 4)));
                columns.push(column("type", Kind::Word, 0));
                columns.push(column("lock", Kind::Name, 0));
                columns.push(column("named", Kind::Word, 0));
                columns.extend(self.address.then(|| column("address", Kind::Word, 6)));
            }
            GroupBy::Task => {
                columns.push(column("pid", Kind::Number, 0));
                columns.push(column("tid", Kind::Number, 0));
                columns.push(column("task", Kind::Name, 0));
                columns.push(column("mostly", Kind::Word, 0));
            }
            GroupBy::Cgroup => {
                columns.push(column("cgroup", Kind::Name, 0));
                columns.push(column("mostly", Kind::Word, 0));
            }
            GroupBy::Releaser | GroupBy::Blame => {}
        }
        columns
    }

    fn columns_of_blame(&self) -> Vec<Column> {
        let column = |title, kind, give_up| Column { title, kind, give_up };
        let mut columns = vec![column("wait", Kind::Number, 0), column("share", Kind::Number, 0)];
        if self.report.by == GroupBy::Releaser {
            columns.push(column("pieces", Kind::Number, 1));
            columns.push(column("holds", Kind::Number, 3));
        }
        columns.push(column("avg hold", Kind::Number, 0));
        columns.push(column("p99 hold", Kind::Number, 2));
        columns.extend(self.via().then(|| column("via", Kind::Number, 0)));
        if self.report.by == GroupBy::Blame {
            columns.push(column("type", Kind::Word, 0));
            columns.push(column("who waited", Kind::Name, 0));
        }
        columns.push(column("who let it wait", Kind::Name, 0));
        columns
    }

    /// Whether some waiting went through its releaser to another.
    fn via(&self) -> bool {
        self.report.rows.iter().any(|row| row.via > Nanos::ZERO)
    }

    /// A row's cells, one for each column.
    pub(crate) fn row(&self, row: &Row) -> Vec<Cell> {
        if self.report.by.is_blame() {
            return self.blame(row);
        }
        let mut cells = self.numbers(&row.stat);
        cells.extend(match self.report.by {
            GroupBy::Site => site(row),
            GroupBy::Lock => self.lock(row),
            GroupBy::Task => task(row),
            GroupBy::Cgroup => cgroup(row),
            GroupBy::Releaser | GroupBy::Blame => Vec::new(),
        });
        cells
    }

    /// The part of a lock's row with one lock type.
    pub(crate) fn split(&self, split: &Split) -> Vec<Cell> {
        let lock_type = split.lock_type;
        let mut cells = self.numbers(&split.stat);
        cells.extend(self.holds(split.hold.as_ref()));
        cells.push(Cell::styled(format!("  {lock_type}"), style_of(lock_type)));
        cells
    }

    fn numbers(&self, stat: &WaitStat) -> Vec<Cell> {
        let share = self.report.share(stat);
        let style = if share >= LARGE_SHARE { Style::Strong } else { Style::Plain };
        let mut cells = vec![
            Cell::styled(time_or_dash(Some(stat.wait())), style),
            Cell::new(units::percent(share)),
        ];
        if self.spun {
            cells.push(Cell::new(time_or_dash(Some(stat.traced()))));
            cells.push(Cell::new(match stat.spun.samples {
                0 => time_or_dash(None),
                _ => units::estimate_cell(stat.spun.time, stat.spun.interval()),
            }));
        }
        cells.push(Cell::new(units::count(stat.contended())));
        cells.extend(self.sorted_by().map(|(_, value)| Cell::new(time_or_dash(value(stat)))));
        let ended = &stat.ended;
        let mark = match (self.marks, self.is_near_floor(stat)) {
            (true, true) => "~",
            (true, false) => " ",
            (false, _) => "",
        };
        cells.push(Cell::new(time_or_dash(ended.quantile(0.5)) + mark));
        cells.push(Cell::new(time_or_dash(ended.quantile(0.95))));
        cells.push(Cell::new(time_or_dash(ended.quantile(0.99))));
        cells.push(Cell::new(time_or_dash((ended.count > 0).then_some(ended.max))));
        cells
    }

    fn blame(&self, row: &Row) -> Vec<Cell> {
        let share = self.report.share(&row.stat);
        let large = share >= LARGE_SHARE && !row.is_uncharged();
        let style = if large { Style::Strong } else { Style::Plain };
        let hold = row.hold.as_ref();
        let number = |n: u64| if n == 0 { "-".into() } else { units::count(n) };
        let mut cells = vec![
            Cell::styled(time_or_dash(Some(row.stat.wait())), style),
            Cell::new(units::percent(share)),
        ];
        if self.report.by == GroupBy::Releaser {
            cells.push(Cell::new(number(row.stat.contended())));
            cells.push(Cell::new(number(hold.map_or(0, |hold| hold.count))));
        }
        cells.push(Cell::new(time_or_dash(hold.and_then(Stat::avg))));
        cells.push(Cell::new(time_or_dash(hold.and_then(|hold| hold.quantile(0.99)))));
        if self.via() {
            cells.push(Cell::new(match row.via {
                Nanos::ZERO => "-".into(),
                via => units::percent(units::share(via, row.stat.wait())),
            }));
        }
        let who = charged(row.key.releaser.as_ref());
        if self.report.by == GroupBy::Blame {
            let waiter = row.key.lock_type;
            cells.push(waiter.map_or(Cell::default(), type_cell));
            cells.push(waiter.map_or(Cell::default(), |_| caller(&row.key)));
            let short = if who.short.is_empty() { "" } else { "<- " };
            cells.push(Cell {
                text: format!("<- {}", who.text),
                short: format!("{short}{}", who.short),
                ..who
            });
            return cells;
        }
        cells.push(who);
        cells
    }

    /// How long a lock was held, where some row knows.
    fn holds(&self, hold: Option<&Stat>) -> Vec<Cell> {
        let times = [hold.and_then(Stat::avg), hold.and_then(|hold| hold.quantile(0.99))];
        times.into_iter().filter(|_| self.held).map(|t| Cell::new(time_or_dash(t))).collect()
    }

    fn lock(&self, row: &Row) -> Vec<Cell> {
        let type_cell = match (row.splits.as_slice(), row.key.lock_kind) {
            ([only], _) => type_cell(only.lock_type),
            (_, Some(kind)) => Cell::new(kind.name()),
            (_, None) => Cell::new("-"),
        };
        let mut cells = self.holds(row.hold.as_ref());
        cells.push(type_cell);
        cells.push(lock_and_owner(&row.key));
        cells.push(Cell::new(row.key.lock.as_ref().map_or("-", |lock| named_by(lock.evidence))));
        if self.address {
            cells.push(Cell::new(row.key.lock_addr.map_or("-".into(), |addr| addr.to_string())));
        }
        cells
    }
}

/// A time, or a dash aligned on the number where there is nothing to say.
fn time_or_dash(t: Option<Nanos>) -> String {
    match t {
        None | Some(Nanos::ZERO) => "-   ".into(),
        Some(t) => units::time_cell(t),
    }
}

fn style_of(lock_type: LockType) -> Style {
    match lock_type.mode {
        Mode::Read => Style::Read,
        Mode::Write => Style::Write,
        Mode::Exclusive => Style::Plain,
    }
}

fn type_cell(lock_type: LockType) -> Cell {
    Cell::styled(lock_type.to_string(), style_of(lock_type))
}

fn site(row: &Row) -> Vec<Cell> {
    let key = &row.key;
    vec![
        key.lock_type.map_or(Cell::new("-"), type_cell),
        caller(key),
        Cell::new(visible(&lock_beside_caller(key))),
    ]
}

/// The caller behind its wrappers: `xfs_buf_lock < xfs_read_agi`. Where that is too long, the
/// wrappers go before the caller does.
pub(crate) fn caller(key: &RowKey) -> Cell {
    let caller = visible(key.caller.as_deref().unwrap_or("[unknown]"));
    let mut names: Vec<_> = key.wrappers.iter().map(|name| visible(name)).collect();
    if names.is_empty() {
        return Cell::new(caller);
    }
    let short = caller.clone().into_owned();
    names.push(caller);
    Cell { short, ..Cell::new(names.join(" < ")) }
}

/// A lock, and the process that it belongs to: `mmap_lock of xfs_repair/4711`. The number goes where
/// there is no room.
pub(crate) fn lock_and_owner(key: &RowKey) -> Cell {
    let name = key.lock.as_ref().map_or("-".into(), |lock| visible(&lock.name));
    let Some(owner) = &key.lock_owner else { return Cell::new(name) };
    let comm = visible(&owner.comm);
    let short = format!("{name} of {comm}");
    Cell { short, ..Cell::new(format!("{name} of {comm}/{}", owner.pid)) }
}

/// Why a lock has its name.
fn named_by(evidence: NameEvidence) -> &'static str {
    match evidence {
        NameEvidence::Symbol => "symbol",
        NameEvidence::Events => "events",
        NameEvidence::Path => "path",
        NameEvidence::Embedded => "inside",
        NameEvidence::Class => "class",
        NameEvidence::Caller => "-",
    }
}

/// A lock known by nothing but the caller in the column before it needs no second mention.
pub(crate) fn lock_beside_caller(key: &RowKey) -> String {
    match &key.lock {
        None => "-".into(),
        Some(lock) if lock.evidence == NameEvidence::Caller => {
            let place = lock.name.rsplit_once(" @ ").map(|(_, place)| place);
            if place.is_some() && place == key.caller.as_deref() {
                "@ caller".into()
            } else {
                lock.name.clone()
            }
        }
        Some(lock) => lock.name.clone(),
    }
}

/// Who is charged, and where it let the lock go: `xfs_repair/4711 do_mprotect_pkey`; or why nobody is.
pub(crate) fn charged(releaser: Option<&ChargedName>) -> Cell {
    match releaser {
        Some(ChargedName::Releaser { task, caller, wrappers, kind }) => {
            let mut names: Vec<_> = wrappers.iter().map(|name| visible(name)).collect();
            names.push(visible(caller.as_deref().unwrap_or("[unknown]")));
            let who = match task.tid {
                0 => visible(&task.comm).into_owned(),
                tid => format!("{}/{tid}", visible(&task.comm)),
            };
            let passed = if *kind == HandOverKind::PassOn { " (passed on)" } else { "" };
            let short = format!("{who} {}{passed}", names.last().map_or("", |name| name));
            Cell { short, ..Cell::new(format!("{who} {}{passed}", names.join(" < "))) }
        }
        Some(ChargedName::Nobody(why)) => Cell::styled(nobody(*why), Style::Quiet),
        None => Cell::new("-"),
    }
}

/// Why nobody is charged, for people.
pub(super) fn nobody(why: Uncharged) -> &'static str {
    match why {
        Uncharged::Own => "(woken, not running yet)",
        Uncharged::Signal => "(a signal or a timeout)",
        Uncharged::Open => "(still waiting at the end)",
        Uncharged::Lost => "(records were lost)",
        Uncharged::WaitedItself => "(its releaser waited too)",
        Uncharged::NoWaking => "(no waking seen)",
    }
}

fn task(row: &Row) -> Vec<Cell> {
    let id = |id: i32| if id == 0 { "-".into() } else { id.to_string() };
    let (comm, pid, tid) = match &row.key.task {
        Some(task) => (visible(&task.comm).into_owned(), id(task.pid), id(task.tid)),
        None => ("[unknown]".into(), "-".into(), "-".into()),
    };
    vec![Cell::new(pid), Cell::new(tid), Cell::new(comm), mostly(row)]
}

fn cgroup(row: &Row) -> Vec<Cell> {
    let path = row.key.cgroup.as_deref().unwrap_or("-");
    vec![Cell::new(visible(path)), mostly(row)]
}

/// The type of lock that waited most.
fn mostly(row: &Row) -> Cell {
    let most = row.splits.iter().max_by_key(|split| (split.stat.wait(), split.stat.contended()));
    most.map_or(Cell::new("-"), |split| {
        let share = split.stat.share_of(&row.stat);
        let text = format!("{} {}", split.lock_type, units::percent(share));
        Cell::styled(text, style_of(split.lock_type))
    })
}
