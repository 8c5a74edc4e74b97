//! The recorder on the running kernel. In `live/`, a subject a file.

// Everything here is test code, the functions between the tests too.
#![allow(clippy::unwrap_used)]

mod live;
mod perf_table;
mod pty;
mod seccomp;
