//! Bytes of one record -> [`Event`].
//!
//! Pure: no I/O, no clock, no state but the layouts that the recording's attrs spell. Any bytes give
//! an event or an error; kinds that nobody here knows survive as [`Body::Other`].

mod chain;
mod event;
mod layout;
mod reader;
mod record;
mod stamp;
mod tracepoint;

pub(crate) use chain::words;
pub use chain::{Callchain, RawChain};
pub use event::{
    Begin, Body, Cgroup, Comm, CpuSample, End, Event, Ksymbol, Mmap, MmapLock, MmapLockStep,
    RawTask, Release, SchedSwitch, SchedWaking, Switch, TaskChange,
};
pub use layout::LayoutError;
pub use record::{DecodeError, Decoder};
pub use stamp::{RawRecord, Stamps};
