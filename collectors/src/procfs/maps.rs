//! `/proc/PID/maps`: what a process has mapped where.
//!
//! ```text
//! address           perms offset  dev   inode                      pathname
//! 55d4c1a00000-55d4c1a22000 r-xp 00002000 08:02 173521             /usr/bin/dbus-daemon
//! 7ffd8f3e2000-7ffd8f3e4000 r-xp 00000000 00:00 0                  [vdso]
//! ```
//!
//! In: the file's bytes. Out: one [`Mapping`] a line, in the order of addresses. Source: `proc(5)`.

use super::{ProcError, read};

/// A mapped range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Major number of the file's device.
    pub major: u32,
    /// Minor number of the file's device.
    pub minor: u32,
    /// The file's inode; zero without a file.
    pub inode: u64,
    /// PROT_READ, PROT_WRITE and PROT_EXEC of mmap(2).
    pub protection: u32,
    /// Shared with others rather than copied on write.
    pub shared: bool,
    /// A path, a name in brackets, or empty. The kernel writes a newline in it as `\012`.
    pub name: Vec<u8>,
}

impl Mapping {
    /// Reads one line, without its newline.
    pub fn parse(line: &[u8]) -> Option<Mapping> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let (start, end) = pair(words.next()?, b'-')?;
        let (protection, shared) = permissions(words.next()?)?;
        let offset = hex(words.next()?)?;
        let (major, minor) = pair(words.next()?, b':')?;
        let inode = super::number(words.next()?)?;
        let name = words.next().unwrap_or_default().trim_ascii_start().to_vec();
        let (major, minor) = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
        Some(Mapping { start, end, offset, major, minor, inode, protection, shared, name })
    }

    /// Whether code can run there.
    pub fn is_executable(&self) -> bool {
        self.protection & libc::PROT_EXEC as u32 != 0
    }
}

fn permissions(word: &[u8]) -> Option<(u32, bool)> {
    let &[read, write, exec, sharing] = word else { return None };
    let bit = |set: bool, bit: i32| if set { bit as u32 } else { 0 };
    let protection = bit(read == b'r', libc::PROT_READ)
        | bit(write == b'w', libc::PROT_WRITE)
        | bit(exec == b'x', libc::PROT_EXEC);
    Some((protection, sharing == b's'))
}

fn pair(word: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = word.iter().position(|byte| *byte == between)?;
    Some((hex(word.get(..at)?)?, hex(word.get(at + 1..)?)?))
}

fn hex(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

/// Reads a maps file; lines that are none are left out.
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n').filter_map(Mapping::parse).collect()
}

/// The maps of a process. Kernel threads have none.
pub fn of_process(pid: i32) -> Result<Vec<Mapping>, ProcError> {
    Ok(parse(&read(format!("/proc/{pid}/maps"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55d4c1a00000-55d4c1a22000 r-xp 00002000 08:02 173521                     /usr/bin/a b (deleted)
7f2b1c000000-7f2b1c021000 rw-p 00000000 00:00 0 
7f2b1d000000-7f2b1d001000 rw-s 0001f000 fe:00 77                         /dev/shm/x
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn every_line_is_one_mapping() {
        let maps = parse(TEXT);
        let code = Mapping {
            start: 0x55d4_c1a0_0000,
            end: 0x55d4_c1a2_2000,
            offset: 0x2000,
            major: 8,
            minor: 2,
            inode: 173_521,
            protection: (libc::PROT_READ | libc::PROT_EXEC) as u32,
            shared: false,
            name: b"/usr/bin/a b (deleted)".to_vec(),
        };
        assert_eq!(maps[0], code);
        assert!(code.is_executable());
        assert_eq!((maps[1].name.as_slice(), maps[1].is_executable()), (b"".as_slice(), false));
        assert_eq!((maps[2].shared, maps[2].major, maps[2].offset), (true, 0xfe, 0x1f000));
        assert_eq!(
            (maps[3].start, maps[3].name.as_slice()),
            (0xffff_ffff_ff60_0000, b"[vsyscall]".as_slice())
        );
        assert_eq!(maps.len(), 4);
    }

    #[test]
    fn what_is_no_mapping_is_left_out() {
        for line in [
            "",
            "0-1",
            "0-1 r-xp 0 0:0",
            "x-1 r-xp 0 0:0 1 n",
            "0-1 rxp 0 0:0 1 n",
            "01 r-xp 0 0:0 1 n",
        ] {
            assert_eq!(Mapping::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn our_own_code_is_in_our_own_maps() {
        let here = parse as fn(&[u8]) -> Vec<Mapping> as usize as u64;
        let maps = of_process(rustix::process::getpid().as_raw_pid()).unwrap();
        let code = maps.iter().find(|map| (map.start..map.end).contains(&here)).unwrap();
        assert!(code.is_executable() && code.name.starts_with(b"/"));
    }
}
