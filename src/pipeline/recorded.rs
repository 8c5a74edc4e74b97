//! What a recording holds and whom it is about, as the stages want to know it.
//!
//! In: the origin. Out: which records there are, and a book of tasks that knows the target.

use lockprof_collectors::perf::attr::{flag, sample};

use super::apart::Apart;
use crate::correlate::{Recorded, Tasks};
use crate::recording::{EventDesc, Origin, RecordedTarget};

/// Which records it has.
pub(super) fn recorded(origin: &Origin) -> Recorded {
    let is = |event: &EventDesc, tracepoint: &str| {
        event.format.as_ref().is_some_and(|format| format.name == tracepoint)
    };
    let any = |wanted: &dyn Fn(&EventDesc) -> bool| origin.events.iter().any(wanted);
    let switch_records = any(&|e| e.attr.has(flag::CONTEXT_SWITCH));
    let switches = switch_records || any(&|e| is(e, "sched_switch"));
    // `record` asks for those to sleep only. perf's events on a command follow its tasks: a task comes
    // to a CPU in the record of the one that leaves it.
    let of_machine = |e: &EventDesc| is(e, "sched_switch") && !e.attr.has(flag::ENABLE_ON_EXEC);
    Recorded {
        switches,
        switch_ins: switch_records || origin.settings.is_none() && any(&of_machine),
        sleeps: any(&|e| is(e, "sched_switch") && e.attr.samples(sample::CALLCHAIN)),
        begins: any(&|e| is(e, "contention_begin")),
        ends: any(&|e| is(e, "contention_end")),
        wakings: any(&|e| is(e, "sched_waking") && e.attr.samples(sample::CALLCHAIN)),
        no_spin: origin.settings.as_ref().is_some_and(|settings| settings.no_spin),
    }
}

/// The book of tasks, with what belongs to the target.
pub(super) fn tasks_of(origin: &Origin) -> Tasks {
    let Some(settings) = origin.settings.as_ref() else { return Tasks::default() };
    let tasks = match &settings.target {
        RecordedTarget::Command { pid, .. } if settings.followed_system_wide => {
            Tasks::following(&[*pid])
        }
        RecordedTarget::Processes { pids } if settings.followed_system_wide => {
            Tasks::following(pids)
        }
        _ => Tasks::default(),
    };
    tasks.leaving_out(&settings.own_pids)
}

/// The processes whose threads, which ran already, events were opened on; `None` where they were not.
pub(super) fn attached(origin: &Origin) -> Option<&[i32]> {
    let settings = origin.settings.as_ref().filter(|settings| !settings.followed_system_wide)?;
    match &settings.target {
        RecordedTarget::Processes { pids } => Some(pids),
        _ => None,
    }
}

/// The events whose records come through rings of their own.
pub(super) fn apart(origin: &Origin) -> Apart {
    let indexes = origin.settings.iter().flat_map(|settings| &settings.own_ring);
    let events: Vec<&EventDesc> =
        indexes.filter_map(|&index| origin.events.get(index as usize)).collect();
    let switches = events.iter().any(|event| event.attr.has(flag::CONTEXT_SWITCH));
    Apart::of(events.iter().flat_map(|event| event.ids.iter().copied()).collect(), switches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Settings;
    use crate::source::Synthetic;

    #[test]
    fn switch_ins_are_known_of_the_whole_machine_or_by_records_of_switches() {
        let known = |of_command: bool, records: bool, settings: Option<Settings>| {
            let mut event = Synthetic::switch_event();
            event.attr.flags |= if of_command { flag::ENABLE_ON_EXEC } else { 0 };
            event.attr.flags |= if records { flag::CONTEXT_SWITCH } else { 0 };
            let origin = Origin { events: vec![event], settings, ..Origin::default() };
            let recorded = recorded(&origin);
            assert!(recorded.switches && recorded.sleeps && !recorded.begins);
            recorded.switch_ins
        };
        assert!(known(false, false, None));
        assert!(!known(true, false, None));
        assert!(known(true, true, None));
        assert!(!known(false, false, Some(Settings::default())));
        assert!(known(false, true, Some(Settings::default())));
    }
}
