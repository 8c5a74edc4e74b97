//! Wakings and releases -> hand-overs of locks that tasks wait for.
//!
//! In: `sched_waking` and `contended_release`. Out: hand-overs in correlate, holds and late waits in the
//! tables.

use super::lives::Lives;
use super::stages::{Observers, Stages};
use crate::correlate::{ContendedRelease, KindSet, Moment, OpenWait, Releaser, Sleeps, Waking};
use crate::decode::{Release, SchedWaking};
use crate::model::{Context, HandOverKind, TaskId, Timestamp};

impl Stages {
    /// A waking matters when it hands over the lock that the woken task waits for.
    pub(super) fn take_waking(&mut self, at: Moment, waking: &SchedWaking<'_>) {
        let woken = waking.woken;
        self.hear(|states, over| states.waking(woken, at, &mut |stretch| over.push(stretch)));
        if waking.who.context != Context::Task || !self.concerns_waits(waking) {
            return;
        }
        let Stages { stacks, kernel, attribution, .. } = self;
        let stack = stacks.kernel_of(waking.chain);
        let Some(release) = &attribution.facts(stack, kernel, stacks).release else { return };
        let (kinds, kind) = (release.kinds, release.kind);
        let waker = waking.who.task;
        if kind == HandOverKind::Release {
            self.let_go(waker, kinds);
        }
        let Some(wait) = self.wait_of(woken, kinds) else { return };
        let Stages { tasks, attribution, wakeups: Some(wakeups), tables, .. } = self else {
            return;
        };
        let by = Releaser { task: tasks.mention(waker, at.pid, at.tid), stack, kind };
        if let Some(hold) = wakeups.hand_over(woken, &Waking { time: at.time, waker, by, wait }) {
            tables.add_hold(&hold, attribution);
        }
        self.settle(at.time);
    }

    /// Whether somebody waits who is woken, or the waker has a wait that may be over.
    fn concerns_waits(&self, waking: &SchedWaking<'_>) -> bool {
        let sleeps = self.lives.as_ref().and_then(Lives::sleeps);
        let sleeps =
            || sleeps.is_some_and(|s| s.has_run(waking.woken) || s.has_run(waking.who.task));
        self.wakeups.is_some() && (self.correlate.waits(waking.woken) || sleeps())
    }

    /// The wait of a task for a lock of these kinds, by contention events or else by its sleep.
    fn wait_of(&self, task: TaskId, kinds: KindSet) -> Option<OpenWait> {
        let sleeps = self.lives.as_ref().and_then(Lives::sleeps);
        let slept = || sleeps?.open_wait(task).filter(|(_, own)| own.intersects(kinds));
        self.correlate.waits_for(task, kinds).or_else(|| slept().map(|(wait, _)| wait))
    }

    /// A task lets a lock go: if it slept for one, that is over.
    fn let_go(&mut self, task: TaskId, kinds: KindSet) {
        let Observers { sleeps, mut sink, .. } = self.observers();
        if let Some(sleeps) = sleeps {
            sleeps.let_go(task, kinds, &mut |observation| sink.take(observation));
        }
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
        let Stages { wakeups, correlate, lives, .. } = self;
        if let Some(wakeups) = wakeups
            && wakeups.is_full()
        {
            let sleeps = lives.as_ref().and_then(Lives::sleeps);
            let by_sleeps = sleeps.into_iter().flat_map(Sleeps::open_waits);
            wakeups.forget(correlate.sleeping_waits().chain(by_sleeps));
        }
    }
}
