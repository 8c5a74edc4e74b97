//! How far a report can be trusted, for programs.
//!
//! In: the trust header of a report. Out: the structs that `schema/report-v1.json` and
//! `schema/paths-v1.json` promise.

use serde::Serialize;

use crate::report::Trust;

/// All of it.
#[derive(Serialize)]
pub(super) struct TrustOut<'a> {
    records: u64,
    begins: u64,
    ends: u64,
    begun: u64,
    phases: u64,
    restarts: u64,
    joined: u64,
    ended: u64,
    open: u64,
    uncertain: u64,
    uncertain_ended: u64,
    unmatched: u64,
    not_asked_for: u64,
    joined_ends: u64,
    outside: u64,
    sleep_waits: Option<u64>,
    sleeps: Option<u64>,
    lost: Vec<LostOut>,
    throttled: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched_until_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_sched: Option<u64>,
    unreadable: Vec<UnreadableOut<'a>>,
    out_of_order: u64,
    cpu_samples: u64,
    cpu_event: Option<CpuEventOut<'a>>,
    floor_ns: Option<u64>,
    wait_ns: u64,
    caller_named_ns: u64,
    lock_named_ns: u64,
    charged_ns: Option<u64>,
    kernel_symbols: &'a str,
    folded_keys: u64,
    rung: &'a str,
    recorder_cpu_ns: Option<u64>,
    cpus_changed: &'a [u32],
    notes: &'a [String],
}

/// Records that a ring dropped.
#[derive(Serialize)]
pub(super) struct LostOut {
    cpu: Option<u32>,
    records: u64,
}

#[derive(Serialize)]
struct UnreadableOut<'a> {
    reason: &'a str,
    records: u64,
}

/// What CPU samples are samples of.
#[derive(Serialize)]
pub(super) struct CpuEventOut<'a> {
    pub(super) name: &'a str,
    pub(super) period_ns: u64,
}

pub(super) fn trust(trust: &Trust) -> TrustOut<'_> {
    let counts = &trust.counts;
    TrustOut {
        records: trust.records,
        begins: counts.begins,
        ends: counts.ends,
        begun: counts.begun,
        phases: counts.phases,
        restarts: counts.restarts,
        joined: counts.joined,
        ended: counts.ended,
        open: counts.open,
        uncertain: counts.uncertain,
        uncertain_ended: counts.uncertain_ended,
        unmatched: counts.unmatched,
        not_asked_for: counts.not_asked_for,
        joined_ends: counts.joined_ends,
        outside: counts.outside,
        sleep_waits: trust.sleeps.map(|sleeps| sleeps.waits),
        sleeps: trust.sleeps.map(|sleeps| sleeps.sleeps),
        lost: lost(trust),
        throttled: trust.throttled,
        sched_until_ns: trust.sched_until.map(|until| until.0),
        lost_sched: (trust.lost_sched > 0).then_some(trust.lost_sched),
        unreadable: trust
            .unreadable
            .iter()
            .map(|(reason, records)| UnreadableOut { reason, records: *records })
            .collect(),
        out_of_order: trust.out_of_order,
        cpu_samples: trust.cpu_samples,
        cpu_event: trust
            .cpu_event
            .as_ref()
            .map(|(name, period)| CpuEventOut { name, period_ns: period.0 }),
        floor_ns: trust.floor.map(|t| t.0),
        wait_ns: trust.wait.0,
        caller_named_ns: trust.caller_named.0,
        lock_named_ns: trust.lock_named.0,
        charged_ns: trust.charged.map(|t| t.0),
        kernel_symbols: &trust.kernel_symbols,
        folded_keys: trust.folded_keys,
        rung: &trust.rung,
        recorder_cpu_ns: trust.recorder_cpu.map(|t| t.0),
        cpus_changed: &trust.cpus_changed,
        notes: &trust.notes,
    }
}

pub(super) fn lost(trust: &Trust) -> Vec<LostOut> {
    let lost = trust.lost.iter();
    lost.map(|&(cpu, records)| LostOut { cpu: cpu.map(|cpu| cpu.0), records }).collect()
}
