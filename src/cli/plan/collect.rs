//! Which events are recorded.
//!
//! In: arguments, and the tracepoints that this kernel has. Out: the events of all collectors that are asked
//! for, and notes on what this kernel cannot tell.

use lockprof_collectors::Collector;
use lockprof_collectors::contended_release::{ContendedRelease, RELEASE};
use lockprof_collectors::contention::Contention;
use lockprof_collectors::cpu::{Cpu, CpuEvent};
use lockprof_collectors::mmap_lock::MmapLock;
use lockprof_collectors::perf::plan::EventSpec;
use lockprof_collectors::procfs::tracefs::{Tracefs, TracefsError, Tracepoints};
use lockprof_collectors::sched::Sched;
use lockprof_collectors::sideband::Sideband;

use crate::cli::args::{Collect, RecordArgs};

/// Events, the names of their collectors, and what this kernel cannot tell.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) events: Vec<EventSpec>,
    pub(super) collectors: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// The events of all collectors that were asked for. A kernel without contention events (before
/// Linux 5.19) still shows by its CPU samples where it spins, and so does one without tracefs.
pub(super) fn collect(
    args: &RecordArgs,
    tracefs: Option<&Tracefs>,
) -> Result<Collected, TracefsError> {
    let mut collectors: Vec<Box<dyn Collector>> = Vec::new();
    let seen = &args.seen;
    if !args.cpu_only {
        let (no_spin, perf_compat) = (seen.no_spin, args.perf_compat);
        collectors.push(Box::new(Contention { no_spin, perf_compat }));
        let (blame, phases, sleeps) = (!seen.no_blame, !seen.no_phases, !seen.no_sleeps);
        let sched = Sched { blame, phases, sleeps };
        if !sched.is_empty() {
            collectors.push(Box::new(sched));
        }
        if blame {
            collectors.push(Box::new(ContendedRelease { stacks: args.release_stacks }));
        }
    }
    collectors.extend(mmap_lock(args).map(|collector| Box::new(collector) as Box<dyn Collector>));
    if !seen.no_cpu {
        let frequency = args.frequency as u32;
        collectors.push(Box::new(Cpu { event: CpuEvent::detect(), frequency }));
    }
    collectors.push(Box::new(Sideband { mmaps: false }));
    let mut collected = Collected::default();
    for collector in collectors {
        let found = match tracefs {
            Some(tracefs) => tracefs.tracepoints(collector.tracepoints()),
            None if collector.tracepoints().is_empty() => Ok(Tracepoints::default()),
            None => continue,
        };
        let formats = match found {
            // Linux 7.2 and later tell more closely what wakings tell of all.
            Err(TracefsError::NoTracepoint { name }) if name == RELEASE && !args.release_stacks => {
                continue;
            }
            Err(TracefsError::NoTracepoint { name })
                if name != RELEASE && !seen.no_cpu && !is_asked_for(&name) =>
            {
                collected.notes.push(match collector.name() {
                    Sched::NAME => format!(
                        "this kernel has no {name}: who lets waiters go, and where tasks sleep, is \
                         not seen"
                    ),
                    _ if !seen.no_sleeps && !seen.no_phases => format!(
                        "this kernel has no {name} (Linux 5.19 and later have): waits are told by \
                         where tasks sleep, spinning by CPU samples"
                    ),
                    _ => format!(
                        "this kernel has no {name} (Linux 5.19 and later have): spinning is seen by \
                         CPU samples, sleeping waits are not"
                    ),
                });
                continue;
            }
            formats => formats?,
        };
        collected.events.extend(collector.events(&formats)?);
        collected.collectors.push(collector.name().to_owned());
    }
    if tracefs.is_none() && !args.cpu_only {
        collected.notes.push(
            "tracefs is not mounted: only CPU samples were recorded, which show where CPUs spin; who sleeps \
             for locks, and who lets whom go, is not seen"
                .into(),
        );
    }
    if args.collect.contains(&Collect::MmapLockHolds) {
        collected.notes.push(
            "every use of an mmap_lock was recorded (--collect mmap-lock-holds), while it was held: \
             what maps memory all the time runs at half its speed, and waits are longer than without"
                .into(),
        );
    }
    Ok(collected)
}

/// `--collect`: holds are proof, too.
fn mmap_lock(args: &RecordArgs) -> Option<MmapLock> {
    let holds = args.collect.contains(&Collect::MmapLockHolds);
    (!args.collect.is_empty()).then_some(MmapLock { holds })
}

/// Whether an event is opened only for those who ask for it: they are told when it is not there.
fn is_asked_for(tracepoint: &str) -> bool {
    tracepoint.starts_with("mmap_lock:")
}
