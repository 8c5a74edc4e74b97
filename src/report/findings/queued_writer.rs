//! Readers wait for readers, because a writer is queued in front of them.

use super::{WORTH_SAYING, share};
use crate::model::{Mode, Nanos};
use crate::report::Report;

/// What readers of the site must wait behind queued writers, of what is known.
const MUCH_OF_IT: f64 = 0.3;

/// Readers that would not have waited, but for a writer that waits itself.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedWriter {
    /// The site of the readers.
    pub caller: String,
    /// How long they waited so.
    pub time: Nanos,
    /// Its share of their waiting.
    pub share: f64,
}

impl QueuedWriter {
    pub(super) fn check(report: &Report) -> Option<QueuedWriter> {
        let readers = report
            .rows
            .iter()
            .filter(|row| row.key.lock_type.is_some_and(|lock_type| lock_type.mode == Mode::Read));
        let row = readers.max_by_key(|row| row.stat.behind.queued_writer)?;
        let (time, caller) = (row.stat.behind.queued_writer, row.key.caller.clone()?);
        let of_site = share(time, row.stat.wait());
        (of_site > MUCH_OF_IT && share(time, report.total.wait()) > WORTH_SAYING)
            .then_some(QueuedWriter { caller, time, share: of_site })
    }
}
