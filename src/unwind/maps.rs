//! The maps of all processes over time.
//!
//! ```text
//!            MMAP                    EXIT of its first thread
//!   (none) --------> maps, gen. n ---------------------------> ended: kept until 4096 more ended
//!     ^              |   ^  |  MMAP: gen. n + 1                  |
//!     |   exec       |   |  FORK: the child has the same maps    |  FORK of a new process
//!     +--------------+   |  and generation, until either maps    |  with the same pid
//!                        +---------------------------------------+
//! ```
//!
//! A process is not forgotten at once when its first thread ends: others may run on. Threads share
//! their process' maps; records name the process.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::Objects;
use super::chains::Chains;
use super::space::{Mapping, Space};
use crate::decode::{Body, Event, Mmap, TaskChange, words};
use crate::model::{ObjectId, StackId, Timestamp, UserFrame};
use crate::stacks::Stacks;

/// Ended processes whose maps are kept.
const ENDED_LIMIT: usize = 4096;

/// Pieces of mappings kept at the most, over all processes.
const PIECE_LIMIT: usize = 8 << 20;

/// `VSYSCALL_ADDR` of arch/x86/include/uapi/asm/vsyscall.h, and its one page.
const VSYSCALL: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;

/// A process' address space.
#[derive(Clone, Debug)]
struct Process {
    space: Arc<Space>,
    /// Equal only for equal maps; never 0.
    generation: u64,
    /// Tells processes apart that had the same pid.
    birth: u64,
}

/// The maps of all processes, and the book of what is mapped.
#[derive(Debug)]
pub struct Maps {
    objects: Objects,
    processes: HashMap<i32, Process>,
    /// (pid, birth), the one that ended first in front.
    ended: VecDeque<(i32, u64)>,
    chains: Chains,
    frames: Vec<UserFrame>,
    /// The last number given to a generation or a birth.
    serial: u64,
    pieces: usize,
    limit: usize,
    refused: u64,
}

impl Default for Maps {
    fn default() -> Maps {
        Maps::new(Objects::default())
    }
}

impl Maps {
    /// No process yet. `objects` may know build ids already.
    pub fn new(objects: Objects) -> Maps {
        Maps {
            objects,
            processes: HashMap::new(),
            ended: VecDeque::new(),
            chains: Chains::default(),
            frames: Vec::new(),
            serial: 0,
            pieces: 0,
            limit: PIECE_LIMIT,
            refused: 0,
        }
    }

    /// What was mapped.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Mappings that found no room, or whose object found none.
    pub fn refused(&self) -> u64 {
        self.refused + self.objects.refused()
    }

    /// Takes in what `event` says of maps: nothing, for most events.
    pub fn apply(&mut self, event: &Event<'_>) {
        match &event.body {
            Body::Mmap(mmap) => self.mmap(mmap),
            Body::Fork(task) => self.fork(event.time, task),
            // An exec leaves nothing of the old image; its MMAP records follow.
            Body::Comm(comm) if comm.exec => self.forget(comm.pid),
            Body::Exit(task) if task.pid == task.tid => self.end(task.pid),
            _ => {}
        }
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// A file or memory was mapped. Records of the kernel, and of processes outside the recorder's
    /// pid namespace (pid 0, whichever process it is), are passed over.
    fn mmap(&mut self, mmap: &Mmap<'_>) {
        if mmap.kernel || mmap.pid <= 0 || mmap.len == 0 {
            return;
        }
        let object = self.objects.intern(mmap.pid, mmap.name, mmap.build_id);
        let by_address = self.objects.get(object).offsets_are_addresses();
        let pgoff = if by_address { mmap.addr } else { mmap.pgoff };
        self.map(mmap.pid, &Mapping { start: mmap.addr, len: mmap.len, pgoff, object });
    }

    fn map(&mut self, pid: i32, mapping: &Mapping) {
        let generation = self.next_serial();
        let new = || Process { space: Arc::default(), generation, birth: generation };
        let process = self.processes.entry(pid).or_insert_with(new);
        // A JIT that makes the same pages writable and executable in turn says nothing new.
        if process.space.has(mapping) {
            return;
        }
        let shared = Arc::strong_count(&process.space) > 1;
        let (before, copied) = (process.space.len(), if shared { process.space.len() } else { 0 });
        // One mapping makes at most two pieces more: itself, and the tail of one it cuts in two.
        if self.pieces + copied + 2 > self.limit {
            self.refused += 1;
            return;
        }
        let space = Arc::make_mut(&mut process.space);
        space.map(mapping);
        self.pieces = self.pieces + copied + space.len() - before;
        process.generation = generation;
    }

    /// A new process has its parent's maps; a new thread has its process'. What the recorder tells
    /// of processes that were there before it carries no time (perf writes it so): each of those
    /// has MMAP records of its own, and its parent's maps are not what they were when it forked.
    fn fork(&mut self, time: Timestamp, task: &TaskChange) {
        if task.pid == task.parent_pid || task.pid <= 0 {
            return;
        }
        self.forget(task.pid);
        if time == Timestamp::default() {
            return;
        }
        if let Some(mut child) = self.processes.get(&task.parent_pid).cloned() {
            child.birth = self.next_serial();
            self.processes.insert(task.pid, child);
        }
    }

    fn end(&mut self, pid: i32) {
        let Some(process) = self.processes.get(&pid) else { return };
        self.ended.push_back((pid, process.birth));
        if self.ended.len() > ENDED_LIMIT
            && let Some((pid, birth)) = self.ended.pop_front()
            && self.processes.get(&pid).is_some_and(|process| process.birth == birth)
        {
            self.forget(pid);
        }
    }

    fn forget(&mut self, pid: i32) {
        if let Some(process) = self.processes.remove(&pid)
            && let Some(space) = Arc::into_inner(process.space)
        {
            self.pieces -= space.len();
        }
    }

    /// The id of the user stack whose addresses stand in `chain` (8 bytes each, innermost first),
    /// as `pid` is mapped now. All calls must be given the same `stacks`.
    #[inline]
    pub fn resolve(&mut self, pid: i32, chain: &[u8], stacks: &mut Stacks) -> StackId {
        if chain.len() < 8 {
            return StackId::EMPTY;
        }
        let generation = self.processes.get(&pid).map_or(0, |process| process.generation);
        if let Some(stack) = self.chains.get(generation, chain) {
            return stack;
        }
        self.resolve_new(pid, chain);
        let stack = stacks.intern_user(&self.frames);
        self.chains.insert(generation, chain, stack);
        stack
    }

    /// Fills `self.frames`.
    fn resolve_new(&mut self, pid: i32, chain: &[u8]) {
        let space = self.processes.get(&pid).map(|process| &*process.space);
        let space = space.filter(|space| space.len() > 0);
        self.frames.clear();
        for (depth, ip) in words(chain).enumerate() {
            // The outermost function returns to nowhere.
            if depth > 0 && ip == 0 {
                break;
            }
            let addr = if depth == 0 { ip } else { ip.wrapping_sub(1) };
            let frame = frame(space, depth, addr);
            self.frames.push(frame);
            if frame.object == Objects::BROKEN_STACK {
                break;
            }
        }
    }
}

/// Where `addr` lies. The innermost address is one that the CPU executed: when it lies in no
/// mapping, the mapping is missing. A caller's was read from the stack: it may be anything.
fn frame(space: Option<&Space>, depth: usize, addr: u64) -> UserFrame {
    if VSYSCALL.contains(&addr) {
        return UserFrame { object: Objects::VSYSCALL, offset: addr - VSYSCALL.start };
    }
    let unknown = UserFrame { object: ObjectId::UNKNOWN, offset: addr };
    match space {
        Some(space) => space.find(addr).unwrap_or(match depth {
            0 => unknown,
            _ => UserFrame { object: Objects::BROKEN_STACK, offset: 0 },
        }),
        None => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Comm;

    fn map(pid: i32, addr: u64) -> Body<'static> {
        let name = b"/a";
        Body::Mmap(Mmap { pid, addr, len: 0x1000, pgoff: 0, kernel: false, name, build_id: None })
    }

    fn task(pid: i32, parent_pid: i32) -> TaskChange {
        TaskChange { pid, tid: pid, parent_pid, parent_tid: parent_pid }
    }

    fn event(time: u64, body: Body<'_>) -> Event<'_> {
        Event {
            time: Timestamp(time),
            cpu: None,
            pid: 0,
            tid: 0,
            instance: 0,
            cgroup: None,
            offset: 0,
            body,
        }
    }

    fn chain(ips: &[u64]) -> Vec<u8> {
        ips.iter().flat_map(|ip| ip.to_le_bytes()).collect()
    }

    #[test]
    fn forked_processes_share_stacks_and_room() {
        let (mut maps, mut stacks) = (Maps::default(), Stacks::default());
        maps.apply(&event(1, map(2, 0x1000)));
        let parent = maps.resolve(2, &chain(&[0x1010]), &mut stacks);
        for pid in 3..1000 {
            maps.apply(&event(2, Body::Fork(task(pid, 2))));
            assert_eq!(maps.resolve(pid, &chain(&[0x1010]), &mut stacks), parent);
        }
        assert_eq!(maps.pieces, 1);
        maps.apply(&event(3, map(2, 0x2000)));
        assert_eq!(maps.pieces, 3);
        for pid in 2..1000 {
            let comm = Comm { pid, tid: pid, exec: true, name: b"new" };
            maps.apply(&event(4, Body::Comm(comm)));
        }
        assert_eq!((maps.pieces, maps.processes.len()), (0, 0));
    }

    #[test]
    fn ended_processes_are_forgotten_in_the_end() {
        let mut maps = Maps::default();
        for pid in 1..=ENDED_LIMIT as i32 + 10 {
            maps.apply(&event(1, map(pid, 0x1000)));
            maps.apply(&event(2, Body::Exit(task(pid, 1))));
        }
        assert_eq!((maps.processes.len(), maps.pieces), (ENDED_LIMIT, ENDED_LIMIT));
        assert!(!maps.processes.contains_key(&10) && maps.processes.contains_key(&11));
    }

    #[test]
    fn mappings_beyond_the_limit_are_refused_and_counted() {
        let (mut maps, mut stacks) = (Maps::default(), Stacks::default());
        maps.limit = 4;
        for n in 1..=5 {
            maps.apply(&event(1, map(7, n << 12)));
        }
        assert_eq!((maps.pieces, maps.refused()), (3, 2));
        let stack = maps.resolve(7, &chain(&[0x4010]), &mut stacks);
        assert_eq!(stacks.user(stack), [UserFrame { object: ObjectId::UNKNOWN, offset: 0x4010 }]);
    }
}
