//! The screen over a recording that runs, on a terminal of its own.

use std::fs::read_to_string;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::machine::{LOCKPROF, Machine, say, skip};
use crate::pty::Session;

fn record(machine: &Machine, command: &[&str]) -> Session {
    let args = [&["record", "--"], command].concat();
    Session::start(Path::new(LOCKPROF), &args, &machine.place(""))
}

fn shows(text: &str) -> impl Fn(&vt100::Screen) -> bool {
    move |screen| screen.alternate_screen() && screen.contents().contains(text)
}

/// The recording reads without a warning, and says what is asked for.
fn number(machine: &Machine, name: &str) -> u64 {
    machine.report(&[])[name]["contended"].as_u64().unwrap()
}

#[test]
fn the_screen_shows_the_hammers_lock_while_it_runs_and_the_summary_says_the_same() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut session = record(&machine, &[LOCKPROF, "hammer", "mmap-sem", "--seconds", "300s"]);
    session.until("the lock", shows("mmap_lock"));
    session.until("running", shows("running"));
    session.press("\r");
    session.until("its detail", shows("where waiters came from"));
    session.press("\x1b");
    session.until("the table again", shows("R|W"));
    session.press("-");
    session.until("a window", shows("last 60 s"));
    session.press("qs");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(143), "{shown}");
    assert_summary_is_the_report(&machine, &shown);
    assert!(number(&machine, "total") > 20);
}

/// What the terminal shows of the summary is the end of what `report` prints of the file.
fn assert_summary_is_the_report(machine: &Machine, shown: &str) {
    let report = machine.lockprof(["report", "--top", "10"]).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    let summary = shown.lines().take_while(|line| !line.starts_with("next: "));
    let summary: Vec<&str> = summary.skip_while(|line| !line.contains(" of ")).collect();
    assert!(summary.iter().any(|line| line.starts_with("trust: ")), "{shown}");
    for line in summary {
        assert!(report.lines().any(|known| known == line), "{line}\nis not in\n{report}");
    }
}

#[test]
fn after_a_reset_the_summary_is_read_from_the_file_which_has_everything() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut session = record(&machine, &[LOCKPROF, "hammer", "mmap-sem", "--seconds", "300s"]);
    session.until("the lock", shows("mmap_lock"));
    session.press("0");
    session.until("that it was understood", shows("counting from now on"));
    session.until("waits counted anew", shows("mmap_lock"));
    session.press("qs");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(143), "{shown}");
    assert_summary_is_the_report(&machine, &shown);
}

#[test]
fn what_the_command_prints_is_a_pane_and_then_on_the_terminal_in_order() {
    let Some(machine) = Machine::or_skip() else { return };
    let script = "for n in 1 2 3; do echo line $n; sleep 0.3; done; read answer; echo said $answer";
    let mut session = record(&machine, &["sh", "-c", script]);
    session.until("the tabs", shows("4 Output"));
    session.press("4");
    session.until("its output", shows("line 3"));
    session.press("f");
    session.until("the keyboard", shows("keys go to the command"));
    session.press("yes q\r");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    let all = machine.report(&[]);
    assert_eq!(all["header"]["target"], Value::from(format!("sh -c {script}")));
}

#[test]
fn q_ends_the_recording_and_lets_the_command_go_on_to_its_own_status() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut session = record(&machine, &["sh", "-c", "sleep 20; echo late; exit 3"]);
    session.until("the tabs", shows("4 Output"));
    session.press("q");
    session.until("the question", shows("e ends the recording"));
    session.press("e");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(3), "{shown}");
    assert!(shown.contains("late"), "{shown}");
    let elapsed = machine.report(&[])["header"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed < 20_000_000_000, "the recording ended before the command: {elapsed} ns");
}

#[test]
fn stopping_the_command_ends_the_recording_with_its_status() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut session = record(&machine, &["sleep", "60"]);
    session.until("the tabs", shows("4 Output"));
    session.press("qs");
    assert_eq!(session.end().0.code(), Some(143));
    machine.report(&[]);
}

#[test]
fn signals_leave_a_finished_file_and_the_terminal_as_it_was() {
    let Some(machine) = Machine::or_skip() else { return };
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let hammer = [LOCKPROF, "hammer", "mmap-sem", "--seconds", "300s"];
        let mut session = record(&machine, &hammer);
        session.until("the lock", shows("mmap_lock"));
        session.signal(signal);
        let (ended, shown) = session.end();
        assert_eq!(ended.code(), Some(status), "{signal:?}: {shown}");
        assert!(number(&machine, "total") > 0);
    }
}

#[test]
fn control_c_ends_the_recording_and_reaches_the_command() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut session = record(&machine, &["sh", "-c", "trap 'exit 9' INT; sleep 60 & wait"]);
    session.until("the tabs", shows("4 Output"));
    session.press("\x03");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(9), "{shown}");
    machine.report(&[]);
}

#[test]
fn without_the_screen_the_command_has_the_terminal() {
    let Some(machine) = Machine::or_skip() else { return };
    let args = ["record", "--no-tui", "--", "sh", "-c", "test -t 1 && echo on a terminal"];
    let session = Session::start(Path::new(LOCKPROF), &args, &machine.place(""));
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    machine.report(&[]);
}

/// `examples/NAME/run.sh`, small; `None`, said aloud, where there can be no XFS in a file.
fn example(machine: &Machine, name: &str, scale: u32) -> Option<Session> {
    let works = |words: &[&str]| {
        machine.command(words).output().is_ok_and(|output| output.status.success())
    };
    if !works(&["losetup", "--find"]) {
        return skip("there is no loop device");
    }
    let file_systems = read_to_string("/proc/filesystems").unwrap();
    if !file_systems.contains("xfs") && !works(&["modprobe", "xfs"]) {
        return skip("this kernel has no XFS");
    }
    let script = format!("{}/examples/{name}/run.sh", env!("CARGO_MANIFEST_DIR"));
    let (program, scale) = (format!("LOCKPROF={LOCKPROF}"), format!("SCALE={scale}"));
    let words = [program.as_str(), &scale, "SIZE=8G", &script];
    Some(Session::start(Path::new("env"), &words, &machine.place("")))
}

#[test]
fn the_screen_shows_the_locks_of_fs_mark_and_of_xfs_repair() {
    let tools = ["losetup", "mount", "mkfs.xfs", "xfs_repair", "fs_mark"];
    let Some(machine) = Machine::with_tools_or_skip(&tools) else { return };
    for (name, scale, lock) in [("fs_mark", 10, "xfs AGI buffer"), ("xfs_repair", 20, "mmap_lock")]
    {
        let Some(mut session) = example(&machine, name, scale) else { return };
        let mut seen = vec![session.sees(shows(lock))];
        for (key, wanted) in [("s", "caller"), ("4", "[4 Output]"), ("1", "[1 Hotspots]")] {
            session.press(key);
            seen.push(session.sees(shows(wanted)));
        }
        // A fast machine may be done before the keys are.
        say(&format!("{name}: {lock}, call sites, output, hotspots seen in time: {seen:?}"));
        let (status, shown) = session.end();
        assert!(status.success() && shown.contains("== flame graph: "), "{name}: {shown}");
        let report = machine.report(&["--by", "lock", &format!("{name}.data")]);
        let rows = report["rows"].as_array().unwrap();
        let has_name = |row: &&Value| row["lock"]["name"].as_str().unwrap().starts_with(lock);
        let row = rows.iter().find(has_name).unwrap();
        assert!(row["share"].as_f64().unwrap() > 0.2, "{row}");
    }
}

#[test]
fn top_prints_blocks_that_tell_of_the_hammer() {
    let Some(machine) = Machine::or_skip() else { return };
    let mut hammer = machine.lockprof(["hammer", "mmap-sem", "--seconds", "20s"]).spawn().unwrap();
    let args = ["top", "--plain", "-n", "2", "-i", "500ms", "--format", "json"];
    let output = machine.lockprof(args).output().unwrap();
    hammer.kill().unwrap();
    hammer.wait().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let blocks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let first = &block["rows"][0];
        assert_eq!(first["lock"]["name"], "mmap_lock", "{first}");
        assert!(block["header"]["elapsed_ns"].as_u64().unwrap() < 10_000_000_000);
    }
}
