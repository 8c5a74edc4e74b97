//! On which lock paths CPU time went, as bars with the functions below them.

use ratatui::text::{Line, Span};

use super::super::state::State;
use super::super::theme::Theme;
use super::bars::bar;
use crate::model::{Nanos, Spun};
use crate::render::escape::visible;
use crate::render::paragraph::shorten;
use crate::render::{path_words, units};
use crate::report::{PathRow, PathSkid, Paths};

/// Columns of a bar.
const BAR: usize = 30;

/// Functions shown below a path.
const PARTS: usize = 4;

pub(super) fn lines<'a>(state: &'a State, theme: Theme, width: usize) -> Vec<Line<'a>> {
    let Some(snapshot) = &state.snapshot else { return Vec::new() };
    let paths = &snapshot.paths;
    if paths.total.samples == 0 {
        return vec![Line::from("   no CPU samples here: the recording has none of this")];
    }
    let mut lines = vec![Line::from(sum(paths)), Line::default()];
    for row in &paths.rows {
        lines.extend(row_lines(row, paths.total, theme, width));
    }
    lines.push(Line::default());
    lines.push(Line::from(Span::styled(shorten(&skid(paths), width), theme.quiet())));
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

fn row_lines(row: &PathRow, total: Spun, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let share = units::share(row.spun.time, total.time);
    let lock_type = path_words::lock_type(row.path).unwrap_or_default();
    let words = format!(
        " {:<12} {:<11} {} {:>5} ",
        path_words::path(row.path),
        lock_type,
        units::time_cell(row.spun.time),
        units::percent(share)
    );
    let mut lines = vec![Line::from(vec![
        Span::styled(words, theme.strong()),
        Span::styled(bar(share, BAR), theme.bar()),
    ])];
    for part in row.parts.iter().take(PARTS) {
        let share = units::percent(units::share(part.spun.time, total.time));
        let caller = part.caller.as_deref().map(|caller| format!(" <- {}", visible(caller)));
        let function = format!("{}{}", visible(&part.function), caller.unwrap_or_default());
        let text = format!("{:26}{} {share:>5} {function}", "", units::time_cell(part.spun.time));
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
