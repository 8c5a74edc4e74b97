//! Control groups as perf sees them: where their hierarchy is mounted, which there are, who is in one.
//!
//! In: `/proc/self/mounts` and the directories below a mount. Out: [`Hierarchy`], ids and paths. The id
//! in a sample is the inode number of the group's directory. perf counts by the hierarchy of the
//! controller `perf_event`: that of version 1 where it is mounted, and that of version 2 otherwise.
//!
//! ```text
//! cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0     device place type options ..
//! ```
//!
//! Source: `proc(5)`, `cgroups(7)`, `perf_event_open(2)` at PERF_FLAG_PID_CGROUP.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{ProcError, number, read};

/// Where the mounts of this process are listed.
const MOUNTS: &str = "/proc/self/mounts";

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// As in samples.
    pub id: u64,
    /// From the mount on: `/`, `/system.slice/cron.service`.
    pub path: Vec<u8>,
}

/// Why a group cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The mounts cannot be listed.
    #[error(transparent)]
    Mounts(#[from] ProcError),
    /// Neither version is mounted.
    #[error("no cgroup hierarchy that perf counts by is mounted")]
    NotMounted,
    /// The group's directory cannot be opened.
    #[error("no cgroup {name} below {}: {source}", .mount.display())]
    NoSuchGroup {
        /// As it was asked for.
        name: String,
        /// Where the hierarchy is mounted.
        mount: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The hierarchy that perf counts by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    mount: PathBuf,
}

impl Hierarchy {
    /// Finds the mount.
    pub fn find() -> Result<Hierarchy, CgroupError> {
        Hierarchy::among(&read(MOUNTS)?).ok_or(CgroupError::NotMounted)
    }

    fn among(mounts: &[u8]) -> Option<Hierarchy> {
        let mut second = None;
        for line in mounts.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| *byte == b' ').skip(1);
            let (Some(place), Some(kind), Some(options)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let has_perf = || options.split(|byte| *byte == b',').any(|o| o == b"perf_event");
            let hierarchy = || Hierarchy { mount: unescaped(place) };
            match kind {
                b"cgroup" if has_perf() => return Some(hierarchy()),
                b"cgroup2" => second = second.or_else(|| Some(hierarchy())),
                _ => {}
            }
        }
        second
    }

    /// The directory of a group, by its path from the mount on; with or without the slash in front.
    pub fn directory(&self, name: &str) -> Result<PathBuf, CgroupError> {
        let directory = self.mount.join(name.trim_start_matches('/'));
        let opened = File::open(directory.join("cgroup.procs"));
        opened.map(|_| directory).map_err(|source| {
            let (name, mount) = (name.to_owned(), self.mount.clone());
            CgroupError::NoSuchGroup { name, mount, source }
        })
    }

    /// The group of a directory and all below it, at most `limit`; those that cannot be read are left
    /// out.
    pub fn groups(&self, directory: &Path, limit: usize) -> Vec<Cgroup> {
        let mut groups = Vec::new();
        let mut rest = vec![directory.to_path_buf()];
        while let Some(directory) = rest.pop().filter(|_| groups.len() < limit) {
            let Ok(meta) = fs::metadata(&directory) else { continue };
            groups.push(Cgroup { id: meta.ino(), path: self.path_of(&directory) });
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let is_group = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            rest.extend(entries.filter(is_group).map(|entry| entry.path()));
        }
        groups
    }

    /// The directory of a group that was found; `None` when it is gone.
    pub fn directory_of(&self, group: &Cgroup) -> Option<PathBuf> {
        let below = group.path.strip_prefix(b"/").unwrap_or(&group.path);
        let directory = self.mount.join(OsStr::from_bytes(below));
        directory.is_dir().then_some(directory)
    }

    /// The root of the hierarchy.
    pub fn root(&self) -> &Path {
        &self.mount
    }

    fn path_of(&self, directory: &Path) -> Vec<u8> {
        let below = directory.strip_prefix(&self.mount).unwrap_or(directory);
        [b"/", below.as_os_str().as_bytes()].concat()
    }
}

/// Processes in the group of a directory; none when it is gone.
pub fn processes(directory: &Path) -> Vec<i32> {
    let text = read(directory.join("cgroup.procs")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(number).collect()
}

/// A path in the list of mounts, where space, tab, newline and backslash are `\ooo`.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let byte = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    PathBuf::from(OsStr::from_bytes(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(text: &str) -> Option<PathBuf> {
        Hierarchy::among(text.as_bytes()).map(|hierarchy| hierarchy.mount)
    }

    #[test]
    fn the_hierarchy_of_perf_event_comes_before_that_of_version_2() {
        let second = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0\n";
        let others = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let first = "cgroup /sys/fs/cgroup/perf cgroup rw,perf_event 0 0\n";
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(mount(&[others, second, first].concat()), path("/sys/fs/cgroup/perf"));
        assert_eq!(mount(&[second, others].concat()), path("/sys/fs/cgroup/unified"));
        assert_eq!(mount(others), None);
        assert_eq!(mount("cgroup2\ncgroup2 /x\n\n"), None);
    }

    #[test]
    fn a_place_with_a_space_is_unescaped() {
        assert_eq!(unescaped(br"/a\040b\134c"), PathBuf::from(r"/a b\c"));
        assert_eq!(unescaped(br"/a\04"), PathBuf::from(r"/a\04"));
        assert_eq!(unescaped(br"/a\999"), PathBuf::from(r"/a\999"));
    }

    #[test]
    fn groups_are_found_below_a_directory_and_no_more_than_asked_for() {
        let root = std::env::temp_dir().join(format!("lockprof-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("cgroup.procs"), "7\n12\n").unwrap();
        let hierarchy = Hierarchy { mount: root.clone() };
        let mut paths: Vec<_> =
            hierarchy.groups(&root, 9).into_iter().map(|group| group.path).collect();
        paths.sort();
        assert_eq!(paths, [b"/".to_vec(), b"/a".to_vec(), b"/a/b".to_vec()]);
        assert_eq!(hierarchy.groups(&root, 2).len(), 2);
        assert_eq!(processes(&root), [7, 12]);
        assert!(hierarchy.directory("/").is_ok());
        let error = hierarchy.directory("/a/c").unwrap_err().to_string();
        assert!(error.starts_with("no cgroup /a/c below "), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }
}
