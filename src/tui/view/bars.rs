//! Numbers as lengths and as shades, in signs that need no colour.

use std::ops::Range;

use ratatui::text::{Line, Span};

use super::super::theme::Theme;
use crate::model::{Nanos, TimeRange, Timestamp};
use crate::render::paragraph::columns;

const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of at most `width` columns, to an eighth of one; anything above zero shows.
pub(super) fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A line of `values`, each a column as high as its share of the largest.
pub(super) fn sparkline(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    values.iter().map(|value| HEIGHTS[level(*value, most, 8)]).collect()
}

/// The same in several lines, the top one first.
pub(super) fn high_bars(values: &[u64], most: u64, lines: usize) -> Vec<String> {
    let of = |value: u64, below: usize| {
        HEIGHTS[level(value, most.max(1), 8 * lines).saturating_sub(8 * below).min(8)]
    };
    let line = |below: usize| values.iter().map(|value| of(*value, below)).collect();
    (0..lines).rev().map(line).collect()
}

/// High bars beside words, which stand in the last line; lines above it only where a bar is as high.
pub(super) fn beside(
    words: Span<'static>,
    bars: &[String],
    theme: Theme,
) -> impl Iterator<Item = Line<'static>> {
    let above = Span::raw(" ".repeat(columns(&words.content)));
    let last = bars.len().saturating_sub(1);
    let lines =
        bars.iter().enumerate().filter(move |(at, bar)| *at == last || !bar.trim().is_empty());
    lines.map(move |(at, bar)| {
        let words = if at == last { words.clone() } else { above.clone() };
        Line::from(vec![words, Span::styled(bar.clone(), theme.bar())])
    })
}

/// One of five shades.
pub(super) fn shade(value: u64, most: u64) -> char {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    SHADES[level(value, most, 4)]
}

/// 0 for nothing, 1 to `levels` for anything else.
fn level(value: u64, most: u64, levels: usize) -> usize {
    match value {
        0 => 0,
        _ => (u128::from(value) * levels as u128).div_ceil(u128::from(most.max(1))) as usize,
    }
    .min(levels)
}

/// What was waited in `slices`, in `width` columns of equal time.
pub(super) fn spread(values: &[Nanos], slices: &[TimeRange], width: usize) -> Vec<u64> {
    let mut columns = vec![0u64; width];
    for (value, slice) in values.iter().zip(slices) {
        let own = span(*slice, slices, width);
        let share = value.0.div_ceil(own.len().max(1) as u64);
        columns[own].iter_mut().for_each(|column| *column = column.saturating_add(share));
    }
    columns
}

/// The slices that an answer about `span` speaks of.
pub(super) fn slices_in(slices: &[TimeRange], span: TimeRange) -> Range<usize> {
    let from = slices.partition_point(|slice| slice.from < span.from);
    from..slices.partition_point(|slice| slice.from < span.to).max(from)
}

/// The columns of a slice; one at least, where there is one.
pub(super) fn span(slice: TimeRange, slices: &[TimeRange], width: usize) -> Range<usize> {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return 0..0 };
    let all = u128::from(last.to.since(first.from).0.max(1));
    let column = |time: Timestamp| {
        let scaled = u128::from(time.since(first.from).0) * width as u128;
        (scaled / all, scaled.div_ceil(all))
    };
    let from = (column(slice.from).0 as usize).min(width.saturating_sub(1));
    let to = (column(slice.to).1 as usize).clamp(from, width);
    from..to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_nothing_shows() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(1e-9, 10), "▏");
        assert_eq!(bar(0.55, 10), "█████▌");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(sparkline(&[0, 1, 500, 1000]), " ▁▄█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!([0, 1, 1000].map(|value| shade(value, 1000)), [' ', '░', '█']);
        assert_eq!(high_bars(&[0, 1, 500, 750, 1000], 1000, 2), ["   ▄█", " ▁███"]);
        assert_eq!(high_bars(&[0, 3], 0, 2), [" █", " █"]);
    }

    #[test]
    fn time_runs_evenly_from_the_first_column_to_the_last() {
        let slice = |from, to| TimeRange { from: Timestamp(from), to: Timestamp(to) };
        let slices = [slice(100, 200), slice(200, 250), slice(250, 300)];
        let values = [Nanos(8), Nanos(6), Nanos(0)];
        assert_eq!(spread(&values, &slices, 4), [4, 4, 6, 0]);
        assert_eq!(spread(&values, &slices, 1), [14]);
        assert!(spread(&values, &slices, 0).is_empty());
        assert_eq!(span(slices[2], &slices, 8), 6..8);
        let inside = |from, to| slices_in(&slices, slice(from, to));
        assert_eq!((inside(7, 280), inside(200, 290), inside(100, 200)), (0..3, 1..3, 0..1));
        assert_eq!((inside(400, 500), slices_in(&[], slice(0, 9))), (3..3, 0..0));
    }
}
