//! Names of any characters, and durations of any length: nothing acts, splits or is lost.

use lockprof::model::Nanos;
use lockprof::render::escape::{acts, csv_field, folded_frame, visible};
use lockprof::render::units::{parse_duration, time, time_cell};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

proptest! {
    #[test]
    fn no_name_acts_in_any_format(name in any::<String>()) {
        prop_assert!(!visible(&name).contains(acts));
        prop_assert!(!folded_frame(&name).contains([';', '\n']));
        let field = csv_field(&name).into_owned();
        // Only the quotes around a field are not its own.
        let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inner = inner.unwrap_or(&field);
        prop_assert!(!inner.starts_with(['=', '+', '-', '@']), "{}", field);
        let quotes = field.matches('"').count();
        prop_assert!(quotes.is_multiple_of(2), "quotes are paired: {}", field);
    }

    #[test]
    fn showing_a_name_twice_changes_nothing_more(name in any::<String>()) {
        let once = visible(&name).into_owned();
        prop_assert_eq!(visible(&once), once.as_str());
    }

    #[test]
    fn any_text_is_a_duration_or_an_error(text in any::<String>()) {
        let _ = parse_duration(&text);
    }

    #[test]
    fn a_printed_time_reads_back_within_half_of_its_last_digit(ns in 0..999_000_000_000u64) {
        let back = parse_duration(&time(Nanos(ns))).map(|t| t.0.abs_diff(ns));
        // One decimal below 100, so half a percent at worst.
        prop_assert!(back.is_ok_and(|off| off * 20 <= ns.max(1)), "{} ns", ns);
        prop_assert_eq!(time_cell(Nanos(ns)).len(), 6);
    }
}
