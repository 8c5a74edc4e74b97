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
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (symbol, after) = next_line(rest);
            rest = after;
            if symbol.is_some() {
                return symbol;
            }
        }
        None
    })
}

/// The first line's symbol, and what follows the line. Every byte is looked at once: a machine
/// has 100,000 to 200,000 lines, and the user waits.
fn next_line(text: &[u8]) -> (Option<Symbol<'_>>, &[u8]) {
    let Some((addr, kind, rest)) = address_and_kind(text) else {
        return (None, split_at_byte(text, |byte| byte == b'\n').1.get(1..).unwrap_or_default());
    };
    let (name, rest) = split_at_byte(rest, |byte| byte <= b' ');
    let (tail, rest) = split_at_byte(rest, |byte| byte == b'\n');
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
    let symbol = name.map(|name| Symbol { addr, kind, name, module: module(tail) });
    (symbol, rest.get(1..).unwrap_or_default())
}

fn split_at_byte(text: &[u8], stop: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&byte| stop(byte)).unwrap_or(text.len()))
}

/// `ffffffff81000000 T `, and what follows.
fn address_and_kind(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let mut addr = 0u64;
    let mut digits = 0;
    // Digits are random: a table costs less than branches that cannot be predicted.
    while let Some(&byte) = line.get(digits) {
        let digit = DIGITS[usize::from(byte)];
        if digit == NO_DIGIT {
            break;
        }
        addr = addr << 4 | u64::from(digit);
        digits += 1;
        if digits > 16 {
            return None;
        }
    }
    let [b' ', kind, b' ', rest @ ..] = line.get(digits..)? else { return None };
    (digits > 0 && kind.is_ascii_alphabetic()).then_some((addr, *kind, rest))
}

const NO_DIGIT: u8 = 0xff;
/// The value of each byte as a hexadecimal digit.
const DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let value = digit as u8;
        values[b"0123456789abcdef"[digit] as usize] = value;
        values[b"0123456789ABCDEF"[digit] as usize] = value;
        digit += 1;
    }
    values
};

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
