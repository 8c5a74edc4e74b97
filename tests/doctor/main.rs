//! Doctor: every check and hint on machines that do not exist, and all of it on the one that does.

#![allow(clippy::unwrap_used)]

#[path = "../aloud/mod.rs"]
mod aloud;
mod checks;
mod command;
mod hints;
mod machine;
