//! A callchain -> the caller that perf takes it for: a key and a name.
//!
//! ```text
//! chain      k0 k1 k2 ... u0 u1 ...      kernel frames, then user frames, marks left out
//! walked     the first `max_stack`, without the first `skip` of them and without lock functions
//! key        hash(k1) ^ hash(k2) ^ ...   32 bits; order does not matter, equal frames cancel
//! name       the first kernel frame walked that has a symbol
//! ```
//!
//! User frames are in the key: one call site has as many keys as it has callers in user space.

use crate::decode::{Callchain, words};
use crate::kernel::Kernel;

/// How far perf looks into a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Frames looked at, kernel and user together: `--max-stack`.
    pub max_stack: usize,
    /// Frames passed over at the innermost end: `--stack-skip`.
    pub stack_skip: usize,
}

impl Default for Walk {
    /// perf's depth, and no frame skipped.
    fn default() -> Walk {
        Walk { max_stack: 8, stack_skip: 0 }
    }
}

/// What a callchain says of the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Caller {
    /// perf's key.
    pub(super) key: u64,
    /// The key of the kernel frames alone.
    pub(super) kernel_key: u64,
    /// The frame that names it.
    pub(super) addr: Option<u64>,
}

impl Walk {
    pub(super) fn caller(self, chain: Callchain<'_>, kernel: &Kernel) -> Caller {
        let mut caller = Caller::default();
        if self.gives_up(chain) {
            return caller;
        }
        let kernel_frames = words(chain.kernel).map(|addr| (addr, true));
        let user_frames = words(chain.user).map(|addr| (addr, false));
        let frames = kernel_frames.chain(user_frames).take(self.max_stack).skip(self.stack_skip);
        for (addr, in_kernel) in frames {
            if in_kernel && kernel.in_lock_text(addr) {
                continue;
            }
            let hash = hash(addr);
            caller.key ^= hash;
            if in_kernel {
                caller.kernel_key ^= hash;
                if caller.addr.is_none() && kernel.symbol(addr).is_some() {
                    caller.addr = Some(addr);
                }
            }
        }
        caller
    }

    /// perf throws a chain away as a whole when it meets a mark that it does not know.
    fn gives_up(self, chain: Callchain<'_>) -> bool {
        chain.astray && (chain.kernel.len() + chain.user.len()) / 8 < self.max_stack
    }
}

/// The kernel's multiplicative hash (`GOLDEN_RATIO_64`, `include/linux/hash.h`), of which perf keeps
/// the lower half: addresses that are equal in their lower 32 bits are one frame.
fn hash(addr: u64) -> u64 {
    addr.wrapping_mul(0x61C8_8646_80B5_83EB) & 0xffff_ffff
}

/// `symbol+0xoffset`, unfolded as perf prints it; `Unknown` without a frame that has a symbol.
pub(super) fn name(addr: Option<u64>, kernel: &Kernel) -> String {
    match addr.and_then(|addr| kernel.symbol(addr)) {
        Some((symbol, offset)) => format!("{symbol}+{offset:#x}"),
        None => "Unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &[u8] = b"ffffffff81000000 T caller\n\
        ffffffff81001000 T other\n\
        ffffffff81002000 T __sched_text_start\n\
        ffffffff81002000 T down_write\n\
        ffffffff81003000 T __sched_text_end\n\
        ffffffff81003000 T __lock_text_start\n\
        ffffffff81003000 T _raw_spin_lock\n\
        ffffffff81004000 T __lock_text_end\n";
    const CALLER: u64 = 0xffff_ffff_8100_0010;
    const OTHER: u64 = 0xffff_ffff_8100_1020;
    const DOWN_WRITE: u64 = 0xffff_ffff_8100_2030;
    const SPIN_LOCK: u64 = 0xffff_ffff_8100_3040;

    fn caller(walk: Walk, kernel: &[u64], user: &[u64], astray: bool) -> Caller {
        let bytes = |ips: &[u64]| ips.iter().flat_map(|ip| ip.to_le_bytes()).collect::<Vec<u8>>();
        let (kernel, user) = (bytes(kernel), bytes(user));
        let chain = Callchain { kernel: &kernel, user: &user, astray };
        walk.caller(chain, &Kernel::from_kallsyms(KALLSYMS))
    }

    #[test]
    fn lock_functions_are_neither_in_the_key_nor_the_name() {
        let with = caller(Walk::default(), &[SPIN_LOCK, DOWN_WRITE, CALLER, OTHER], &[], false);
        let without = caller(Walk::default(), &[CALLER, OTHER], &[], false);
        assert_eq!(with, without);
        assert_eq!(with.addr, Some(CALLER));
        assert_eq!(name(with.addr, &Kernel::from_kallsyms(KALLSYMS)), "caller+0x10");
    }

    #[test]
    fn user_frames_split_a_caller_and_kernel_keys_tell_so() {
        let a = caller(Walk::default(), &[CALLER], &[0x1000], false);
        let b = caller(Walk::default(), &[CALLER], &[0x2000], false);
        assert_ne!(a.key, b.key);
        assert_eq!((a.kernel_key, a.addr), (b.kernel_key, b.addr));
    }

    #[test]
    fn frames_in_another_order_are_the_same_key_and_equal_frames_cancel() {
        let key = |frames: &[u64]| caller(Walk::default(), frames, &[], false).key;
        assert_eq!(key(&[CALLER, OTHER]), key(&[OTHER, CALLER]));
        assert_eq!(key(&[CALLER, OTHER, OTHER]), key(&[CALLER]));
    }

    #[test]
    fn frames_that_differ_above_bit_31_only_are_one() {
        let key = |user: u64| caller(Walk::default(), &[CALLER], &[user], false).key;
        assert_eq!(key(0x4f_0000_0400), key(0x50_0000_0400));
        assert_ne!(key(0x4f_0000_0400), key(0x4f_0000_0401));
    }

    #[test]
    fn skipped_frames_count_as_looked_at() {
        let walk = Walk { max_stack: 2, stack_skip: 1 };
        let key = caller(walk, &[SPIN_LOCK, CALLER, OTHER], &[], false);
        assert_eq!(key, caller(Walk::default(), &[CALLER], &[], false));
    }

    #[test]
    fn a_chain_gone_astray_is_no_caller_only_when_perf_gets_that_far() {
        let walk = Walk { max_stack: 3, stack_skip: 0 };
        assert_eq!(caller(walk, &[CALLER], &[0x1000], true), Caller::default());
        assert_ne!(caller(walk, &[CALLER, OTHER], &[0x1000], true), Caller::default());
        assert_eq!(name(None, &Kernel::default()), "Unknown");
    }
}
