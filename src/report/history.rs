//! When the rows of a report waited: the slices of the timeline, by row.

use hashbrown::HashMap;

use super::build::Cell;
use super::report::{Row, RowKey};
use crate::analyse::{CellKey, Timeline};
use crate::model::{Nanos, StackId};

/// Rows that have a history: those that waited most.
const ROWS: usize = 256;

/// Puts into the rows that waited most, and into their parts by lock type, when that was. What the slices
/// have folded into the parents of a row's cells is in no row.
pub(super) fn add_histories(
    timeline: Option<&Timeline>,
    groups: &HashMap<RowKey, Vec<&Cell<'_>>>,
    rows: &mut [(RowKey, Row)],
) {
    let Some(timeline) = timeline else { return };
    rows.sort_by(|(a, row), (b, other)| {
        other.stat.wait().cmp(&row.stat.wait()).then_with(|| a.cmp(b))
    });
    let count = ROWS.min(rows.len());
    let largest = &mut rows[..count];
    let mut row_of: HashMap<CellKey, usize> = HashMap::new();
    for (at, (key, _)) in largest.iter().enumerate() {
        let cells = groups.get(key).into_iter().flatten();
        row_of.extend(cells.map(|cell| (CellKey { user: StackId::EMPTY, ..*cell.key }, at)));
    }
    let slices = timeline.slices().len();
    for (_, row) in largest.iter_mut() {
        row.history = vec![Nanos::ZERO; slices];
        row.splits.iter_mut().for_each(|split| split.history = vec![Nanos::ZERO; slices]);
    }
    for (at, slice) in timeline.slices().enumerate() {
        for (key, stat) in slice.sums.waits() {
            let row = row_of.get(&CellKey { user: StackId::EMPTY, ..*key });
            if let Some((_, row)) = row.and_then(|row| largest.get_mut(*row)) {
                row.history[at] += stat.wait();
                let mut splits = row.splits.iter_mut();
                let split = splits.find(|split| split.lock_type == key.lock_type);
                split.into_iter().for_each(|split| split.history[at] += stat.wait());
            }
        }
    }
}

impl Row {
    /// Forgets when it waited: times of two recordings have nothing to do with each other.
    pub fn forget_when(&mut self) {
        self.history.clear();
        self.splits.iter_mut().for_each(|split| split.history.clear());
    }
}
