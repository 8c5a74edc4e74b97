//! The columns of the table of hotspots: what they are called, what they show, how they sort.

use std::cmp::Ordering;

use crate::model::{Nanos, WaitStat};
use crate::render::units;
use crate::report::{Report, Row};

/// A column of numbers; names stand behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// Traced and spun time; while a recording runs, of a second.
    #[default]
    Wait,
    /// Its share of all waiting.
    Share,
    /// How many waits; while a recording runs, in a second.
    Waits,
    /// How many wait at this moment; while a recording runs.
    Now,
    /// Since when the one does that began first.
    Oldest,
    /// Mean wait.
    Avg,
    /// The wait that 99 of 100 stay below.
    P99,
    /// The longest.
    Max,
    /// In words.
    Name,
}

impl Column {
    /// From left to right.
    pub const ALL: [Column; 9] = [
        Column::Wait,
        Column::Share,
        Column::Waits,
        Column::Now,
        Column::Oldest,
        Column::Avg,
        Column::P99,
        Column::Max,
        Column::Name,
    ];

    /// Those that a finished recording has, or one that runs.
    pub fn shown(live: bool) -> impl Iterator<Item = Column> {
        let is_live = |column: &Column| matches!(column, Column::Now | Column::Oldest);
        Column::ALL.into_iter().filter(move |column| live || !is_live(column))
    }

    /// The column `steps` to the right of those that are shown, and round again.
    pub fn beside(self, steps: i32, live: bool) -> Column {
        let columns: Vec<Column> = Column::shown(live).collect();
        let at = columns.iter().position(|column| *column == self).unwrap_or(0) as i32;
        columns[(at + steps).rem_euclid(columns.len() as i32) as usize]
    }

    /// What stands above it.
    pub fn title(self, live: bool) -> &'static str {
        match self {
            Column::Wait if live => "wait/s",
            Column::Waits if live => "waits/s",
            Column::Wait => "wait",
            Column::Share => "share",
            Column::Waits => "waits",
            Column::Now => "now",
            Column::Oldest => "oldest",
            Column::Avg => "avg",
            Column::P99 => "p99",
            Column::Max => "max",
            Column::Name => "name",
        }
    }

    /// Width on the screen; names take what is left.
    pub(super) fn width(self) -> usize {
        match self {
            Column::Share => 5,
            Column::Now => 4,
            Column::Waits => 7,
            _ => 6,
        }
    }

    /// What it says of a row; in a second, where the time is given in which all this was.
    pub(super) fn cell(self, report: &Report, rated: Option<Nanos>, stat: &WaitStat) -> String {
        match (self, rated) {
            (Column::Wait, Some(all)) => time(Some(units::time_per_second(stat.wait(), all))),
            (Column::Waits, Some(all)) => units::per_second(stat.contended(), all),
            (column, _) => column.sum(report, stat),
        }
    }

    fn sum(self, report: &Report, stat: &WaitStat) -> String {
        match self {
            Column::Wait => time(Some(stat.wait())),
            Column::Share => units::percent(report.share(stat)),
            Column::Waits => units::count(stat.contended()),
            Column::Now if stat.waiting == 0 => "-".to_owned(),
            Column::Now => units::count(stat.waiting),
            Column::Oldest => time(Some(stat.oldest)),
            Column::Avg => time(stat.ended.avg()),
            Column::P99 => time(stat.ended.quantile(0.99)),
            Column::Max => time((stat.ended.count > 0).then_some(stat.ended.max)),
            Column::Name => String::new(),
        }
    }

    /// What rows are sorted by. Quantiles walk a histogram, so this is asked once a row.
    fn weight(self, stat: &WaitStat) -> (u64, u64) {
        let first = match self {
            Column::Wait | Column::Share | Column::Name => stat.wait().0,
            Column::Waits => stat.contended(),
            Column::Now => stat.waiting,
            Column::Oldest => stat.oldest.0,
            Column::Avg => stat.ended.avg().map_or(0, |avg| avg.0),
            Column::P99 => stat.ended.quantile(0.99).map_or(0, |p99| p99.0),
            Column::Max => stat.ended.max.0,
        };
        (first, stat.contended())
    }

    /// Indexes of `rows` in the order of this column: largest first, names from a to z, what nobody is
    /// charged with last.
    pub(super) fn sort(self, rows: &[Row], mut shown: Vec<usize>, inverted: bool) -> Vec<usize> {
        let weights: Vec<(u64, u64)> = rows.iter().map(|row| self.weight(&row.stat)).collect();
        let order = |a: &Row, b: &Row, left: usize, right: usize| -> Ordering {
            let by_name = a.key.cmp(&b.key);
            match self {
                Column::Name => by_name,
                _ => weights[right].cmp(&weights[left]).then(by_name),
            }
        };
        shown.sort_by(|&left, &right| {
            let (a, b) = (&rows[left], &rows[right]);
            let order = order(a, b, left, right);
            let order = if inverted { order.reverse() } else { order };
            a.is_uncharged().cmp(&b.is_uncharged()).then(order)
        });
        shown
    }
}

fn time(t: Option<Nanos>) -> String {
    match t {
        None | Some(Nanos::ZERO) => "-   ".to_owned(),
        Some(t) => units::time_cell(t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_last_column_comes_the_first() {
        assert_eq!(Column::Name.beside(1, true), Column::Wait);
        assert_eq!(Column::Wait.beside(-1, false), Column::Name);
        assert_eq!(Column::Waits.beside(1, false), Column::Avg);
        assert_eq!(Column::Waits.beside(1, true), Column::Now);
    }
}
