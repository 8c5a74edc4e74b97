//! The table: numbers, the balance of readers and writers or the type, names, when it was.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::columns::Column;
use super::super::state::{Snapshot, State};
use super::super::theme::Theme;
use super::bars::{sparkline, spread};
use super::layout;
use super::names::{Name, balance, name};
use crate::model::{GroupBy, Nanos, TimeRange};
use crate::render::paragraph::{columns, shorten};
use crate::render::units;
use crate::report::Row;

/// Columns of the lock's type.
const TYPE: usize = 11;

/// From this width on all columns of numbers leave room for names.
const ROOMY: usize = 96;

/// A sparkline of fewer columns says nothing.
const SPARK: usize = 12;

/// Names have this many columns before there is room for addresses.
const NAMES: usize = 24;

/// A row with this share of all waiting is worth looking at.
const LARGE_SHARE: f64 = 0.1;

pub(super) fn lines<'a>(
    state: &'a State,
    theme: Theme,
    (width, height): (usize, usize),
) -> Vec<Line<'a>> {
    let Some(snapshot) = &state.snapshot else { return Vec::new() };
    let shape = Shape::of(state, width);
    let mut lines = vec![shape.titles(state, theme)];
    let page = height.saturating_sub(1).max(1);
    let first = layout::first_row(state.selected, page);
    for (at, row) in state.rows().enumerate().skip(first).take(page) {
        lines.push(shape.row(snapshot, row, at == state.selected, theme));
    }
    if state.shown.is_empty() {
        lines.push(Line::from(match snapshot.report.rows.is_empty() {
            true => "   no lock waits here",
            false => "   no row has this text in it: Esc drops the filter",
        }));
    }
    lines
}

/// Columns of numbers. Where names have no room, what can be seen from others goes.
fn numbers(by: GroupBy, live: bool, width: usize) -> impl Iterator<Item = Column> {
    // Sites have two names.
    let is_crowded = width < ROOMY && (live || by == GroupBy::Site);
    let spare = move |column| match column {
        Column::Share | Column::Oldest => is_crowded,
        Column::Avg => is_crowded && by == GroupBy::Site,
        _ => false,
    };
    Column::shown(live).filter(move |column| *column != Column::Name && !spare(*column))
}

/// Widths of the columns.
struct Shape {
    by: GroupBy,
    live: bool,
    width: usize,
    name: usize,
    beside: usize,
    spark: usize,
    slices: Vec<TimeRange>,
}

impl Shape {
    fn of(state: &State, width: usize) -> Shape {
        let live = state.live.is_some();
        // Of the rows that are there, while others are being asked for.
        let by = state.snapshot.as_ref().map_or(state.by, |snapshot| snapshot.report.by);
        let numbers: usize = numbers(by, live, width).map(|column| column.width() + 1).sum();
        let left = width.saturating_sub(numbers + TYPE + 3);
        let has_slices = state.snapshot.as_ref().is_some_and(|s| s.slices.len() > 1);
        let has_history = has_slices && state.rows().any(|row| !row.history.is_empty());
        let names = if by == GroupBy::Site { 2 * NAMES } else { NAMES };
        let spark = if has_history && left >= names + SPARK { (left / 4).max(SPARK) } else { 0 };
        let left = left - spark;
        let beside = match by {
            GroupBy::Cgroup | GroupBy::Releaser | GroupBy::Blame => 0,
            GroupBy::Site => left * 2 / 5,
            // Names before numbers: addresses and ids want room of their own.
            GroupBy::Lock if left < NAMES + 19 => 0,
            GroupBy::Lock => 19,
            GroupBy::Task => left.min(32) / 2,
        };
        let slices = state.snapshot.as_ref().map_or(Vec::new(), |s| s.slices.clone());
        Shape { by, live, width, name: left - beside, beside, spark, slices }
    }

    fn titles(&self, state: &State, theme: Theme) -> Line<'static> {
        let mut spans = vec![Span::raw(" ")];
        let style = |column| match column == state.sort {
            true => theme.strong(),
            false => theme.quiet(),
        };
        let mark = if state.inverted { "^" } else { "v" };
        for column in numbers(self.by, self.live, self.width) {
            let marked = if column == state.sort { mark } else { "" };
            let title = format!("{marked}{}", column.title(self.live));
            // The mark may take the space before its column.
            spans.push(Span::styled(format!("{title:>w$}", w = column.width() + 1), style(column)));
        }
        spans.push(Span::raw(" "));
        let (name, beside) = match self.by {
            GroupBy::Site => ("caller", "lock"),
            GroupBy::Lock => ("lock", "address"),
            GroupBy::Task => ("task", "pid/tid"),
            GroupBy::Cgroup => ("cgroup", ""),
            GroupBy::Releaser | GroupBy::Blame => ("who let others wait", ""),
        };
        let balance = if self.by == GroupBy::Lock { "R|W" } else { "type" };
        spans.push(Span::styled(format!("{balance:<TYPE$} "), theme.quiet()));
        let marked = if state.sort == Column::Name { mark } else { "" };
        let title = format!("{marked}{name}");
        spans.push(Span::styled(format!("{title:<w$}", w = self.name), style(Column::Name)));
        spans.push(Span::styled(fill(beside, self.beside), theme.quiet()));
        if self.spark > 0 {
            let title = format!(" over {}", units::time(self.span()));
            spans.push(Span::styled(shorten(&title, self.spark), theme.quiet()));
        }
        Line::from(spans)
    }

    /// How long the slices are together.
    fn span(&self) -> Nanos {
        let (first, last) = (self.slices.first(), self.slices.last());
        first.zip(last).map_or(Nanos::ZERO, |(first, last)| last.to.since(first.from))
    }

    fn row(&self, snapshot: &Snapshot, row: &Row, selected: bool, theme: Theme) -> Line<'static> {
        let report = &snapshot.report;
        let rated = self.live.then(|| snapshot.time());
        let is_large = report.share(&row.stat) >= LARGE_SHARE && !row.is_uncharged();
        let number = if is_large { theme.strong() } else { Style::new() };
        let mut spans = vec![Span::raw(if selected { "> " } else { "  " })];
        for column in numbers(self.by, self.live, self.width) {
            let text = column.cell(report, rated, &row.stat);
            spans.push(Span::styled(format!("{text:>w$} ", w = column.width()), number));
        }
        let Name { lock_type, name, beside } = name(row);
        spans.extend(match balance(row).filter(|_| self.by == GroupBy::Lock) {
            Some(read) => balance_bar(read, theme),
            None => vec![Span::styled(fill(&lock_type, TYPE), type_style(&lock_type, theme))],
        });
        spans.push(Span::raw(" "));
        let name = name.within(self.name.saturating_sub(1));
        spans.push(Span::raw(fill(&name, self.name)));
        spans.push(Span::styled(fill(&beside, self.beside), theme.quiet()));
        if self.spark > 0 {
            let history = sparkline(&spread(&row.history, &self.slices, self.spark - 1));
            spans.push(Span::styled(format!(" {history}"), theme.bar()));
        }
        if selected {
            // Reversed, letters of several colours would stand on as many papers.
            spans.iter_mut().for_each(|span| span.style = theme.selected());
        }
        Line::from(spans)
    }
}

/// `R░░░▓▓▓▓▓▓W`.
fn balance_bar(read: f64, theme: Theme) -> Vec<Span<'static>> {
    let width = TYPE - 2;
    // Both sides show while they are there.
    let cells = (read * width as f64).round() as usize;
    let cells = match read {
        0.0 => 0,
        1.0 => width,
        _ => cells.clamp(1, width - 1),
    };
    vec![
        Span::styled(format!("R{}", "░".repeat(cells)), theme.read()),
        Span::styled(format!("{}W", "▓".repeat(width - cells)), theme.write()),
    ]
}

pub(super) fn type_style(lock_type: &str, theme: Theme) -> Style {
    match lock_type.rsplit_once(':').map(|(_, mode)| mode) {
        Some("R") => theme.read(),
        Some("W") => theme.write(),
        _ => Style::new(),
    }
}

/// `text` in exactly `width` columns, the last one free.
pub(super) fn fill(text: &str, width: usize) -> String {
    let short = shorten(text, width.saturating_sub(1));
    let gap = width.saturating_sub(columns(&short));
    short + &" ".repeat(gap)
}
