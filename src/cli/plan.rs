//! What was typed, as it is to be done on this machine: `record`.
//!
//! In: arguments, and a look at the machine. Out: a [`RecordPlan`], or why there can be none.

mod collect;

use std::path::{Path, PathBuf};

use lockprof_collectors::perf::plan::{DEFAULT_RING_PAGES, EventSpec, Plan, Scope, record_cgroups};
use lockprof_collectors::procfs::ProcError;
use lockprof_collectors::procfs::cgroup::{CgroupError, Hierarchy};
use lockprof_collectors::procfs::system::{System, parse_cpus};
use lockprof_collectors::procfs::tracefs::{Tracefs, TracefsError};

use super::args::RecordArgs;
use super::checks::mount_tracefs;
use collect::{Collected, collect};

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
    /// A target is given and everything is recorded all the same, for this reason; the target is picked
    /// out later.
    pub follow: Option<String>,
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
            follow: None,
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
            let why = format!("{inherited} events on each thread would slow down their creation");
            plan.follow = Some(why);
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

    /// Records the target alone after all: not everything may be recorded.
    pub fn follow_tasks(&mut self) {
        self.follow = None;
        self.notes
            .push("each thread of the target has its own events: creating one takes longer".into());
    }

    /// All that is to be said of it.
    pub fn all_notes(&self) -> Vec<String> {
        let followed = |why| format!("the target was followed system-wide: {why}");
        self.notes.iter().cloned().chain(self.follow.as_ref().map(followed)).collect()
    }

    /// Whether everything is recorded, whoever is asked for.
    pub fn everything(&self) -> bool {
        self.follow.is_some() || self.target == Target::System
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
