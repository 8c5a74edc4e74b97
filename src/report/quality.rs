//! What was recorded, and how far it can be trusted: [`Header`] and [`Trust`].
//!
//! In: the origin, and what the stages counted. Out: the first line of a report and its doubts.

use lockprof_collectors::perf::attr::{event_type, flag, sample, software};

use super::report::Header;
use super::sources::Sources;
use super::trust::Trust;
use crate::model::Nanos;
use crate::recording::{Origin, RecordedTarget};

/// Wait time whose names are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named {
    /// With a caller.
    pub(super) caller: Nanos,
    /// With a lock's name that says more than its caller.
    pub(super) lock: Nanos,
    /// Charged to who handed the lock over; `None` without wakings.
    pub(super) charged: Option<Nanos>,
    /// All of it.
    pub(super) all: Nanos,
}

/// What was recorded.
pub(super) fn header(sources: &Sources<'_>) -> Header {
    let origin = sources.origin;
    let target = match origin.settings.as_ref().map(|settings| &settings.target) {
        Some(RecordedTarget::Command { command, .. }) => shown(command),
        Some(RecordedTarget::Processes { pids }) => {
            let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
            format!("pid {}", pids.join(", "))
        }
        Some(RecordedTarget::Cgroup { path }) => format!("cgroup {path}"),
        Some(RecordedTarget::System) => "the whole machine".into(),
        None => origin.command_line.join(" "),
    };
    let span = sources.tables.span().unwrap_or_default();
    let sampled = sources.cpu_samples > 0;
    Header {
        target,
        kernel: origin.host.release.clone(),
        cpus: origin.host.cpus_online,
        elapsed: span.1.since(span.0),
        threads: sources.tasks.threads(),
        exit_status: origin.end.as_ref().and_then(|end| end.exit_status),
        cpu_time: sampled.then(|| sources.tables.cpu_total().time),
    }
}

/// A command line, its program without directories.
fn shown(command: &[String]) -> String {
    let program = command.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    let rest = command.iter().skip(1).map(String::as_str);
    program.into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}

/// How far the report can be trusted.
pub(super) fn trust(sources: &Sources<'_>, named: Named) -> Trust {
    let origin = sources.origin;
    let settings = origin.settings.as_ref();
    let mut notes = origin.warnings.clone();
    let cut_bytes = origin.end.as_ref().map_or(0, |end| end.cut_bytes);
    if cut_bytes > 0 {
        notes.push(format!("the disk was full: the last {cut_bytes} bytes of records are missing"));
    }
    notes.extend(settings.into_iter().flat_map(|settings| settings.notes.clone()));
    if sources.copies > 0 {
        let copies = sources.copies;
        notes.push(format!(
            "{copies} samples came twice, of threads that were created while they were attached to; \
             each counts once"
        ));
    }
    if sources.not_queued > 0 {
        notes.push(format!(
            "{} waits for locks with readers and writers stood in queues too long to be followed: whom \
             they waited behind is unknown",
            sources.not_queued
        ));
    }
    let first = sources.tables.span().unwrap_or_default().0;
    let (sched_until, lost_sched) = sources.sched_missing;
    Trust {
        records: sources.records,
        counts: sources.counts,
        sleeps: sources.sleeps,
        lost: sources.lost.iter().map(|(&cpu, &lost)| (cpu, lost)).collect(),
        throttled: sources.throttled,
        sched_until: sched_until.map(|until| until.since(first)),
        lost_sched,
        unreadable: sources.unreadable.clone(),
        out_of_order: sources.order.out_of_order,
        cpu_samples: sources.cpu_samples,
        cpu_event: cpu_event(origin),
        floor: origin.floor(),
        caller_named: named.caller,
        lock_named: named.lock,
        charged: named.charged,
        wait: named.all,
        kernel_symbols: sources.kernel_symbols.to_owned(),
        folded_keys: sources.tables.folded() + sources.stacks.refused(),
        rung: rung(origin, sources.sleeps.is_some()),
        recorder_cpu: origin.end.as_ref().map(|end| Nanos(end.recorder_cpu_ns)),
        cpus_changed: origin.end.as_ref().map(|e| e.cpus_changed.clone()).unwrap_or_default(),
        notes,
    }
}

fn cpu_event(origin: &Origin) -> Option<(String, Nanos)> {
    let clocks = [software::CPU_CLOCK, software::TASK_CLOCK];
    let event = origin.events.iter().find(|event| match event.attr.kind {
        event_type::SOFTWARE => clocks.contains(&event.attr.config),
        event_type::TRACEPOINT => false,
        _ => true,
    })?;
    let attr = &event.attr;
    let period = match attr.has(flag::FREQ) {
        true => 1_000_000_000u64.checked_div(attr.sample_period).unwrap_or(0),
        false => attr.sample_period,
    };
    Some((event.name.clone(), Nanos(period)))
}

/// Whether `sched_waking` was recorded with its stacks, which are taken under locks of the run queues.
pub(super) fn wakings_with_stacks(origin: &Origin) -> bool {
    let names = ["sched:sched_waking", "sched:sched_wakeup"];
    let mut events = origin.events.iter();
    events.any(|e| names.contains(&e.name.as_str()) && e.attr.samples(sample::CALLCHAIN))
}

/// What was traced: the rung of the ladder that this recording stands on.
fn rung(origin: &Origin, sleeps: bool) -> String {
    let event = |name: &str| origin.events.iter().find(|event| event.name == name);
    let begin = event("lock:contention_begin");
    let traced = (begin.is_some(), event("lock:contention_end").is_some());
    let no_callers = begin.is_some_and(|begin| !begin.attr.samples(sample::CALLCHAIN));
    let rung = rung_of(traced, cpu_event(origin).is_some(), sleeps);
    let mut rung = rung.to_owned();
    if sleeps && begin.is_some() {
        rung += "; locks without such events by sleeps in their code";
    }
    if no_callers {
        rung += "; no callchains (-g), so no callers";
    }
    rung
}

fn rung_of((begins, ends): (bool, bool), samples_cpus: bool, sleeps: bool) -> &'static str {
    match (begins, ends, samples_cpus) {
        (true, true, true) => "contention events and CPU samples",
        (true, true, false) => "contention events; untraced spin is not seen without CPU samples",
        (true, false, _) => "begins only: counts and sites, no wait times",
        (false, _, true) if sleeps => Trust::SLEEPS_AND_SAMPLES,
        (false, _, false) if sleeps => Trust::SLEEPS_ONLY,
        (false, _, true) => Trust::SAMPLES_ONLY,
        (false, _, false) => Trust::NO_EVENTS,
    }
}
