//! The command line: what was typed ([`args`]), what it means on this machine
//! ([`plan`]), and all that is said on stderr ([`messages`]).

pub mod args;
pub mod messages;
pub mod plan;
