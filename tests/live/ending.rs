//! How a recording ends: by the command, by a signal, by the time; and with which status.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::machine::{FILE, LOCKPROF, Machine, Running, records, text};

fn said(output: &Output) -> String {
    text(&output.stderr)
}

/// The recording is finished: it can be read without a warning.
fn assert_finished(machine: &Machine, output: &Output) {
    let report = machine.lockprof(["report"]).output().unwrap();
    assert!(report.status.success(), "{}\n{}", said(&report), said(output));
    assert_eq!(said(&report), "", "{}", said(output));
}

#[test]
fn the_status_is_the_commands_own_or_128_and_its_signal() {
    let Some(machine) = Machine::or_skip() else { return };
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)] {
        let output = machine.lockprof(["record", "--", "sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}: {}", said(&output));
        assert_finished(&machine, &output);
    }
}

#[test]
fn a_command_that_cannot_be_run_costs_no_recording() {
    let Some(machine) = Machine::or_skip() else { return };
    std::fs::write(machine.place("plain"), "no program").unwrap();
    std::fs::write(machine.place(FILE), "old").unwrap();
    std::fs::write(machine.place("lockprof.data.old"), "older").unwrap();
    for (command, status) in [("no-such-command", 127), ("./plain", 126)] {
        let output = machine.lockprof(["record", "--", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert_eq!(std::fs::read(machine.place(FILE)).unwrap(), b"old");
        assert_eq!(std::fs::read(machine.place("lockprof.data.old")).unwrap(), b"older");
    }
    assert_eq!(std::fs::read_dir(machine.place("")).unwrap().count(), 3, "nothing else is left");
}

#[test]
fn after_the_time_the_recording_ends_and_the_command_goes_on_to_its_own_status() {
    let Some(machine) = Machine::or_skip() else { return };
    let script = "sleep 1.5; echo done; exit 3";
    let args = ["record", "-d", "300ms", "--", "sh", "-c", script];
    let output = machine.lockprof(args).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(3), "done"));
    assert!(said(&output).contains("the recording is finished; the command goes on"));
    assert_finished(&machine, &output);
    let elapsed = machine.report(&[])["header"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed < 1_500_000_000, "the recording ended before the command: {elapsed} ns");
}

#[test]
fn the_whole_machine_and_one_cpu_of_it_are_recorded_for_a_time() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut record = machine.lockprof(["record", "-a", "-d", "300ms"]);
    let recorder = Running::start(record.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let pid = recorder.0.id();
    let output = output_of(recorder);
    assert_finished(&machine, &output);
    let report = machine.report(&["--by", "task"]);
    assert!(report["trust"]["records"].as_u64().unwrap() > 0);
    let own = |row: &&Value| row["task"]["pid"] == pid && row["task"]["comm"] == "lockprof-floor";
    let measuring = report["rows"].as_array().unwrap().iter().find(own);
    assert_eq!(measuring, None, "the floor is measured before recording");
    let output = machine.record(["-C", "0", "-a", "-d", "300ms"]);
    assert_finished(&machine, &output);
    let sample = lockprof_collectors::perf::record::kind::SAMPLE;
    let records = records(&machine.place(FILE));
    let samples = records.iter().filter(|(header, _)| header.kind == sample);
    let cpus: std::collections::BTreeSet<u32> =
        samples.map(|(_, record)| super::machine::half(record, 40)).collect();
    assert!(cpus.iter().all(|cpu| *cpu == 0), "{cpus:?}");
}

/// Starts `lockprof record -- COMMAND` and waits until the command runs: it makes a file.
fn recording(machine: &Machine, script: &str) -> Running {
    recording_with(machine, ":", script)
}

/// The same with something that the command does before it makes the file.
fn recording_with(machine: &Machine, before: &str, script: &str) -> Running {
    let script = format!("{before}; echo $$ > running; {script}");
    let mut record = machine.lockprof(["record", "--", "sh", "-c", &script]);
    let mut recorder =
        Running::start(record.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_for(machine, "running", &mut recorder);
    recorder
}

/// Waits until `running` or what it started has made a file.
fn wait_for(machine: &Machine, file: &str, running: &mut Running) {
    while !machine.place(file).exists() {
        assert!(running.0.try_wait().unwrap().is_none(), "it ended before there was {file}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn output_of(mut recorder: Running) -> Output {
    use std::io::Read;
    let status = recorder.0.wait().unwrap();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    // The command may still run and hold stdout open: what lockprof said is on stderr.
    recorder.0.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    recorder.0.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    Output { status, stdout, stderr }
}

fn pid(running: &Running) -> Pid {
    Pid::from_child(&running.0)
}

/// The command's own pid.
fn command_runs(machine: &Machine) -> bool {
    let pid = std::fs::read_to_string(machine.place("running")).unwrap();
    std::path::Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn ctrl_c_finishes_the_recording_and_ends_the_command_with_it() {
    let Some(machine) = Machine::or_skip() else { return };
    let recorder = recording(&machine, "exec sleep 60");
    kill_process_group(pid(&recorder), Signal::INT).unwrap();
    let output = output_of(recorder);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(!command_runs(&machine), "no orphan");
    assert_finished(&machine, &output);
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_command_once() {
    let Some(machine) = Machine::with_tools_or_skip(&["script"]) else { return };
    // The second SIGINT would end it by another way than the first.
    let command = "trap \"trap \\\"exit 99\\\" INT; sleep 1; exit 5\" INT; \
                   echo > running; while :; do sleep 0.1; done";
    let line = format!("exec {LOCKPROF} record -- sh -c '{command}'");
    let mut script = machine.command(["script", "-qfec", &line, "/dev/null"]);
    let mut terminal =
        Running::start(script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
    wait_for(&machine, "running", &mut terminal);
    terminal.0.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    // The end of its stdin would hang the terminal up.
    let stdin = terminal.0.stdin.take();
    let mut seen = Vec::new();
    std::io::Read::read_to_end(&mut terminal.0.stdout.take().unwrap(), &mut seen).unwrap();
    let status = terminal.0.wait().unwrap();
    drop(stdin);
    assert_eq!(status.code(), Some(5), "{}", text(&seen));
    assert!(text(&seen).contains("trust:"), "the summary is shown: {}", text(&seen));
}

#[test]
fn a_signal_to_lockprof_alone_is_passed_on() {
    let Some(machine) = Machine::or_skip() else { return };
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let recorder = recording(&machine, "exec sleep 60");
        kill_process(pid(&recorder), signal).unwrap();
        let output = output_of(recorder);
        assert_eq!(output.status.code(), Some(status), "{signal:?}: {}", said(&output));
        assert!(!command_runs(&machine), "{signal:?}: no orphan");
        assert_finished(&machine, &output);
        std::fs::remove_file(machine.place("running")).unwrap();
    }
}

#[test]
fn a_second_ctrl_c_ends_the_command_by_sigterm() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut recorder =
        recording_with(&machine, "trap 'echo > once' INT", "while :; do sleep 0.1; done");
    kill_process_group(pid(&recorder), Signal::INT).unwrap();
    wait_for(&machine, "once", &mut recorder);
    kill_process(pid(&recorder), Signal::INT).unwrap();
    let output = output_of(recorder);
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
    assert!(!command_runs(&machine), "no orphan");
    assert_finished(&machine, &output);
}

#[test]
fn a_command_that_does_not_end_with_ctrl_c_is_left_and_named() {
    let Some(machine) = Machine::or_skip() else { return };
    let recorder = recording_with(&machine, "trap '' INT", "exec sleep 60 >/dev/null 2>&1");
    kill_process_group(pid(&recorder), Signal::INT).unwrap();
    let output = output_of(recorder);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let command = std::fs::read_to_string(machine.place("running")).unwrap();
    let named = format!("the command still runs, as process {}", command.trim());
    assert!(said(&output).contains(&named), "{}", said(&output));
    assert!(command_runs(&machine));
    assert_finished(&machine, &output);
    let command: i32 = command.trim().parse().unwrap();
    kill_process(Pid::from_raw(command).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn the_time_of_a_whole_machine_is_cut_short_by_a_signal_which_is_success() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut record = machine.lockprof(["record", "-a", "-d", "60s"]);
    let mut recorder = Running::start(record.stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_for(&machine, FILE, &mut recorder);
    kill_process(pid(&recorder), Signal::INT).unwrap();
    let output = output_of(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_finished(&machine, &output);
}

#[test]
fn a_recording_started_with_nohup_outlives_its_terminal() {
    let Some(machine) = Machine::with_tools_or_skip(&["nohup"]) else { return };
    let args = ["record", "-d", "1s", "-o", "x.data", "--", "sh", "-c"];
    let script = "echo > running; sleep 0.7; exit 4";
    let mut nohup = machine.command(["nohup", LOCKPROF]);
    nohup.args(args).arg(script).stdout(Stdio::null()).stderr(Stdio::null());
    let mut recorder = Running::start(&mut nohup);
    wait_for(&machine, "running", &mut recorder);
    kill_process_group(pid(&recorder), Signal::HUP).unwrap();
    let status = recorder.0.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(4), None));
    let report =
        Command::new(LOCKPROF).arg("report").arg(machine.place("x.data")).output().unwrap();
    assert!(report.status.success() && report.stderr.is_empty(), "{}", said(&report));
}
