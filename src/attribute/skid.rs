//! Skid of clock samples: a clock cannot fire while interrupts are off, so what happened meanwhile
//! lands on the instruction that turns them on.
//!
//! ```text
//!   grid of the clock   |           |           |           |        one every period
//!   samples             |.          |.              |.      |.       late: interrupts were off
//!                                   `--- lateness --'
//! ```
//!
//! In: the times of the samples of each instance of a clock, and in what the CPU was. Out: how many of
//! the samples at each point that turns interrupts on are late beyond what samples elsewhere are:
//! those belong to the section before the point. A clock that keeps no grid (a task's own that stops
//! while it sleeps, an emulated one) corrects nothing.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use lockprof_collectors::perf::attr::{event_type, flag, software};

use crate::model::{Cpu, FunctionId, Histogram, Nanos, Timestamp};
use crate::recording::EventDesc;

/// Samples from which the place of the grid is told: clocks drift against the time of samples.
const WINDOW: usize = 64;
/// Fewer than this tell no place.
const WINDOW_AT_LEAST: usize = 16;
/// A sample within this part of a period after the grid is on it.
const NEAR: u64 = 8;
/// The kernel lets no clock fire more often: `perf_swevent_start_hrtimer`.
const SHORTEST_PERIOD: u64 = 10_000;
/// Instances of clocks that are looked at.
const MOST_SERIES: usize = 1 << 12;
/// Fewer samples elsewhere give no base rate.
const BASE_AT_LEAST: u64 = 50;
/// Fewer samples at a point say nothing of it.
const POINT_AT_LEAST: u64 = 5;

/// One instance of a clock: it has a grid of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    /// Index of the event.
    pub event: usize,
    /// Id of the instance.
    pub instance: u64,
    /// Where it fired.
    pub cpu: Option<Cpu>,
}

/// What a sample interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// A function that turns interrupts on.
    Point(FunctionId),
    /// Other kernel code.
    Kernel,
    /// The program.
    User,
    /// What is not asked about: it tells the grid only.
    Other,
}

/// Collects lateness.
#[derive(Debug, Default)]
pub struct Skid {
    /// By index of event; `None` for what is no clock of a known period.
    periods: Vec<Option<u64>>,
    windows: HashMap<Series, Vec<(Timestamp, Interrupted)>>,
    late: Lateness,
}

/// Lateness by what was interrupted.
#[derive(Clone, Debug, Default)]
struct Lateness {
    points: BTreeMap<FunctionId, Histogram>,
    kernel: Histogram,
    user: Histogram,
    /// Samples asked about, on a grid and on none.
    on_grid: u64,
    off_grid: u64,
}

/// What is known of skid.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// No clock of a known period sampled: nothing to correct.
    NoClock,
    /// The samples keep no grid, or are too few to tell.
    NoGrid,
    /// By how much.
    Known(Moved),
}

/// How many samples of each point belong to its callers.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Later than this is late.
    pub late_after: Nanos,
    /// Kernel samples elsewhere, and how many of them are late: returns from interrupts and inlined
    /// code, which cannot be placed.
    pub elsewhere: (u64, u64),
    /// Points with their samples, most samples first.
    pub points: Vec<Point>,
}

/// A function that turns interrupts on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which.
    pub function: FunctionId,
    /// Samples in it.
    pub samples: u64,
    /// Of those: late.
    pub late: u64,
    /// The share that belongs to the section before it, 0 to 1.
    pub share: f64,
}

impl Skid {
    /// For the samples of these events.
    pub fn new(events: &[EventDesc]) -> Skid {
        Skid { periods: events.iter().map(period).collect(), ..Skid::default() }
    }

    /// Takes a sample; those of one series in order of time.
    pub fn sample(&mut self, series: Series, time: Timestamp, interrupted: Interrupted) {
        let Some(period) = self.periods.get(series.event).copied().flatten() else { return };
        if self.windows.len() >= MOST_SERIES && !self.windows.contains_key(&series) {
            self.late.off_grid += 1;
            return;
        }
        let window = self.windows.entry(series).or_default();
        window.push((time, interrupted));
        if window.len() >= WINDOW {
            self.late.take(window, period);
            window.clear();
        }
    }

    /// Takes what is left.
    pub fn finish(&mut self) {
        for (series, window) in std::mem::take(&mut self.windows) {
            if let Some(period) = self.periods.get(series.event).copied().flatten() {
                self.late.take(&window, period);
            }
        }
    }

    /// What the samples so far say.
    pub fn correction(&self) -> Correction {
        match self.periods.iter().any(Option::is_some) {
            true => self.late.correction(),
            false => Correction::NoClock,
        }
    }
}

/// The period of a clock, which the kernel keeps for frequencies too: `perf_swevent_init_hrtimer`.
fn period(event: &EventDesc) -> Option<u64> {
    let attr = &event.attr;
    let clocks = [software::CPU_CLOCK, software::TASK_CLOCK];
    if attr.kind != event_type::SOFTWARE || !clocks.contains(&attr.config) {
        return None;
    }
    let period = match attr.has(flag::FREQ) {
        true => 1_000_000_000u64.checked_div(attr.sample_period)?,
        false => attr.sample_period,
    };
    (period > 0).then_some(period.max(SHORTEST_PERIOD))
}

impl Lateness {
    fn take(&mut self, window: &[(Timestamp, Interrupted)], period: u64) {
        let asked = window.iter().filter(|(_, what)| *what != Interrupted::Other).count() as u64;
        let Some(grid) = grid(window, period) else {
            self.off_grid += asked;
            return;
        };
        self.on_grid += asked;
        for &(time, what) in window {
            let late = after(grid, time, period);
            match what {
                Interrupted::Point(point) => self.points.entry(point).or_default().add(late),
                Interrupted::Kernel => self.kernel.add(late),
                Interrupted::User => self.user.add(late),
                Interrupted::Other => {}
            }
        }
    }

    fn correction(&self) -> Correction {
        let base = self.kernel.quantile(0.5).filter(|_| self.kernel.count() >= BASE_AT_LEAST);
        let (Some(median), true) = (base, self.on_grid > self.off_grid) else {
            return Correction::NoGrid;
        };
        let late_after = 2 * median.max(1);
        let late = |histogram: &Histogram| {
            let late = histogram.iter().filter(|(at, _)| *at >= late_after);
            late.map(|(_, count)| count).sum::<u64>()
        };
        let elsewhere = (self.kernel.count(), late(&self.kernel));
        let base = elsewhere.1 as f64 / elsewhere.0 as f64;
        let point = |(&function, histogram): (&FunctionId, &Histogram)| {
            let (samples, late) = (histogram.count(), late(histogram));
            Point { function, samples, late, share: above(base, samples, late) }
        };
        let mut points: Vec<Point> = self.points.iter().map(point).collect();
        points.sort_by_key(|point| std::cmp::Reverse(point.samples));
        Correction::Known(Moved { late_after: Nanos(late_after), elsewhere, points })
    }
}

/// The share of samples that are late although the base rate would not make them so.
fn above(base: f64, samples: u64, late: u64) -> f64 {
    if samples < POINT_AT_LEAST || base >= 1.0 {
        return 0.0;
    }
    ((late as f64 / samples as f64 - base) / (1.0 - base)).clamp(0.0, 1.0)
}

/// Where in a period the grid lies: at the end of the longest arc in which no sample fell. `None` when
/// fewer than half of the samples follow it closely.
fn grid(window: &[(Timestamp, Interrupted)], period: u64) -> Option<u64> {
    if window.len() < WINDOW_AT_LEAST {
        return None;
    }
    let mut places: Vec<u64> = window.iter().map(|(time, _)| time.0 % period).collect();
    places.sort_unstable();
    let before = std::iter::once(places.last()?.wrapping_sub(period)).chain(places.iter().copied());
    let arcs =
        places.iter().zip(before).map(|(&place, before)| (place.wrapping_sub(before), place));
    let (_, grid) = arcs.max()?;
    let near = window.iter().filter(|(time, _)| after(grid, *time, period) < period / NEAR);
    (near.count() * 2 > window.len()).then_some(grid)
}

/// How long after the grid.
fn after(grid: u64, time: Timestamp, period: u64) -> u64 {
    (time.0 % period + period - grid) % period
}

impl Correction {
    /// The share of a point's samples that belongs to its caller.
    pub fn share(&self, point: FunctionId) -> f64 {
        let Correction::Known(moved) = self else { return 0.0 };
        let found = moved.points.iter().find(|known| known.function == point);
        found.map_or(0.0, |point| point.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockprof_collectors::perf::attr::Attr;

    const PERIOD: u64 = 1_003_009;
    const UNLOCK: FunctionId = FunctionId(1);
    const ENTRY: FunctionId = FunctionId(2);

    fn clock(config: u64, frequency: u64) -> EventDesc {
        let attr = Attr {
            kind: event_type::SOFTWARE,
            config,
            sample_period: frequency,
            flags: flag::FREQ,
            ..Attr::default()
        };
        EventDesc { attr, name: "cpu-clock".into(), ids: vec![], format: None }
    }

    /// A series of `count` samples, each late by what `sample` says; `drift` in ns a period.
    fn series(
        cpu: u32,
        count: u64,
        drift: i64,
        sample: impl Fn(u64) -> (u64, Interrupted),
    ) -> Skid {
        let mut skid = Skid::new(&[clock(software::CPU_CLOCK, 997)]);
        let series = Series { event: 0, instance: 1, cpu: Some(Cpu(cpu)) };
        for n in 0..count {
            let (late, what) = sample(n);
            let grid = 77_777 + n * PERIOD;
            skid.sample(series, Timestamp(grid.wrapping_add_signed(n as i64 * drift) + late), what);
        }
        skid.finish();
        skid
    }

    /// Elsewhere a quarter is late. Of the samples at the unlock, `ended` of 20 ended a section of 10 us,
    /// the rest is as elsewhere.
    fn mixed(ended: u64) -> impl Fn(u64) -> (u64, Interrupted) {
        move |n| {
            let usual = if n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0 {
                6_000
            } else {
                800 + n * 37 % 500
            };
            match n % 5 {
                0 if n / 5 % 20 < ended => (10_000 + n * 91 % 3_000, Interrupted::Point(UNLOCK)),
                0 => (usual, Interrupted::Point(UNLOCK)),
                _ => (usual, Interrupted::Kernel),
            }
        }
    }

    fn known(skid: &Skid) -> Moved {
        match skid.correction() {
            Correction::Known(moved) => moved,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_share_of_a_known_truth_is_found() {
        for ended in [0, 5, 10, 18, 20] {
            let skid = series(0, 20_000, 0, mixed(ended));
            let share = skid.correction().share(UNLOCK);
            assert!((share - ended as f64 / 20.0).abs() < 0.02, "{ended}: {share}");
            let (samples, late) = known(&skid).elsewhere;
            assert!(samples == 16_000 && late.abs_diff(4_000) < 100, "{samples} {late}");
        }
    }

    #[test]
    fn clocks_that_drift_against_the_time_of_samples_keep_their_grid() {
        for drift in [-10, 10] {
            let share = series(0, 20_000, drift, mixed(10)).correction().share(UNLOCK);
            assert!((share - 0.5).abs() < 0.03, "{drift}: {share}");
        }
    }

    #[test]
    fn a_grid_across_the_end_of_a_period_is_one_grid() {
        let skid = series(0, 640, 0, |n| (925_000 + n % 7 * 300, Interrupted::Kernel));
        assert!(known(&skid).late_after < Nanos(4_000), "{:?}", known(&skid));
    }

    #[test]
    fn samples_that_keep_no_grid_move_nothing() {
        let scattered = |n: u64| {
            let what =
                if n.is_multiple_of(2) { Interrupted::Point(UNLOCK) } else { Interrupted::Kernel };
            (n * 611_953 % PERIOD, what)
        };
        let skid = series(0, 5_000, 0, scattered);
        assert_eq!(skid.correction(), Correction::NoGrid);
        assert_eq!(skid.correction().share(UNLOCK), 0.0);
    }

    #[test]
    fn too_few_samples_move_nothing() {
        assert_eq!(series(0, 15, 0, mixed(20)).correction(), Correction::NoGrid);
        let one = |n: u64| match n {
            100..104 => (20_000, Interrupted::Point(ENTRY)),
            _ => (900, Interrupted::Kernel),
        };
        let skid = series(0, 1_000, 0, one);
        assert_eq!((known(&skid).points[0].late, skid.correction().share(ENTRY)), (4, 0.0));
    }

    #[test]
    fn samples_that_nobody_asked_about_tell_only_the_grid() {
        let idle = |n: u64| match n % 2 {
            0 => (500, Interrupted::Other),
            _ => {
                (3_000, if n % 10 == 1 { Interrupted::Point(UNLOCK) } else { Interrupted::Kernel })
            }
        };
        let moved = known(&series(0, 2_000, 0, idle));
        assert_eq!(moved.elsewhere.0 + moved.points[0].samples, 1_000);
        assert_eq!(moved.points[0].share, 0.0);
    }

    #[test]
    fn only_clocks_have_a_grid() {
        let mut counter = clock(software::CPU_CLOCK, 997);
        counter.attr.kind = event_type::HARDWARE;
        assert_eq!(Skid::new(&[counter]).correction(), Correction::NoClock);
        assert_eq!(period(&clock(software::CPU_CLOCK, 0)), None);
        assert_eq!(period(&clock(software::TASK_CLOCK, 1_000_000)), Some(SHORTEST_PERIOD));
        assert_eq!(period(&clock(software::CPU_CLOCK, 997)), Some(PERIOD));
    }
}
