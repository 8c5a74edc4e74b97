//! Lock paths on a terminal: verdict, table with bars, doubts, next step.
//!
//! In: [`Paths`], the width of the terminal, whether to colour. Out: text no wider than that, every
//! name escaped.

use std::io;

use crate::attribute::CpuPath;
use crate::model::{Nanos, Spun};
use crate::render::doubts::{Doubt, doubts_of_samples};
use crate::render::escape::visible;
use crate::render::grid::{Cell, Column, Grid, Kind};
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::{pack, wrap};
use crate::render::table::{headline, said, write_parts};
use crate::render::{Renderer, Table, path_words, units};
use crate::report::{PathRow, PathSkid, Paths};

/// Eighths of a column that a bar has which is all the CPU time.
const BAR: f64 = 12.0 * 8.0;
/// A path with this share of all CPU time is worth looking at.
const LARGE_SHARE: f64 = 0.1;
/// The callers of a path with less than this are not worth a line.
const SMALL_SHARE: f64 = 0.01;
/// Functions named that the symbol table does not have.
const NAMED: usize = 3;

const NOT_MEASURABLE: &str = "not measurable on this kernel: it has no function that turns \
    interrupts on after a spinlock, so that time is in the callers";
const NO_SAMPLES: &str = "CPUs were sampled, but no sample is of the tasks asked about.";
const NOT_SAMPLED: &str = "The recording has no CPU samples: record without --no-cpu-samples, or \
    with perf record -e cpu-clock -g.";
const WAKINGS: &str = "wakings were recorded with their stacks, which takes time under the locks of \
    the run queues: wake and irq-off are too large; record --cpu-only for clean shares";
const RAW: &str = "samples as taken: time with interrupts off is where they went on";
const NO_GRID: &str = "the samples keep no grid, or are too few to tell one: time with interrupts off \
    is where they went on";
const NO_SYMBOLS: &str = "no kernel symbols: lock code cannot be told from other code";

impl Renderer<Paths> for Table {
    fn render(&self, paths: &Paths, out: &mut dyn io::Write) -> io::Result<()> {
        let page = Page { paths, width: self.width, paint: Paint { color: self.color } };
        let next = match self.next.is_empty() {
            true => Vec::new(),
            false => pack("next: ", &self.next, self.width),
        };
        write_parts(&[page.verdict(), page.table(), page.doubts(), next], out)
    }
}

/// Lock paths on their way to a terminal.
struct Page<'a> {
    paths: &'a Paths,
    width: usize,
    paint: Paint,
}

impl Page<'_> {
    fn verdict(&self) -> Vec<String> {
        let mut lines = vec![headline(&self.paths.header, self.width, self.paint)];
        lines.extend(wrap("", &self.sum(), self.width));
        lines
    }

    /// All CPU time in one sentence.
    fn sum(&self) -> String {
        let paths = self.paths;
        if paths.trust.cpu_samples == 0 {
            return NOT_SAMPLED.into();
        }
        if paths.total.samples == 0 {
            return NO_SAMPLES.into();
        }
        let part = |time: Nanos| units::percent(units::share(time, paths.total.time));
        let mut sum = format!(
            "CPU time {}: {} in lock code",
            units::time(paths.total.time),
            part(paths.lock_time())
        );
        let named = [
            (CpuPath::ContextSwitch, "context switches"),
            (CpuPath::Recording, "the cost of recording it"),
            (CpuPath::Unknown, "not known"),
            (CpuPath::Work, "useful work"),
        ];
        for (path, words) in named {
            let time = paths.of(path).time;
            if time > Nanos::ZERO {
                sum += &format!(", {} {words}", part(time));
            }
        }
        if let Some(machine) = paths.machine {
            let share = paths.machine_share(paths.total).unwrap_or_default();
            let all = units::time(machine.time);
            sum += &format!("; it is {} of the machine's {all}", units::percent(share));
        }
        sum
    }

    fn table(&self) -> Vec<String> {
        let paths = self.paths;
        if paths.total.samples == 0 {
            return Vec::new();
        }
        let shown = if paths.top == 0 { paths.rows.len() } else { paths.top };
        let (rows, rest) = paths.rows.split_at(shown.min(paths.rows.len()));
        let mut grid = Grid::new(self.columns());
        for row in rows {
            grid.row(self.row(row));
            self.callers(row).into_iter().for_each(|cells| grid.row(cells));
        }
        if !paths.irq_off_measurable && !paths.trust.kernel_symbols.is_empty() {
            grid.row(self.not_measurable());
        }
        let (mut lines, gone) = grid.print(self.width, self.paint);
        lines.extend(self.rest(rest));
        if !gone.is_empty() {
            lines.push(format!("no room for {}", gone.join(", ")));
        }
        lines
    }

    fn columns(&self) -> Vec<Column> {
        let column = |title, kind, give_up| Column { title, kind, give_up };
        let mut columns = vec![column("time", Kind::Number, 0), column("share", Kind::Number, 0)];
        if self.paths.machine.is_some() {
            columns.push(column("machine", Kind::Number, 2));
        }
        columns.push(column("", Kind::Word, 1));
        columns.push(column("path", Kind::Word, 0));
        columns.push(column("type", Kind::Word, 0));
        columns.push(column("where", Kind::Name, 0));
        columns
    }

    fn row(&self, row: &PathRow) -> Vec<Cell> {
        let share = self.paths.share(row.spun);
        let large = share >= LARGE_SHARE && row.path != CpuPath::Work;
        let style = if large { Style::Strong } else { Style::Plain };
        let mut cells = vec![
            Cell::styled(units::time_cell(row.spun.time), style),
            Cell::new(units::percent(share)),
        ];
        let machine = self.paths.machine_share(row.spun);
        cells.extend(machine.map(|share| Cell::new(units::percent(share))));
        cells.push(Cell::new(bar(share)));
        cells.push(Cell::styled(path_words::path(row.path), style));
        cells.push(Cell::new(path_words::lock_type(row.path).unwrap_or_else(|| "-".into())));
        cells.push(Cell::new(path_words::functions(row)));
        cells
    }

    /// Who calls the functions of a row that counts, in a line below them.
    fn callers(&self, row: &PathRow) -> Option<Vec<Cell>> {
        let callers = path_words::callers(row);
        let counts = self.paths.share(row.spun) >= SMALL_SHARE && !callers.is_empty();
        let mut cells = vec![Cell::default(); self.columns().len() - 1];
        cells.push(Cell::styled(format!("<- {callers}"), Style::Quiet));
        counts.then_some(cells)
    }

    /// The row of a path that this kernel does not show.
    fn not_measurable(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::new("-   "), Cell::new("-  ")];
        cells.extend(self.paths.machine.map(|_| Cell::new("-  ")));
        cells.extend(["", "irq-off", "spinlock", NOT_MEASURABLE].map(Cell::new));
        cells
    }

    /// The rows that are not shown.
    fn rest(&self, rows: &[PathRow]) -> Option<String> {
        let mut spun = Spun::default();
        rows.iter().for_each(|row| spun.merge(row.spun));
        let share = units::percent(self.paths.share(spun));
        let more = units::counted(rows.len() as u64, "more path");
        let time = units::time(spun.time);
        (!rows.is_empty()).then(|| format!("... {more}, {time} ({share}): --top 0"))
    }

    fn doubts(&self) -> Vec<String> {
        let paths = self.paths;
        let warning = |text: String| Doubt { label: "warning", text, warning: true };
        let mut doubts = Vec::new();
        if paths.wakings_with_stacks {
            doubts.push(warning(WAKINGS.into()));
        }
        if paths.trust.cpu_samples > 0 && paths.of(CpuPath::Unknown).samples > 0 {
            doubts.extend(self.no_symbols().map(warning));
        }
        doubts.extend(self.unclassified().map(warning));
        doubts.extend(self.skid().map(|text| Doubt { label: "skid", text, warning: false }));
        doubts.extend(doubts_of_samples(&paths.trust));
        if paths.idle.samples > 0 {
            let samples = units::counted(paths.idle.samples, "sample");
            let text = format!("{samples} of idle CPUs left out");
            doubts.push(Doubt { label: "note", text, warning: false });
        }
        said(&doubts, self.width, self.paint)
    }

    /// What was moved from where interrupts went on, and what could not be placed.
    fn skid(&self) -> Option<String> {
        let moved = match &self.paths.skid {
            _ if self.paths.total.samples == 0 => return None,
            PathSkid::NoClock => return None,
            PathSkid::Raw => return Some(RAW.into()),
            PathSkid::NoGrid => return Some(NO_GRID.into()),
            PathSkid::Moved(moved) => moved,
        };
        let points = moved.points.iter().take(NAMED).map(|point| {
            let moved = units::count(point.moved);
            format!("{moved} of {} in {}", units::count(point.samples), visible(&point.function))
        });
        let points = points.collect::<Vec<_>>().join(", ");
        let points = if points.is_empty() { "none".into() } else { points };
        let share = moved.elsewhere_late as f64 / moved.elsewhere.max(1) as f64;
        Some(format!(
            "samples charged to what ran with interrupts off before: {points}; {} changed its path.              They are more than {} late; so are {} of {} elsewhere in the kernel, which cannot be              placed (--raw: samples as taken)",
            units::time(moved.time),
            units::time(moved.late_after),
            units::percent(share),
            units::counted(moved.elsewhere, "sample"),
        ))
    }

    fn no_symbols(&self) -> Option<String> {
        let row = self.paths.rows.iter().find(|row| row.path == CpuPath::Unknown)?;
        let unnamed = row.parts.iter().any(|part| part.function == crate::report::NO_SYMBOL);
        unnamed.then(|| NO_SYMBOLS.into())
    }

    fn unclassified(&self) -> Option<String> {
        let unclassified = &self.paths.unclassified;
        let named = unclassified.iter().take(NAMED).map(|(name, spun)| {
            format!("{} ({})", visible(name), units::counted(spun.samples, "sample"))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let text = format!("lock code of this kernel that lockprof does not know: {named}");
        (!unclassified.is_empty()).then_some(text)
    }
}

/// A share as a bar, to an eighth of a column; what is there has at least that.
fn bar(share: f64) -> String {
    let eighths = (share * BAR).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let rest = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|c| **c != ' ');
    "█".repeat(eighths / 8).chars().chain(rest.copied()).collect()
}
