//! The kernel's text files, turned into plain structs. Parsers take bytes, never a path.

pub mod kallsyms;
pub mod tracefs;
