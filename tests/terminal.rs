//! The real terminal, made of a pty: what it shows, and that it is given back as it was.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lockprof::tui::{Terminal, Theme};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// Longer than anything takes on a loaded machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a terminal of its own.
struct Session {
    controller: File,
    user: OwnedFd,
    child: Child,
    screen: vt100::Parser,
    before: String,
}

impl Session {
    /// Starts a program as the leader of a session with this terminal (`setsid --ctty`).
    fn start(program: &Path, args: &[&str]) -> Session {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let open = || {
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
            rustix::fs::open(&*name, flags, rustix::fs::Mode::empty()).unwrap()
        };
        let user = open();
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).unwrap();
        let before = settings(&user);
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(program)
            .args(args)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .unwrap();
        let screen = vt100::Parser::new(30, 100, 0);
        Session { controller: File::from(controller), user, child, screen, before }
    }

    /// `lockprof tui` over a recording.
    fn tui() -> Session {
        let folder = "tests/fixtures/recordings/6.18";
        let (data, symbols) = (format!("{folder}/convoy.data"), format!("{folder}/kallsyms.xz"));
        let program = Path::new(env!("CARGO_BIN_EXE_lockprof"));
        let mut session = Session::start(program, &["tui", &data, "--kallsyms", &symbols]);
        session.until("the table is there", |screen| screen.contents().contains("mmap_lock"));
        assert!(session.screen.screen().alternate_screen());
        assert_ne!(settings(&session.user), session.before);
        session
    }

    /// Reads what comes until the screen is as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let begun = Instant::now();
        while !wanted(self.screen.screen()) {
            let shown = self.screen.screen().contents();
            assert!(begun.elapsed() < PATIENCE, "never: {what}; the screen is\n{shown}");
            self.read();
        }
    }

    fn read(&mut self) {
        let mut polled = [PollFd::new(&self.controller, PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut polled, Some(&pause)).unwrap() > 0 {
            let mut bytes = [0; 65536];
            let count = self.controller.read(&mut bytes).unwrap_or(0);
            self.screen.process(&bytes[..count]);
        }
    }

    fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    }

    /// The program ended, and the terminal is what it was.
    fn end(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        let status = loop {
            self.read();
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "never ended");
        };
        self.until("the normal screen", |screen| !screen.alternate_screen());
        self.read();
        assert!(!self.screen.screen().hide_cursor());
        assert_eq!(self.screen.screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(settings(&self.user), self.before);
        (status, self.screen.screen().contents())
    }
}

/// What `stty -a` prints, in other words.
fn settings(terminal: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}

#[test]
fn q_gives_the_terminal_back() {
    let mut session = Session::tui();
    session.press("q");
    assert_eq!(session.end().0.code(), Some(0));
}

#[test]
fn signals_give_the_terminal_back_and_are_the_exit_status() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let session = Session::tui();
        session.signal(signal);
        assert_eq!(session.end().0.code(), Some(status), "{signal:?}");
    }
}

#[test]
fn control_z_gives_the_terminal_back_until_it_goes_on() {
    for by_key in [true, false] {
        let mut session = Session::tui();
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
fn another_size_is_drawn_anew() {
    let mut session = Session::tui();
    let size = Winsize { ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&session.user, size).unwrap();
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

/// What [`a_panic_gives_the_terminal_back`] runs on a terminal.
#[test]
#[ignore = "panics, for another test"]
fn panics_with_a_screen() {
    let _terminal = Terminal::open(Theme::default()).unwrap();
    panic!("for a test");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "panics_with_a_screen", "--ignored", "--nocapture"];
    let (status, shown) = Session::start(&program, &args).end();
    assert!(!status.success());
    assert!(shown.contains("for a test"), "{shown}");
}
