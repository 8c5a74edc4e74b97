//! How far the numbers of a report can be trusted, in words.
//!
//! In: a report's own account of its quality. Out: labelled sentences, most doubtful first. What is
//! zero is not said, except that nothing was lost.

use crate::model::{Cpu, Nanos};
use crate::render::escape::visible;
use crate::render::units::{count, counted, percent, share, time};
use crate::report::{Report, Trust};

/// A sentence with the word in front of it.
pub(crate) struct Doubt {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// Numbers above may be wrong by more than they say.
    pub(crate) warning: bool,
}

/// More lost records than this deserve a hint.
const LOST_SHARE: f64 = 0.01;
/// CPUs named when records were lost.
const CPUS_NAMED: usize = 4;

/// All that is worth saying.
pub(crate) fn doubts(report: &Report) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut say = |label, text: String, warning| {
        if !text.is_empty() {
            doubts.push(Doubt { label, text, warning });
        }
    };
    say("warning", lost_hint(&report.trust), true);
    say("warning", no_ends(report), true);
    say(
        "trust",
        [losses(report), outcomes(report), faults(&report.trust), names(report)]
            .concat()
            .join("; "),
        false,
    );
    say("cost", cost(report).join("; "), false);
    say("source", source(&report.trust).join("; "), false);
    for note in &report.trust.notes {
        say("note", visible(note).into_owned(), false);
    }
    doubts
}

/// What is worth saying of CPU samples.
pub(crate) fn doubts_of_samples(trust: &Trust) -> Vec<Doubt> {
    let doubt = |label, text, warning| Doubt { label, text, warning };
    let mut doubts = vec![doubt("warning", lost_hint(trust), true)];
    let samples = format!("{}, {}", counted(trust.records, "record"), lost_records(trust));
    let trusted = [vec![samples], faults(trust)].concat().join("; ");
    doubts.push(doubt("trust", trusted, false));
    doubts.push(doubt("source", source(trust).join("; "), false));
    let note = |note: &String| doubt("note", visible(note).into_owned(), false);
    doubts.extend(trust.notes.iter().map(note));
    doubts.retain(|doubt| !doubt.text.is_empty());
    doubts
}

fn lost(trust: &Trust) -> u64 {
    trust.lost.iter().fold(0, |sum, (_, lost)| sum.saturating_add(*lost))
}

/// Lost records out of all that there were.
fn lost_share(trust: &Trust) -> f64 {
    let lost = lost(trust) as f64;
    if lost == 0.0 { 0.0 } else { lost / (lost + trust.records as f64) }
}

fn lost_hint(trust: &Trust) -> String {
    let lost_share = lost_share(trust);
    if lost_share <= LOST_SHARE {
        return String::new();
    }
    format!(
        "{} of all records were lost: fewer CPU samples (record -F 99) or no spinlocks \
         (record --no-spin) lose less",
        percent(lost_share)
    )
}

fn no_ends(report: &Report) -> String {
    if !report.trust.begins_only() {
        return String::new();
    }
    "the recording has no contention_end events: counts and callers hold, wait times do not".into()
}

fn losses(report: &Report) -> Vec<String> {
    let trust = &report.trust;
    let counts = &trust.counts;
    let events = counted(counts.begins.saturating_add(counts.ends), "event");
    let sleeps = trust.sleeps.filter(|sleeps| sleeps.sleeps > 0);
    let sleeps = sleeps.map(|sleeps| {
        let (sleeps, waits) = (counted(sleeps.sleeps, "sleep"), counted(sleeps.waits, "wait"));
        format!("{sleeps} in lock code in {waits}")
    });
    let mut seen = vec![events];
    if trust.sleeps_only() {
        seen.clear();
    }
    seen.extend(sleeps);
    seen.push(lost_records(trust));
    vec![seen.join(", ")]
}

/// How many records were lost, and where.
fn lost_records(trust: &Trust) -> String {
    let lost = lost(trust);
    if lost == 0 {
        return "0 lost".into();
    }
    let share = percent(lost_share(trust));
    let mut by_cpu: Vec<(Option<Cpu>, u64)> = trust.lost.clone();
    by_cpu.sort_by_key(|&(cpu, lost)| (std::cmp::Reverse(lost), cpu));
    let named = by_cpu.iter().take(CPUS_NAMED).map(|(cpu, lost)| match cpu {
        Some(cpu) => format!("{} on CPU {}", count(*lost), cpu.0),
        None => format!("{} on unknown CPUs", count(*lost)),
    });
    let mut where_lost: Vec<String> = named.collect();
    if by_cpu.len() > CPUS_NAMED {
        where_lost.push(counted((by_cpu.len() - CPUS_NAMED) as u64, "more CPU"));
    }
    format!("{} lost ({share}: {})", counted(lost, "record"), where_lost.join(", "))
}

fn outcomes(report: &Report) -> Vec<String> {
    let total = &report.total;
    let mut said = Vec::new();
    if total.open > 0 && !report.trust.begins_only() {
        let (waits, least) = (counted(total.open, "wait"), time(total.open_time));
        said.push(format!("{waits} still open at the end (at least {least})"));
    }
    if total.failed > 0 {
        said.push(format!("{} failed (killed or timed out)", count(total.failed)));
    }
    if total.backed_off > 0 {
        said.push(format!("{} backed off (-EDEADLK)", count(total.backed_off)));
    }
    if total.uncertain > 0 {
        let (waits, most) = (counted(total.uncertain, "wait"), time(total.uncertain_time));
        said.push(format!("uncertain by lost records: {waits}, at most {most}, in no total"));
    }
    said
}

fn faults(trust: &Trust) -> Vec<String> {
    let mut said = Vec::new();
    let mut say = |n: u64, text: String| {
        if n > 0 {
            said.push(text);
        }
    };
    let counts = &trust.counts;
    say(counts.unmatched, format!("{} without a begin", counted(counts.unmatched, "end")));
    let not_asked_for = counted(counts.not_asked_for, "end");
    say(counts.not_asked_for, format!("{not_asked_for} of spinlocks, which were left out"));
    say(counts.restarts, format!("{} without an end", counted(counts.restarts, "begin")));
    say(counts.outside, format!("{} of other tasks left out", counted(counts.outside, "event")));
    let sched = counted(trust.lost_sched, "record");
    say(
        trust.lost_sched,
        format!("{sched} of wakings and switches lost: releasers and phases around them unknown"),
    );
    say(trust.throttled, format!("sampling throttled {}", counted(trust.throttled, "time")));
    say(trust.out_of_order, format!("{} out of order", counted(trust.out_of_order, "record")));
    say(trust.folded_keys, format!("{} folded (table full)", counted(trust.folded_keys, "key")));
    for (reason, records) in &trust.unreadable {
        say(*records, format!("{} unreadable: {}", counted(*records, "record"), visible(reason)));
    }
    if let Some(until) = trust.sched_until {
        said.push(format!(
            "wakings and context switches were recorded until {}: they came faster than they could be \
             taken; releasers and phases after that are unknown",
            time(until)
        ));
    }
    if !trust.cpus_changed.is_empty() {
        let cpus: Vec<String> = trust.cpus_changed.iter().map(u32::to_string).collect();
        said.push(format!("CPUs that came or went meanwhile: {}", cpus.join(", ")));
    }
    said
}

fn names(report: &Report) -> Vec<String> {
    let trust = &report.trust;
    if trust.wait == Nanos::ZERO {
        return Vec::new();
    }
    let caller = percent(share(trust.caller_named, trust.wait));
    let lock = percent(share(trust.lock_named, trust.wait));
    let mut said = vec![format!("callers named {caller}, locks named {lock}")];
    said.push(match trust.charged {
        Some(charged) => {
            let charged = percent(share(charged, trust.wait));
            format!("{charged} of the waiting charged to a releaser")
        }
        None => "releasers not recorded".into(),
    });
    said
}

fn cost(report: &Report) -> Vec<String> {
    let (trust, header) = (&report.trust, &report.header);
    let mut said = Vec::new();
    if let Some(floor) = trust.floor {
        let ended = &report.total.ended;
        let all = Nanos(floor.0.saturating_mul(ended.count));
        let of_all = if ended.count > 0 {
            format!(" ({} of the traced time)", percent(share(all, ended.total).min(1.0)))
        } else {
            String::new()
        };
        said.push(format!("measuring adds about {} to each wait{of_all}", time(floor)));
    }
    if let Some(cpu) = trust.recorder_cpu {
        let all = Nanos(header.elapsed.0.saturating_mul(u64::from(header.cpus)));
        let of_all = match all {
            Nanos::ZERO => String::new(),
            all => {
                format!(" ({} of {})", percent(share(cpu, all)), counted(header.cpus.into(), "CPU"))
            }
        };
        said.push(format!("the recorder took {} of CPU time{of_all}", time(cpu)));
    }
    said
}

fn source(trust: &Trust) -> Vec<String> {
    let mut said = Vec::new();
    if !trust.rung.is_empty() {
        said.push(visible(&trust.rung).into_owned());
    }
    said.push(match &trust.cpu_event {
        Some((event, period)) => format!(
            "{} of {}, one every {}",
            counted(trust.cpu_samples, "CPU sample"),
            visible(event),
            time(*period)
        ),
        None => "CPUs not sampled, so spinning that is not traced stays unknown".into(),
    });
    if !trust.kernel_symbols.is_empty() {
        said.push(format!("kernel symbols: {}", visible(&trust.kernel_symbols)));
    }
    said
}
