//! stacks
