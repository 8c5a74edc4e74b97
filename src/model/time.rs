//! Time as types: a length ([`Nanos`]) and a moment on the recording's clock ([`Timestamp`]).

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

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

impl FromStr for Nanos {
    type Err = String;

    /// `5s`, `10ms`, `1.5ms`, `250us`, `100ns`, `2m`; a bare number is seconds.
    fn from_str(text: &str) -> Result<Nanos, String> {
        const UNITS: [(&str, f64); 5] =
            [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9)];
        let wrong = || format!("`{text}` is no length of time; write 5s, 10ms, 250us, 100ns or 2m");
        let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit {
            "" => 1e9,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1,
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        if number.is_finite() && number >= 0.0 {
            Ok(Nanos((number * factor) as u64))
        } else {
            Err(wrong())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_their_unit() {
        for (text, ns) in [
            ("5s", 5_000_000_000),
            ("10ms", 10_000_000),
            ("1.5ms", 1_500_000),
            ("250us", 250_000),
            ("100ns", 100),
            ("2m", 120_000_000_000),
            ("3", 3_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
        for text in ["", "s", "-1s", "1h", "nan", "infs", "1 s", "5sec"] {
            assert!(text.parse::<Nanos>().unwrap_err().contains("no length of time"), "{text}");
        }
    }
}
