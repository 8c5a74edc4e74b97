//! Columns of text that fit a width.
//!
//! In: columns and rows of cells. Out: lines, aligned, none wider than asked for. When there is too
//! little room, first the gaps narrow, then columns are given up that can be derived from others,
//! then names are cut; what was given up is handed back, so that it can be said.

use crate::render::paint::{Paint, Style};
use crate::render::paragraph::{columns, shorten};

/// How a column takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Right-aligned, as wide as its widest cell.
    Number,
    /// Left-aligned, as wide as its widest cell.
    Word,
    /// Left-aligned, shortened when there is too little room.
    Name,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    /// Columns with lower numbers are given up first; 0 is never given up.
    pub(crate) give_up: u8,
}

/// A cell. Its text is escaped already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// What to show when there is no room for `text`; empty for its beginning.
    pub(crate) short: String,
    pub(crate) style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: text.into(), style, ..Cell::default() }
    }

    /// What there is room for in so many columns.
    pub(crate) fn within(&self, width: usize) -> String {
        let fits = self.short.is_empty() || columns(&self.text) <= width;
        shorten(if fits { &self.text } else { &self.short }, width)
    }
}

/// What stands in the grid, from top to bottom.
enum Line {
    Cells(Vec<Cell>),
    /// A line of its own, printed as it is.
    Text(String),
}

/// Rows under titles.
pub(crate) struct Grid {
    columns: Vec<Column>,
    lines: Vec<Line>,
}

/// A way to place the columns.
struct Layout {
    gap: usize,
    /// 0 for columns given up.
    widths: Vec<usize>,
}

/// Names are worth more than a percentile when fewer columns than this are left for them.
const NAMES_AT_LEAST: usize = 22;
/// A name longer than this alone gives no reason to narrow gaps.
const NAME_AT_MOST: usize = 40;
/// Columns of `mmap_lock`.
const SHORT_NAME: usize = 9;

impl Grid {
    pub(crate) fn new(columns: Vec<Column>) -> Grid {
        Grid { columns, lines: Vec::new() }
    }

    /// Adds a row; one cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.lines.push(Line::Cells(cells));
    }

    /// Adds a line that is no row.
    pub(crate) fn text(&mut self, line: String) {
        self.lines.push(Line::Text(line));
    }

    /// Lines, and the titles of the columns that were given up.
    pub(crate) fn print(&self, width: usize, paint: Paint) -> (Vec<String>, Vec<&'static str>) {
        let layout = self.layout(width);
        let titles: Vec<Cell> =
            self.columns.iter().map(|c| Cell::styled(c.title, Style::Quiet)).collect();
        let mut lines = vec![self.line(&layout, &titles, paint)];
        lines.extend(self.lines.iter().map(|line| match line {
            Line::Cells(cells) => self.line(&layout, cells, paint),
            Line::Text(text) => text.clone(),
        }));
        let gone = self.columns.iter().zip(&layout.widths).filter(|(_, width)| **width == 0);
        (lines, gone.map(|(column, _)| column.title).collect())
    }

    fn line(&self, layout: &Layout, cells: &[Cell], paint: Paint) -> String {
        let mut line = String::new();
        let mut owed = 0;
        for ((column, cell), &width) in self.columns.iter().zip(cells).zip(&layout.widths) {
            if width == 0 {
                continue;
            }
            let cut = cell.within(width);
            let text = cut.trim_end();
            let before = if column.kind == Kind::Number { width - columns(&cut) } else { 0 };
            // Spaces are owed until something follows: lines have none at their end.
            owed += before;
            if !text.is_empty() {
                line.push_str(&" ".repeat(owed));
                line.push_str(&paint.apply(cell.style, text));
                owed = 0;
            }
            owed += width - before - columns(text) + self.gap_after(layout, column);
        }
        line
    }

    /// Words keep two spaces from each other even in narrow tables.
    fn gap_after(&self, layout: &Layout, column: &Column) -> usize {
        if column.kind == Kind::Number { layout.gap } else { 2 }
    }

    fn layout(&self, width: usize) -> Layout {
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.natural(at)).collect();
        let is_name = |at: &usize| self.columns[*at].kind == Kind::Name;
        let names: Vec<usize> = (0..natural.len()).filter(is_name).collect();
        let wanted: usize = names.iter().map(|&at| natural[at].min(NAME_AT_MOST)).sum();
        let mut steps = vec![(2, 0, wanted), (1, 0, wanted)];
        let mut order: Vec<u8> =
            self.columns.iter().map(|c| c.give_up).filter(|g| *g > 0).collect();
        order.sort_unstable();
        steps.extend(order.into_iter().map(|g| (1, g, wanted.min(NAMES_AT_LEAST))));
        let mut layout = Layout { gap: 2, widths: Vec::new() };
        for (gap, give_up, needed) in steps {
            layout = Layout { gap, widths: natural.clone() };
            for (column, width) in self.columns.iter().zip(&mut layout.widths) {
                if column.kind == Kind::Name || (1..=give_up).contains(&column.give_up) {
                    *width = 0;
                }
            }
            let room = width.saturating_sub(self.fixed(&layout));
            share_out(room, &names, &natural, &mut layout.widths);
            if room >= needed {
                break;
            }
        }
        layout
    }

    /// Width of the widest cell of a column, or of its title.
    fn natural(&self, at: usize) -> usize {
        let cells = self.lines.iter().filter_map(|line| match line {
            Line::Cells(cells) => cells.get(at).map(|cell| columns(&cell.text)),
            Line::Text(_) => None,
        });
        cells.max().unwrap_or(0).max(columns(self.columns[at].title))
    }

    /// Columns taken by everything but names.
    fn fixed(&self, layout: &Layout) -> usize {
        let taken = self.columns.iter().zip(&layout.widths).filter_map(|(column, width)| {
            let shown = *width > 0 || column.kind == Kind::Name;
            shown.then(|| width + self.gap_after(layout, column))
        });
        let last = self.columns.last().map_or(0, |column| self.gap_after(layout, column));
        taken.sum::<usize>().saturating_sub(last)
    }
}

/// Gives `room` to the names: each what it needs. Where that is too much, the later ones (locks)
/// get a third or enough for a short name, and the first (callers) the rest.
fn share_out(room: usize, names: &[usize], natural: &[usize], widths: &mut [usize]) {
    let needed: usize = names.iter().map(|&at| natural[at]).sum();
    let fair = (room / 3).max(SHORT_NAME).min(room / 2);
    let mut left = room;
    // What the first does not need goes to the later ones.
    let fair = fair.max(room.saturating_sub(names.first().map_or(0, |&at| natural[at])));
    for &at in names.iter().skip(1) {
        let width = if needed <= room { natural[at] } else { natural[at].min(fair) };
        widths[at] = width.max(1);
        left = left.saturating_sub(widths[at]);
    }
    if let Some(&first) = names.first() {
        widths[first] = natural[first].min(left).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let number = |title, give_up| Column { title, kind: Kind::Number, give_up };
        let name = |title| Column { title, kind: Kind::Name, give_up: 0 };
        let columns = vec![number("wait", 0), number("p95", 1), name("caller"), name("lock")];
        let mut grid = Grid::new(columns);
        grid.row(["2.1 s ", "44 ms", "lock_mm_and_find_vma", "mmap_lock"].map(Cell::new).into());
        grid.row([" 12 ms", "7 us", "f", "p->pi_lock"].map(Cell::new).into());
        grid
    }

    #[test]
    fn a_wide_grid_shows_everything_and_has_no_spaces_at_line_ends() {
        let (lines, gone) = grid().print(80, Paint { color: false });
        assert_eq!(
            lines,
            [
                "  wait    p95  caller                lock",
                "2.1 s   44 ms  lock_mm_and_find_vma  mmap_lock",
                " 12 ms   7 us  f                     p->pi_lock",
            ]
        );
        assert!(gone.is_empty());
    }

    #[test]
    fn a_narrow_grid_gives_up_a_column_then_cuts_names() {
        let (lines, gone) = grid().print(31, Paint { color: false });
        assert_eq!(gone, ["p95"]);
        assert_eq!(lines[1], "2.1 s  lock_mm_and..  mmap_lock");
    }

    #[test]
    fn no_width_is_too_small_to_print() {
        for width in 0..60 {
            let (lines, _) = grid().print(width, Paint { color: false });
            assert_eq!(lines.len(), 3);
            let widest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
            assert!(widest <= width.max(11), "{width}: {lines:?}");
        }
    }

    #[test]
    fn colour_changes_no_column() {
        let mut grid = grid();
        grid.row(vec![Cell::styled("1 s", Style::Warning), Cell::new("-")]);
        let (plain, _) = grid.print(50, Paint { color: false });
        let (coloured, _) = grid.print(50, Paint { color: true });
        let strip = |line: &String| {
            let mut parts = line.split('\x1b');
            let first = parts.next().unwrap_or("").to_string();
            parts.fold(first, |all, part| all + part.split_once('m').unwrap().1)
        };
        assert_ne!(plain, coloured);
        assert_eq!(coloured.iter().map(strip).collect::<Vec<_>>(), plain);
    }
}
