//! What waiters and holders did, in words.
//!
//! In: sums of phases. Out: shares of what is known of them; nothing where nothing is.

use crate::model::{HolderTimes, Nanos, PhaseTimes};
use crate::render::escape::visible;
use crate::render::units::{percent, share};
use crate::report::Row;

/// A holder that ran for less than this share of what others waited is worth a line.
const RAN: f64 = 0.9;

/// With less of its time known than this, nothing is said of the holder of a row.
const KNOWN: f64 = 0.5;

/// The same of all holders together.
const KNOWN_OF_ALL: f64 = 0.1;

/// What waiters did. `None` without records of switches: of spinlocks one knows without them.
pub(crate) fn waiters(phases: &PhaseTimes) -> Option<String> {
    let PhaseTimes { spin, asleep, runnable, rest, unknown } = *phases;
    if asleep + runnable + rest == Nanos::ZERO {
        return None;
    }
    Some(shares(
        &[
            (spin, "spinning"),
            (asleep, "asleep"),
            (runnable, "without a CPU"),
            (rest, "running"),
            (unknown, "unknown"),
        ],
        phases.total(),
    ))
}

/// What holders did meanwhile.
pub(crate) fn holders(times: &HolderTimes) -> Option<String> {
    let HolderTimes { running, runnable, asleep, unknown } = *times;
    if times.known() == Nanos::ZERO || share(times.known(), times.total()) < KNOWN_OF_ALL {
        return None;
    }
    Some(shares(
        &[
            (running, "running"),
            (runnable, "without a CPU"),
            (asleep, "asleep"),
            (unknown, "unknown"),
        ],
        times.total(),
    ))
}

/// What the holder of a row did, when it did not run all the time, and where it slept.
pub(crate) fn holder_of(row: &Row) -> Option<String> {
    let times = &row.stat.holder;
    let words = holders(times)?;
    let is_known = share(times.known(), times.total()) >= KNOWN;
    (is_known && share(times.running, times.known()) < RAN).then(|| {
        match row.holder_slept.first() {
            Some((on, _)) => format!("{words}; slept in {}", visible(on)),
            None => words,
        }
    })
}

fn shares(parts: &[(Nanos, &str)], whole: Nanos) -> String {
    let said = parts.iter().filter(|(time, _)| *time > Nanos::ZERO);
    let words = said.map(|(time, word)| format!("{} {word}", percent(share(*time, whole))));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_and_what_is_zero_is_not_said() {
        let phases = PhaseTimes {
            asleep: Nanos(60),
            runnable: Nanos(30),
            rest: Nanos(10),
            ..PhaseTimes::default()
        };
        assert_eq!(waiters(&phases).unwrap(), "60 % asleep, 30 % without a CPU, 10 % running");
        let times =
            HolderTimes { running: Nanos(35), runnable: Nanos(65), ..HolderTimes::default() };
        assert_eq!(holders(&times).unwrap(), "35 % running, 65 % without a CPU");
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        let spun = PhaseTimes { spin: Nanos(5), unknown: Nanos(9), ..PhaseTimes::default() };
        assert_eq!(waiters(&spun), None);
        assert_eq!(holders(&HolderTimes { unknown: Nanos(9), ..HolderTimes::default() }), None);
    }
}
