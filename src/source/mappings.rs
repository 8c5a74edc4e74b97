//! Which files processes have mapped for execution, read from `/proc` and written as MMAP2 records.
//!
//! In: pids that execute something. Out: records, at once and again after a while, because libraries
//! are loaded after the exec. A process that has ended meanwhile has none, and its user frames stay
//! addresses.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use lockprof_collectors::procfs::maps;

use crate::recording::{Synthesizer, UserMap};

/// When a program's mappings are read again after its exec.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
];

/// `MAP_SHARED` and `MAP_PRIVATE` of mmap(2).
const SHARED: u32 = 1;
const PRIVATE: u32 = 2;

/// What was told already, and what is to be looked at again.
#[derive(Debug)]
pub struct Mappings {
    records: Synthesizer,
    told: HashMap<i32, HashSet<(u64, u64)>>,
    again: Vec<(Instant, i32)>,
    files: HashSet<Vec<u8>>,
}

impl Mappings {
    /// For a recording whose records have `sample_type`.
    pub fn new(sample_type: u64) -> Mappings {
        Mappings {
            records: Synthesizer::new(sample_type),
            told: HashMap::new(),
            again: Vec::new(),
            files: HashSet::new(),
        }
    }

    /// Reads the mappings of processes that ran before the recording began. Gives their records,
    /// which come before all others.
    pub fn existing(&mut self, pids: &[i32]) -> Vec<u8> {
        pids.iter().for_each(|&pid| self.read(pid));
        self.records.take()
    }

    /// These processes executed something at these times.
    pub fn executed(&mut self, programs: &[(i32, u64)]) {
        let now = Instant::now();
        for &(pid, time) in programs {
            self.told.remove(&pid);
            self.records.at(time);
            self.read(pid);
            self.again.extend(AGAIN.map(|after| (now + after, pid)));
        }
    }

    /// Records of what was executed, and of what is due to be looked at again. `newest` is the time
    /// of the youngest sample in the round that they go into.
    pub fn due(&mut self, newest: u64) -> Vec<u8> {
        let now = Instant::now();
        let (due, later) = self.again.iter().partition(|(at, _)| *at <= now);
        self.again = later;
        self.records.at(newest);
        let due: Vec<(Instant, i32)> = due;
        for (_, pid) in due {
            self.read(pid);
        }
        self.records.take()
    }

    /// Files that were mapped for execution.
    pub fn into_files(self) -> Vec<Vec<u8>> {
        let mut files: Vec<Vec<u8>> = self.files.into_iter().collect();
        files.sort_unstable();
        files
    }

    fn read(&mut self, pid: i32) {
        let Ok(mappings) = maps::of_process(pid) else {
            self.told.remove(&pid);
            return;
        };
        let told = self.told.entry(pid).or_default();
        for map in mappings.iter().filter(|map| map.is_executable()) {
            if !told.insert((map.start, map.end)) {
                continue;
            }
            if map.name.starts_with(b"/") && !self.files.contains(&map.name) {
                self.files.insert(map.name.clone());
            }
            self.records.user_map(
                pid as u32,
                &UserMap {
                    start: map.start,
                    len: map.end - map.start,
                    pgoff: map.offset,
                    major: map.major,
                    minor: map.minor,
                    inode: map.inode,
                    prot: map.protection,
                    flags: if map.shared { SHARED } else { PRIVATE },
                    path: if map.name.is_empty() { b"//anon" } else { &map.name },
                },
            );
        }
    }
}
