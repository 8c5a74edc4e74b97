//! The BUILD_ID section: which build of the kernel and of each mapped file was recorded.
//!
//! In and out: a row of records, each
//!
//! ```text
//!  0 u32 0                          8 i32 pid: -1                  36 name, NUL, padded to 64
//!  4 u16 misc: 1 kernel, 2 user    12 u8 id[20]
//!    0x8000: byte 32 counts        32 u8 bytes of id, u8 0[3]
//!  6 u16 size of all this
//! ```

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, misc};

use super::bytes::{Cursor, put_padded, text};
use super::origin::BuildId;

/// The id's size stands in the record; without the bit it is 20 (perf before 5.11).
const SIZE_BIT: u16 = 1 << 15;
const ID_MAX: usize = 20;
/// Bytes before the name.
const FIXED: usize = HEADER_SIZE + 4 + 24;
/// The kernel without its modules, whose names stand in brackets too.
const KERNEL: &str = "[kernel.kallsyms]";

/// Reads all whole records; a damaged one ends the list.
pub(super) fn decode(bytes: &[u8]) -> Vec<BuildId> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(|| decode_record(&mut cursor)).collect()
}

fn decode_record(cursor: &mut Cursor<'_>) -> Option<BuildId> {
    let header = RecordHeader::parse(cursor.rest())?;
    let record = cursor.take(header.size.into())?;
    let mut fields = Cursor::new(record.get(HEADER_SIZE + 4..)?);
    let id = fields.take(ID_MAX as u64)?;
    let counted = usize::from(fields.u32()? as u8);
    let size = if header.misc & SIZE_BIT != 0 { counted.min(ID_MAX) } else { ID_MAX };
    let name = text(fields.rest());
    let kernel = header.misc & misc::CPUMODE_MASK == misc::KERNEL && names_the_kernel(&name);
    Some(BuildId { id: id.get(..size)?.to_vec(), name, kernel })
}

/// Modules come as `[xfs]` or as a path that ends in `.ko`, `.ko.xz` and the like.
fn names_the_kernel(name: &str) -> bool {
    name.starts_with(KERNEL) || !(name.starts_with('[') || name.contains(".ko"))
}

/// Writes one record for each build id; ids are cut at 20 bytes, names at 4096.
pub(super) fn encode(build_ids: &[BuildId]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for build_id in build_ids {
        encode_record(build_id, &mut bytes);
    }
    bytes
}

fn encode_record(build_id: &BuildId, into: &mut Vec<u8>) {
    let name = build_id.name.as_bytes();
    let name = name.get(..4096).unwrap_or(name);
    let padded = (name.len() + 1).next_multiple_of(64);
    let module = build_id.name.starts_with('[') || build_id.name.contains(".ko");
    let in_kernel = build_id.kernel || module && build_id.name != "[vdso]";
    let mode = if in_kernel { misc::KERNEL } else { misc::USER };
    let size = (FIXED + padded) as u16;
    into.extend(RecordHeader { kind: 0, misc: mode | SIZE_BIT, size }.to_bytes());
    into.extend((-1i32).to_le_bytes());
    let id = build_id.id.get(..ID_MAX).unwrap_or(&build_id.id);
    put_padded(into, id, ID_MAX);
    into.extend((id.len() as u32).to_le_bytes());
    put_padded(into, name, padded);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_id(name: &str, kernel: bool, len: u8) -> BuildId {
        BuildId { id: (1..=len).collect(), name: name.to_owned(), kernel }
    }

    #[test]
    fn build_ids_survive_the_round_trip() {
        let ids = [
            build_id(KERNEL, true, 20),
            build_id("[xfs]", false, 20),
            build_id("/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko", false, 20),
            build_id("/usr/lib/debug/boot/vmlinux-6.1", true, 16),
            build_id("/usr/bin/a program", false, 8),
            build_id("[vdso]", false, 20),
        ];
        assert_eq!(decode(&encode(&ids)), ids);
    }

    #[test]
    fn an_old_record_without_a_size_has_twenty_bytes() {
        let mut bytes = encode(&[build_id("/bin/true", false, 8)]);
        bytes[5] &= 0x7f;
        assert_eq!(decode(&bytes)[0].id.len(), 20);
    }

    #[test]
    fn a_cut_or_zero_record_ends_the_list() {
        let bytes = encode(&[build_id("/a", false, 20), build_id("/b", false, 20)]);
        assert_eq!(decode(&bytes[..bytes.len() - 1]).len(), 1);
        assert_eq!(decode(&[0; 64]), []);
    }
}
