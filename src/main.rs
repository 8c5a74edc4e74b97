//! Parses, runs, prints the error, exits.

fn main() {}
