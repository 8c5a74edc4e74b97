//! Kernel stacks -> whose lock, asked for where, doing what.
//!
//! In: the frames of an interned kernel stack and the book of the kernel. Out: [`Facts`], ids only,
//! looked up once for each distinct stack. The catalogue says which lock a call path takes.

mod behind;
mod blame;
mod call_path;
pub mod catalogue;
mod path;
mod site;
mod skid;
mod sleep;

use crate::kernel::{Kernel, KernelFrame, LockFunction};
use crate::model::{Context, FunctionId, SleepOn, StackId};
use crate::stacks::Stacks;

use catalogue::{Only, claim};

pub use behind::{Standing, standings};
pub use blame::Release;
pub use call_path::CallPath;
pub use path::{CpuPath, LockPath, PathRole};
pub use site::{Site, innermost_context};
pub use skid::{Correction, Interrupted, Moved, Point, Series, Skid};

/// What a kernel stack says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Where the lock is asked for.
    pub site: Site,
    /// What lock code does at the innermost end, if any is there.
    pub path: Option<LockPath>,
    /// Whether perf or a tracepoint was at work in the innermost context: the cost of recording.
    pub recorded: bool,
    /// The innermost function of the innermost context that lies in a section of lock code and has
    /// no row in the table.
    pub unclassified: Option<FunctionId>,
    /// The innermost frame, when interrupts go on in it: a clock's sample may be of the time before.
    pub point: Option<FunctionId>,
    /// What the CPU was doing in the innermost frames.
    pub context: Context,
    /// What a waking with this stack does to a lock; `None` when no lock code is at its end.
    pub release: Option<Box<Release>>,
    /// On what a task sleeps that left its CPU with this stack.
    pub sleeps_on: SleepOn,
    /// The lock that it sleeps for, where its call path takes the only one of a name.
    pub only: Option<Only>,
}

impl Facts {
    /// The facts of `frames`, innermost first, which need not be an interned stack.
    pub fn of(kernel: &Kernel, frames: &[u64]) -> Facts {
        facts(kernel, frames)
    }

    /// What a clock's sample with this stack interrupted.
    pub fn interrupted(&self, stack: StackId) -> Interrupted {
        match self.point {
            Some(point) => Interrupted::Point(point),
            None if stack == StackId::EMPTY => Interrupted::User,
            None => Interrupted::Kernel,
        }
    }

    /// On what a CPU sample with this stack spends its time.
    pub fn cpu_path(&self) -> CpuPath {
        match self.path {
            _ if self.recorded => CpuPath::Recording,
            Some(path) => path.cpu_path(),
            None => CpuPath::Work,
        }
    }
}

/// Facts of all stacks seen so far.
#[derive(Debug, Default)]
pub struct Attribution {
    facts: Vec<Option<Facts>>,
}

impl Attribution {
    /// The facts of `stack`.
    #[inline]
    pub fn facts(&mut self, stack: StackId, kernel: &Kernel, stacks: &Stacks) -> &Facts {
        let index = stack.0 as usize;
        if self.facts.len() <= index {
            self.facts.resize(index + 1, None);
        }
        self.facts[index].get_or_insert_with(|| facts(kernel, stacks.kernel(stack)))
    }

    /// The facts of a stack that was asked for before.
    pub fn known(&self, stack: StackId) -> Option<&Facts> {
        self.facts.get(stack.0 as usize)?.as_ref()
    }
}

fn facts(kernel: &Kernel, frames: &[u64]) -> Facts {
    let (own, context) = site::innermost_context(kernel, frames);
    let own: Vec<KernelFrame> = frames[..own].iter().map(|&ip| kernel.frame(ip)).collect();
    // A CPU sample may be in code that lock code called; its site lies above the lock code.
    let lock_code = path::innermost(&own);
    let site = site::find(&own[lock_code.unwrap_or(0)..]);
    let path = lock_code.and_then(|at| path::at(&own, at, kernel.preempt_rt()));
    let sleeps_on = sleep::on(kernel, frames.get(..own.len()).unwrap_or(&[]), &own);
    let only = match sleeps_on {
        SleepOn::Lock(lock_type) => {
            claim(lock_type, &CallPath::of_frames(frames, kernel, site.caller)).only()
        }
        _ => None,
    };
    let without_row = |frame: &&KernelFrame| frame.lock_code && frame.lock.is_none();
    Facts {
        site,
        path,
        recorded: path::is_recorded(&own),
        point: frames.first().and_then(|&ip| point(&kernel.frame(ip))),
        unclassified: own.iter().find(without_row).and_then(|frame| frame.function),
        context,
        release: blame::release(&own).map(Box::new),
        sleeps_on,
        only,
    }
}

fn point(frame: &KernelFrame) -> Option<FunctionId> {
    frame.function.filter(|_| frame.lock.is_some_and(LockFunction::turns_irqs_on))
}
