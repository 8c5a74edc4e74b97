//! One name for all the variants that compilers make of a function.
//!
//! GCC and LLVM write `foo.isra.0`, `foo.constprop.1.cold`, `foo.llvm.1234`; objtool and KCFI put
//! `__pfx_foo` and `__cfi_foo` in front of a function; ppc64's first ABI writes `.foo`; perf's
//! text output adds `+0x1f`. In: any of these. Out: `foo`.

/// Suffixes that stand alone or have a number after them: `.cold`, `.cold.3`.
const WITH_OR_WITHOUT_NUMBER: [&str; 6] =
    ["isra", "constprop", "part", "cold", "clone", "localalias"];
/// Suffixes that have a number or hash after them.
const WITH_NUMBER: [&str; 3] = ["llvm", "lto_priv", "__uniq"];
/// Prefixes of padding in front of a function, which runs as part of no other.
const PADDING: [&str; 2] = ["__pfx_", "__cfi_"];

/// The name that `name` is a variant of; `name` itself when it is none.
///
/// Never empty unless `name` is.
pub fn fold(name: &str) -> &str {
    // Nearly all names are their own: one look at each byte tells.
    let marked =
        name.bytes().fold(false, |marked, byte| marked | matches!(byte, b'.' | b'+' | b']'));
    if !marked { without_padding(name) } else { fold_marked(name) }
}

fn without_padding(name: &str) -> &str {
    let stripped = PADDING.iter().find_map(|prefix| name.strip_prefix(prefix));
    stripped.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

fn fold_marked(name: &str) -> &str {
    let name = match name.rsplit_once("+0x") {
        Some((function, offset)) if !function.is_empty() && is_offset(offset) => function,
        _ => name,
    };
    let name = name.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or(name);
    let mut name = without_padding(name);
    while let Some(shorter) = without_suffix(name) {
        name = shorter;
    }
    name
}

/// `1f`, or `1f/0x30` with the length of the function.
fn is_offset(text: &str) -> bool {
    let offset = text.split_once("/0x").map_or(text, |(offset, _)| offset);
    !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn without_suffix(name: &str) -> Option<&str> {
    // Flame graph scripts mark kernel frames `_[k]`, and `_[j]`, `_[i]` in their own output.
    if let Some(bare) = ["_[k]", "_[j]", "_[i]"].iter().find_map(|mark| name.strip_suffix(mark)) {
        return (!bare.is_empty()).then_some(bare);
    }
    let (head, last) = name.rsplit_once('.')?;
    if WITH_OR_WITHOUT_NUMBER.contains(&last) || last == "cfi_jt" {
        return (!head.is_empty()).then_some(head);
    }
    let numbered = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (head, word) = head.rsplit_once('.').filter(|_| numbered)?;
    let known = WITH_OR_WITHOUT_NUMBER.contains(&word) || WITH_NUMBER.contains(&word);
    (known && !head.is_empty()).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn variants_fold_into_their_function() {
        for (variant, function) in [
            ("down_read", "down_read"),
            ("rwsem_wake.isra.0", "rwsem_wake"),
            ("__mutex_lock.constprop.0", "__mutex_lock"),
            ("slab_update_freelist.constprop.0.isra.0", "slab_update_freelist"),
            ("bad_area_nosemaphore.cold", "bad_area_nosemaphore"),
            ("foo.cold.12", "foo"),
            ("foo.part.3.cold", "foo"),
            ("schedule.clone.27", "schedule"),
            ("futex_wait.llvm.9f3a0c117c5512de", "futex_wait"),
            ("ext4_find_extent.lto_priv.0", "ext4_find_extent"),
            ("binder_alloc.__uniq.2751.llvm.88", "binder_alloc"),
            ("do_exit.cfi_jt", "do_exit"),
            ("osq_lock_[k]", "osq_lock"),
            (".schedule", "schedule"),
            (".slowpath", "slowpath"),
            ("__pfx_mutex_lock", "mutex_lock"),
            ("__pfx_rwsem_wake.isra.0", "rwsem_wake"),
            ("__cfi_mutex_lock", "mutex_lock"),
            ("up_write+0x1f", "up_write"),
            ("up_write.isra.0+0x1f/0x30", "up_write"),
        ] {
            assert_eq!(fold(variant), function, "{variant}");
        }
    }

    #[test]
    fn other_dots_and_empty_names_stay() {
        for name in [
            "",
            ".",
            "..",
            ".isra.0",
            "foo.0",
            "foo.bar",
            "__func__.5",
            "foo.isra.",
            "foo.llvm",
            "__pfx_",
            "+0x10",
            "a+0x",
            "a+0xzz",
            "_RNvCs1234_6kernel5print",
        ] {
            let folded = fold(name);
            let expected = if name == ".." { "." } else { name };
            let expected = if name == ".isra.0" { "isra.0" } else { expected };
            assert_eq!(folded, expected, "{name}");
        }
    }
}
