//! How long a thread keeps the lock each time. In: `short`, `long` or a duration, as typed.
//! Out: [`Hold`], which a workload turns into a number of pages by measuring.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;

/// How long the lock is kept by one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// A few pages: microseconds, so the lock itself is the cost.
    #[default]
    Short,
    /// [`Hold::LONG`]: what is done under the lock is the cost.
    Long,
    /// About this time.
    For(Duration),
}

impl Hold {
    /// The hold time of [`Hold::Long`].
    pub const LONG: Duration = Duration::from_millis(2);
    /// The shortest time that [`Hold::For`] takes: below it the entry into the kernel is the larger part.
    pub const LEAST: Duration = Duration::from_micros(20);
    /// The longest time that [`Hold::For`] takes.
    pub const MOST: Duration = Duration::from_millis(100);

    /// The time to keep the lock; none for [`Hold::Short`], which is not calibrated.
    pub fn target(self) -> Result<Option<Duration>, Error> {
        let asked = match self {
            Hold::Short => return Ok(None),
            Hold::Long => Hold::LONG,
            Hold::For(time) => time,
        };
        if asked < Hold::LEAST || asked > Hold::MOST {
            return Err(Error::HoldOutOfRange { asked, least: Hold::LEAST, most: Hold::MOST });
        }
        Ok(Some(asked))
    }
}

/// What was typed is no hold time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no hold time: use short, long, or a number with us, ms or s, such as 10ms")]
pub struct HoldError(String);

impl FromStr for Hold {
    type Err = HoldError;

    fn from_str(typed: &str) -> Result<Hold, HoldError> {
        match typed.to_ascii_lowercase().as_str() {
            "short" => Ok(Hold::Short),
            "long" => Ok(Hold::Long),
            other => duration(other).map(Hold::For).ok_or_else(|| HoldError(typed.to_owned())),
        }
    }
}

/// `10ms`, `500us`, `0.5s`.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    // Whole nanoseconds: 0.0005 s must come out as 500 us.
    let nanos = (number * seconds * 1e9).round() / 1e9;
    Duration::try_from_secs_f64(nanos).ok()
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hold::Short => f.write_str("short"),
            Hold::Long => f.write_str("long"),
            Hold::For(time) => write!(f, "{time:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_times_are_read_as_typed() {
        let cases = [
            ("short", Hold::Short),
            ("LONG", Hold::Long),
            ("10ms", Hold::For(Duration::from_millis(10))),
            ("500us", Hold::For(Duration::from_micros(500))),
            ("0.05s", Hold::For(Duration::from_millis(50))),
        ];
        for (typed, hold) in cases {
            assert_eq!(typed.parse(), Ok(hold), "{typed}");
        }
    }

    #[test]
    fn what_is_no_hold_time_is_refused_with_its_text() {
        for typed in ["", "10", "ms", "10 minutes", "-1ms", "NaNms", "infs", "1e400s"] {
            let error = typed.parse::<Hold>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{typed}`")), "{error}");
        }
    }

    #[test]
    fn hold_times_out_of_range_are_refused() {
        for hold in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1)] {
            assert!(matches!(Hold::For(hold).target(), Err(Error::HoldOutOfRange { .. })));
        }
        assert_eq!(Hold::Short.target().unwrap(), None);
    }
}
