//! The heat map of waiting: time across, rows down, and below it the cursor.

use ratatui::text::{Line, Span};

use super::super::state::{Snapshot, State};
use super::super::theme::Theme;
use super::bars::{shade, span, spread};
use super::hotspots::fill;
use super::layout;
use super::names::name;
use crate::model::Nanos;
use crate::render::units;
use crate::report::Row;

/// Lines that are no rows: the sum above; the cursor and its words below.
pub(super) const TITLES: usize = 3;

/// Columns of names.
const NAME: usize = 30;

pub(super) fn lines<'a>(
    state: &'a State,
    theme: Theme,
    (width, height): (usize, usize),
) -> Vec<Line<'a>> {
    let Some(snapshot) = &state.snapshot else { return Vec::new() };
    if snapshot.slices.is_empty() || state.shown.is_empty() {
        return vec![Line::from("   nothing waited here")];
    }
    let map = width.saturating_sub(NAME + 3);
    let rows: Vec<&Row> = state.rows().collect();
    let page = height.saturating_sub(TITLES).max(1);
    let first = layout::first_row(state.selected, page);
    let cells = |history: &[Nanos]| spread(history, &snapshot.slices, map);
    let mut lines = vec![line(("all that is shown", cells(&sum(&rows))), false, theme)];
    for (at, row) in rows.iter().enumerate().skip(first).take(page) {
        let cells = cells(&row.history);
        lines.push(line((&name(row).name.within(NAME - 1), cells), at == state.selected, theme));
    }
    lines.push(cursor(state, snapshot, map, theme));
    lines.push(Line::from(words(state, snapshot, &rows)));
    lines
}

fn sum(rows: &[&Row]) -> Vec<Nanos> {
    let slices = rows.iter().map(|row| row.history.len()).max().unwrap_or(0);
    let mut sums = vec![Nanos::ZERO; slices];
    for row in rows {
        sums.iter_mut().zip(&row.history).for_each(|(sum, wait)| *sum += *wait);
    }
    sums
}

/// A row. Shades are of the most in this row: a lock that is small all in all has its moments too.
fn line((name, cells): (&str, Vec<u64>), selected: bool, theme: Theme) -> Line<'static> {
    let most = cells.iter().copied().max().unwrap_or(0);
    let mark = if selected { "> " } else { "  " };
    let style = if selected { theme.selected() } else { theme.quiet() };
    let mut spans = vec![Span::styled(format!("{mark}{}", fill(name, NAME)), style)];
    for cell in cells {
        let share = if most == 0 { 0.0 } else { cell as f64 / most as f64 };
        spans.push(Span::styled(shade(cell, most).to_string(), theme.heat(share)));
    }
    Line::from(spans)
}

/// `^` under the slice of the cursor, `-` from where a range was marked.
fn cursor(state: &State, snapshot: &Snapshot, map: usize, theme: Theme) -> Line<'static> {
    let column = |at: usize| {
        snapshot.slices.get(at).map_or(0, |slice| span(*slice, &snapshot.slices, map).start)
    };
    let at = column(state.slice);
    let mark = state.mark.map_or(at, column);
    let (from, to) = (at.min(mark), at.max(mark));
    let sign = |column: usize| match column {
        _ if column == at => '^',
        _ if (from..=to).contains(&column) => '-',
        _ => ' ',
    };
    let signs: String = (0..=to).map(sign).collect();
    Line::from(Span::styled(format!("{:1$}{signs}", "", NAME + 2), theme.strong()))
}

fn words(state: &State, snapshot: &Snapshot, rows: &[&Row]) -> String {
    let Some(slice) = snapshot.slices.get(state.slice) else { return String::new() };
    let zero = snapshot.slices.first().map_or(slice.from, |first| first.from);
    let wait = sum(rows).get(state.slice).copied().unwrap_or_default();
    let from = units::time(slice.from.since(zero));
    let width = units::time(slice.to.since(slice.from));
    let what = match state.mark {
        None => "m marks the begin of a range",
        Some(_) => "m takes the range, Esc drops it",
    };
    format!(" at {from}, {width} wide: {} of waiting; {what}", units::time(wait))
}
