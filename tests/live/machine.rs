//! What every test here needs: the right to record, the machine for itself, a directory, and the
//! program run in it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockprof::source::{Replay, Round};
use lockprof_collectors::contention::{BEGIN, END};
use lockprof_collectors::perf::record::RecordHeader;
use lockprof_collectors::procfs::sysctl::Capabilities;
use lockprof_collectors::procfs::tracefs::Tracefs;
use serde_json::Value;

/// The program under test.
pub(crate) const LOCKPROF: &str = env!("CARGO_BIN_EXE_lockprof");

/// Where tests record to, in [`Machine::directory`].
pub(crate) const FILE: &str = "lockprof.data";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The machine, for one test.
pub(crate) struct Machine {
    directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    /// `None`, said aloud, when nothing can be recorded here.
    pub(crate) fn or_skip() -> Option<Machine> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !Capabilities::own().is_ok_and(|own| own.perfmon()) {
            return skip("this user has no CAP_PERFMON");
        }
        if let Err(error) = Tracefs::find().and_then(|found| found.tracepoints(&[BEGIN, END])) {
            return skip(&error.to_string());
        }
        Some(Machine { directory: tempfile::tempdir().unwrap(), _alone: alone })
    }

    /// As [`Machine::or_skip`], with these tools.
    pub(crate) fn with_tools_or_skip(tools: &[&str]) -> Option<Machine> {
        let machine = Machine::or_skip()?;
        match tools.iter().find(|tool| !is_installed(tool)) {
            Some(missing) => skip(&format!("{missing} is not installed")),
            None => Some(machine),
        }
    }

    /// A place in the test's own directory.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program to be run in the test's own directory.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        // A job in the background of a script ignores SIGINT, and hands that on.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").args(words).current_dir(self.directory.path());
        command.stdin(Stdio::null()).env("NO_COLOR", "1").env("PERF_PAGER", "cat");
        command
    }

    /// lockprof, to be run there.
    pub(crate) fn lockprof<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command([LOCKPROF]);
        command.args(args);
        command
    }

    /// Records, which has to go well, and gives what was said.
    pub(crate) fn record<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        let output = self.lockprof(["record"]).args(args).output().unwrap();
        assert!(output.status.success(), "{:?}: {}", output.status, text(&output.stderr));
        output
    }

    /// The report of [`FILE`].
    pub(crate) fn report(&self, args: &[&str]) -> Value {
        let output =
            self.lockprof(["report", "--top", "0", "--format", "json"]).args(args).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Says that this test is skipped, and why.
pub(crate) fn skip<T>(reason: &str) -> Option<T> {
    say(&format!("SKIPPED: {reason}"));
    None
}

/// Says something of this test. Not through `eprintln`, which the test harness keeps to itself.
pub(crate) fn say(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    io::stderr().write_all(format!("{test}: {what}\n").as_bytes()).unwrap();
}

pub(crate) fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}

/// This binary, playing a part: a test of that name that does nothing unless the variable is set.
pub(crate) fn part(test: &str) -> Vec<String> {
    let exe = std::env::current_exe().unwrap().display().to_string();
    let set = format!("{PART}=1");
    let test = format!("live::{test}");
    ["env", &set, &exe, "--exact", "--nocapture", "--quiet", &test].map(str::to_owned).to_vec()
}

const PART: &str = "LOCKPROF_TEST_PART";

/// Whether this process was started as [`part`].
pub(crate) fn plays_part() -> bool {
    std::env::var_os(PART).is_some()
}

/// A process that is ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// In a process group of its own, which a signal to the test does not reach.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.process_group(0).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All records of a recording, in the order of the file.
pub(crate) fn records(file: &std::path::Path) -> Vec<(RecordHeader, Vec<u8>)> {
    let mut replay = Replay::open(file).unwrap();
    let mut records = Vec::new();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        let mut rest = round.bytes.as_slice();
        while let Some(header) = RecordHeader::parse(rest) {
            let (record, behind) = rest.split_at(usize::from(header.size));
            records.push((header, record.to_vec()));
            rest = behind;
        }
    }
    records
}

/// The little-endian word at a place of a record.
pub(crate) fn word(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().unwrap())
}

/// The same of half its size.
pub(crate) fn half(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().unwrap())
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
