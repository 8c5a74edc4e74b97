//! Real recordings of seven kernels through the whole pipe: what their reports say, as goldens, and
//! what must hold of them whatever they say.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod classified;
mod facts;
mod fixtures;
#[path = "../golden/mod.rs"]
mod golden;
mod goldens;
mod lost;
mod merged;
mod readme;
mod releasers;
mod sleeps;
