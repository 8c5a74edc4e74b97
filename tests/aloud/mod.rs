//! Skips that are heard: straight to stderr, because libtest swallows what passing tests print.

use std::fmt::Display;
use std::io::Write;

/// Says that the test of this thread is skipped, and why.
pub(crate) fn skipped(reason: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Where stderr is closed nobody listens.
    let _ = std::io::stderr().write_all(format!("SKIPPED {test}: {reason}\n").as_bytes());
}
