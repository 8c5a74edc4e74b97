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

/// The symbols of `text`, in its order, which need not be that of the addresses. Each byte is looked at
/// as seldom as can be: a machine has 100,000 to 200,000 lines, and the user waits.
pub fn symbols(text: &[u8]) -> impl Iterator<Item = Symbol<'_>> {
    // All of it at once: a kernel's names are plain ASCII. Bytes that are no text end their line.
    text.utf8_chunks().flat_map(|chunk| Lines(chunk.valid())).flatten()
}

/// The symbol of each line, if it has one.
struct Lines<'a>(&'a str);

impl<'a> Iterator for Lines<'a> {
    type Item = Option<Symbol<'a>>;

    fn next(&mut self) -> Option<Option<Symbol<'a>>> {
        if self.0.is_empty() {
            return None;
        }
        let (symbol, rest) = next_line(self.0);
        self.0 = rest;
        Some(symbol)
    }
}

/// The first line's symbol, and what follows the line.
fn next_line(text: &str) -> (Option<Symbol<'_>>, &str) {
    let Some((addr, kind, rest)) = address_and_kind(text) else {
        return (None, split_at_byte(text, |byte| byte == b'\n').1.get(1..).unwrap_or_default());
    };
    let (name, rest) = split_at_byte(rest, |byte| byte <= b' ');
    let (tail, rest) = split_at_byte(rest, |byte| byte == b'\n');
    let symbol = Symbol { addr, kind, name, module: module(tail) };
    (Some(symbol).filter(|_| !name.is_empty()), rest.get(1..).unwrap_or_default())
}

/// Splits in front of an ASCII byte, which no character has in its middle.
fn split_at_byte(text: &str, stop: impl Fn(u8) -> bool) -> (&str, &str) {
    let at = text.bytes().position(stop).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or_default()
}

/// `ffffffff81000000 T `, and what follows.
fn address_and_kind(line: &str) -> Option<(u64, u8, &str)> {
    let bytes = line.as_bytes();
    let (addr, digits) = address_of_64_bits(bytes).or_else(|| address(bytes))?;
    let [b' ', kind, b' ', ..] = bytes.get(digits..)? else { return None };
    kind.is_ascii_alphabetic().then_some((addr, *kind, line.get(digits + 3..)?))
}

/// The value of 16 digits, which nearly all addresses have; a seventeenth is no blank.
#[inline]
fn address_of_64_bits(line: &[u8]) -> Option<(u64, usize)> {
    // Digits are random: a table costs less than branches that cannot be predicted.
    let digits = line.first_chunk::<16>()?.map(|byte| DIGITS[usize::from(byte)]);
    let all = digits.iter().fold(0, |all, digit| all | digit);
    let addr = digits.iter().fold(0u64, |addr, &digit| addr << 4 | u64::from(digit));
    (all != NO_DIGIT).then_some((addr, 16))
}

/// The value of the digits in front, and how many they are: 1 to 16.
fn address(line: &[u8]) -> Option<(u64, usize)> {
    let values = line.iter().map(|&byte| DIGITS[usize::from(byte)]);
    let digits = values.take_while(|&digit| digit != NO_DIGIT);
    let (addr, count) =
        digits.take(17).fold((0u64, 0), |(addr, n), digit| (addr << 4 | u64::from(digit), n + 1));
    (1..=16).contains(&count).then_some((addr, count))
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
fn module(rest: &str) -> Option<&str> {
    let name = rest.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
    Some(name).filter(|name| !name.is_empty())
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
