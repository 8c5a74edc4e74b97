//! The functions of a wait, innermost first: what names a lock is told by.
//!
//! In: the frames of a kernel stack. Out: [`CallPath`], names only.

use super::site::innermost_context;
use crate::kernel::Kernel;
use crate::model::FunctionId;

/// Functions that spinlocks of PREEMPT_RT wait in; other rt-mutexes have functions of their own.
const RT_SPINLOCK: [&str; 2] = ["rtlock_slowlock", "rt_spin_lock"];

/// Functions of the innermost context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPath<'a> {
    /// Folded names, innermost first; unknown frames are left out.
    pub(super) names: Vec<&'a str>,
    /// How many of them are lock code, wrappers and the site.
    inner: usize,
}

impl<'a> CallPath<'a> {
    /// A path of which only the site is left.
    pub fn of_site(site: FunctionId, kernel: &'a Kernel) -> CallPath<'a> {
        CallPath { names: vec![kernel.name(site)], inner: 1 }
    }

    /// The path of `frames`, innermost first. `caller`: their site, as attribution says.
    pub fn of_frames(
        frames: &[u64],
        kernel: &'a Kernel,
        caller: Option<FunctionId>,
    ) -> CallPath<'a> {
        let (own, _) = innermost_context(kernel, frames);
        let own = frames.iter().take(own);
        let functions: Vec<FunctionId> = own.filter_map(|&ip| kernel.function(ip)).collect();
        // The site is what attribution says it is; the same function may be further in as lock code
        // is not, so the first one counts.
        let site = functions.iter().position(|function| Some(*function) == caller);
        CallPath {
            names: functions.into_iter().map(|function| kernel.name(function)).collect(),
            inner: site.map_or(0, |site| site + 1),
        }
    }

    /// Lock code, wrappers and the site.
    pub(super) fn inner(&self) -> &[&'a str] {
        self.names.get(..self.inner).unwrap_or_default()
    }

    /// Whether the lock code is that of a spinlock of PREEMPT_RT.
    pub(super) fn is_rt_spinlock(&self) -> bool {
        let is = |name: &&str| RT_SPINLOCK.iter().any(|prefix| name.starts_with(prefix));
        self.inner().iter().any(is)
    }

    #[cfg(test)]
    pub(crate) fn made_up(names: &[&'a str], inner: usize) -> CallPath<'a> {
        CallPath { names: names.to_vec(), inner }
    }
}
