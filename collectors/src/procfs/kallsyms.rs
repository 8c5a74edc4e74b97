//! Kernel symbols: `/proc/kallsyms`, and copies of it in recordings and perf's build-id cache.
//!
//! ```text
//! ffffffff81000000 T _text
//! ffffffff811f2a50 t rwsem_wake.isra.0
//! ffffffffc0a13000 t xfs_buf_lock<tab>[xfs]
//! ```
//!
//! In: the text. Out: one [`Symbol`] a line; lines that are not of that form are passed over.

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// 0 when the reader had no right to see it.
    pub addr: u64,
    /// nm(1)'s letter: `T t W w` text, `B b D d R r V v` data, `A a` absolute, upper case global.
    pub kind: u8,
    /// As the linker wrote it, suffixes of the compiler included.
    pub name: &'a str,
    /// The module, without brackets; `bpf` and `__builtin__ftrace` are such names too.
    pub module: Option<&'a str>,
}

/// The symbols of `text`, in its order, which need not be that of the addresses.
pub fn symbols(text: &[u8]) -> impl Iterator<Item = Symbol<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(symbol)
}

fn symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let digits = line.iter().position(|&byte| byte == b' ')?;
    let addr = hexadecimal(&line[..digits])?;
    let [b' ', kind, b' ', rest @ ..] = &line[digits..] else { return None };
    let name_len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(name_len);
    if name.is_empty() || !kind.is_ascii_alphabetic() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    Some(Symbol { addr, kind: *kind, name, module: module(rest) })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// `[xfs]` after the white space that follows a name.
fn module(rest: &[u8]) -> Option<&str> {
    let name = rest.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(line: &str) -> Option<Symbol<'_>> {
        symbols(line.as_bytes()).next()
    }

    #[test]
    fn a_line_has_address_kind_name_and_perhaps_a_module() {
        let core = first("ffffffff811f2a50 t rwsem_wake.isra.0\n");
        let expected = Symbol {
            addr: 0xffff_ffff_811f_2a50,
            kind: b't',
            name: "rwsem_wake.isra.0",
            module: None,
        };
        assert_eq!(core, Some(expected));
        let module = first("ffffffffc0a13000 T xfs_buf_lock\t[xfs]").unwrap();
        assert_eq!((module.name, module.module), ("xfs_buf_lock", Some("xfs")));
        // perf's cache keeps the blank of very old kernels.
        assert_eq!(first("c0a13000 t foo \t[bar]").unwrap().module, Some("bar"));
    }

    #[test]
    fn lines_of_another_form_are_passed_over() {
        for line in [
            "",
            " ",
            "ffffffff81000000",
            "ffffffff81000000 T",
            "ffffffff81000000 T ",
            "xyz T foo",
            "1ffffffff81000000 T seventeen_digits",
            "ffffffff81000000 TT foo",
            "ffffffff81000000  T foo",
        ] {
            assert_eq!(first(line), None, "{line:?}");
        }
        let text = b"\xff\xfe garbage\n0000000000000001 T good\n0000000000000002 T \xff\n";
        assert_eq!(symbols(text).map(|s| s.name).collect::<Vec<_>>(), ["good"]);
    }
}
