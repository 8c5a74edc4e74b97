//! Records that stand before the kernel's own ones: what existed before recording started.
//!
//! In: the kernel's and modules' addresses, the names and mappings of live processes. Out: records
//! as the kernel would have written them, for [`Writer::append`](super::Writer::append). perf names
//! kernel addresses by the first map only, and shows a task without COMM as `:PID`.
//!
//! ```text
//! MMAP   header | u32 pid, tid | u64 addr, len, pgoff | name, padded to 8 | sample id
//! MMAP2  header | u32 pid, tid | u64 addr, len, pgoff | u32 maj, min | u64 ino, generation
//!               | u32 prot, flags | name, padded to 8 | sample id
//! COMM   header | u32 pid, tid | name, padded to 8 | sample id          LOST_SAMPLES  header | u64 lost | sample id
//! CGROUP header | u64 id | path, padded to 8 | sample id
//! THROTTLE  header | u64 time, id, stream id | sample id
//! sample id: of TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER those in sample_type, 8 bytes each
//! ```

use lockprof_collectors::perf::attr::sample;
use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind, misc};

use super::bytes::put_padded;

/// Fields of a sample id in their order.
const SAMPLE_ID: [u64; 6] =
    [sample::TID, sample::TIME, sample::ID, sample::STREAM_ID, sample::CPU, sample::IDENTIFIER];
/// `PATH_MAX`: the kernel's own names are not longer.
const NAME_MAX: usize = 4096;
/// The kernel itself, for a MMAP record.
const KERNEL_PID: u32 = u32::MAX;

/// Kernel text or a module.
#[derive(Clone, Copy, Debug)]
pub struct KernelMap<'a> {
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file; for the kernel itself the address of `_text`.
    pub pgoff: u64,
    /// `[kernel.kallsyms]_text`, or a module's path or `[name]`.
    pub name: &'a str,
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct UserMap<'a> {
    pub start: u64,
    pub len: u64,
    pub pgoff: u64,
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
    /// `PROT_*`.
    pub prot: u32,
    /// `MAP_*`.
    pub flags: u32,
    pub path: &'a [u8],
}

/// Collects such records.
#[derive(Clone, Debug, Default)]
pub struct Synthesizer {
    bytes: Vec<u8>,
    sample_type: u64,
    time: u64,
}

impl Synthesizer {
    /// Records of events with that `sample_type`, all with `sample_id_all`.
    pub fn new(sample_type: u64) -> Synthesizer {
        Synthesizer { bytes: Vec::new(), sample_type, time: 0 }
    }

    /// Records from here on say that they happened at `time`; 0, before everything else, is where
    /// they start.
    pub fn at(&mut self, time: u64) -> &mut Synthesizer {
        self.time = time;
        self
    }

    /// Takes the records out.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The records so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A MMAP record of the kernel or a module.
    pub fn kernel_map(&mut self, map: &KernelMap<'_>) {
        let mut body = words([KERNEL_PID, 0]);
        body.extend(super::features::words_of([map.start, map.len, map.pgoff]));
        put_name(&mut body, map.name.as_bytes());
        self.put(kind::MMAP, misc::KERNEL, &body, 0);
    }

    /// A MMAP2 record of a process.
    pub fn user_map(&mut self, pid: u32, map: &UserMap<'_>) {
        let mut body = words([pid, pid]);
        body.extend(super::features::words_of([map.start, map.len, map.pgoff]));
        body.extend(words([map.major, map.minor]));
        body.extend(super::features::words_of([map.inode, 0]));
        body.extend(words([map.prot, map.flags]));
        put_name(&mut body, map.path);
        self.put(kind::MMAP2, misc::USER, &body, 0);
    }

    /// A CGROUP record: the group `id` is at `path`.
    pub fn cgroup(&mut self, id: u64, path: &[u8]) {
        let mut body = id.to_le_bytes().to_vec();
        put_name(&mut body, path);
        self.put(kind::CGROUP, 0, &body, 0);
    }

    /// A COMM record of a thread.
    pub fn comm(&mut self, pid: u32, tid: u32, comm: &[u8]) {
        let mut body = words([pid, tid]);
        put_name(&mut body, comm);
        self.put(kind::COMM, 0, &body, 0);
    }

    /// A LOST_SAMPLES record of the event instance `id`: what its fd counted at the end.
    pub fn lost_samples(&mut self, id: u64, lost: u64) {
        self.put(kind::LOST_SAMPLES, 0, &lost.to_le_bytes(), id);
    }

    /// A THROTTLE record of the event instance `id`: it was stopped.
    pub fn throttle(&mut self, id: u64) {
        let body = super::features::words_of([self.time, id, id]);
        self.put(kind::THROTTLE, 0, &body, id);
    }

    fn put(&mut self, kind: u32, misc: u16, body: &[u8], id: u64) {
        let fields = SAMPLE_ID.into_iter().filter(|field| self.sample_type & field != 0);
        let value = |field| match field {
            sample::TIME => self.time,
            sample::ID | sample::IDENTIFIER => id,
            _ => 0,
        };
        let sample_id: Vec<u8> = fields.flat_map(|field| value(field).to_le_bytes()).collect();
        let size = (HEADER_SIZE + body.len() + sample_id.len()) as u16;
        self.bytes.extend(RecordHeader { kind, misc, size }.to_bytes());
        self.bytes.extend_from_slice(body);
        self.bytes.extend(sample_id);
    }
}

fn words<const N: usize>(numbers: [u32; N]) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn put_name(body: &mut Vec<u8>, name: &[u8]) {
    let name = name.get(..NAME_MAX).unwrap_or(name);
    put_padded(body, name, (name.len() + 1).next_multiple_of(8));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: u64 = sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU | sample::RAW;

    #[test]
    fn records_are_as_long_as_they_say_and_end_with_a_sample_id() {
        let mut records = Synthesizer::new(TYPE);
        let text = "[kernel.kallsyms]_text";
        records.kernel_map(&KernelMap { start: 1, len: 2, pgoff: 3, name: text });
        records.comm(7, 8, b"fifteen-letters");
        records.user_map(7, &UserMap { path: b"/bin/true", ..UserMap::default() });
        records.cgroup(25, b"/system.slice");
        records.lost_samples(42, 1000);
        let (id, mut rest) = (4 * 8, records.bytes());
        for (kind, size) in [
            (kind::MMAP, 8 + 8 + 24 + 24 + id),
            (kind::COMM, 8 + 8 + 16 + id),
            (kind::MMAP2, 8 + 8 + 24 + 8 + 16 + 8 + 16 + id),
            (kind::CGROUP, 8 + 8 + 16 + id),
            (kind::LOST_SAMPLES, 8 + 8 + id),
        ] {
            let header = RecordHeader::parse(rest).unwrap();
            assert_eq!((header.kind, usize::from(header.size)), (kind, size));
            rest = &rest[size..];
        }
        assert!(rest.is_empty());
        assert_eq!(records.bytes().last_chunk(), Some(&42u64.to_le_bytes()));
    }

    #[test]
    fn a_name_without_end_still_fits_into_a_record() {
        let mut records = Synthesizer::new(TYPE);
        records.comm(1, 1, &[b'x'; 100_000]);
        let header = RecordHeader::parse(records.bytes()).unwrap();
        assert_eq!(usize::from(header.size), records.bytes().len());
    }
}
