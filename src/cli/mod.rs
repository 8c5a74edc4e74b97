//! The command line: what was typed ([`args`]) and all that is said on stderr ([`messages`]).

pub mod args;
pub mod messages;
