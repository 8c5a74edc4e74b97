//! The file header: which kind of file this is, and where attrs and records stand.
//!
//! In: the first 104 bytes and the length of a file. Out: a [`FileHeader`] whose extents lie within
//! the file, or the [`ReadError`] that names what it is instead.
//!
//! ```text
//!   0 "PERFILE2"                          24 u64 attrs offset, size       72 u64 flags[4]
//!   8 u64 size: 104, or 16 for a pipe     40 u64 data offset, size       104
//!  16 u64 bytes of an entry of attrs      56 u64 event types (unused)
//! ```
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt` of the kernel.

use super::bytes::Cursor;
use super::error::ReadError;

/// Bytes of the header.
pub(super) const HEADER_SIZE: u64 = 104;

const MAGIC: &[u8; 8] = b"PERFILE2";
/// What a machine of the other byte order writes for [`MAGIC`].
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
const MAGIC_FIRST_FORMAT: &[u8; 8] = b"PERFFILE";
/// `size` of the header that opens a stream.
const PIPE_HEADER_SIZE: u64 = 16;
/// An attr of the first version, and the extent of its ids.
const ENTRY_SIZE_MIN: u64 = 64 + 16;
/// Far beyond any attr to come; perf itself reads up to its own size only.
const ENTRY_SIZE_MAX: u64 = 64 * 1024;

/// Some bytes of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Extent {
    fn parse(cursor: &mut Cursor<'_>) -> Option<Extent> {
        Some(Extent { offset: cursor.u64()?, size: cursor.u64()? })
    }

    /// The first byte behind it; saturates, which no check against a file's length survives.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    /// Refuses an extent that is not within a file of `len` bytes.
    pub(super) fn within(self, len: u64, what: &'static str) -> Result<Extent, ReadError> {
        if self.size == 0 || self.end() <= len {
            return Ok(self);
        }
        Err(ReadError::OutOfFile { what, offset: self.offset, size: self.size, len })
    }

    pub(super) fn overlaps(self, other: Extent) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}

/// What the file header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Bytes of an entry of `attrs`: the attr, then the extent of its ids.
    pub(super) entry_size: u64,
    pub(super) attrs: Extent,
    /// Size 0: the recorder did not come to its end.
    pub(super) data: Extent,
    /// Which feature sections there are.
    pub(super) flags: [u64; 4],
}

impl FileHeader {
    /// Reads the header of a file of `len` bytes whose first ones are `start`.
    pub(super) fn parse(start: &[u8], len: u64) -> Result<FileHeader, ReadError> {
        let size = check_kind(start)?;
        let short = ReadError::TooShort { len: start.len() as u64, header: HEADER_SIZE };
        let mut cursor = Cursor::new(start.get(16..).unwrap_or_default());
        let header = Self::parse_fields(&mut cursor).ok_or(short)?;
        if size < HEADER_SIZE {
            return Err(ReadError::Header { field: "its size", value: size });
        }
        header.check(len)?;
        Ok(header)
    }

    fn parse_fields(cursor: &mut Cursor<'_>) -> Option<FileHeader> {
        let entry_size = cursor.u64()?;
        let (attrs, data) = (Extent::parse(cursor)?, Extent::parse(cursor)?);
        let _event_types = Extent::parse(cursor)?;
        let flags = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
        Some(FileHeader { entry_size, attrs, data, flags })
    }

    /// The rules that perf's own reader has, too.
    fn check(&self, len: u64) -> Result<(), ReadError> {
        if !(ENTRY_SIZE_MIN..=ENTRY_SIZE_MAX).contains(&self.entry_size) {
            return Err(ReadError::Header { field: "the size of an attr", value: self.entry_size });
        }
        self.attrs.within(len, "the attrs")?;
        let header = Extent { offset: 0, size: HEADER_SIZE };
        for (what, extent) in [("the attrs", self.attrs), ("the records", self.data_or_rest(len))] {
            if extent.overlaps(header) {
                return Err(ReadError::Overlap { first: "the header", second: what });
            }
        }
        if self.attrs.overlaps(self.data_or_rest(len)) {
            return Err(ReadError::Overlap { first: "the attrs", second: "the records" });
        }
        Ok(())
    }

    /// Where records can stand: all up to the end of the file when the recorder did not say.
    pub(super) fn data_or_rest(&self, len: u64) -> Extent {
        match self.data.size {
            0 => Extent { size: len.saturating_sub(self.data.offset), ..self.data },
            _ => self.data,
        }
    }

    /// Bits of the feature sections, ascending: the order of their table.
    pub(super) fn features(&self) -> impl Iterator<Item = u64> {
        let flags = self.flags;
        (0..256u64).filter(move |bit| flags[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    /// The header's 104 bytes.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_SIZE as usize);
        bytes.extend_from_slice(MAGIC);
        let fields = [HEADER_SIZE, self.entry_size];
        let extents = [self.attrs, self.data, Extent::default()];
        let numbers =
            fields.into_iter().chain(extents.into_iter().flat_map(|e| [e.offset, e.size]));
        bytes.extend(numbers.chain(self.flags).flat_map(u64::to_le_bytes));
        bytes
    }
}

/// Tells the kind of file by its first 16 bytes; gives the `size` of a perf.data header.
fn check_kind(start: &[u8]) -> Result<u64, ReadError> {
    let mut cursor = Cursor::new(start);
    match cursor.take(8) {
        Some(magic) if magic == MAGIC => {}
        Some(magic) if magic == MAGIC_SWAPPED => return Err(ReadError::BigEndian),
        Some(magic) if magic == MAGIC_FIRST_FORMAT => return Err(ReadError::FirstFormat),
        None if start.is_empty() => return Err(ReadError::Empty),
        None if MAGIC.starts_with(start) => {
            return Err(ReadError::TooShort { len: start.len() as u64, header: HEADER_SIZE });
        }
        _ => {
            let start = start.get(..8).unwrap_or(start);
            return Err(ReadError::NotPerfData {
                start: String::from_utf8_lossy(start).into_owned(),
            });
        }
    }
    match cursor.u64() {
        Some(PIPE_HEADER_SIZE) => Err(ReadError::Pipe),
        Some(size) => Ok(size),
        None => Err(ReadError::TooShort { len: start.len() as u64, header: HEADER_SIZE }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            entry_size: 144,
            attrs: Extent { offset: 104, size: 144 },
            data: Extent { offset: 248, size: 8 },
            flags: [1 << 3 | 1 << 1, 0, 0, 1 << 63],
        }
    }

    #[test]
    fn a_header_survives_the_round_trip() {
        let bytes = header().to_bytes();
        assert_eq!(bytes.len() as u64, HEADER_SIZE);
        assert_eq!(FileHeader::parse(&bytes, 256).unwrap(), header());
        assert_eq!(header().features().collect::<Vec<_>>(), [1, 3, 255]);
    }

    #[test]
    fn every_kind_of_foreign_file_has_its_own_error() {
        let pipe = [&MAGIC[..], &16u64.to_le_bytes()].concat();
        let cases: [(&[u8], &str); 7] = [
            (b"", "empty"),
            (&pipe, "stream"),
            (b"2ELIFREP\0\0\0\0\0\0\0\x68", "big-endian"),
            (b"PERFFILE\x68\0\0\0\0\0\0\0", "first format"),
            (b"PERFI", "inside its header"),
            (b"PERFILE2\x68\0\0\0\0\0\0\0", "inside its header"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "it starts with \"\\u{7f}ELF"),
        ];
        for (start, words) in cases {
            let error = FileHeader::parse(start, start.len() as u64).unwrap_err().to_string();
            assert!(error.contains(words), "{error:?} should say {words:?}");
        }
    }

    #[test]
    fn extents_that_lie_outside_or_on_each_other_are_refused() {
        type Damage = fn(&mut FileHeader);
        let damaged: [(Damage, &str); 6] = [
            (|h| h.attrs.size = u64::MAX, "not within the file"),
            (|h| h.attrs.offset = 100, "the header and the attrs overlap"),
            (|h| h.data.offset = 8, "the header and the records overlap"),
            (|h| h.data.offset = 247, "the attrs and the records overlap"),
            (|h| h.entry_size = 79, "the size of an attr is 79"),
            (|h| h.entry_size = 1 << 40, "the size of an attr is 1099511627776"),
        ];
        for (damage, words) in damaged {
            let mut header = header();
            damage(&mut header);
            let error = FileHeader::parse(&header.to_bytes(), 256).unwrap_err().to_string();
            assert!(error.contains(words), "{error:?} should say {words:?}");
        }
    }
}
