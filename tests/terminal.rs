//! The real terminal: what it shows, and that it is given back as it was.

#![allow(clippy::unwrap_used)]

mod pty;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use lockprof::tui::{Terminal, Theme};
use pty::{PATIENCE, Session, settings};
use rustix::process::Signal;

/// `lockprof tui` over a recording.
fn tui() -> Session {
    let folder = "tests/fixtures/recordings/6.18";
    let (data, symbols) = (format!("{folder}/convoy.data"), format!("{folder}/kallsyms.xz"));
    let program = Path::new(env!("CARGO_BIN_EXE_lockprof"));
    let mut session =
        Session::start(program, &["tui", &data, "--kallsyms", &symbols], Path::new("."));
    session.until("the table is there", |screen| screen.contents().contains("mmap_lock"));
    assert!(session.screen().alternate_screen());
    assert_ne!(settings(&session.user), session.before);
    session
}

#[test]
fn q_gives_the_terminal_back() {
    let mut session = tui();
    session.press("q");
    assert_eq!(session.end().0.code(), Some(0));
}

#[test]
fn signals_give_the_terminal_back_and_are_the_exit_status() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let session = tui();
        session.signal(signal);
        assert_eq!(session.end().0.code(), Some(status), "{signal:?}");
    }
}

#[test]
fn control_z_gives_the_terminal_back_until_it_goes_on() {
    for by_key in [true, false] {
        let mut session = tui();
        match by_key {
            true => session.press("\x1a"),
            false => session.signal(Signal::TSTP),
        }
        let begun = Instant::now();
        while !session.is_stopped() {
            session.read();
            assert!(begun.elapsed() < PATIENCE, "never stopped");
        }
        session.until("the normal screen", |screen| !screen.alternate_screen());
        assert_eq!(settings(&session.user), session.before);
        session.signal(Signal::CONT);
        session.until("the table is there again", |screen| {
            screen.alternate_screen() && screen.contents().contains("mmap_lock")
        });
        session.press("q");
        assert_eq!(session.end().0.code(), Some(0));
    }
}

#[test]
fn when_it_has_been_read_the_last_line_shows_the_keys_again() {
    let mut session = tui();
    session.press("s");
    session.until("the sites", |screen| screen.contents().contains("caller"));
    session.until("the keys", |screen| screen.contents().contains("q Ctrl-C quit"));
    session.press("q");
    session.end();
}

#[test]
fn another_size_is_drawn_anew() {
    let mut session = tui();
    session.resize(60, 20);
    session.until("too small", |screen| screen.contents().contains("60x20: too small"));
    session.press("q");
    session.end();
}

#[test]
fn without_a_terminal_there_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_lockprof")).arg("tui").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the screens need a terminal") && said.contains("hint:"), "{said}");
}

/// Set for the part of [`a_panic_gives_the_terminal_back`] that runs on a terminal.
const PANICS: &str = "LOCKPROF_TEST_PANICS";

/// Does nothing in an ordinary run.
#[test]
fn panics_with_a_screen() {
    if std::env::var_os(PANICS).is_none() {
        return;
    }
    let _terminal = Terminal::open(Theme::default()).unwrap();
    panic!("for a test");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let program = std::env::current_exe().unwrap();
    let (set, program) = (format!("{PANICS}=1"), program.to_str().unwrap());
    let args = [set.as_str(), program, "--exact", "panics_with_a_screen", "--nocapture"];
    let (status, shown) = Session::start(Path::new("env"), &args, Path::new(".")).end();
    assert!(!status.success());
    assert!(shown.contains("for a test"), "{shown}");
}
