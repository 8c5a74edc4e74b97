//! Synthetic streams for tests: what happens on a small machine, written down event by event, and the
//! report that comes out of it.
//!
//! In: a closure that writes records. Out: a [`Report`] through the public pipe, records and all.

#![allow(dead_code)] // Each test program uses its part.

pub(crate) mod scenario;
pub(crate) mod symbols;

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, LockType, Query, WaitStat};
use lockprof::pipeline::Pipeline;
use lockprof::recording::{Origin, RecordedTarget, Settings};
use lockprof::report::{Report, Row};
use lockprof::source::{At, Round, Synthetic};
use lockprof_collectors::perf::attr::{flag, sample};

/// Flags of `contention_begin`.
pub(crate) const SEM: u32 = 0;
pub(crate) const SPIN: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const WRITE: u32 = 4;
pub(crate) const RT: u32 = 8;
pub(crate) const MUTEX: u32 = 32;

/// Functions of a PREEMPT_RT kernel, 0x100 bytes each.
pub(crate) const RT_KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000100 t rwbase_write_lock
ffffffff81000200 t __rwbase_read_lock
ffffffff81000300 T down_read
ffffffff81000400 T down_write
ffffffff81000500 t rt_mutex_slowlock_block.constprop.0
ffffffff81000600 T rt_write_lock
ffffffff81000700 T rt_read_lock
ffffffff81000800 T do_mprotect_pkey
ffffffff81000900 T rt_mutex_lock
ffffffff81000a00 T do_madvise
ffffffff81000b00 T _etext
";
/// Stacks, innermost first.
pub(crate) const READER: &[u64] =
    &[0xffff_ffff_8100_0210, 0xffff_ffff_8100_0310, 0xffff_ffff_8100_0810];
pub(crate) const WRITER: &[u64] =
    &[0xffff_ffff_8100_0110, 0xffff_ffff_8100_0410, 0xffff_ffff_8100_0810];
pub(crate) const RW_WRITER: &[u64] =
    &[0xffff_ffff_8100_0110, 0xffff_ffff_8100_0610, 0xffff_ffff_8100_0810];
pub(crate) const RT_MUTEX: &[u64] = &[0xffff_ffff_8100_0910, 0xffff_ffff_8100_0810];

/// `common_flags` of a softirq.
pub(crate) const SOFTIRQ: u8 = 0x10;

/// How a stream is read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) switches: bool,
    pub(crate) wakings: bool,
    /// `sched:sched_switch` with callchains.
    pub(crate) sleeps: bool,
    /// Contention events at all.
    pub(crate) contention: bool,
    pub(crate) releases: bool,
    pub(crate) ends: bool,
    /// The process whose threads were attached to; `None`: everything was recorded.
    pub(crate) attached: Option<i32>,
    /// Samples say in which cgroup they were taken.
    pub(crate) cgroups: bool,
    /// Wakings and switches come through rings of their own.
    pub(crate) own_rings: bool,
    pub(crate) kallsyms: &'static str,
    pub(crate) detail: Detail,
    pub(crate) filter: Filter,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            switches: false,
            wakings: false,
            sleeps: false,
            contention: true,
            releases: false,
            ends: true,
            attached: None,
            cgroups: false,
            own_rings: false,
            kallsyms: "",
            detail: Detail::default(),
            filter: Filter::default(),
        }
    }
}

impl Reading {
    /// A recording with switch records.
    pub(crate) fn with_switches() -> Reading {
        Reading { switches: true, ..Reading::default() }
    }

    pub(crate) fn origin(&self) -> Origin {
        let mut origin = Synthetic::new().origin();
        origin.settings = self.attached.map(|pid| Settings {
            target: RecordedTarget::Processes { pids: vec![pid] },
            ..Settings::default()
        });
        if self.switches {
            origin.events[0].attr.flags |= flag::CONTEXT_SWITCH;
        }
        if self.wakings {
            origin.events.push(Synthetic::waking_event());
        }
        if self.sleeps {
            origin.events.push(Synthetic::switch_event());
        }
        if self.releases {
            origin.events.push(Synthetic::release_event());
        }
        if self.cgroups {
            let events = origin.events.iter_mut();
            events.for_each(|event| event.attr.sample_type |= sample::CGROUP);
        }
        if self.own_rings {
            let is_sched = |at: &u32| origin.events[*at as usize].name.starts_with("sched:");
            let own_ring = (0..origin.events.len() as u32).filter(is_sched).collect();
            origin.settings.get_or_insert_default().own_ring = own_ring;
        }
        if !self.contention {
            origin.events.retain(|event| !event.name.starts_with("lock:"));
        }
        if !self.ends {
            origin.events.retain(|event| event.name != "lock:contention_end");
        }
        origin
    }

    /// The pipe with all of `rounds` in it.
    pub(crate) fn pipeline(&self, rounds: impl IntoIterator<Item = Round>) -> Pipeline {
        let kernel = (Kernel::from_kallsyms(self.kallsyms.as_bytes()), "a test".into());
        let mut pipeline = Pipeline::new(self.origin(), kernel, self.detail, &self.filter)
            .expect("the layout of synthetic records");
        rounds.into_iter().for_each(|round| pipeline.push(round));
        pipeline.finish();
        pipeline
    }

    /// The report by `by` of what `write` writes.
    pub(crate) fn report(&self, by: GroupBy, write: impl FnOnce(&mut Synthetic)) -> Report {
        let mut synthetic = Synthetic::new();
        write(&mut synthetic);
        self.pipeline([synthetic.take_round()]).report(&ask(by))
    }
}

/// All rows by `by`.
pub(crate) fn ask(by: GroupBy) -> Query {
    Query { by, top: 0, ..Query::default() }
}

/// Task `tid` on `cpu` at `time`.
pub(crate) fn at(time: u64, cpu: u32, tid: i32) -> At {
    At::new(time, cpu, tid)
}

/// The same in a softirq on top of the task.
pub(crate) fn in_softirq(time: u64, cpu: u32, tid: i32) -> At {
    At { common_flags: SOFTIRQ, ..At::new(time, cpu, tid) }
}

/// The row of a task.
pub(crate) fn of_task<'a>(report: &'a Report, comm: &str) -> &'a Row {
    let named = |row: &&Row| row.key.task.as_ref().is_some_and(|task| task.comm == comm);
    let mut rows = report.rows.iter().filter(named);
    let row = rows.next().unwrap_or_else(|| panic!("no row of {comm}: {:#?}", report.rows));
    assert!(rows.next().is_none(), "two rows of {comm}");
    row
}

/// The part of a report with one lock type; nothing when it has none.
pub(crate) fn of_type(report: &Report, wanted: &str) -> WaitStat {
    let mut stat = WaitStat::default();
    for split in report.rows.iter().flat_map(|row| &row.splits) {
        if split.lock_type.to_string() == wanted {
            stat.merge(&split.stat);
        }
    }
    stat
}

/// Sums of one lock type: everything of a row but how it is told apart.
pub(crate) fn by_type(report: &Report) -> Vec<(LockType, WaitStat)> {
    let mut types: Vec<(LockType, WaitStat)> = Vec::new();
    for split in report.rows.iter().flat_map(|row| &row.splits) {
        match types.iter_mut().find(|(lock_type, _)| *lock_type == split.lock_type) {
            Some((_, stat)) => stat.merge(&split.stat),
            None => types.push((split.lock_type, split.stat.clone())),
        }
    }
    types.sort_by_key(|(lock_type, _)| *lock_type);
    types
}

/// `(begun waits that ended, their full time, their own time)` in ns.
pub(crate) fn ended(stat: &WaitStat) -> (u64, u64, u64) {
    (stat.ended.count, stat.ended.total.0, stat.ended.own.0)
}
