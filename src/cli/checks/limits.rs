//! What there is enough of, or not: memory to lock, open files, room on the disk.
//!
//! In: [`Facts`]. Out: [`Check`]s.

use lockprof_collectors::perf::plan::DEFAULT_RING_PAGES;

use super::{Check, Facts};
use crate::render::units;

/// Events of `record` on each CPU: three of contention, three of sched, CPU samples, sideband, the owners of
/// the rings.
const EVENTS_A_CPU: u64 = 10;
/// Rings on each CPU: one for wakings and switches (`Lane::Flood`), one for everything else.
const RINGS_A_CPU: u64 = 2;
/// Files that are open besides: the recording, `/proc`, the workload's gate, events opened on trial.
const OTHER_FILES: u64 = 32;

const MIB: u64 = 1 << 20;
/// Below that a recording may end early: a few minutes of a busy machine.
const DISK_LITTLE: u64 = 1024 * MIB;
/// Below that not even its symbols fit.
const DISK_NONE: u64 = 8 * MIB;

/// Pages of rings that each user may lock, as the kernel counts them (`perf_mmap` in
/// `kernel/events/core.c`): `perf_event_mlock_kb` for each CPU, RLIMIT_MEMLOCK once.
pub(super) fn locked_memory(facts: &Facts) -> Check {
    const NAME: &str = "locked memory";
    let unlimited = facts.permissive() || facts.capabilities.is_some_and(|own| own.ipc_lock());
    let needed = rings(facts, DEFAULT_RING_PAGES);
    let (true, Some(allowed)) = (!unlimited, allowed(facts)) else {
        return Check::ok(NAME, format!("rings of {}, without limit", kib(needed)));
    };
    let found = format!("rings of {}, {} allowed", kib(needed), kib(allowed));
    if needed <= allowed {
        return Check::ok(NAME, found);
    }
    // `record` takes smaller rings, unless `-m` asks for a size; they lose more.
    Check::warn(NAME, found, more_memory(facts).join("\n"))
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", units::count(bytes / 1024))
}

/// Bytes of all rings; each has a page of state besides its data.
fn rings(facts: &Facts, pages: usize) -> u64 {
    let each = (pages as u64 + 1).saturating_mul(facts.page_size as u64);
    each.saturating_mul(RINGS_A_CPU * facts.cpus.len() as u64)
}

fn allowed(facts: &Facts) -> Option<u64> {
    let each_cpu = u64::try_from(facts.sysctls.perf_event_mlock_kb.unwrap_or(0)).unwrap_or(0);
    let of_rings = each_cpu.saturating_mul(1024).saturating_mul(facts.cpus.len() as u64);
    Some(of_rings.saturating_add(facts.memlock?))
}

/// The largest ring that is allowed on every CPU.
fn fitting_pages(facts: &Facts) -> Option<usize> {
    let allowed = allowed(facts)?;
    let sizes = std::iter::successors(Some(DEFAULT_RING_PAGES), |pages| Some(pages / 2));
    sizes.take_while(|&pages| pages > 0).find(|&pages| rings(facts, pages) <= allowed)
}

/// What to type when rings are too large: smaller ones, or a larger allowance.
pub(super) fn more_memory(facts: &Facts) -> Vec<String> {
    let smaller = fitting_pages(facts).filter(|&pages| pages < DEFAULT_RING_PAGES);
    let smaller = smaller.map(|pages| format!("lockprof record -m {pages} ..."));
    let kib = RINGS_A_CPU as usize * (DEFAULT_RING_PAGES + 1) * facts.page_size / 1024;
    let larger = format!("sudo sysctl kernel.perf_event_mlock_kb={kib}");
    smaller.into_iter().chain([larger]).collect()
}

pub(super) fn open_files(facts: &Facts) -> Check {
    const NAME: &str = "open files";
    let needed = files(facts);
    let Some(limit) = facts.nofile else {
        return Check::ok(NAME, format!("{} are needed, without limit", units::count(needed)));
    };
    let cpus = units::counted(facts.cpus.len() as u64, "CPU");
    let limit_words = units::count(limit);
    let found = format!("{} are needed on {cpus}, {limit_words} allowed", units::count(needed));
    if needed <= limit {
        Check::ok(NAME, found)
    } else {
        Check::fail(NAME, found, more_files(facts))
    }
}

/// Files that a recording of the whole machine opens.
fn files(facts: &Facts) -> u64 {
    EVENTS_A_CPU.saturating_mul(facts.cpus.len() as u64).saturating_add(OTHER_FILES)
}

/// Raises the limit of the shell that types it.
pub(super) fn more_files(facts: &Facts) -> String {
    let enough = files(facts).max(facts.nofile.unwrap_or(0).saturating_mul(2)).next_power_of_two();
    format!("sudo prlimit --pid $$ --nofile={enough}")
}

pub(super) fn disk(facts: &Facts) -> Check {
    const NAME: &str = "disk space";
    const ELSEWHERE: &str = "lockprof record -o /var/tmp/lockprof.data ...";
    let directory = facts.space.directory.display();
    if !facts.space.writable {
        return Check::fail(NAME, format!("this user may not write into {directory}"), ELSEWHERE);
    }
    let Some(free) = facts.space.free else {
        return Check::warn(NAME, format!("unknown in {directory}"), ELSEWHERE);
    };
    let found = format!("{} MiB free in {directory}", units::count(free / MIB));
    match free {
        DISK_LITTLE.. => Check::ok(NAME, found),
        DISK_NONE.. => Check::warn(NAME, format!("only {found}"), ELSEWHERE),
        _ => Check::fail(NAME, format!("only {found}"), ELSEWHERE),
    }
}
