//! Little-endian numbers and strings, read from and written to the bytes of a section.
//!
//! In: the bytes of one section. Out: values, or `None` where the bytes end too early; nothing here
//! allocates more than the bytes that are really there.
//!
//! ```text
//! perf's string: u32 len | len bytes: the text, then zeros    (len is a multiple of 64, NUL counted)
//! ```

/// Takes values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor(bytes)
    }

    /// Bytes that were not taken yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Text up to its NUL, which is taken too.
    pub(super) fn c_string(&mut self) -> Option<String> {
        let len = self.0.iter().position(|&byte| byte == 0)?;
        let text = text(self.take(len as u64)?);
        self.u8()?;
        Some(text)
    }

    /// perf's string with its length in front.
    pub(super) fn perf_string(&mut self) -> Option<String> {
        let len = self.u32()?;
        Some(text(self.take(len.into())?))
    }

    /// Numbers up to the end; a rest of less than 8 bytes is left.
    pub(super) fn u64s(&mut self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.0.len() / 8);
        numbers.extend(std::iter::from_fn(|| self.u64()));
        numbers
    }
}

/// Bytes up to the first NUL; what is no UTF-8 becomes U+FFFD.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or(bytes)).into_owned()
}

/// Appends `text` as [`Cursor::perf_string`] reads it.
pub(super) fn put_perf_string(into: &mut Vec<u8>, text: &str) {
    let padded = (text.len() + 1).next_multiple_of(64);
    into.extend((padded as u32).to_le_bytes());
    put_padded(into, text.as_bytes(), padded);
}

/// Appends `bytes`, then zeros up to `padded` bytes in all.
pub(super) fn put_padded(into: &mut Vec<u8>, bytes: &[u8], padded: usize) {
    let end = into.len() + padded.max(bytes.len());
    into.extend_from_slice(bytes);
    into.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_string_survives_the_round_trip() {
        for (written, bytes) in [("", 68), ("lock:contention_begin", 68), (&*"x".repeat(64), 132)] {
            let mut buffer = Vec::new();
            put_perf_string(&mut buffer, written);
            assert_eq!(buffer.len(), bytes);
            let mut cursor = Cursor::new(&buffer);
            assert_eq!(cursor.perf_string().as_deref(), Some(written));
            assert!(cursor.rest().is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_bytes_gives_nothing() {
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, b'a']).perf_string(), None);
        assert_eq!(Cursor::new(b"no end").c_string(), None);
        assert_eq!(Cursor::new(&[1, 2, 3]).u32(), None);
        assert_eq!(Cursor::new(&[1]).take(u64::MAX), None);
    }

    #[test]
    fn text_that_is_not_utf8_is_kept_readable() {
        assert_eq!(Cursor::new(b"a\xffb\0c").c_string().as_deref(), Some("a\u{fffd}b"));
    }
}
