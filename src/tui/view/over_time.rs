//! When a row waited, of a lock with readers and writers each side for itself.
//!
//! ```text
//!   readers   12 ms  ▁ ▂ ▅▅▅ ▁        both on one scale, time across
//!   writers  742 ms  ▇▇██▅▃
//! ```

use ratatui::text::{Line, Span};

use super::super::state::Snapshot;
use super::super::theme::Theme;
use super::bars::{beside, high_bars, slices_in, spread};
use crate::model::{LockType, Mode, Nanos};
use crate::render::paragraph::shorten;
use crate::render::units;
use crate::report::Row;

/// Lines of a bar.
const HIGH: usize = 2;

/// Columns beside the bars.
const WORDS: usize = 31;

pub(super) fn lines(
    snapshot: &Snapshot,
    row: &Row,
    theme: Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let shown = slices_in(&snapshot.slices, snapshot.span);
    let slices = &snapshot.slices[shown.clone()];
    let columns = width.saturating_sub(WORDS + 1);
    let bars = |(name, history): (String, &Vec<Nanos>)| {
        let part = history.get(shown.clone()).unwrap_or_default();
        (name, part.iter().copied().sum(), spread(part, slices, columns))
    };
    let sides: Vec<(String, Nanos, Vec<u64>)> = sides(row).map(bars).collect();
    let most = sides.iter().flat_map(|(.., bars)| bars).copied().max().unwrap_or(0);
    if most == 0 || slices.len() < 2 {
        return Vec::new();
    }
    let title = title(snapshot, row, shown.start, shown.end);
    let mut lines = vec![Line::from(Span::styled(shorten(&title, width), theme.strong()))];
    for (name, wait, values) in &sides {
        let words = format!("   {name:<18} {} ", units::time_cell(*wait));
        let words = Span::raw(format!("{words:WORDS$}"));
        lines.extend(beside(words, &high_bars(values, most, HIGH), theme));
    }
    lines
}

/// Readers above writers, where the row has both; what else waits is one line.
fn sides(row: &Row) -> impl Iterator<Item = (String, &Vec<Nanos>)> {
    let splits = row.splits.iter().filter(|split| !split.history.is_empty());
    splits.map(|split| (side(split.lock_type), &split.history))
}

fn side(lock_type: LockType) -> String {
    match lock_type.mode {
        Mode::Read => format!("{lock_type} readers"),
        Mode::Write => format!("{lock_type} writers"),
        Mode::Exclusive => lock_type.to_string(),
    }
}

fn title(snapshot: &Snapshot, row: &Row, first: usize, end: usize) -> String {
    let since = |at: usize, last: bool| {
        let slice = snapshot.slices.get(at);
        let time = slice.map_or(snapshot.begin, |s| if last { s.to } else { s.from });
        units::time(time.since(snapshot.begin))
    };
    let shared = row.splits.iter().any(|split| split.lock_type.mode != Mode::Exclusive);
    let what = if shared { "readers and writers waiting" } else { "waiting" };
    format!(" {what}, {} .. {}", since(first, false), since(end.saturating_sub(1), true))
}
