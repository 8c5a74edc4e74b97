//! Time as types: a length ([`Nanos`]) and a moment on the recording's clock ([`Timestamp`]).

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A length of time in nanoseconds. Sums saturate: hostile recordings must not wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A moment in nanoseconds on the clock of the recording; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// `self - other`, or zero.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// Seconds, for ratios and display only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Timestamp {
    /// The time from `earlier` to `self`; zero when the clock ran backwards.
    #[inline]
    pub fn since(self, earlier: Timestamp) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos::ZERO, Add::add)
    }
}

impl Add<Nanos> for Timestamp {
    type Output = Timestamp;
    fn add(self, length: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_add(length.0))
    }
}

impl Sub<Nanos> for Timestamp {
    type Output = Timestamp;
    fn sub(self, length: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_sub(length.0))
    }
}
