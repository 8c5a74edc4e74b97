//! `/proc/modules`: which modules are loaded where.
//!
//! ```text
//! xfs 1875968 1 - Live 0xffffffffc0a00000
//! ```
//!
//! In: the file's bytes. Out: one [`Module`] a line; addresses are zero for who may not see them.

use super::{ProcError, number, read};

/// A loaded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, without brackets.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// First address.
    pub start: u64,
}

impl Module {
    /// Reads one line.
    pub fn parse(line: &[u8]) -> Option<Module> {
        let mut words = line.split(|byte| *byte == b' ');
        let name = String::from_utf8_lossy(words.next()?).into_owned();
        let size = number(words.next()?)?;
        let address = words.find_map(|word| word.strip_prefix(b"0x"))?;
        let start = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
        Some(Module { name, size, start })
    }
}

/// All loaded modules; none where the kernel has none or hides them.
pub fn loaded() -> Result<Vec<Module>, ProcError> {
    let text = read("/proc/modules")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(Module::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_module_and_where_it_is() {
        let module = Module::parse(b"xfs 1875968 1 - Live 0xffffffffc0a00000").unwrap();
        let expected = Module { name: "xfs".into(), size: 1_875_968, start: 0xffff_ffff_c0a0_0000 };
        assert_eq!(module, expected);
        let tainted = Module::parse(b"nv 4096 0 a,b, Live 0xffffffffc0b00000 (OE)").unwrap();
        assert_eq!(tainted.start, 0xffff_ffff_c0b0_0000);
        assert_eq!(Module::parse(b"xfs 18"), None);
        assert_eq!(Module::parse(b""), None);
    }
}
