//! `perf_event_open(2)`: the attribute, the record constants, the rings, the session.
//!
//! A [`plan::Plan`] goes in; a [`session::Session`] comes out, which hands over ring bytes as they
//! stand. The only `unsafe` of the crate is here, behind the gate in `sys.rs`.

pub mod attr;
pub mod record;
mod sys;
#[cfg(test)]
mod sys_fake;
mod event_fd;
mod features;
mod flood;
pub mod ring_buffer;
pub mod plan;
pub mod session;

pub(crate) use features::count_own;
pub use sys::SyscallError;
pub(crate) use sys::take_inherited;
