//! The command line: what was typed ([`args`]), what recording needs on this machine ([`checks`]), and
//! all that is said on stderr ([`messages`]).

pub mod args;
pub mod checks;
pub mod messages;
