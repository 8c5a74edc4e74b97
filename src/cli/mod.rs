//! The command line: what was typed ([`args`]), what recording needs ([`checks`]), what is to be done
//! on this machine ([`plan`]), and all that is said on stderr ([`messages`]).

pub mod args;
pub mod checks;
pub mod messages;
pub mod plan;
