//! Names as compilers mangle them -> names as people write them.
//!
//! In: bytes of a symbol's name. Out: text of at most [`OUTPUT_LIMIT`] bytes. Rust names lose their
//! hash, C++ names their parameters and return types, glibc's lose the version after `@`. Suffixes
//! of compilers stay (`f.cold` is not where `f` begins). What is not mangled stays as it is.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// A longer mangled name is shown as it is, cut. Those of heavy C++ templates reach 10,000.
const INPUT_LIMIT: usize = 16 << 10;

/// Bytes of a name in a report at the most, without the mark that it was cut.
const OUTPUT_LIMIT: usize = 1024;

/// Parts within parts of a C++ name.
const DEPTH_LIMIT: u32 = 96;

/// The name that people know `name` by.
pub(super) fn demangle(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = without_version(&name);
    let demangled = if name.len() > INPUT_LIMIT { None } else { rust(name).or_else(|| cpp(name)) };
    demangled.unwrap_or_else(|| Text::cut(name))
}

/// `memcpy@@GLIBC_2.14` is `memcpy`.
fn without_version(name: &str) -> &str {
    let version = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    match name.split_once('@') {
        Some((bare, rest)) if !bare.is_empty() => {
            let rest = rest.strip_prefix('@').unwrap_or(rest);
            if rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.chars().all(version) {
                bare
            } else {
                name
            }
        }
        _ => name,
    }
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Text::default();
    let written = write!(text, "{demangled:#}");
    text.finish(written)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let (mangled, suffix) = name.split_at(name.find('.').unwrap_or(name.len()));
    let parse = ParseOptions::default().recursion_limit(DEPTH_LIMIT);
    let (symbol, _) = BorrowedSymbol::with_tail_and_options(mangled.as_bytes(), &parse)
        .ok()
        .filter(|(_, tail)| tail.is_empty())?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEPTH_LIMIT);
    let mut text = Text::default();
    let written = symbol.structured_demangle(&mut text, &options);
    let written = written.and_then(|()| text.write_str(suffix));
    text.finish(written)
}

/// Text that takes no more than [`OUTPUT_LIMIT`] bytes: some names of 100 bytes grow without end.
#[derive(Debug, Default)]
struct Text {
    text: String,
    full: bool,
}

impl Text {
    fn cut(name: &str) -> String {
        let mut text = Text::default();
        let written = text.write_str(name);
        text.finish(written).unwrap_or_default()
    }

    /// The text, if it was written or at least its beginning was.
    fn finish(mut self, written: fmt::Result) -> Option<String> {
        if self.full {
            self.text.push('…');
        }
        (self.full || written.is_ok()).then_some(self.text).filter(|text| !text.is_empty())
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.full {
            return Err(fmt::Error);
        }
        let room = OUTPUT_LIMIT - self.text.len();
        self.full = s.len() > room;
        let (fits, _) = s.split_at(boundary(s, room));
        self.text.push_str(fits);
        if self.full { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The end of the last character that ends at `most` bytes or before.
fn boundary(s: &str, most: usize) -> usize {
    (0..=most.min(s.len())).rev().find(|&at| s.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        let cases = [
            ("mprotect", "mprotect"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("old_name@GLIBC_2.2.5", "old_name"),
            ("name@plt", "name@plt"),
            ("example.com/mod@v1.2.f", "example.com/mod@v1.2.f"),
            ("@A", "@A"),
            ("f.cold", "f.cold"),
            ("_ZN3std2io5stdio6_print17h1234567890abcdefE", "std::io::stdio::_print"),
            ("_RNvCs4fqI2P2rA04_7mycrate4main", "mycrate::main"),
            ("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_Z3fooi", "foo"),
            ("_ZN3Foo3barEv.isra.0", "Foo::bar.isra.0"),
            ("_ZN3FooC1Ev", "Foo::Foo"),
            ("_Zgarbage", "_Zgarbage"),
            ("_Z", "_Z"),
            ("_R", "_R"),
            ("", ""),
        ];
        for (mangled, expected) in cases {
            assert_eq!(demangle(mangled.as_bytes()), expected, "{mangled}");
        }
        assert_eq!(demangle(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "é".repeat(INPUT_LIMIT);
        let cut = demangle(long.as_bytes());
        assert_eq!(cut, "é".repeat(OUTPUT_LIMIT / 2) + "…");
        let odd = demangle(format!("a{long}").as_bytes());
        assert_eq!(odd.len(), OUTPUT_LIMIT - 1 + "…".len());
    }

    /// `number` in `base`, with the digits of that mangling.
    fn digits(number: usize, base: usize) -> String {
        let all = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let digit = char::from(all[number % base]);
        if number < base { digit.into() } else { format!("{}{digit}", digits(number / base, base)) }
    }

    #[test]
    fn names_that_grow_without_end_are_cut() {
        // Each argument has the one before it twice: the last one has 2^30 numbers in it.
        let mut cpp = String::from("_Z1fI1AIiE");
        let mut rust = String::from("_RINvC1a1fm");
        let mut start = rust.len() - 3;
        for n in 1..=30 {
            let id = digits(n, 36).to_uppercase();
            cpp.push_str(&format!("S0_IS{id}_S{id}_E"));
            let back = format!("B{}_", digits(start - 1, 62));
            start = rust.len() - 2;
            rust.push_str(&format!("T{back}{back}E"));
        }
        cpp.push_str("Evv");
        rust.push('E');
        for (name, beginning) in
            [(cpp, "f<A<int>, A<A<int>, A<int> >"), (rust, "a::f::<u32, (u32, u32)")]
        {
            let cut = demangle(name.as_bytes());
            assert!(cut.starts_with(beginning) && cut.ends_with('…'), "{name}: {cut}");
            assert_eq!(cut.len(), OUTPUT_LIMIT + 3, "{cut}");
        }
    }

    #[test]
    fn deep_names_come_back_as_they_are() {
        for name in [format!("_Z1f{}i", "P".repeat(9000)), format!("_RMC0{}", "R".repeat(9000))] {
            assert!(demangle(name.as_bytes()).len() <= OUTPUT_LIMIT + 3);
        }
    }

    #[test]
    fn damaged_names_come_back_in_some_form() {
        const NAMES: [&[u8]; 4] = [
            b"_ZNSt6vectorIiSaIiEE9push_backERKi",
            b"_ZZN3FooclIJiRKSsEEEDTclfp_EET_ENKUlvE_clEv",
            b"_RINvNtC3std3mem8align_ofFG_RL0_hEuE",
            b"_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$u7b$$u7d$$GT$17h0123456789abcdefE",
        ];
        let bytes = b"_ZNIJESTLKRFGDXAC019.$\xff";
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..20_000 {
            let mut name = NAMES[round % NAMES.len()].to_vec();
            for _ in 0..1 + round % 3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let (at, byte) = (random as usize % name.len(), (random >> 32) as usize);
                name[at] = bytes[byte % bytes.len()];
            }
            let text = demangle(&name);
            assert!(!text.is_empty() && text.len() <= OUTPUT_LIMIT + 3, "{name:?}");
        }
    }
}
