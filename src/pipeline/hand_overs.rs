//! Wakings and releases -> hand-overs of locks that tasks wait for.
//!
//! In: `sched_waking` and `contended_release`. Out: hand-overs in correlate, holds and late waits in the
//! tables.

use super::stages::Stages;
use crate::correlate::{ContendedRelease, KindSet, Moment, Releaser, Waking};
use crate::decode::{Release, SchedWaking};
use crate::model::{Context, HandOverKind, Timestamp};

impl Stages {
    /// A waking matters when it hands over the lock that the woken task waits for.
    pub(super) fn take_waking(&mut self, at: Moment, waking: &SchedWaking<'_>) {
        let woken = waking.woken;
        self.hear(|states, over| states.waking(woken, at, &mut |stretch| over.push(stretch)));
        let Stages { stacks, tasks, correlate, kernel, attribution, wakeups, tables, .. } = self;
        let Some(wakeups) = wakeups else { return };
        if waking.who.context != Context::Task || !correlate.waits(waking.woken) {
            return;
        }
        let stack = stacks.kernel_of(waking.chain);
        let Some(release) = &attribution.facts(stack, kernel, stacks).release else { return };
        let Some(wait) = correlate.waits_for(waking.woken, release.kinds) else { return };
        let kind = release.kind;
        let waker = waking.who.task;
        let by = Releaser { task: tasks.mention(waker, at.pid, at.tid), stack, kind };
        if let Some(hold) =
            wakeups.hand_over(waking.woken, &Waking { time: at.time, waker, by, wait })
        {
            tables.add_hold(&hold, attribution);
        }
        self.settle(at.time);
    }

    /// A release of a lock that somebody waits for.
    pub(super) fn take_release(&mut self, at: Moment, release: &Release<'_>) {
        let Stages { stacks, tasks, kernel, attribution, wakeups, .. } = self;
        let Some(wakeups) = wakeups else { return };
        if release.who.context != Context::Task {
            return;
        }
        let stack = stacks.kernel_of(release.chain);
        let code = attribution.facts(stack, kernel, stacks).release.as_ref();
        let kind = code.map_or(HandOverKind::Release, |code| code.kind);
        let task = tasks.mention(release.who.task, at.pid, at.tid);
        wakeups.released(ContendedRelease {
            time: at.time,
            lock: release.lock,
            by: Releaser { task, stack, kind },
            kinds: code.map_or(KindSet::default(), |code| code.kinds),
            exclusive: code.is_some_and(|code| code.is_exclusive()),
        });
        self.settle(at.time);
    }

    /// Charges waits of whose hand-overs all is known by now, and forgets what nobody needs.
    fn settle(&mut self, now: Timestamp) {
        self.observers().sink.settle(now);
        let Stages { wakeups, correlate, .. } = self;
        if let Some(wakeups) = wakeups
            && wakeups.is_full()
        {
            wakeups.forget(correlate.sleeping_waits());
        }
    }
}
