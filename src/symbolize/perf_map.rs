//! `perf-PID.map`: the names that a JIT compiler writes for its code.
//!
//! ```text
//! START SIZE name of the function       START and SIZE in hex; the name is the rest of the line
//! ```
//!
//! (tools/perf/Documentation/jit-interface.txt.) A later line is newer than an earlier one. Lines of
//! another form are passed over. The file lies where everyone may write, so its owner is checked.

use std::path::Path;

use super::Reason;
use super::image::Image;
use super::table::{Span, Table};

/// Reads the map of process `pid` in `directory`.
pub(super) fn load(directory: &Path, pid: i32) -> Result<Table, Reason> {
    let image = Image::open_own(&directory.join(format!("perf-{pid}.map")))?;
    Ok(parse(image.read(0, image.len())?))
}

fn parse(text: Vec<u8>) -> Table {
    let mut spans = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        // Of two lines for one address the later one counts.
        let rank = u32::MAX - (spans.len() as u32);
        spans.extend(span(line, at, rank));
        at += line.len();
    }
    Table::new(spans, text)
}

/// The span of `line`, which stands at `at` in the text.
fn span(line: &[u8], at: usize, rank: u32) -> Option<Span> {
    let space = |from: usize| Some(from + line.get(from..)?.iter().position(|&b| b == b' ')?);
    let first = space(0)?;
    let second = space(first + 1)?;
    let start = hex(line.get(..first)?)?;
    let size = hex(line.get(first + 1..second)?)?;
    let end = start.checked_add(size).filter(|&end| end > start)?;
    Some(Span { start, end, name: u32::try_from(at + second + 1).ok()?, rank })
}

fn hex(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const MAP: &[u8] = b"1000 10 old name\n\
        0x1000 20 new name\n\
        2000 0 empty\n\
        zz 10 no number\n\
        ffffffffffffffff 10 past the end\n\
        3000 10\n\
        3000 10 \n\
        +4000 10 sign\n\
        5000 10 the last, without a line feed";

    fn name(table: &Table, addr: u64) -> Option<String> {
        table.find(addr).map(|index| String::from_utf8_lossy(table.name(index)).into_owned())
    }

    #[test]
    fn the_newest_name_of_an_address_counts() {
        let table = parse(MAP.to_vec());
        let cases = [
            (0x1000, Some("new name")),
            (0x101f, Some("new name")),
            (0x1020, None),
            (0x2000, None),
            (0x3000, None),
            (0x500f, Some("the last, without a line feed")),
        ];
        for (addr, expected) in cases {
            assert_eq!(name(&table, addr).as_deref(), expected, "{addr:#x}");
        }
    }

    #[test]
    fn any_bytes_are_a_map() {
        for cut in 0..MAP.len() {
            let table = parse(MAP[cut..].to_vec());
            assert!(table.len() <= 3);
        }
        assert_eq!(parse(vec![b' '; 100]).len(), 0);
    }

    #[test]
    fn only_a_plain_file_of_this_user_or_root_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |pid: i32| directory.path().join(format!("perf-{pid}.map"));
        std::fs::write(path(1), MAP).unwrap();
        symlink(path(1), path(2)).unwrap();
        std::fs::create_dir(path(3)).unwrap();
        assert_eq!(load(directory.path(), 1).unwrap().len(), 2);
        assert_eq!(load(directory.path(), 2).unwrap_err(), Reason::ForeignPerfMap);
        assert_eq!(load(directory.path(), 3).unwrap_err(), Reason::ForeignPerfMap);
        assert_eq!(load(directory.path(), 4).unwrap_err(), Reason::NoPerfMap);
        if chown(path(1), Some(12345), None).is_err() {
            println!("skipped: a file of another user (only root can make one)");
            return;
        }
        assert_eq!(load(directory.path(), 1).unwrap_err(), Reason::ForeignPerfMap);
    }
}
