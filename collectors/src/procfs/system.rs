//! The machine: kernel, CPUs, memory, clock.
//!
//! In: `/sys/devices/system`, `/sys/kernel/notes`, `/proc/cpuinfo`, `uname(2)`, `sysinfo(2)`. Out:
//! [`System`], and the parsers behind it.

use super::{ProcError, read, read_as};

/// What a recording says of its machine. Unknown strings are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// `uname -n`.
    pub hostname: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -m`.
    pub arch: String,
    /// Model name of the first CPU.
    pub cpu_model: String,
    /// CPUs that run now.
    pub cpus_online: Vec<u32>,
    /// CPUs that can come.
    pub cpus_available: u32,
    /// KiB.
    pub memory_kib: u64,
    /// The kernel's build id.
    pub kernel_build_id: Option<Vec<u8>>,
    /// A new one for each boot.
    pub boot_id: String,
    /// What the kernel reads the time from.
    pub clocksource: String,
}

impl System {
    /// This machine. Only the list of CPUs must be there.
    pub fn read() -> Result<System, ProcError> {
        let uname = rustix::system::uname();
        let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cpus_online = online_cpus()?;
        let available = read_as("/sys/devices/system/cpu/possible", parse_cpus);
        let cpus_available =
            available.map_or(cpus_online.len(), |cpus| cpus.len()).try_into().unwrap_or(u32::MAX);
        let info = rustix::system::sysinfo();
        Ok(System {
            hostname: words(uname.nodename()),
            release: words(uname.release()),
            arch: words(uname.machine()),
            cpu_model: read_as("/proc/cpuinfo", parse_cpu_model).unwrap_or_default(),
            cpus_online,
            cpus_available,
            memory_kib: info.totalram.saturating_mul(u64::from(info.mem_unit)) / 1024,
            kernel_build_id: read_as("/sys/kernel/notes", parse_build_id).ok(),
            boot_id: line_of("/proc/sys/kernel/random/boot_id"),
            clocksource: line_of(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        })
    }

    /// The clock that timestamps should be taken from, a `clockid_t`: CLOCK_MONOTONIC where it can be
    /// read from an NMI and is exact, so that records line up with other tracers and with programs'
    /// own logs; `None`, perf's own clock, elsewhere.
    pub fn clockid(&self) -> Option<i32> {
        let exact = ["tsc", "kvm-clock", "arch_sys_counter"].contains(&self.clocksource.as_str());
        exact.then_some(libc::CLOCK_MONOTONIC)
    }
}

/// CPUs that run now, in order.
pub fn online_cpus() -> Result<Vec<u32>, ProcError> {
    read_as("/sys/devices/system/cpu/online", parse_cpus)
}

fn line_of(path: &str) -> String {
    let text = read(path).unwrap_or_default();
    String::from_utf8_lossy(text.trim_ascii()).into_owned()
}

/// No kernel has more CPUs than that (CONFIG_NR_CPUS of any architecture).
const MAX_CPUS: u32 = 1 << 16;

/// Reads a list of CPUs as the kernel and taskset write it: `0-3,8,10-11`. `None` when it is empty
/// or none.
pub fn parse_cpus(text: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.trim().parse::<u32>().ok()?;
        let last = last.trim().parse::<u32>().ok()?;
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The model in `/proc/cpuinfo`: `model name` on x86, nothing on many others.
pub fn parse_cpu_model(cpuinfo: &[u8]) -> Option<String> {
    let mut lines = cpuinfo.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"model name"))?;
    let value = line.trim_ascii().strip_prefix(b":")?.trim_ascii();
    Some(String::from_utf8_lossy(value).into_owned())
}

/// NT_GNU_BUILD_ID.
const BUILD_ID_NOTE: u32 = 3;

/// Finds the build id among ELF notes:
///
/// ```text
/// u32 namesz, u32 descsz, u32 type, name padded to 4, desc padded to 4      repeated
/// ```
pub fn parse_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (head, behind) = rest.split_first_chunk::<12>()?;
        let [name_size, desc_size, kind] = [0, 4, 8]
            .map(|at| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let (name, behind) = split_padded(behind, name_size)?;
        let (desc, behind) = split_padded(behind, desc_size)?;
        if kind == BUILD_ID_NOTE && name == b"GNU\0" && !desc.is_empty() {
            return Some(desc.to_vec());
        }
        rest = behind;
    }
}

/// The first `size` bytes, and what comes after their padding to 4.
fn split_padded(bytes: &[u8], size: u32) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let taken = bytes.get(..size)?;
    let padded = size.checked_next_multiple_of(4)?.min(bytes.len());
    Some((taken, bytes.get(padded..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let cases: [(&str, Option<&[u32]>); 10] = [
            ("0\n", Some(&[0])),
            ("0-3,8,10-11\n", Some(&[0, 1, 2, 3, 8, 10, 11])),
            ("2,0-1,1", Some(&[0, 1, 2])),
            ("", None),
            ("3-1", None),
            ("0-", None),
            ("-1", None),
            ("0-99999999", None),
            ("a", None),
            ("0,,1", None),
        ];
        for (text, cpus) in cases {
            assert_eq!(parse_cpus(text.as_bytes()).as_deref(), cpus, "{text:?}");
        }
    }

    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, desc.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        for part in [name, desc] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let notes = [
            note(b"Xen\0", 6, b"linux"),
            note(b"Linux\0", 3, &[1; 4]),
            note(b"GNU\0", 3, &[7; 20]),
        ];
        assert_eq!(parse_build_id(&notes.concat()), Some(vec![7; 20]));
        assert_eq!(parse_build_id(&notes[..2].concat()), None);
    }

    #[test]
    fn notes_cut_anywhere_or_with_sizes_out_of_range_hold_no_build_id() {
        let whole = note(b"GNU\0", 3, &[7; 20]);
        for len in 0..whole.len() {
            assert_eq!(parse_build_id(&whole[..len]), None, "{len} bytes");
        }
        for at in [0, 4] {
            let mut hostile = whole.clone();
            hostile[at..at + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
            assert_eq!(parse_build_id(&hostile), None);
        }
    }

    #[test]
    fn the_cpu_model_is_that_of_the_first_cpu() {
        let text =
            b"processor\t: 0\nmodel\t\t: 85\nmodel name\t: A CPU @ 2 GHz\n\nmodel name\t: B\n";
        assert_eq!(parse_cpu_model(text).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(parse_cpu_model(b"processor\t: 0\n"), None);
    }

    #[test]
    fn the_monotonic_clock_is_used_where_it_is_exact() {
        let clockid = |clocksource: &str| {
            System { clocksource: clocksource.to_owned(), ..System::default() }.clockid()
        };
        assert_eq!(clockid("tsc"), Some(libc::CLOCK_MONOTONIC));
        assert_eq!(clockid("kvm-clock"), Some(libc::CLOCK_MONOTONIC));
        assert_eq!(clockid("hpet"), None);
        assert_eq!(clockid(""), None);
    }

    #[test]
    fn this_machine_is_described() {
        let system = System::read().unwrap();
        assert!(!system.cpus_online.is_empty() && system.memory_kib > 0);
        assert!(system.cpus_available as usize >= system.cpus_online.len());
        assert!(!system.release.is_empty() && !system.boot_id.is_empty());
    }
}
