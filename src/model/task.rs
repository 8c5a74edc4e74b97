//! Who: tasks, CPUs, and what a CPU was doing for whom.

use std::fmt;

/// A thread, by the kernel's global pid: the `common_pid` of a raw tracepoint record.
///
/// Never `PERF_SAMPLE_TID`, which is relative to the recorder's pid namespace, 0 for tasks outside
/// it and -1 for exiting ones. 0 is the idle task, of which every CPU has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub i32);

impl TaskId {
    /// The idle task.
    pub const IDLE: TaskId = TaskId(0);
}

/// One life of a task under one name: an entry in the book of tasks. A pid used again, a name changed
/// by exec and a move to another cgroup are new entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef(pub u32);

impl TaskRef {
    /// Entries below it stay what they are; those above take turns in as many places.
    pub const KEPT: u32 = 1 << 17;
}

/// A CPU by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// What a CPU was doing when an event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// Running the task itself.
    #[default]
    Task,
    /// A softirq on top of a task.
    Softirq,
    /// A hardware interrupt on top of a task.
    Hardirq,
    /// A non-maskable interrupt.
    Nmi,
}

impl Context {
    /// From `common_flags` of a raw tracepoint record (`enum trace_flag_type`,
    /// `include/linux/trace_events.h`): hardirq 0x08, softirq 0x10, NMI 0x40.
    #[inline]
    pub fn from_common_flags(flags: u8) -> Context {
        match flags {
            f if f & 0x40 != 0 => Context::Nmi,
            f if f & 0x08 != 0 => Context::Hardirq,
            f if f & 0x10 != 0 => Context::Softirq,
            _ => Context::Task,
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Context::Task => "task",
            Context::Softirq => "softirq",
            Context::Hardirq => "hardirq",
            Context::Nmi => "nmi",
        })
    }
}
