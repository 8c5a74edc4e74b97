//! A callchain: instruction pointers, innermost first, with marks between kernel and user part.
//!
//! ```text
//! u64 nr; u64 ips[nr]        ips: PERF_CONTEXT_KERNEL k0 k1 ... PERF_CONTEXT_USER u0 u1 ...
//! ```

use lockprof_collectors::perf::record::context;

use crate::model::StackId;

/// The two parts of a callchain as they stand in the record: 8 bytes an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callchain<'a> {
    /// Kernel addresses, innermost first.
    pub kernel: &'a [u8],
    /// User addresses, innermost first.
    pub user: &'a [u8],
    /// Whether a mark that the kernel does not use follows: a walk along frame pointers that had
    /// gone astray in user memory.
    pub astray: bool,
}

/// A callchain that nobody has looked at, as it stands in the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawChain<'a> {
    /// Addresses and marks, 8 bytes each.
    pub bytes: &'a [u8],
    /// The id of its kernel part; [`StackId::EMPTY`] where there is none and where nobody wants it.
    pub stack: StackId,
}

impl<'a> RawChain<'a> {
    /// Splits it at its marks; parts of guests and hypervisors are left out.
    #[inline]
    pub fn split(self) -> Callchain<'a> {
        let mut chain = Callchain::default();
        let (mut mark, mut rest) = (context::KERNEL, self.bytes.as_chunks::<8>().0);
        loop {
            let next = rest.iter().position(|word| u64::from_le_bytes(*word) >= context::MAX);
            let (part, marked) = rest.split_at(next.unwrap_or(rest.len()));
            match mark {
                context::KERNEL if chain.kernel.is_empty() => chain.kernel = part.as_flattened(),
                context::USER if chain.user.is_empty() => chain.user = part.as_flattened(),
                _ => {}
            }
            let Some((word, behind)) = marked.split_first() else { return chain };
            (mark, rest) = (u64::from_le_bytes(*word), behind);
            chain.astray |= !is_mark(mark);
        }
    }
}

fn is_mark(word: u64) -> bool {
    matches!(
        word,
        context::HV
            | context::KERNEL
            | context::USER
            | context::USER_DEFERRED
            | context::GUEST
            | context::GUEST_KERNEL
            | context::GUEST_USER
    )
}

/// The addresses in `bytes`.
pub(crate) fn words(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + '_ {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ips: &[u64]) -> Vec<u8> {
        ips.iter().flat_map(|ip| ip.to_le_bytes()).collect()
    }

    fn split(bytes: &[u8]) -> Callchain<'_> {
        RawChain { bytes, ..RawChain::default() }.split()
    }

    #[test]
    fn kernel_and_user_part_are_told_apart_by_their_marks() {
        let ips = bytes(&[context::KERNEL, 1, 2, context::USER, 3]);
        let chain = split(&ips);
        assert_eq!(words(chain.kernel).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(words(chain.user).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_chain_may_have_one_part_or_none() {
        assert_eq!(split(&[]), Callchain::default());
        let ips = bytes(&[context::USER, 3, 4]);
        let chain = split(&ips);
        assert_eq!((chain.kernel.len(), chain.user.len()), (0, 16));
        let ips = bytes(&[context::GUEST_KERNEL, 9, context::KERNEL]);
        assert_eq!(split(&ips), Callchain::default());
    }

    #[test]
    fn a_value_among_the_marks_that_is_none_ends_the_part_and_is_told() {
        let ips = bytes(&[context::KERNEL, 1, context::USER, 2, u64::MAX, 3]);
        let chain = split(&ips);
        assert_eq!((chain.kernel.len(), chain.user.len(), chain.astray), (8, 8, true));
    }
}
