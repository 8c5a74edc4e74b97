//! Work whose time goes elsewhere: no lock is blamed for it, and the report says what the time was.

use std::process::Command;

use serde_json::Value;

use super::machine::{FILE, Machine, say, skip, text};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Nothing is blamed: waits are next to nothing of the time off CPU, and no finding speaks of any.
fn no_lock_is_blamed(name: &str, report: &Value) {
    let spent = &report["thread_time_ns"];
    let part = |part: &str| number(&spent[part]);
    let off_cpu = part("total") - part("on_cpu") - part("unknown");
    let share = number(&report["total"]["wait_ns"]) / off_cpu;
    say(&format!("{name}: {:.3} % of the time off CPU waits for locks", share * 100.0));
    assert!(off_cpu > 0.0 && share < 0.05, "{name}: {report}");
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{name}");
}

#[test]
fn flushes_of_other_cpus_and_timers_are_no_lock() {
    let Some(machine) = Machine::with_tools_or_skip(&["stress-ng"]) else { return };
    for stressor in ["--tlb-shootdown", "--timer"] {
        machine.record(["--", "stress-ng", "--quiet", stressor, "2", "-t", "1"]);
        no_lock_is_blamed(stressor, &machine.report(&[]));
    }
}

#[test]
fn waiting_for_a_disk_is_no_lock_and_the_report_says_where_it_slept() {
    let Some(machine) = Machine::with_tools_or_skip(&["dd"]) else { return };
    let file = machine.place("zeroes");
    std::fs::write(&file, vec![0; 8 << 20]).unwrap();
    std::fs::File::open(&file).and_then(|file| file.sync_all()).unwrap();
    // Past the page cache: every block is a wait of its own.
    let input = format!("if={}", file.display());
    let dd = ["dd", &input, "of=/dev/null", "bs=16k", "iflag=direct"];
    if !Command::new(dd[0]).args(&dd[1..]).output().is_ok_and(|dd| dd.status.success()) {
        skip::<()>("files here cannot be read past the page cache");
        return;
    }
    machine.record(std::iter::once("--").chain(dd));
    let report = machine.report(&[]);
    no_lock_is_blamed("dd iflag=direct", &report);
    let sleeps = report["thread_sleeps"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(sleeps.iter().any(|sleep| sleep["function"].is_string()), "{report}");
}

#[test]
fn all_threads_of_a_machine_together_have_no_more_than_its_cpus() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["-a", "-d", "1s"]);
    let report = machine.report(&[]);
    let header = &report["header"];
    let most = number(&header["cpus"]) * number(&header["elapsed_ns"]);
    let on_cpu = number(&report["thread_time_ns"]["on_cpu"]);
    say(&format!("on CPUs {:.0} % of what there was", 100.0 * on_cpu / most));
    assert!(on_cpu > 0.0 && on_cpu <= 1.01 * most, "{on_cpu} of {most}: {report}");
}

/// More of the CPUs' time than this is no rest.
const BUSY: f64 = 0.2;

/// In which function threads slept most, and how much of the time off CPU that was.
fn slept_most(report: &Value) -> (&str, f64) {
    let spent = &report["thread_time_ns"];
    let off_cpu = number(&spent["total"]) - number(&spent["on_cpu"]) - number(&spent["unknown"]);
    let most = &report["thread_sleeps"][0];
    (most["function"].as_str().unwrap_or_default(), number(&most["time_ns"]) / off_cpu)
}

#[test]
fn a_command_that_rests_waited_for_no_lock_and_the_report_says_where_it_slept() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["--", "sleep", "1"]);
    let report = machine.report(&[]);
    no_lock_is_blamed("sleep 1", &report);
    let (function, share) = slept_most(&report);
    assert!(function.contains("nanosleep") && share > 0.9, "{function} {share}: {report}");
    let page = machine.lockprof(["report", FILE]).output().unwrap();
    let page = text(&page.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("of the time off CPU; for") && page.contains(function), "{page}");
}

#[test]
fn an_idle_machine_has_threads_that_sleep_and_no_lock_to_blame() {
    let Some(machine) = Machine::or_skip() else { return };
    machine.record(["-a", "-d", "1s"]);
    let report = machine.report(&[]);
    let cpus = number(&report["header"]["cpus"]) * number(&report["header"]["elapsed_ns"]);
    let busy = number(&report["thread_time_ns"]["on_cpu"]) / cpus;
    if busy > BUSY {
        skip::<()>(&format!("CPUs here are busy for {:.0} % of their time", busy * 100.0));
        return;
    }
    no_lock_is_blamed("idle", &report);
    let (function, share) = slept_most(&report);
    say(&format!("{:.0} % of the time off CPU in {function}", share * 100.0));
    assert!(!function.is_empty() && share > 0.0, "{report}");
}
