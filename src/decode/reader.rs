//! A cursor over a record's bytes that cannot run past their end.

/// What is left of a record.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    #[inline]
    pub(super) fn i32(&mut self) -> Option<i32> {
        self.u32().map(|value| value as i32)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Option<u16> {
        let (head, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*head))
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// The next `count` words of 8 bytes, with `count` taken from the record itself.
    #[inline]
    pub(super) fn words(&mut self, count: u64) -> Option<&'a [u8]> {
        let len = usize::try_from(count).ok()?.checked_mul(8)?;
        self.take(len)
    }

    /// The bytes up to a NUL, or all of them.
    pub(super) fn string(self) -> &'a [u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// The little-endian unsigned number of 1, 2, 4 or 8 bytes at `offset`.
#[inline]
pub(super) fn unsigned(bytes: &[u8], offset: u16, size: u16) -> Option<u64> {
    let field = bytes.get(usize::from(offset)..)?;
    Some(match size {
        1 => u64::from(*field.first()?),
        2 => u64::from(u16::from_le_bytes(*field.first_chunk()?)),
        4 => u64::from(u32::from_le_bytes(*field.first_chunk()?)),
        8 => u64::from_le_bytes(*field.first_chunk()?),
        _ => return None,
    })
}
