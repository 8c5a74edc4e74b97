//! The screens, without a terminal: what they show of real recordings, what keys do, and that nothing
//! makes them panic.

#![allow(clippy::unwrap_used)]

#[path = "../golden/mod.rs"]
mod golden;

mod any_keys;
mod keys;
mod pictures;
mod shown;
