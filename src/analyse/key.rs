//! Keys of the tables. Every key has a parent; making room is a merge into the parent.
//!
//! ```text
//!   user stack -> none     lock address -> its class at the site     task -> any
//!   kernel stack -> its site -> its type
//!
//!   of CPU samples: user stack -> none     task -> any     kernel stack -> its lock path
//! ```

use std::hash::{Hash, Hasher};

use super::table::Key;
use crate::attribute::{Attribution, CpuPath};
use crate::model::{Context, FunctionId, LockAddr, LockType, StackId, TaskRef};

/// How much is known of the kernel stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackKey {
    /// The stack itself.
    Stack(StackId),
    /// Only its site.
    Site(Option<FunctionId>),
    /// Only the lock type.
    Folded,
}

/// How much is known of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskKey {
    /// The task itself.
    Task(TaskRef),
    /// Many.
    Folded,
}

impl TaskKey {
    /// The key of a task: of one whose entry in the book of tasks is not kept, that of many.
    #[inline]
    pub fn of(task: TaskRef) -> TaskKey {
        if task.0 < TaskRef::KEPT { TaskKey::Task(task) } else { TaskKey::Folded }
    }
}

/// What one cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// The lock's type.
    pub lock_type: LockType,
    /// Kernel stack of the begin.
    pub kernel: StackKey,
    /// User stack of the begin; empty when it is not kept apart.
    pub user: StackId,
    /// The lock; `None` for samples, which carry no address, and for folded cells.
    pub lock: Option<LockAddr>,
    /// Who waited.
    pub task: TaskKey,
    /// In which context.
    pub context: Context,
}

/// Once a wait: in the three words by which cells differ. Type and context follow from the stack.
impl Hash for CellKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let kernel = match self.kernel {
            StackKey::Stack(StackId(id)) => id,
            StackKey::Site(site) => site.map_or(u32::MAX, |FunctionId(id)| !id),
            StackKey::Folded => u32::MAX,
        };
        let task = match self.task {
            TaskKey::Task(TaskRef(id)) => id,
            TaskKey::Folded => u32::MAX,
        };
        state.write_u64(u64::from(kernel) << 32 | u64::from(task));
        state.write_u64(self.lock.map_or(0, |LockAddr(addr)| addr));
        state.write_u32(self.user.0);
    }
}

impl CellKey {
    /// The key that this cell merges into when the table is full; `None` for the last one.
    pub fn parent(self, attribution: &Attribution) -> Option<CellKey> {
        let site = |stack| attribution.known(stack).and_then(|facts| facts.site.caller);
        let mut key = self;
        match self {
            CellKey { user, .. } if user != StackId::EMPTY => key.user = StackId::EMPTY,
            CellKey { lock: Some(_), .. } => key.lock = None,
            CellKey { task: TaskKey::Task(_), .. } => key.task = TaskKey::Folded,
            CellKey { kernel: StackKey::Stack(stack), .. } => {
                key.kernel = StackKey::Site(site(stack));
            }
            CellKey { kernel: StackKey::Site(_), .. } => key.kernel = StackKey::Folded,
            CellKey { context, .. } if context != Context::Task => key.context = Context::Task,
            _ => return None,
        }
        Some(key)
    }
}

impl Key for CellKey {
    fn parent(self, attribution: &Attribution) -> Option<CellKey> {
        self.parent(attribution)
    }
}

/// How much is known of the kernel stack of a CPU sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuStackKey {
    /// The stack itself.
    Stack(StackId),
    /// Only on what the time was spent.
    Path(CpuPath),
}

/// Key of CPU samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuKey {
    /// Kernel part.
    pub kernel: CpuStackKey,
    /// User part.
    pub user: StackId,
    /// Whom the CPU ran.
    pub task: TaskKey,
}

impl Key for CpuKey {
    fn parent(self, attribution: &Attribution) -> Option<CpuKey> {
        let path = |stack| attribution.known(stack).map_or(CpuPath::Unknown, |f| f.cpu_path());
        let mut key = self;
        match self {
            CpuKey { user, .. } if user != StackId::EMPTY => key.user = StackId::EMPTY,
            CpuKey { task: TaskKey::Task(_), .. } => key.task = TaskKey::Folded,
            CpuKey { kernel: CpuStackKey::Stack(stack), .. } => {
                key.kernel = CpuStackKey::Path(path(stack));
            }
            _ => return None,
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LockKind, Mode};

    #[test]
    fn every_key_ends_at_its_lock_type() {
        let lock_type = LockType::new(LockKind::Rwsem, Mode::Read);
        let mut key = CellKey {
            lock_type,
            kernel: StackKey::Stack(StackId(3)),
            user: StackId(4),
            lock: Some(LockAddr(5)),
            task: TaskKey::Task(TaskRef(6)),
            context: Context::Softirq,
        };
        let mut steps = 0;
        while let Some(parent) = key.parent(&Attribution::default()) {
            key = parent;
            steps += 1;
        }
        let last = CellKey {
            lock_type,
            kernel: StackKey::Folded,
            user: StackId::EMPTY,
            lock: None,
            task: TaskKey::Folded,
            context: Context::Task,
        };
        assert_eq!((key, steps), (last, 6));
    }
}
