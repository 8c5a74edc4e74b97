//! One task, at one place, makes nearly everybody wait for a lock.

use std::collections::BTreeMap;

use super::{WORTH_SAYING, share};
use crate::model::{HandOverKind, Nanos, Stat};
use crate::report::{ChargedName, LockName, Report, Row, TaskName};

/// What one releaser must be charged with of the waiting for its lock.
const NEARLY_ALL: f64 = 0.6;

/// The task behind most of the waiting for a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct OneReleaser {
    /// The lock.
    pub lock: LockName,
    /// Who.
    pub task: TaskName,
    /// Where it let the lock go.
    pub caller: String,
    /// Its share of the waiting for that lock that is charged to anybody.
    pub share: f64,
    /// How long it kept the lock while others waited, on average.
    pub hold: Nanos,
}

type Who<'a> = (&'a LockName, &'a TaskName, &'a str);

impl OneReleaser {
    pub(super) fn check(report: &Report) -> Option<OneReleaser> {
        let mut locks: BTreeMap<&LockName, Nanos> = BTreeMap::new();
        let mut releasers: BTreeMap<Who<'_>, (Nanos, Stat)> = BTreeMap::new();
        for row in &report.charged {
            let Some(who) = releaser(row) else { continue };
            *locks.entry(who.0).or_default() += row.stat.wait();
            let (wait, hold) = releasers.entry(who).or_default();
            *wait += row.stat.wait();
            // Rows of one releaser share their holds, which are in each of them.
            if let Some(of_row) = &row.hold
                && of_row.count > hold.count
            {
                *hold = of_row.clone();
            }
        }
        let (who, (wait, hold)) = releasers.into_iter().max_by_key(|(_, (wait, _))| *wait)?;
        let (lock, task, caller) = who;
        let of_lock = share(wait, *locks.get(lock)?);
        let worth = share(wait, report.total.wait()) > WORTH_SAYING;
        let hold = hold.avg()?;
        (worth && of_lock > NEARLY_ALL).then(|| OneReleaser {
            lock: lock.clone(),
            task: task.clone(),
            caller: caller.to_owned(),
            share: of_lock,
            hold,
        })
    }
}

fn releaser(row: &Row) -> Option<Who<'_>> {
    match &row.key.releaser {
        Some(ChargedName::Releaser { task, caller: Some(caller), kind, .. })
            if *kind != HandOverKind::PassOn =>
        {
            Some((row.key.lock.as_ref()?, task, caller))
        }
        _ => None,
    }
}
