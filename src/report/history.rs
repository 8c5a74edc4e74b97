//! When the rows of a report waited: the slices of the timeline, by row.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::build::Cell;
use super::report::RowKey;
use crate::analyse::{CellKey, Timeline};
use crate::model::{Nanos, StackId};

/// Rows that have a history: those that waited most.
const ROWS: usize = 256;

/// Waiting by slice of the rows that waited most. What the slices have folded into the parents of a
/// row's cells is in no row.
pub(super) fn histories(
    timeline: Option<&Timeline>,
    groups: &HashMap<RowKey, Vec<&Cell<'_>>>,
) -> HashMap<RowKey, Vec<Nanos>> {
    let Some(timeline) = timeline else { return HashMap::new() };
    let wait = |cells: &[&Cell<'_>]| -> Nanos { cells.iter().map(|cell| cell.stat.wait()).sum() };
    let mut largest: Vec<_> = groups.iter().map(|(key, cells)| (wait(cells), key, cells)).collect();
    largest.sort_by_key(|(wait, key, _)| (Reverse(*wait), *key));
    largest.truncate(ROWS);
    let mut row_of: HashMap<CellKey, usize> = HashMap::new();
    for (at, (_, _, cells)) in largest.iter().enumerate() {
        row_of.extend(cells.iter().map(|cell| (CellKey { user: StackId::EMPTY, ..*cell.key }, at)));
    }
    let mut histories = vec![vec![Nanos::ZERO; timeline.slices().len()]; largest.len()];
    for (at, slice) in timeline.slices().enumerate() {
        for (key, stat) in slice.sums.waits() {
            if let Some(row) = row_of.get(&CellKey { user: StackId::EMPTY, ..*key }) {
                histories[*row][at] += stat.wait();
            }
        }
    }
    largest.iter().map(|(_, key, _)| (*key).clone()).zip(histories).collect()
}
