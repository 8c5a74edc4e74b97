//! The vdso of this process: an ELF image that the kernel keeps in no file.
//!
//! Out: its bytes, read through /proc/self/mem. It is the recorded one when the build ids say so.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Reason;
use super::image::Image;

/// Real ones have two to four pages.
const SIZE_LIMIT: u64 = 1 << 20;

/// The vdso of this process.
pub(super) fn own() -> Result<Image, Reason> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|_| Reason::NoFile)?;
    let (start, end) = range(&maps).ok_or(Reason::NoFile)?;
    let size = end.checked_sub(start).filter(|&size| size <= SIZE_LIMIT).ok_or(Reason::NoFile)?;
    let mut bytes = vec![0; size as usize];
    let memory = File::open("/proc/self/mem").map_err(|_| Reason::Unreadable)?;
    memory.read_exact_at(&mut bytes, start).map_err(|_| Reason::Unreadable)?;
    Ok(Image::Memory(bytes))
}

/// `7ffe3b9d2000-7ffe3b9d4000 r-xp 00000000 00:00 0    [vdso]`
fn range(maps: &str) -> Option<(u64, u64)> {
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}
