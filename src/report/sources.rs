//! What reports are made of.
//!
//! In: the books and counts of a pipeline, lent for as long as it takes. Out: the same, for every file of
//! this room.

use std::cell::RefCell;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::analyse::{CellKey, Sums, Tables};
use crate::attribute::{Attribution, Skid};
use crate::correlate::{AddressSpaces, Cgroups, Chains, Counts, SleepCounts, Tasks};
use crate::kernel::Kernel;
use crate::model::{Cpu, Timestamp, WaitStat};
use crate::order::OrderFaults;
use crate::recording::Origin;
use crate::stacks::Stacks;
use crate::symbolize::Symbolizer;
use crate::unwind::Objects;

/// Everything that a report is made of: the books and what the stages counted.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Sources<'a> {
    pub origin: &'a Origin,
    pub kernel: &'a Kernel,
    pub kernel_symbols: &'a str,
    pub stacks: &'a Stacks,
    pub objects: &'a Objects,
    pub symbolizer: &'a RefCell<Symbolizer>,
    pub tasks: &'a Tasks,
    pub cgroups: &'a Cgroups,
    pub attribution: &'a Attribution,
    pub tables: &'a Tables,
    /// What the question is about: all that was counted, or a part of the time.
    pub sums: &'a Sums,
    /// Its waits, where those are not the sums'.
    pub part: Option<&'a HashMap<CellKey, WaitStat>>,
    pub counts: Counts,
    pub lost: BTreeMap<Option<Cpu>, u64>,
    pub throttled: u64,
    pub unreadable: Vec<(String, u64)>,
    pub order: OrderFaults,
    pub records: u64,
    pub cpu_samples: u64,
    pub skid: Option<&'a Skid>,
    pub copies: u64,
    pub not_queued: u64,
    pub wakings: bool,
    pub switches: bool,
    pub sched_missing: (Option<Timestamp>, u64),
    pub sleeps: Option<SleepCounts>,
    pub chains: Option<&'a Chains>,
    pub spaces: &'a AddressSpaces,
}

impl<'a> Sources<'a> {
    /// The cells that the question is about, in no order.
    pub(super) fn waits(&self) -> impl Iterator<Item = (&'a CellKey, &'a WaitStat)> + use<'a> {
        let sums = self.sums;
        let whole = self.part.is_none().then(|| sums.waits());
        self.part.into_iter().flatten().chain(whole.into_iter().flatten())
    }
}
