//! Records as they stand in a ring or a perf.data file: kinds, and the header they share.
//!
//! ```text
//! struct perf_event_header { u32 type; u16 misc; u16 size; }      size counts the header
//! ```
//!
//! Source: `include/uapi/linux/perf_event.h`, enum `perf_event_type`; kinds from 64 on are the perf
//! tool's own (`tools/lib/perf/include/perf/event.h`).

/// `enum perf_event_type` and the perf tool's user records.
pub mod kind {
    #![allow(missing_docs)]
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const AUX: u32 = 11;
    pub const ITRACE_START: u32 = 12;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const NAMESPACES: u32 = 16;
    pub const KSYMBOL: u32 = 17;
    pub const BPF_EVENT: u32 = 18;
    pub const CGROUP: u32 = 19;
    pub const TEXT_POKE: u32 = 20;
    pub const AUX_OUTPUT_HW_ID: u32 = 21;
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// Kinds from here on are written by the perf tool, not by the kernel, and carry no sample id.
    pub const USER_TYPE_START: u32 = 64;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
}

/// `misc` bits.
pub mod misc {
    #![allow(missing_docs)]
    pub const CPUMODE_MASK: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    /// On COMM: the name comes from an exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// On SWITCH and SWITCH_CPU_WIDE: the task leaves the CPU.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// On a switch-out: it was preempted, it did not sleep.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// On MMAP2: inode fields are replaced by a build id.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// Marks in a callchain: what follows is of that kind. `enum perf_callchain_context`.
pub mod context {
    #![allow(missing_docs)]
    pub const HV: u64 = -32_i64 as u64;
    pub const KERNEL: u64 = -128_i64 as u64;
    pub const USER: u64 = -512_i64 as u64;
    pub const USER_DEFERRED: u64 = -640_i64 as u64;
    pub const GUEST: u64 = -2048_i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176_i64 as u64;
    pub const GUEST_USER: u64 = -2560_i64 as u64;
    /// Every value from here up is a mark, not an address.
    pub const MAX: u64 = -4095_i64 as u64;
}

/// Bytes of [`RecordHeader`].
pub const HEADER_SIZE: usize = 8;

/// `struct perf_event_header`, in the byte order of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// One of [`kind`], or a kind that this program does not know.
    pub kind: u32,
    /// Bits of [`misc`].
    pub misc: u16,
    /// Bytes of the whole record, header included.
    pub size: u16,
}

impl RecordHeader {
    /// The header at the start of `bytes`; `None` when fewer than 8 bytes are there.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<RecordHeader> {
        let (head, _) = bytes.split_first_chunk::<HEADER_SIZE>()?;
        let word = u64::from_le_bytes(*head);
        Some(RecordHeader {
            kind: word as u32,
            misc: (word >> 32) as u16,
            size: (word >> 48) as u16,
        })
    }

    /// The header's 8 bytes.
    pub fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let word = u64::from(self.kind) | u64::from(self.misc) << 32 | u64::from(self.size) << 48;
        word.to_le_bytes()
    }
}
