//! What was typed, as it is to be done on this machine: `record`.
//!
//! In: arguments, and a look at the machine. Out: a [`RecordPlan`], or why there can be none.

use std::path::{Path, PathBuf};

use lockprof_collectors::Collector;
use lockprof_collectors::contended_release::{ContendedRelease, RELEASE};
use lockprof_collectors::contention::Contention;
use lockprof_collectors::cpu::{Cpu, CpuEvent};
use lockprof_collectors::mmap_lock::MmapLock;
use lockprof_collectors::perf::plan::{DEFAULT_RING_PAGES, EventSpec, Plan, Scope, record_cgroups};
use lockprof_collectors::procfs::ProcError;
use lockprof_collectors::procfs::cgroup::{CgroupError, Hierarchy};
use lockprof_collectors::procfs::system::{System, parse_cpus};
use lockprof_collectors::procfs::tracefs::{Tracefs, TracefsError, Tracepoints};
use lockprof_collectors::sched::Sched;
use lockprof_collectors::sideband::Sideband;

use super::args::{Collect, RecordArgs};
use super::checks::mount_tracefs;

/// Inherited events for a task, above which a command is followed system-wide instead.
///
/// Each costs about 10 us for every thread that is created, which itself takes some 40 us on one CPU
/// and 75 us across two: with more than 3 a program that creates threads takes twice its time.
/// Following system-wide costs the records of other tasks, which are dropped when the recording is
/// read.
const COMMAND_LIMIT: usize = 3;

/// The same for processes that run already. What else the machine does is more often not to be
/// recorded there, and most have their threads; but half a millisecond a thread is too much.
const PROCESS_LIMIT: usize = 64;

/// How the note on it begins.
const FOLLOWED: &str = "the target was followed system-wide";

/// Rings smaller than this lose records of any contention worth recording.
const FEWEST_RING_PAGES: usize = 16;

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command, with everything that it starts.
    Command(Vec<String>),
    /// Processes that run already.
    Processes(Vec<i32>),
    /// The tasks of a cgroup and of those below it: its path.
    Cgroup(String),
    /// Everything.
    System,
}

impl Target {
    /// Events that each of its tasks may inherit.
    fn inherited_limit(&self) -> usize {
        match self {
            Target::Command(_) => COMMAND_LIMIT,
            Target::Processes(_) => PROCESS_LIMIT,
            Target::Cgroup(_) | Target::System => usize::MAX,
        }
    }
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No target.
    #[error("record what? Neither a command nor -p nor -a nor -G was given")]
    NoTarget,
    /// `-C` is no list of CPUs.
    #[error("`{0}` is no list of CPUs; write 0-3,8")]
    CpuList(String),
    /// `-C` names CPUs that are not there.
    #[error("CPU {cpu} is not online (online: {online})")]
    CpuOffline {
        /// The first of them.
        cpu: u32,
        /// Those that are.
        online: String,
    },
    /// Tracepoints cannot be looked up.
    #[error("cannot trace lock contention: {0}")]
    Tracefs(#[from] TracefsError),
    /// The cgroup is not there.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The machine does not tell what it is.
    #[error(transparent)]
    Machine(#[from] ProcError),
}

/// What is to be recorded, and how.
#[derive(Debug)]
pub struct RecordPlan {
    /// Whom.
    pub target: Target,
    /// The events, sideband last.
    pub events: Vec<EventSpec>,
    /// Names of the collectors they are from.
    pub collectors: Vec<String>,
    /// The formats of their tracepoints, with the files that describe all of them; none where tracefs is
    /// not mounted, and events have no tracepoints.
    pub tracefs: Option<Tracefs>,
    /// CPUs that get a ring.
    pub cpus: Vec<u32>,
    /// `-C` was given.
    pub some_cpus: bool,
    /// Spinlocks are left out.
    pub no_spin: bool,
    /// Data pages of each ring.
    pub ring_pages: usize,
    /// `-m` was given: so many or none.
    pub ring_pages_given: bool,
    /// The clock.
    pub clockid: Option<i32>,
    /// The directory of the target's cgroup.
    pub cgroup: Option<PathBuf>,
    /// The machine.
    pub system: System,
    /// A target is given and everything is recorded all the same; the target is picked out later.
    pub follow: bool,
    /// What is done differently than one might expect, in words for the user.
    pub notes: Vec<String>,
}

impl RecordPlan {
    /// Looks at the machine and decides.
    pub fn new(args: &RecordArgs) -> Result<RecordPlan, PlanError> {
        let target = target(args)?;
        let system = System::read()?;
        let cpus = cpus(args.seen.cpus.as_deref(), &system.cpus_online)?;
        // Where that fails, the next line says what is missing.
        let mounted = mount_tracefs().ok().flatten();
        let tracefs = tracefs(args)?;
        let cgroup = cgroup(args.cgroup.as_deref())?;
        let Collected { mut events, collectors, mut notes } = collect(args, tracefs.as_ref())?;
        if args.cgroups || cgroup.is_some() {
            record_cgroups(&mut events);
        }
        notes.extend(mounted.into_iter().map(mounted_note));
        let mut plan = RecordPlan {
            follow: false,
            notes,
            events,
            collectors,
            tracefs,
            some_cpus: args.seen.cpus.is_some(),
            no_spin: args.seen.no_spin,
            cpus,
            ring_pages: args.mmap_pages.map_or(DEFAULT_RING_PAGES, |pages| pages as usize),
            ring_pages_given: args.mmap_pages.is_some(),
            clockid: system.clockid(),
            cgroup,
            system,
            target,
        };
        let inherited =
            plan.cpus.len() * plan.events.iter().filter(|event| !event.everywhere).count();
        if inherited > plan.target.inherited_limit() {
            plan.follow_system_wide(&format!(
                "{inherited} events on each thread would slow down their creation"
            ));
        }
        Ok(plan)
    }

    /// Says that wakings and switches of the target only are recorded: no more was allowed.
    pub fn note_narrowed(&mut self) {
        self.notes.push(
            "the whole machine may not be traced by this user (CAP_PERFMON): wakers outside the target \
             are not seen, and what they release is charged to nobody; states of holders outside it \
             are unknown"
                .into(),
        );
    }

    /// Takes rings of half the size, unless a size was asked for or they are small already.
    pub fn halve_rings(&mut self) -> bool {
        let halves = !self.ring_pages_given && self.ring_pages > FEWEST_RING_PAGES;
        if halves {
            self.ring_pages /= 2;
        }
        halves
    }

    /// Says that rings are smaller than they should be.
    pub fn note_small_rings(&mut self) {
        if !self.ring_pages_given && self.ring_pages < DEFAULT_RING_PAGES {
            self.notes.push(format!(
                "rings have {} pages instead of {DEFAULT_RING_PAGES}: this user may lock no more memory \
                 (perf_event_mlock_kb); they run full sooner",
                self.ring_pages
            ));
        }
    }

    /// Records everything and picks the target out later.
    pub fn follow_system_wide(&mut self, why: &str) {
        self.follow = true;
        self.notes.push(format!("{FOLLOWED}: {why}"));
    }

    /// Takes that back: not everything may be recorded.
    pub fn follow_tasks(&mut self) {
        self.follow = false;
        self.notes.retain(|note| !note.starts_with(FOLLOWED));
        self.notes
            .push("each thread of the target has its own events: creating one takes longer".into());
    }

    /// Whether everything is recorded, whoever is asked for.
    pub fn everything(&self) -> bool {
        self.follow || self.target == Target::System
    }

    /// The session to open on `tasks`; on everything without tasks or when following.
    pub fn session(&self, tasks: Vec<i32>) -> Plan {
        let cpus = self.cpus.clone();
        let enable_on_exec = matches!(self.target, Target::Command(_));
        let scope = match &self.cgroup {
            Some(directory) => Scope::Cgroup { directory: directory.clone(), cpus },
            None if self.everything() => Scope::SystemWide { cpus },
            None => Scope::Tasks { tasks, cpus, inherit: true, enable_on_exec },
        };
        let (events, ring_pages, clockid) = (self.events.clone(), self.ring_pages, self.clockid);
        Plan { events, scope, ring_pages, clockid }
    }
}

fn mounted_note(place: &Path) -> String {
    format!("tracefs was not mounted anywhere; it is mounted at {} now", place.display())
}

/// tracefs; none where it is not mounted and nothing that was asked for by name needs it.
fn tracefs(args: &RecordArgs) -> Result<Option<Tracefs>, TracefsError> {
    let choices = [args.seen.no_cpu, args.seen.no_spin, args.perf_compat, args.release_stacks];
    let asked_for = choices.contains(&true) || !args.collect.is_empty();
    match Tracefs::find() {
        Err(TracefsError::NotMounted) if !asked_for => Ok(None),
        found => found.map(Some),
    }
}

fn cgroup(path: Option<&str>) -> Result<Option<PathBuf>, CgroupError> {
    path.map(|path| Hierarchy::find()?.directory(path)).transpose()
}

fn target(args: &RecordArgs) -> Result<Target, PlanError> {
    if let Some(path) = &args.cgroup {
        return Ok(Target::Cgroup(format!("/{}", path.trim_matches('/'))));
    }
    match (args.all, args.pid.as_slice(), args.command.as_slice()) {
        (true, ..) => Ok(Target::System),
        (_, pids @ [_, ..], _) => Ok(Target::Processes(pids.to_vec())),
        (_, _, command @ [_, ..]) => Ok(Target::Command(command.to_vec())),
        // As perf: CPUs without a target are everything that runs on them.
        _ if args.seen.cpus.is_some() => Ok(Target::System),
        _ => Err(PlanError::NoTarget),
    }
}

fn cpus(list: Option<&str>, online: &[u32]) -> Result<Vec<u32>, PlanError> {
    let Some(list) = list else { return Ok(online.to_vec()) };
    let cpus = parse_cpus(list.as_bytes()).ok_or_else(|| PlanError::CpuList(list.to_owned()))?;
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(&cpu) => {
            let online = online.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            Err(PlanError::CpuOffline { cpu, online })
        }
        None => Ok(cpus),
    }
}

/// Events, the names of their collectors, and what this kernel cannot tell.
#[derive(Default)]
struct Collected {
    events: Vec<EventSpec>,
    collectors: Vec<String>,
    notes: Vec<String>,
}

/// The events of all collectors that were asked for. A kernel without contention events (before
/// Linux 5.19) still shows by its CPU samples where it spins, and so does one without tracefs.
fn collect(args: &RecordArgs, tracefs: Option<&Tracefs>) -> Result<Collected, TracefsError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::SeenArgs;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_target_is_a_command_processes_or_everything() {
        let args = |all, pid: &[i32], command: &str, cpus: Option<&str>| RecordArgs {
            all,
            pid: pid.to_vec(),
            command: words(command),
            seen: SeenArgs { cpus: cpus.map(str::to_owned), ..SeenArgs::default() },
            ..RecordArgs::default()
        };
        let of = |args: RecordArgs| target(&args).ok();
        assert_eq!(of(args(true, &[], "", None)), Some(Target::System));
        assert_eq!(of(args(false, &[7, 8], "", None)), Some(Target::Processes(vec![7, 8])));
        assert_eq!(of(args(false, &[], "ls -l", None)), Some(Target::Command(words("ls -l"))));
        assert_eq!(of(args(false, &[], "", Some("0"))), Some(Target::System));
        assert_eq!(of(args(false, &[], "", None)), None);
    }

    #[test]
    fn only_cpus_that_are_online_can_be_asked_for() {
        assert_eq!(cpus(None, &[0, 1, 2]).ok(), Some(vec![0, 1, 2]));
        assert_eq!(cpus(Some("1-2"), &[0, 1, 2]).ok(), Some(vec![1, 2]));
        let error = cpus(Some("1,9"), &[0, 1, 2]).unwrap_err();
        assert_eq!(error.to_string(), "CPU 9 is not online (online: 0,1,2)");
        assert!(cpus(Some("all"), &[0]).unwrap_err().to_string().contains("0-3,8"));
    }
}
