//! CPU time by stack, in words: what a flame graph of CPU time is drawn from.
//!
//! In: the table of CPU samples, ids only. Out: [`CpuStack`]s in order of their words.

use std::collections::BTreeMap;

use super::CpuStack;
use super::build::{kernel_frames, user_frames};
use super::sources::Sources;
use crate::analyse::{CpuKey, StackKey};
use crate::model::{Filter, LockType, Spun};

/// CPU time by stack, as far as it passes the filter.
pub(super) fn cpu_stacks(sources: &Sources<'_>, filter: &Filter) -> Vec<CpuStack> {
    let stack = |(key, spun): (&CpuKey, &Spun)| {
        let task = key.task.map(|task| sources.tasks.info(task));
        let path = sources.attribution.known(key.kernel).and_then(|facts| facts.path);
        CpuStack {
            lock_type: path.map(|path| path.lock_type),
            kernel: kernel_frames(sources, StackKey::Stack(key.kernel)),
            user: user_frames(sources, key.user),
            comm: task.map_or("[many tasks]".into(), |task| task.comm.to_string()),
            samples: spun.samples,
            time: spun.time,
        }
    };
    let wanted = |stack: &CpuStack| filter.comm.is_empty() || filter.comm.contains(&stack.comm);
    by_words(sources.tables.cpu().map(stack).filter(wanted))
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
