//! How fast events come lately: what had come by when -> events a second, by the events' own time.

use std::collections::VecDeque;

use crate::model::{Nanos, Timestamp};
use crate::render::units;

/// How long lately is, at least.
const LATELY: Nanos = Nanos(1_000_000_000);

/// What was seen lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    seen: VecDeque<(Timestamp, u64)>,
}

impl Pace {
    /// Until the event of this time so many had come.
    pub(super) fn note(&mut self, time: Timestamp, events: u64) {
        // Answers to several questions may be of one moment, and before the first event there is none.
        if time == Timestamp(0) || self.seen.back().is_some_and(|(last, _)| *last >= time) {
            return;
        }
        self.seen.push_back((time, events));
        while self.seen.get(1).is_some_and(|(begun, _)| time.since(*begun) >= LATELY) {
            self.seen.pop_front();
        }
    }

    /// Events a second; `None` until it is known.
    pub(super) fn words(&self) -> Option<String> {
        let ((first, before), (last, events)) = (self.seen.front()?, self.seen.back()?);
        let rate = || units::per_second(events.saturating_sub(*before), last.since(*first));
        (first < last).then(|| format!("{} events/s", rate()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_more_than_a_second_ago_is_forgotten() {
        let mut pace = Pace::default();
        let mut note = |ms: u64, events| {
            pace.note(Timestamp(ms * 1_000_000), events);
            pace.words()
        };
        assert_eq!(note(0, 300), None);
        assert_eq!(note(5_000, 70_000), None);
        assert_eq!(note(5_000, 70_000), None);
        assert_eq!(note(5_250, 70_250).as_deref(), Some("1,000 events/s"));
        for ms in [5_500, 5_750, 6_000, 6_250] {
            note(ms, 70_250);
        }
        assert_eq!(note(6_500, 70_250).as_deref(), Some("0 events/s"));
        assert_eq!(note(8_500, 70_350).as_deref(), Some("50 events/s"));
    }
}
