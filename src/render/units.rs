//! The one place where numbers become text, and where a duration typed by the user becomes a
//! number.
//!
//! In: [`Nanos`], counts, shares of one. Out: `2.1 s`, `1,748`, `68 %`; never more than three
//! digits before a unit. Cells of a table are padded so that a column lines up on the unit.

use thiserror::Error;

use crate::model::Nanos;

/// Unit, its length in ns, and the number that is already said better in the next unit.
const UNITS: [(&str, u64, u64); 7] = [
    ("ns", 1, 1_000),
    ("us", 1_000, 1_000),
    ("ms", 1_000_000, 1_000),
    ("s", 1_000_000_000, 1_000),
    // A sum of many threads' waits over an afternoon; `99 min` is the widest that fits a cell.
    ("min", 60_000_000_000, 100),
    ("h", 3_600_000_000_000, 1_000),
    ("d", 86_400_000_000_000, u64::MAX),
];

/// A time in a sentence: one decimal below 100, none when it is zero: `12.3 s`, `44 ms`, `812 us`.
pub fn time(t: Nanos) -> String {
    let (unit, scale) = unit_of(t);
    let tenths = divide(t.0, scale, 10);
    if tenths < 1_000 && !tenths.is_multiple_of(10) {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    } else {
        format!("{} {unit}", divide(t.0, scale, 1))
    }
}

/// A time in a table, 6 columns wide: `2.1 s `, ` 44 ms`, `812 us`. One decimal below 10.
pub fn time_cell(t: Nanos) -> String {
    let (unit, scale) = unit_of(t);
    format!("{:>3} {unit:<2}", number(t.0, scale, has_decimal(t, scale)))
}

/// An estimate with half the width of its interval, in one unit, for a table: `0.2 +- 0.1 s `.
pub fn estimate_cell(t: Nanos, interval: Nanos) -> String {
    let larger = t.max(interval);
    let (unit, scale) = unit_of(larger);
    let decimal = has_decimal(larger, scale);
    let (value, half) = (number(t.0, scale, decimal), number(interval.0, scale, decimal));
    format!("{value} +- {half} {unit:<2}")
}

/// An estimate in a sentence: `0.2 +- 0.1 s`.
pub fn estimate(t: Nanos, interval: Nanos) -> String {
    estimate_cell(t, interval).trim_end().to_string()
}

fn number(value: u64, scale: u64, decimal: bool) -> String {
    if decimal {
        let tenths = divide(value, scale, 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    } else {
        divide(value, scale, 1).to_string()
    }
}

/// Nanoseconds are whole; everything else keeps a decimal while it has one digit.
fn has_decimal(t: Nanos, scale: u64) -> bool {
    scale > 1 && divide(t.0, scale, 10) < 100
}

fn unit_of(t: Nanos) -> (&'static str, u64) {
    let fits = UNITS.iter().find(|(_, scale, limit)| divide(t.0, *scale, 1) < *limit);
    fits.map_or(("d", UNITS[6].1), |(unit, scale, _)| (unit, *scale))
}

/// `value * factor / scale`, rounded half up.
fn divide(value: u64, scale: u64, factor: u64) -> u64 {
    let product = u128::from(value) * u128::from(factor) + u128::from(scale / 2);
    u64::try_from(product / u128::from(scale)).unwrap_or(u64::MAX)
}

/// A count with thousands separators: `1,748`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 wait`, `3 waits`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// How often a second something happened that happened `n` times in `time`: `2,310`, `7.4`, `<0.1`.
pub fn per_second(n: u64, time: Nanos) -> String {
    const SECOND: u64 = 1_000_000_000;
    match divide(n, time.0.max(1), 10 * SECOND) {
        0 if n > 0 => "<0.1".to_owned(),
        0 => "0".to_owned(),
        tenths if tenths < 100 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => count(divide(n, time.0.max(1), SECOND)),
    }
}

/// How much time of `part` there is to a second of `whole`: 3.4 s where 3.4 threads waited on average.
pub fn time_per_second(part: Nanos, whole: Nanos) -> Nanos {
    Nanos(divide(part.0, whole.0.max(1), 1_000_000_000))
}

/// A share of one as a percentage. Neither a little nor nearly all is rounded away: `<1 %`,
/// `>99 %`; `0 %` and `100 %` are exact.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() || p <= 0.0 => "0 %".into(),
        p if p < 1.0 => "<1 %".into(),
        p if p > 99.0 && p < 100.0 => ">99 %".into(),
        p => format!("{p:.0} %"),
    }
}

/// `part / whole` as a share of one; 0 when there is no whole.
pub fn share(part: Nanos, whole: Nanos) -> f64 {
    if whole.0 == 0 { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// No number in front.
    #[error("`{0}` is no duration: write a number and a unit, such as 5s, 10ms, 250us or 2m")]
    NoNumber(String),
    /// A number alone.
    #[error("`{0}` has no unit: write {0}s, {0}ms or {0}us")]
    NoUnit(String),
    /// Something else behind the number.
    #[error("`{unit}` in `{text}` is no unit of time; there are ns, us, ms, s, m and h")]
    UnknownUnit {
        /// All that was typed.
        text: String,
        /// What follows the number.
        unit: String,
    },
    /// More than 2^64 ns.
    #[error("`{0}` is longer than 584 years")]
    TooLong(String),
}

/// What a user types for a duration: `5s`, `10ms`, `1.5ms`, `250us`, `100ns`, `2m`, `1h`.
///
/// Digits below a nanosecond are cut off.
pub fn parse_duration(text: &str) -> Result<Nanos, DurationError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || fraction.contains('.') || (digits.contains('.') && fraction.is_empty()) {
        return Err(DurationError::NoNumber(text.into()));
    }
    let scale = match unit.trim_start() {
        "" => return Err(DurationError::NoUnit(text.into())),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        unit => {
            return Err(DurationError::UnknownUnit { text: text.into(), unit: unit.into() });
        }
    };
    let whole = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    let total = whole.and_then(|whole| whole.checked_add(fraction_of(fraction, scale)));
    total.map(Nanos).ok_or_else(|| DurationError::TooLong(text.into()))
}

/// `0.FRACTION * scale`, cut off.
fn fraction_of(fraction: &str, scale: u64) -> u64 {
    let mut unit = scale;
    fraction
        .bytes()
        .map_while(|digit| {
            unit /= 10;
            (unit > 0).then(|| u64::from(digit - b'0') * unit)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_three_digits() {
        let cases = [
            (0, "0 ns", "  0 ns"),
            (7, "7 ns", "  7 ns"),
            (812, "812 ns", "812 ns"),
            (999, "999 ns", "999 ns"),
            (1_000, "1 us", "1.0 us"),
            (3_449, "3.4 us", "3.4 us"),
            (9_949, "9.9 us", "9.9 us"),
            (9_951, "10 us", " 10 us"),
            (44_449, "44.4 us", " 44 us"),
            (999_499, "999 us", "999 us"),
            (999_500, "1 ms", "1.0 ms"),
            (12_300_000_000, "12.3 s", " 12 s "),
            (2_120_000_000, "2.1 s", "2.1 s "),
            (999_400_000_000, "999 s", "999 s "),
            (1_000_000_000_000, "16.7 min", " 17 min"),
            (6_000_000_000_000, "1.7 h", "1.7 h "),
            (u64::MAX, "213504 d", "213504 d "),
        ];
        for (ns, sentence, cell) in cases {
            assert_eq!(time(Nanos(ns)), sentence, "{ns} in a sentence");
            assert_eq!(time_cell(Nanos(ns)), cell, "{ns} in a cell");
        }
    }

    #[test]
    fn rates_are_counts_and_times_to_a_second() {
        let s = |tenths: u64| Nanos(tenths * 100_000_000);
        let cases = [(0, "0"), (10, "0.5"), (198, "9.9"), (199, "10"), (46_200, "2,310")];
        for (n, rate) in cases {
            assert_eq!(per_second(n, s(200)), rate, "{n} in 20 s");
        }
        assert_eq!(time_per_second(s(68), s(20)), s(34));
        assert_eq!(time_per_second(Nanos::ZERO, Nanos::ZERO), Nanos::ZERO);
        assert_eq!(per_second(1, s(300)), "<0.1");
        assert_eq!(per_second(0, Nanos::ZERO), "0");
    }

    #[test]
    fn an_estimate_and_its_interval_share_a_unit() {
        let cases = [
            (200_000_000, 100_000_000, "200 +- 100 ms"),
            (2_000_000_000, 100_000_000, "2.0 +- 0.1 s "),
            (1_000_000, 1_960_000, "1.0 +- 2.0 ms"),
            (990_000, 1_940_000, "1.0 +- 1.9 ms"),
            (12_000_000, 3_400_000, "12 +- 3 ms"),
        ];
        for (value, interval, text) in cases {
            assert_eq!(estimate_cell(Nanos(value), Nanos(interval)), text);
        }
        assert_eq!(estimate(Nanos(12_000_000), Nanos(3_400_000)), "12 +- 3 ms");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1_748, "1,748"), (123_456, "123,456")];
        for (n, text) in cases {
            assert_eq!(count(n), text);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!((counted(1, "wait"), counted(0, "wait")), ("1 wait".into(), "0 waits".into()));
    }

    #[test]
    fn a_percentage_never_rounds_to_nothing_or_to_all() {
        let cases = [
            (0.0, "0 %"),
            (0.0004, "<1 %"),
            (0.0099, "<1 %"),
            (0.01, "1 %"),
            (0.684, "68 %"),
            (0.9951, ">99 %"),
            (1.0, "100 %"),
            (f64::NAN, "0 %"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn durations_are_read_exactly() {
        let cases = [
            ("5s", 5_000_000_000),
            ("10ms", 10_000_000),
            ("1.5ms", 1_500_000),
            ("250us", 250_000),
            ("250\u{b5}s", 250_000),
            ("100ns", 100),
            ("2m", 120_000_000_000),
            ("0.1m", 6_000_000_000),
            ("1h", 3_600_000_000_000),
            (" 3 s ", 3_000_000_000),
            ("1.0000000019s", 1_000_000_001),
            ("0.1s", 100_000_000),
            ("1.5ns", 1),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        let cases = [
            ("", "is no duration"),
            ("ms", "is no duration"),
            ("-5s", "is no duration"),
            (".5s", "is no duration"),
            ("5.s", "is no duration"),
            ("1.2.3s", "is no duration"),
            ("5", "write 5s, 5ms or 5us"),
            ("5 fortnights", "`fortnights`"),
            ("1e3s", "`e3s`"),
            ("99999999999999999999s", "longer than"),
            ("18446744074s", "longer than"),
        ];
        for (text, reason) in cases {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
