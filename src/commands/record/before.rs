//! What is written before the first record of a ring: the origin, and what existed already.

use std::collections::BTreeMap;

use lockprof_collectors::floor::{self, FloorError};
use lockprof_collectors::perf::plan::Lane;
use lockprof_collectors::perf::session::Session;
use lockprof_collectors::procfs::cgroup::{self, Hierarchy};
use lockprof_collectors::procfs::sysctl::Sysctls;
use lockprof_collectors::procfs::tracefs::TracefsError;
use lockprof_collectors::procfs::{kallsyms, modules, task};
use lockprof_collectors::workload::Workload;
use rustix::time::{ClockId, clock_gettime};

use crate::cli::checks;
use crate::cli::messages;
use crate::cli::plan::{RecordPlan, Target};
use crate::model::Timestamp;
use crate::recording::{
    BuildId, Clock, EventDesc, Host, KernelMap, Origin, RecordedTarget, Settings, Synthesizer,
    TracingData,
};
use crate::source::Mappings;

/// perf's name for the kernel's own build id.
const KERNEL: &str = "[kernel.kallsyms]";

/// All that is known before the first record.
pub(super) fn origin(
    plan: &RecordPlan,
    session: &Session,
    workload: Option<&Workload>,
    floor: Option<u64>,
) -> Origin {
    let (kallsyms, notes) = kernel_symbols();
    let kernel_id = plan.system.kernel_build_id.clone();
    Origin {
        events: events(session),
        host: host(plan),
        clock: Clock { clockid: plan.clockid, wall: plan.clockid.and_then(wall) },
        command_line: std::env::args().collect(),
        kallsyms,
        build_ids: kernel_id
            .map(|id| BuildId { id, name: KERNEL.into(), kernel: true })
            .into_iter()
            .collect(),
        settings: Some(Settings {
            notes: [plan.all_notes(), notes, unsupported(session)].concat(),
            floor_ns: floor,
            own_ring: own_ring(session),
            ..settings(plan, workload)
        }),
        ..Origin::default()
    }
}

/// What this kernel does not know and was recorded without, as notes.
fn unsupported(session: &Session) -> Vec<String> {
    let words = session.unsupported().iter();
    words.map(|what| format!("this kernel does not record {what}")).collect()
}

/// The formats of all tracepoints, as TRACING_DATA; empty where there are none.
pub(super) fn tracing_data(plan: &RecordPlan) -> Result<TracingData, TracefsError> {
    let Some(tracefs) = &plan.tracefs else { return Ok(TracingData::default()) };
    let tracepoints = plan.events.iter().filter_map(|event| event.tracepoint.as_ref());
    // A tracepoint may be opened twice, with different filters.
    let formats: BTreeMap<String, (String, Vec<u8>)> =
        tracepoints.map(|t| (t.name(), (t.system.clone(), t.text.clone()))).collect();
    Ok(TracingData {
        header_page: tracefs.header_page()?,
        header_event: tracefs.header_event()?,
        formats: formats.into_values().collect(),
        page_size: rustix::param::page_size() as u32,
    })
}

/// Records of what existed: the kernel and its modules; of a target that runs already its tasks and
/// their mappings.
pub(super) fn records(plan: &RecordPlan, origin: &Origin, mappings: &mut Mappings) -> Vec<u8> {
    let mut records = Synthesizer::new(plan.events[0].attr.sample_type);
    kernel_maps(origin, &mut records);
    let pids = match &plan.target {
        Target::Command(_) => Vec::new(),
        Target::Processes(pids) => pids.clone(),
        Target::Cgroup(_) => members(plan),
        Target::System => task::processes().unwrap_or_default(),
    };
    cgroups(origin, &mut records);
    for &pid in &pids {
        for tid in task::threads(pid).unwrap_or_default() {
            // A thread that has ended meanwhile has no name and needs none.
            if let Ok(task) = task::task(tid) {
                records.comm(task.pid as u32, task.tid as u32, &task.comm);
            }
        }
    }
    let mut bytes = records.take();
    bytes.extend(mappings.existing(&pids));
    bytes
}

/// Groups told of at the most: a machine with more has names for these.
const CGROUPS_TOLD: usize = 1 << 15;

/// Processes of the cgroup that is the target, and of those below it.
fn members(plan: &RecordPlan) -> Vec<i32> {
    let (Ok(hierarchy), Some(directory)) = (Hierarchy::find(), &plan.cgroup) else {
        return Vec::new();
    };
    let groups = hierarchy.groups(directory, CGROUPS_TOLD);
    let directories = groups.iter().filter_map(|group| hierarchy.directory_of(group));
    directories.flat_map(|directory| cgroup::processes(&directory)).collect()
}

/// The paths of all cgroups, where samples have their ids.
fn cgroups(origin: &Origin, records: &mut Synthesizer) {
    if !origin.has_cgroups() {
        return;
    }
    // Without a hierarchy samples carry ids that have no path.
    let Ok(hierarchy) = Hierarchy::find() else { return };
    for group in hierarchy.groups(hierarchy.root(), CGROUPS_TOLD) {
        records.cgroup(group.id, &group.path);
    }
}

fn events(session: &Session) -> Vec<EventDesc> {
    let described = session.events().iter().zip(session.ids()).map(|(event, ids)| EventDesc {
        attr: event.attr,
        name: event.name.clone(),
        ids,
        format: event.tracepoint.as_ref().map(|tracepoint| tracepoint.format.clone()),
    });
    described.collect()
}

fn own_ring(session: &Session) -> Vec<u32> {
    let events = session.events().iter().zip(0..);
    events.filter(|(event, _)| event.lane == Lane::Flood).map(|(_, index)| index).collect()
}

fn host(plan: &RecordPlan) -> Host {
    let system = &plan.system;
    Host {
        hostname: system.hostname.clone(),
        release: system.release.clone(),
        arch: system.arch.clone(),
        cpu_desc: system.cpu_model.clone(),
        cpus_online: system.cpus_online.len() as u32,
        cpus_available: system.cpus_available,
        total_mem_kb: system.memory_kib,
        page_size: rustix::param::page_size() as u32,
    }
}

/// The same moment on the wall and on the recording's clock.
fn wall(clockid: i32) -> Option<(u64, u64)> {
    Some((now(ClockId::Realtime as i32)?.0, now(clockid)?.0))
}

/// The moment on a clock.
pub(super) fn now(clockid: i32) -> Option<Timestamp> {
    let time = clock_gettime(ClockId::try_from(clockid).ok()?);
    Some(Timestamp(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

fn settings(plan: &RecordPlan, workload: Option<&Workload>) -> Settings {
    let target = match &plan.target {
        Target::Command(command) => RecordedTarget::Command {
            command: command.clone(),
            pid: workload.map_or(0, Workload::pid),
        },
        Target::Processes(pids) => RecordedTarget::Processes { pids: pids.clone() },
        Target::Cgroup(path) => RecordedTarget::Cgroup { path: path.clone() },
        Target::System => RecordedTarget::System,
    };
    let sysctls = Sysctls::read();
    Settings {
        lockprof_version: env!("CARGO_PKG_VERSION").into(),
        boot_id: plan.system.boot_id.clone(),
        target,
        followed_system_wide: plan.follow.is_some(),
        cpus: if plan.some_cpus { plan.cpus.clone() } else { Vec::new() },
        collectors: plan.collectors.clone(),
        own_ring: Vec::new(),
        no_spin: plan.no_spin,
        floor_ns: None,
        own_pids: vec![std::process::id() as i32],
        perf_event_paranoid: sysctls.perf_event_paranoid,
        kptr_restrict: sysctls.kptr_restrict,
        notes: Vec::new(),
    }
}

/// What measuring adds to a wait, in ns. To be measured before anything is recorded: its own threads must
/// not be seen waiting.
pub(super) fn measure_floor(plan: &RecordPlan) -> Result<Option<u64>, FloorError> {
    floor::measure(&plan.events, &plan.cpus, plan.clockid)
}

/// What was measured. That nothing could be is one line less in the report, no reason to stop; to be said
/// when recording itself is possible, because what forbids that forbids the measurement too.
pub(super) fn floor(measured: Result<Option<u64>, FloorError>) -> Option<u64> {
    measured.unwrap_or_else(|error| {
        messages::warn(format_args!("what measuring adds to a wait is not known: {error}"));
        None
    })
}

/// The kernel's symbols, or a note why there are none.
fn kernel_symbols() -> (Option<Vec<u8>>, Vec<String>) {
    let text = std::fs::read("/proc/kallsyms").unwrap_or_default();
    let visible = kallsyms::symbols(&text).any(|symbol| symbol.addr != 0);
    if visible {
        return (Some(text), Vec::new());
    }
    (None, vec![checks::hidden_symbols()])
}

fn kernel_maps(origin: &Origin, records: &mut Synthesizer) {
    let text = origin.kallsyms.as_deref().unwrap_or_default();
    let address = |name: &str| {
        let mut symbols = kallsyms::symbols(text);
        symbols.find(|symbol| symbol.name == name).map(|symbol| symbol.addr)
    };
    if let (Some(start), Some(end)) = (address("_text"), address("_etext")) {
        let name = "[kernel.kallsyms]_text";
        records.kernel_map(&KernelMap {
            start,
            len: end.saturating_sub(start),
            pgoff: start,
            name,
        });
    }
    for module in modules::loaded().unwrap_or_default() {
        let name = format!("[{}]", module.name);
        let (start, len) = (module.start, module.size);
        records.kernel_map(&KernelMap { start, len, pgoff: 0, name: &name });
    }
}
