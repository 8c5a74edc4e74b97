//! Address space whose size decides how long a call keeps the mmap lock.
//!
//! ```text
//!   | guard page, read-write | body: `pages` pages, all mapped to the zero page | guard page |
//! ```
//!
//! mprotect(2) and madvise(2) walk the page table entries of the body under the mmap lock, some
//! nanoseconds each, and [`Sizing`] finds how many entries make up the hold time asked for. The
//! zero page costs no memory, the page tables 8 bytes a page. Every thread has a body of its own,
//! so that the mmap lock is all that they share; the guards keep neighbouring bodies from becoming
//! one VMA, which would make a call dearer at random.

use std::io;
use std::time::Duration;

use crate::hold::Hold;
use crate::sys::{self, Access, Advice, Mapping, Part};
use crate::{Error, crew};

/// Pages of a body with [`Hold::Short`].
const SHORT_PAGES: usize = 16;
/// The first guess at a hold time: measured, then scaled.
const PROBE_PAGES: usize = 4096;
/// Page tables of 8 bytes a page: 512 MiB for one region, far above the longest hold.
const MOST_PAGES: usize = 1 << 26;

/// The body of one thread.
pub(crate) struct Region {
    mapping: Mapping,
    body: Part,
    access: Access,
    /// Which madvise walks for read on this kernel.
    walk: Advice,
    residency: Vec<u8>,
}

impl Region {
    /// A readable body of `pages` pages, with a page table entry for each.
    pub(crate) fn new(pages: usize) -> Result<Region, Error> {
        let page = sys::page_size();
        let mapping = Mapping::new((pages + 2) * page).map_err(Error::call("mmap"))?;
        let body = Part { offset: page, len: pages * page };
        let name = "madvise(MADV_NOHUGEPAGE)";
        match mapping.advise(body, Advice::SmallPages) {
            // A kernel without huge pages does not know the advice, nor need it.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => {
                return Err(Error::call(name)(error));
            }
            _ => {}
        }
        mapping.protect(body, Access::Read).map_err(Error::call("mprotect"))?;
        let walk = match mapping.advise(body, Advice::PopulateRead) {
            Ok(()) => Advice::PopulateRead,
            // Before Linux 5.14.
            Err(_) => {
                mapping.touch(body).map_err(Error::call("reading the region"))?;
                Advice::Cold
            }
        };
        Ok(Region { mapping, body, access: Access::Read, walk, residency: vec![0; pages] })
    }

    /// Write side: mprotect(2) over the body, to and fro between no access and read access.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let next = match self.access {
            Access::None => Access::Read,
            Access::Read => Access::None,
        };
        self.mapping.protect(self.body, next)?;
        self.access = next;
        Ok(())
    }

    /// Read side, short: mincore(2) over the body.
    pub(crate) fn read_residency(&mut self) -> io::Result<()> {
        self.mapping.residency(self.body, &mut self.residency)
    }

    /// Read side, any length in one hold: a walk by madvise(2).
    pub(crate) fn read_walk(&mut self) -> io::Result<()> {
        self.mapping.advise(self.body, self.walk)
    }

    /// The name of the call that [`Region::read_walk`] makes.
    pub(crate) fn walk_name(&self) -> &'static str {
        match self.walk {
            Advice::PopulateRead => "madvise(MADV_POPULATE_READ)",
            Advice::SmallPages | Advice::Cold => "madvise(MADV_COLD)",
        }
    }
}

/// Which side of the mmap lock a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// One side's calls at one hold time: how many pages, which call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizing {
    side: Side,
    pages: usize,
    calibrated: bool,
}

/// A region and what its calls take when nobody else wants the lock.
pub(crate) struct Calibrated {
    pub(crate) region: Region,
    pub(crate) uncontended: Duration,
}

impl Sizing {
    /// Finds the number of pages that keep the lock for `hold`.
    pub(crate) fn find(side: Side, hold: Hold) -> Result<Sizing, Error> {
        let Some(target) = hold.target()? else {
            return Ok(Sizing { side, pages: SHORT_PAGES, calibrated: false });
        };
        let mut sizing = Sizing { side, pages: PROBE_PAGES, calibrated: true };
        // The cost of a page changes a little with the size (caches), so the guess is repeated.
        for _ in 0..3 {
            let measured = sizing.region()?.uncontended;
            let scale = target.as_secs_f64() / measured.as_secs_f64().max(1e-9);
            if (0.95..1.05).contains(&scale) {
                break;
            }
            sizing.pages = ((sizing.pages as f64 * scale) as usize).clamp(1, MOST_PAGES);
        }
        Ok(sizing)
    }

    /// A region of this size, measured while nobody contends.
    pub(crate) fn region(self) -> Result<Calibrated, Error> {
        let mut region = Region::new(self.pages)?;
        let name = self.call_name(&region);
        let uncontended =
            crew::uncontended(|| self.call(&mut region)).map_err(Error::call(name))?;
        Ok(Calibrated { region, uncontended })
    }

    /// Whether the size was made to fit a hold time.
    pub(crate) fn calibrated(self) -> bool {
        self.calibrated
    }

    /// Makes the call once.
    pub(crate) fn call(self, region: &mut Region) -> io::Result<()> {
        match (self.side, self.calibrated) {
            (Side::Write, _) => region.write(),
            (Side::Read, false) => region.read_residency(),
            (Side::Read, true) => region.read_walk(),
        }
    }

    /// What the call is, for people.
    pub(crate) fn call_name(self, region: &Region) -> &'static str {
        match (self.side, self.calibrated) {
            (Side::Write, _) => "mprotect",
            (Side::Read, false) => "mincore",
            (Side::Read, true) => region.walk_name(),
        }
    }
}
