//! `struct perf_event_attr` as plain fields: what an event is and what its samples hold.
//!
//! The same struct describes an event that is to be opened and one that stands in a file. Layout
//! (`include/uapi/linux/perf_event.h`), bytes from the start:
//!
//! ```text
//!   0 u32 type              40 u64 flags (bitfield)     72 u64 branch_sample_type    108 u16 sample_max_stack
//!   4 u32 size              48 u32 wakeup               80 u64 sample_regs_user      112 u32 aux_sample_size
//!   8 u64 config            52 u32 bp_type              88 u32 sample_stack_user     116 u32 aux_action
//!  16 u64 sample_period     56 u64 config1              92 i32 clockid               120 u64 sig_data
//!  24 u64 sample_type       64 u64 config2              96 u64 sample_regs_intr      128 u64 config3
//!  32 u64 read_format                                  104 u32 aux_watermark
//! ```

/// `attr.type`.
pub mod event_type {
    #![allow(missing_docs)]
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const TRACEPOINT: u32 = 2;
}

/// `attr.config` of a hardware event.
pub mod hardware {
    #![allow(missing_docs)]
    pub const CPU_CYCLES: u64 = 0;
}

/// `attr.config` of a software event.
pub mod software {
    #![allow(missing_docs)]
    pub const CPU_CLOCK: u64 = 0;
    pub const TASK_CLOCK: u64 = 1;
    pub const DUMMY: u64 = 9;
}

/// `attr.sample_type`: which fields a sample has.
pub mod sample {
    #![allow(missing_docs)]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// Bits that this program knows the size of; a file with others is refused.
    pub const KNOWN: u64 = (1 << 25) - 1;
}

/// `attr.read_format`.
pub mod read_format {
    #![allow(missing_docs)]
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// The bitfield of `attr`, bit 0 first.
pub mod flag {
    #![allow(missing_docs)]
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const FREQ: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const MMAP_DATA: u64 = 1 << 17;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    pub const NAMESPACES: u64 = 1 << 28;
    pub const KSYMBOL: u64 = 1 << 29;
    pub const BPF_EVENT: u64 = 1 << 30;
    pub const CGROUP: u64 = 1 << 32;
    pub const BUILD_ID: u64 = 1 << 34;
}

/// Bytes that [`Attr::to_bytes`] writes: `PERF_ATTR_SIZE_VER7`. Older perf tools refuse a file
/// whose attrs are longer than they know, even when the extra bytes are zero.
pub const ATTR_SIZE: usize = 128;

/// The shortest attr that any kernel wrote: `PERF_ATTR_SIZE_VER0`.
pub const ATTR_SIZE_VER0: usize = 64;

/// One event, asked for or found in a file. Field names are those of `perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Attr {
    /// `attr.type`: one of [`event_type`], or a dynamic PMU number.
    pub kind: u32,
    pub config: u64,
    /// A period in events (ns for clocks), or a frequency in Hz when [`flag::FREQ`] is set.
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    /// Events, or bytes when [`flag::WATERMARK`] is set.
    pub wakeup: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub aux_sample_size: u32,
    pub sig_data: u64,
}

impl Attr {
    /// Reads an attr of any version; missing fields are zero. `None` below [`ATTR_SIZE_VER0`] bytes.
    pub fn parse(bytes: &[u8]) -> Option<Attr> {
        if bytes.len() < ATTR_SIZE_VER0 {
            return None;
        }
        let u64_at = |at: usize| {
            bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let u32_at = |at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        Some(Attr {
            kind: u32_at(0),
            config: u64_at(8),
            sample_period: u64_at(16),
            sample_type: u64_at(24),
            read_format: u64_at(32),
            flags: u64_at(40),
            wakeup: u32_at(48),
            bp_type: u32_at(52),
            config1: u64_at(56),
            config2: u64_at(64),
            branch_sample_type: u64_at(72),
            sample_regs_user: u64_at(80),
            sample_stack_user: u32_at(88),
            clockid: u32_at(92) as i32,
            sample_regs_intr: u64_at(96),
            aux_watermark: u32_at(104),
            sample_max_stack: u32_at(108) as u16,
            aux_sample_size: u32_at(112),
            sig_data: u64_at(120),
        })
    }

    /// The attr's bytes as the kernel and perf.data take them; `attr.size` is [`ATTR_SIZE`].
    pub fn to_bytes(&self) -> [u8; ATTR_SIZE] {
        let mut bytes = [0; ATTR_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.kind.to_le_bytes());
        put(4, &(ATTR_SIZE as u32).to_le_bytes());
        put(8, &self.config.to_le_bytes());
        put(16, &self.sample_period.to_le_bytes());
        put(24, &self.sample_type.to_le_bytes());
        put(32, &self.read_format.to_le_bytes());
        put(40, &self.flags.to_le_bytes());
        put(48, &self.wakeup.to_le_bytes());
        put(52, &self.bp_type.to_le_bytes());
        put(56, &self.config1.to_le_bytes());
        put(64, &self.config2.to_le_bytes());
        put(72, &self.branch_sample_type.to_le_bytes());
        put(80, &self.sample_regs_user.to_le_bytes());
        put(88, &self.sample_stack_user.to_le_bytes());
        put(92, &self.clockid.to_le_bytes());
        put(96, &self.sample_regs_intr.to_le_bytes());
        put(104, &self.aux_watermark.to_le_bytes());
        put(108, &self.sample_max_stack.to_le_bytes());
        put(112, &self.aux_sample_size.to_le_bytes());
        put(120, &self.sig_data.to_le_bytes());
        bytes
    }

    /// Whether the samples have `field`, one of [`sample`].
    #[inline]
    pub fn samples(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Whether `flag`, one of [`flag`], is set.
    #[inline]
    pub fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attr_survives_the_round_trip() {
        let attr = Attr {
            kind: event_type::TRACEPOINT,
            config: 408,
            sample_period: 1,
            sample_type: sample::IP | sample::RAW,
            flags: flag::SAMPLE_ID_ALL,
            clockid: -1,
            sample_max_stack: 127,
            sig_data: 9,
            ..Attr::default()
        };
        assert_eq!(Attr::parse(&attr.to_bytes()), Some(attr));
    }

    #[test]
    fn an_attr_of_the_first_version_is_read_and_a_shorter_one_is_not() {
        let attr = Attr { config: 7, config1: 9, ..Attr::default() };
        assert_eq!(Attr::parse(&attr.to_bytes()[..ATTR_SIZE_VER0]), Some(attr));
        assert_eq!(Attr::parse(&attr.to_bytes()[..ATTR_SIZE_VER0 - 1]), None);
    }
}
