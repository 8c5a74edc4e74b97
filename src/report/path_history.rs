//! When CPU time went on which lock path: the slices of the timeline, by path.
//!
//! In: the CPU samples of each slice, and how each stack's time is divided. Out: CPU time by path and
//! slice. What a slice has folded is still on its path, but is not moved any more. As long as nothing was
//! folded, the slices of a path add up to its row, to the nanosecond: what is moved until the end of a
//! slice is rounded, not what is moved in it.

use hashbrown::HashMap;

use super::paths::{is_wanted, share_of};
use super::sources::Sources;
use crate::analyse::{CpuKey, CpuStackKey};
use crate::attribute::CpuPath;
use crate::model::{Filter, Nanos, StackId};

/// The path of a stack, and the one that a share of its time is moved to.
pub(super) type Divided = (CpuPath, Option<(CpuPath, f64)>);

/// Sums on their way.
struct Histories {
    slices: usize,
    paths: HashMap<CpuPath, Vec<Nanos>>,
    /// Time of stacks that is divided, until here.
    so_far: HashMap<CpuKey, Nanos>,
}

/// CPU time by path, a sum for each slice; none where time is not kept apart.
pub(super) fn histories(
    sources: &Sources<'_>,
    filter: &Filter,
    divide: impl Fn(StackId) -> Divided,
) -> HashMap<CpuPath, Vec<Nanos>> {
    let Some(timeline) = sources.tables.timeline() else { return HashMap::new() };
    let slices = timeline.slices().len();
    let mut sums = Histories { slices, paths: HashMap::new(), so_far: HashMap::new() };
    let mut divided: HashMap<StackId, Divided> = HashMap::new();
    for (at, slice) in timeline.slices().enumerate() {
        for (key, spun) in slice.sums.cpu().filter(|(key, _)| is_wanted(sources, key, filter)) {
            let paths = match key.kernel {
                CpuStackKey::Path(path) => (path, None),
                CpuStackKey::Stack(stack) => *divided.entry(stack).or_insert_with(|| divide(stack)),
            };
            sums.add(at, key, paths, spun.time);
        }
    }
    sums.paths
}

impl Histories {
    fn add(&mut self, at: usize, key: &CpuKey, (path, behind): Divided, time: Nanos) {
        let Some((behind, share)) = behind else { return self.put(path, at, time) };
        let so_far = self.so_far.entry(*key).or_default();
        let before = share_of(*so_far, share);
        *so_far += time;
        let moved = share_of(*so_far, share).saturating_sub(before);
        self.put(behind, at, moved);
        self.put(path, at, time.saturating_sub(moved));
    }

    fn put(&mut self, path: CpuPath, at: usize, time: Nanos) {
        let slices = self.slices;
        let history = self.paths.entry(path).or_insert_with(|| vec![Nanos::ZERO; slices]);
        history[at] += time;
    }
}
