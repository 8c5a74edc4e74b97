//! What is counted for every key. One merge; shares, averages and quantiles are derived.

use super::{Behind, Histogram, HolderTimes, Nanos, PhaseTimes};

/// Ended waits: how many, how long, how spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Waits that ended in the range asked for.
    pub count: u64,
    /// Their own time: nested waits taken out, clipped to the range asked for.
    pub own: Nanos,
    /// Their full time, nested waits included: what avg is made of.
    pub total: Nanos,
    /// The shortest; meaningless when `count` is 0.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
    /// How the full times are spread.
    pub histogram: Histogram,
}

impl Stat {
    /// Counts a wait that lasted `full`.
    pub fn add(&mut self, full: Nanos) {
        self.min = if self.count == 0 { full } else { self.min.min(full) };
        self.max = self.max.max(full);
        self.count += 1;
        self.total += full;
        self.histogram.add(full.0);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Stat) {
        if other.count > 0 {
            self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        }
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.own += other.own;
        self.total += other.total;
        self.histogram.merge(&other.histogram);
    }

    /// The mean full wait; `None` without waits.
    pub fn avg(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.count).map(Nanos)
    }

    /// The wait that the share `q` of all waits stayed below; `None` without waits.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        // A bucket's middle may lie outside what was really seen.
        let value = self.histogram.quantile(q)?;
        Some(Nanos(value.clamp(self.min.0, self.max.0)))
    }
}

/// Waiting that the tracepoints do not see, estimated from CPU samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spun {
    /// Samples taken while spinning without an open wait.
    pub samples: u64,
    /// Samples times their period.
    pub time: Nanos,
}

impl Spun {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: Spun) {
        self.samples += other.samples;
        self.time += other.time;
    }

    /// Half the width of the 95 % interval of `time`: 1.96 standard deviations of a Poisson count.
    pub fn interval(self) -> Nanos {
        if self.samples == 0 {
            return Nanos::ZERO;
        }
        let period = self.time.0 as f64 / self.samples as f64;
        Nanos((1.96 * (self.samples as f64).sqrt() * period) as u64)
    }
}

/// Everything that is counted for one key: a row of a report before it has words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitStat {
    /// Waits that ended: acquired, failed or backed off.
    pub ended: Stat,
    /// Of those: killed or timed out.
    pub failed: u64,
    /// Of those: ww_mutex backed off (-EDEADLK).
    pub backed_off: u64,
    /// Waits still open at the end of the recording or of their task.
    pub open: u64,
    /// At least this long they waited.
    pub open_time: Nanos,
    /// Of those that are open: waiting at this moment. Nobody is in a recording that is over.
    pub waiting: u64,
    /// Since when, of those the one that began first.
    pub oldest: Nanos,
    /// Waits that lost records may have cut or joined: in no total, maximum or percentile.
    pub uncertain: u64,
    /// At most this long they waited.
    pub uncertain_time: Nanos,
    /// Spinning that no tracepoint saw.
    pub spun: Spun,
    /// Of locks with readers and writers: whom the waits stood behind.
    pub behind: Behind,
    /// What the traced time was spent on.
    pub phases: PhaseTimes,
    /// In pieces of waits: what those did who are charged with them.
    pub holder: HolderTimes,
}

impl WaitStat {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &WaitStat) {
        self.ended.merge(&other.ended);
        self.failed += other.failed;
        self.backed_off += other.backed_off;
        self.open += other.open;
        self.open_time += other.open_time;
        self.waiting += other.waiting;
        self.oldest = self.oldest.max(other.oldest);
        self.uncertain += other.uncertain;
        self.uncertain_time += other.uncertain_time;
        self.spun.merge(other.spun);
        self.behind.merge(other.behind);
        self.phases.merge(&other.phases);
        self.holder.merge(&other.holder);
    }

    /// What rows are sorted by: traced and spun together.
    pub fn wait(&self) -> Nanos {
        self.traced() + self.spun.time
    }

    /// Time inside waits that the tracepoints saw: ended and still open ones.
    pub fn traced(&self) -> Nanos {
        self.ended.own + self.open_time
    }

    /// The share of `all`'s waiting, 0 to 1; of its waits where no times are known.
    pub fn share_of(&self, all: &WaitStat) -> f64 {
        let (part, whole) = match all.wait() {
            Nanos::ZERO => (self.contended(), all.contended()),
            whole => (self.wait().0, whole.0),
        };
        if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
    }

    /// Whether half of the ended waits are shorter than twice `floor`, what measuring adds to each.
    pub fn is_near(&self, floor: Nanos) -> bool {
        self.ended.quantile(0.5).is_some_and(|p50| p50.0 < floor.0.saturating_mul(2))
    }

    /// Waits begun: `contended` in perf's words.
    pub fn contended(&self) -> u64 {
        self.ended.count + self.open + self.uncertain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_equals_counting_together() {
        let (mut a, mut b, mut both) = (Stat::default(), Stat::default(), Stat::default());
        for (i, wait) in [5, 900, 70, 1].into_iter().enumerate() {
            if i % 2 == 0 {
                a.add(Nanos(wait))
            } else {
                b.add(Nanos(wait))
            }
            both.add(Nanos(wait));
        }
        a.merge(&b);
        assert_eq!(a, both);
        assert_eq!((a.min, a.max, a.avg()), (Nanos(1), Nanos(900), Some(Nanos(244))));
    }

    #[test]
    fn merging_nothing_changes_nothing() {
        let mut a = Stat::default();
        a.add(Nanos(7));
        let before = a.clone();
        a.merge(&Stat::default());
        assert_eq!(a, before);
    }

    #[test]
    fn shares_are_of_time_and_of_waits_where_there_is_no_time() {
        let begun = |open| WaitStat { open, ..WaitStat::default() };
        assert_eq!(begun(1).share_of(&begun(4)), 0.25);
        let timed = |open, ns| WaitStat { open_time: Nanos(ns), ..begun(open) };
        assert_eq!(timed(3, 10).share_of(&timed(4, 100)), 0.1);
        assert_eq!(begun(0).share_of(&begun(0)), 0.0);
    }

    #[test]
    fn a_spun_interval_narrows_with_the_root_of_the_samples() {
        let spun = |samples| Spun { samples, time: Nanos(samples * 1_000_000) };
        assert_eq!(spun(0).interval(), Nanos::ZERO);
        let share = |s: Spun| s.interval().as_secs_f64() / s.time.as_secs_f64();
        assert!((share(spun(100)) / share(spun(10_000)) - 10.0).abs() < 0.01);
    }
}
