//! The book of control groups: the path of each id.
//!
//! In: CGROUP records, which say what existed at the start and what was made since. Out: paths.
//! Bounded: groups beyond the limit keep their id for a name.

use hashbrown::HashMap;

/// Groups known at the most.
const GROUPS_KEPT: usize = 1 << 16;

/// The book.
#[derive(Debug, Default)]
pub struct Cgroups {
    paths: HashMap<u64, Box<str>>,
}

impl Cgroups {
    /// CGROUP: the group `id` is at `path`. An id used again is another group.
    pub fn learn(&mut self, id: u64, path: &[u8]) {
        if self.paths.len() < GROUPS_KEPT || self.paths.contains_key(&id) {
            self.paths.insert(id, String::from_utf8_lossy(path).into());
        }
    }

    /// Its path, from the mount of the hierarchy on.
    pub fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(|path| &**path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_groups_do_not_make_memory_grow() {
        let mut cgroups = Cgroups::default();
        (0..2 * GROUPS_KEPT as u64).for_each(|id| cgroups.learn(id, b"/a"));
        assert_eq!(cgroups.paths.len(), GROUPS_KEPT);
        cgroups.learn(7, b"/b");
        assert_eq!(cgroups.path(7), Some("/b"));
        assert_eq!(cgroups.path(u64::MAX), None);
    }
}
