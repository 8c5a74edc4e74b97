//! Kernel stacks -> whose lock, asked for where, doing what.
//!
//! In: the frames of an interned kernel stack and the book of the kernel. Out: [`Facts`], ids only,
//! looked up once for each distinct stack.

mod blame;
mod path;
mod site;

use crate::kernel::{Kernel, KernelFrame};
use crate::model::{Context, StackId};
use crate::stacks::Stacks;

pub use blame::Release;
pub use path::{LockPath, PathRole};
pub use site::Site;

/// What a kernel stack says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Where the lock is asked for.
    pub site: Site,
    /// What lock code does at the innermost end, if any is there.
    pub path: Option<LockPath>,
    /// What the CPU was doing in the innermost frames.
    pub context: Context,
    /// What a waking with this stack does to a lock; `None` when no lock code is at its end.
    pub release: Option<Box<Release>>,
}

/// Facts of all stacks seen so far.
#[derive(Debug, Default)]
pub struct Attribution {
    facts: Vec<Facts>,
}

impl Attribution {
    /// The facts of `stack`, and of every stack interned before it.
    #[inline]
    pub fn facts(&mut self, stack: StackId, kernel: &Kernel, stacks: &Stacks) -> &Facts {
        let index = stack.0 as usize;
        while self.facts.len() <= index {
            let frames = stacks.kernel(StackId(self.facts.len() as u32));
            self.facts.push(facts(kernel, frames));
        }
        &self.facts[index]
    }

    /// The facts of a stack that was asked for before.
    pub fn known(&self, stack: StackId) -> Option<&Facts> {
        self.facts.get(stack.0 as usize)
    }
}

fn facts(kernel: &Kernel, frames: &[u64]) -> Facts {
    let (own, context) = site::innermost_context(kernel, frames);
    let own: Vec<KernelFrame> = frames[..own].iter().map(|&ip| kernel.frame(ip)).collect();
    // A CPU sample may be in code that lock code called; its site lies above the lock code.
    let lock_code = path::innermost(&own);
    let site = site::find(&own[lock_code.unwrap_or(0)..]);
    let path = lock_code.and_then(|at| path::at(&own, at, kernel.preempt_rt()));
    Facts { site, path, context, release: blame::release(&own).map(Box::new) }
}
