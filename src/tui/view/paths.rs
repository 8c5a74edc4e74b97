//! On which lock paths CPU time went: bars over time, and below them the functions of each path.
//!
//! ```text
//!   path, lock type, time, share   ▁▂▅▇▇█▆▄   time across; all bars on one scale, which is said above
//! ```

use ratatui::text::{Line, Span};

use super::super::state::{Snapshot, State};
use super::super::theme::Theme;
use super::bars::{beside, high_bars, slices_in, spread};
use crate::model::{Nanos, TimeRange};
use crate::render::escape::visible;
use crate::render::paragraph::shorten;
use crate::render::{path_words, units};
use crate::report::{PathRow, PathSkid, Paths};

/// Lines of a bar.
const HIGH: usize = 2;

/// Columns beside the bars.
const WORDS: usize = 43;

/// Functions shown of a path.
const PARTS: usize = 4;

pub(super) fn lines<'a>(state: &'a State, theme: Theme, width: usize) -> Vec<Line<'a>> {
    let Some(snapshot) = &state.snapshot else { return Vec::new() };
    let paths = &snapshot.paths;
    if paths.total.samples == 0 {
        return vec![Line::from("   no CPU samples here: the recording has none of this")];
    }
    let mut lines = vec![Line::from(shorten(&sum(paths), width))];
    lines.extend(bars(snapshot, theme, width));
    lines.push(Line::from(Span::styled(shorten(&skid(paths), width), theme.quiet())));
    for row in &paths.rows {
        lines.push(Line::default());
        lines.extend(functions(row, paths, theme, width));
    }
    lines
}

fn sum(paths: &Paths) -> String {
    let samples = units::counted(paths.total.samples, "sample");
    let idle = match paths.idle.time {
        Nanos::ZERO => String::new(),
        idle => format!("; idle {}", units::time(idle)),
    };
    format!(" CPU time {} by {samples}{idle}", units::time(paths.total.time))
}

/// Of each path when it had how much: bars of one scale, so that those of a column add up to its whole.
fn bars(snapshot: &Snapshot, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let Snapshot { paths, slices, span, .. } = snapshot;
    let shown = slices_in(slices, *span);
    let slices = &slices[shown.clone()];
    let columns = width.saturating_sub(WORDS + 1);
    let history =
        |row: &PathRow| spread(row.history.get(shown.clone()).unwrap_or_default(), slices, columns);
    let histories: Vec<Vec<u64>> = paths.rows.iter().map(history).collect();
    let column =
        |at: usize| histories.iter().fold(0u64, |sum, history| sum.saturating_add(history[at]));
    let most = (0..columns).map(column).max().unwrap_or(0);
    let mut lines =
        vec![Line::from(Span::styled(scale(snapshot, slices, most, columns), theme.quiet()))];
    for (row, history) in paths.rows.iter().zip(&histories) {
        let words = Span::styled(words(row, paths), theme.strong());
        lines.extend(beside(words, &high_bars(history, most, HIGH), theme));
    }
    lines
}

/// Of which time the bars are, and what a full one is.
fn scale(snapshot: &Snapshot, slices: &[TimeRange], most: u64, columns: usize) -> String {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return String::new() };
    let (from, to) = (first.from.since(snapshot.begin), last.to.since(snapshot.begin));
    let column = to.saturating_sub(from).0 as f64 / columns.max(1) as f64;
    let cpus = most as f64 / column.max(1.0);
    let time = format!("{} .. {}", units::time(from), units::time(to));
    format!("{:WORDS$}{time}, a full bar: {cpus:.1} CPUs", "")
}

fn words(row: &PathRow, paths: &Paths) -> String {
    let lock_type = path_words::lock_type(row.path).unwrap_or_default();
    let words = format!(
        " {:<12} {:<11} {} {:>5}",
        path_words::path(row.path),
        lock_type,
        units::time_cell(row.spun.time),
        units::percent(units::share(row.spun.time, paths.total.time))
    );
    format!("{words:WORDS$}")
}

/// Where in the code.
fn functions(row: &PathRow, paths: &Paths, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let lock_type = path_words::lock_type(row.path).unwrap_or_default();
    let title = format!(" {} {lock_type}", path_words::path(row.path));
    let mut lines = vec![Line::from(Span::styled(title, theme.strong()))];
    for part in row.parts.iter().take(PARTS) {
        let share = units::percent(units::share(part.spun.time, paths.total.time));
        let caller = part.caller.as_deref().map(|caller| format!(" <- {}", visible(caller)));
        let function = format!("{}{}", visible(&part.function), caller.unwrap_or_default());
        let text = format!("   {} {share:>5}  {function}", units::time_cell(part.spun.time));
        lines.push(Line::from(Span::styled(shorten(&text, width), theme.quiet())));
    }
    lines
}

fn skid(paths: &Paths) -> String {
    match &paths.skid {
        PathSkid::Raw => " samples as taken; x moves those that are late".to_owned(),
        PathSkid::NoClock => " samples as taken: no clock of a known period took them".to_owned(),
        PathSkid::NoGrid => " samples as taken: they are too few, or keep no grid".to_owned(),
        PathSkid::Moved(moved) => {
            let time = units::time(moved.time);
            format!(" {time} moved to where interrupts were off; x shows samples as taken")
        }
    }
}
