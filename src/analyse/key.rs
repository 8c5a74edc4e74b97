//! Keys of the tables. Every key has a parent; making room is a merge into the parent.
//!
//! ```text
//!   user stack -> none     lock address -> its class at the site     task -> any
//!   kernel stack -> its site -> its type
//! ```

use std::hash::{Hash, Hasher};

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
    pub fn parent(self, site: impl Fn(StackId) -> Option<FunctionId>) -> Option<CellKey> {
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
        while let Some(parent) = key.parent(|_| Some(FunctionId(7))) {
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
