//! A program on a terminal of its own, made of a pty: keys in, screen out.

#![allow(dead_code)] // Each test program uses its part.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// Longer than anything takes on a loaded machine; nothing waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a terminal of its own.
pub(crate) struct Session {
    controller: File,
    pub(crate) user: OwnedFd,
    child: Child,
    screen: vt100::Parser,
    pub(crate) before: String,
}

impl Session {
    /// Starts a program as the leader of a session with this terminal (`setsid --ctty`).
    pub(crate) fn start(program: &Path, args: &[&str], directory: &Path) -> Session {
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
        // A job in the background ignores SIGINT, and so does all that it starts.
        let child = Command::new("env")
            .args(["--default-signal=INT", "setsid", "--ctty"])
            .arg(program)
            .args(args)
            .current_dir(directory)
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

    /// Reads what comes until the screen is as wanted.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let begun = Instant::now();
        while !wanted(self.screen.screen()) {
            let shown = self.screen.screen().contents();
            assert!(begun.elapsed() < PATIENCE, "never: {what}; the screen is\n{shown}");
            self.read();
        }
    }

    /// The same of a program that ends by itself: whether the screen was as wanted before that.
    pub(crate) fn sees(&mut self, wanted: impl Fn(&vt100::Screen) -> bool) -> bool {
        while !wanted(self.screen.screen()) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            self.read();
        }
        true
    }

    pub(crate) fn read(&mut self) {
        let mut polled = [PollFd::new(&self.controller, PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut polled, Some(&pause)).unwrap() > 0 {
            let mut bytes = [0; 65536];
            let count = self.controller.read(&mut bytes).unwrap_or(0);
            self.screen.process(&bytes[..count]);
        }
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.user, size).unwrap();
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    }

    /// The program ended, and the terminal is what it was.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
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
pub(crate) fn settings(terminal: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}
