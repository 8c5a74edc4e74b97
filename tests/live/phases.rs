//! States of tasks against the kernel's own account of them, and floods of switches.

use std::time::Duration;

use serde_json::Value;

use super::machine::{LOCKPROF, Machine, Running, say, text};

/// More tasks than CPUs; each says at its end what the kernel counted: its pid, its time on CPUs and
/// its time in run queues (`Documentation/scheduler/sched-stats.rst`).
const CROWD: &str = r#"
work() {
    i=0
    while [ $i -lt 150000 ]; do i=$((i + 1)); done
    sleep 0.1
    while [ $i -gt 0 ]; do i=$((i - 1)); done
    read -r ran waited rest < /proc/$1/schedstat
    echo $1 $ran $waited
}
for n in 1 2 3 4; do sh -c "$WORK"' work $$' & done
wait
"#;

/// `(pid, on CPU, in a run queue)` of each line, in ns.
fn told(stdout: &[u8]) -> Vec<(String, f64, f64)> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let pid = words.next()?;
        let mut number = || words.next()?.parse().ok();
        Some((pid, number()?, number()?))
    };
    text(stdout).lines().filter_map(line).collect()
}

/// The script, whose tasks get the function by their environment.
fn crowd() -> String {
    let (function, rest) = CROWD.split_once("for n").unwrap();
    format!("export WORK='{function}'\nfor n{rest}")
}

#[test]
fn time_on_cpus_and_in_run_queues_is_what_the_kernel_counted() {
    let Some(machine) = Machine::or_skip() else { return };
    let script = crowd();
    let mut differences = Vec::new();
    // Another recording of this machine may have taken the rings' time: the best of three counts.
    for _ in 0..3 {
        let output = machine.record(["--no-cpu", "--", "sh", "-c", &script]);
        let told = told(&output.stdout);
        assert_eq!(told.len(), 4, "{output:?}");
        let difference = told.iter().map(|(pid, ran, waited)| {
            let report = machine.report(&["--pid", pid]);
            let ns = |part: &str| report["thread_time_ns"][part].as_f64().unwrap_or(f64::NAN);
            let off = |ours: f64, kernels: f64| (ours / kernels - 1.0).abs();
            off(ns("on_cpu"), *ran).max(off(ns("runnable"), *waited))
        });
        let worst = difference.fold(0.0, f64::max);
        say(&format!("differs from schedstat by {:.2} % at the most", 100.0 * worst));
        differences.push(worst);
        if worst < 0.05 {
            return;
        }
    }
    panic!("{differences:?}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Real-time threads that yield to each other switch as fast as CPUs can, and leave the recorder hardly
/// any time.
#[test]
fn a_flood_of_switches_loses_no_contention_events() {
    let Some(machine) = Machine::with_tools_or_skip(&["stress-ng"]) else { return };
    let mut flood = machine.command(["stress-ng", "--mutex", "4", "-t", "120", "--quiet"]);
    let _flood = Running::start(&mut flood);
    std::thread::sleep(Duration::from_millis(300));
    machine.record(["-a", "-d", "6s", "--no-blame", "--no-phases", "--no-sleeps"]);
    let without = machine.report(&[]);
    machine.record(["-a", "-d", "6s"]);
    let report = machine.report(&[]);
    let lost = |report: &Value| -> u64 {
        let lost = report["trust"]["lost"].as_array().unwrap();
        lost.iter().map(|lost| lost["records"].as_u64().unwrap()).sum()
    };
    let share = |report: &Value| lost(report) as f64 / number(&report["trust"]["records"]);
    let switches = &report["trust"]["sched_until_ns"];
    say(&format!(
        "lost {} of {} records, and {} of wakings and switches, which ended after {switches} ns; {} of \
         {} without these",
        lost(&report),
        report["trust"]["records"],
        report["trust"]["lost_sched"],
        lost(&without),
        without["trust"]["records"],
    ));
    if report["trust"]["lost_sched"].is_null() {
        return say(
            "SKIPPED: these CPUs are too slow for a flood, or the recorder is quick enough",
        );
    }
    assert!(share(&report) <= share(&without) + 0.001, "{}", report["trust"]);
}

#[test]
fn the_flags_leave_out_what_they_say() {
    let Some(machine) = Machine::or_skip() else { return };
    let hammer = ["--", LOCKPROF, "hammer", "mmap-sem", "--seconds", "500ms"];
    let recorded = |flags: &[&str]| {
        machine.record(flags.iter().chain(&hammer));
        machine.report(&["--by", "releaser"])
    };
    let phase =
        |report: &Value, name: &str| report["total"]["phases_ns"][name].as_f64().unwrap_or(0.0);
    let known = |report: &Value| phase(report, "asleep") > 0.0 && phase(report, "runnable") > 0.0;
    let report = recorded(&[]);
    assert!(known(&report) && report["total"]["holder_ns"].is_object(), "{report}");
    assert!(number(&report["trust"]["charged_ns"]) > 0.0, "{report}");
    let report = recorded(&["--no-blame"]);
    assert!(known(&report) && report["trust"]["charged_ns"].is_null(), "{report}");
    let report = recorded(&["--no-phases"]);
    assert_eq!(phase(&report, "runnable"), 0.0, "{report}");
    assert!(number(&report["trust"]["charged_ns"]) > 0.0, "{report}");
    let report = recorded(&["--no-phases", "--no-sleeps"]);
    assert_eq!(phase(&report, "asleep"), 0.0, "{report}");
    machine.record(["--cpu-only"].iter().chain(&hammer));
    let report = machine.report(&[]);
    assert_eq!(number(&report["trust"]["begins"]), 0.0);
    assert!(number(&report["trust"]["cpu_samples"]) > 0.0, "{report}");
}
