//! Why our own numbers are not perf's: each reason with its name, a sentence and a count.
//!
//! The reasons are noted by perf's machine while it runs; they may overlap (a wait can both have
//! failed and have its time at another caller).

use serde::Serialize;

use crate::model::Nanos;

/// How many waits, and perf's time for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Waits.
    pub count: u64,
    /// Nanoseconds.
    pub time_ns: u64,
}

impl Tally {
    pub(super) fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.time_ns = self.time_ns.saturating_add(time.0);
    }

    pub(super) fn add_if(&mut self, applies: bool, time: Nanos) {
        if applies {
            self.add(time);
        }
    }
}

/// What perf does and our rules do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// Waits whose end has `ret < 0`.
    pub failed: Tally,
    /// Waits with a LOST record between begin and end.
    pub across_lost: Tally,
    /// Spinning waits, and waits of tid 0 or -1, that began on one CPU and ended on another.
    pub across_cpus: Tally,
    /// Waits of tid 0 or -1.
    pub nameless: Tally,
    /// Waits begun while another one of the same thread was open.
    pub nested: Tally,
    /// Waits whose end has another key than their begin.
    pub moved: Tally,
    /// Waits that never ended; the time is that until the last record.
    pub open: Tally,
    /// Begins over an open wait that are no change of phase of a mutex.
    pub swallowed_begins: u64,
    /// Ends of a wait that had ended already.
    pub bad_ends: u64,
    /// Ends of a lock that the thread was not seen to wait for.
    pub unmatched_ends: u64,
    /// Ends under a key, or of a thread, that no begin had.
    pub dropped_ends: u64,
    /// Ends without callchain, by caller.
    pub ends_without_callchain: u64,
    /// Rows that differ from another one in user frames only.
    pub split_by_user_frames: u64,
    /// Rows with the type and caller of another one and other kernel frames above.
    pub split_by_kernel_frames: u64,
}

/// One reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field's name.
    pub name: &'static str,
    /// What perf does, what we do.
    pub sentence: &'static str,
    /// How often.
    pub count: u64,
    /// For how long, where there is a time.
    pub time: Option<Nanos>,
}

impl Differences {
    /// Every reason, also those that never applied.
    pub fn entries(&self) -> Vec<Difference> {
        let waits = self.of_waits().into_iter().map(|(name, tally, sentence)| Difference {
            name,
            sentence,
            count: tally.count,
            time: Some(Nanos(tally.time_ns)),
        });
        let others = self.of_others().into_iter().map(|(name, count, sentence)| Difference {
            name,
            sentence,
            count,
            time: None,
        });
        waits.chain(others).collect()
    }

    fn of_waits(&self) -> [(&'static str, Tally, &'static str); 7] {
        [
            (
                "failed",
                self.failed,
                "ended without the lock: acquired for perf, failed for lockprof",
            ),
            (
                "across_lost",
                self.across_lost,
                "lost records between begin and end: lockprof is uncertain where the loss can matter",
            ),
            (
                "across_cpus",
                self.across_cpus,
                "begun on one CPU, ended on another, and cannot move: lockprof pairs by CPU",
            ),
            (
                "nameless",
                self.nameless,
                "idle, exiting or of another pid namespace, one thread for perf, not for lockprof",
            ),
            (
                "nested",
                self.nested,
                "inside another wait of the thread: perf adds up both, lockprof takes one out",
            ),
            ("moved", self.moved, "time in the row of the end for perf, of the begin for lockprof"),
            ("open", self.open, "never ended: no time for perf, at least this long for lockprof"),
        ]
    }

    fn of_others(&self) -> [(&'static str, u64, &'static str); 7] {
        [
            (
                "swallowed_begins",
                self.swallowed_begins,
                "begins over an open wait: part of it for perf, another wait for lockprof",
            ),
            (
                "bad_ends",
                self.bad_ends,
                "ends of a wait that had ended for perf (\"bad\"): lockprof finds what they end",
            ),
            (
                "unmatched_ends",
                self.unmatched_ends,
                "ends of waits that were not seen to begin: not shown by perf, counted by lockprof",
            ),
            (
                "dropped_ends",
                self.dropped_ends,
                "ends in a row that no begin made: passed over by perf, not by lockprof",
            ),
            (
                "ends_without_callchain",
                self.ends_without_callchain,
                "ends without callchain, where perf looks for the caller: lockprof asks the begin",
            ),
            (
                "split_by_user_frames",
                self.split_by_user_frames,
                "rows that differ from another in user frames only: one row for lockprof",
            ),
            (
                "split_by_kernel_frames",
                self.split_by_kernel_frames,
                "rows with the type and caller of another, called from elsewhere: one for lockprof",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_an_entry_of_its_name() {
        let differences = Differences { bad_ends: 3, ..Differences::default() };
        let json = serde_json::to_value(differences).unwrap();
        let mut fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let entries = differences.entries();
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
        fields.sort_unstable();
        names.sort_unstable();
        assert_eq!(fields, names);
        let counted: Vec<_> = entries.iter().filter(|e| e.count > 0).map(|e| e.name).collect();
        assert_eq!(counted, ["bad_ends"]);
    }
}
