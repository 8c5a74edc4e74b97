//! CPU time by stack, in words: what a flame graph of CPU time is drawn from.
//!
//! In: the table of CPU samples, ids only. Out: [`CpuStack`]s in order of their words.

use std::collections::BTreeMap;

use super::CpuStack;
use super::build::{kernel_frames, user_frames};
use super::sources::Sources;
use crate::analyse::{CpuKey, CpuStackKey, StackKey, TaskKey};
use crate::model::{Filter, LockType, Spun, StackId};

/// CPU time by stack, as far as it passes the filter.
pub(super) fn cpu_stacks(sources: &Sources<'_>, filter: &Filter) -> Vec<CpuStack> {
    let stack = |(key, spun): (&CpuKey, &Spun)| {
        let (lock_type, kernel) = match key.kernel {
            CpuStackKey::Stack(stack) => (lock_type(sources, stack), StackKey::Stack(stack)),
            CpuStackKey::Path(path) => (path.lock_type(), StackKey::Folded),
        };
        let comm = match key.task {
            TaskKey::Task(task) => sources.tasks.info(task).comm.to_string(),
            TaskKey::Folded => "[many tasks]".into(),
        };
        CpuStack {
            lock_type,
            kernel: kernel_frames(sources, kernel),
            user: user_frames(sources, key.user),
            comm,
            samples: spun.samples,
            time: spun.time,
        }
    };
    let wanted = |stack: &CpuStack| filter.comm.is_empty() || filter.comm.contains(&stack.comm);
    by_words(sources.sums.cpu().map(stack).filter(wanted))
}

fn lock_type(sources: &Sources<'_>, stack: StackId) -> Option<LockType> {
    Some(sources.attribution.known(stack)?.path?.lock_type)
}

/// Comm, kernel and user frames, lock type.
type Words = (String, Vec<String>, Vec<String>, Option<LockType>);

/// Stacks of the same words are one: threads of one name, two calls from one line.
pub(super) fn by_words(stacks: impl Iterator<Item = CpuStack>) -> Vec<CpuStack> {
    let mut sums: BTreeMap<Words, Spun> = BTreeMap::new();
    for CpuStack { lock_type, kernel, user, comm, samples, time } in stacks {
        sums.entry((comm, kernel, user, lock_type)).or_default().merge(Spun { samples, time });
    }
    let stack = |((comm, kernel, user, lock_type), Spun { samples, time })| CpuStack {
        lock_type,
        kernel,
        user,
        comm,
        samples,
        time,
    };
    sums.into_iter().map(stack).collect()
}
