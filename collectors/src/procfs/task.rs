//! Tasks in `/proc`: which there are, their names, processes and parents.
//!
//! In: a pid. Out: [`Task`]s, lists of ids. Tasks end while one reads; their files are gone then
//! ([`ProcError::is_gone`]). Source: `proc(5)`.

use std::fs;
use std::path::Path;

use super::{ProcError, number, read_as};

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The process that started its process; zero for the first ones.
    pub parent: i32,
    /// Up to 15 bytes, any but NUL.
    pub comm: Vec<u8>,
    /// It has no memory of its own: a kernel thread.
    pub kernel: bool,
}

impl Task {
    /// Reads `/proc/PID/status` (the name is escaped there) and `/proc/PID/stat`, which has it as it
    /// is, in parentheses.
    pub fn parse(status: &[u8], stat: &[u8]) -> Option<Task> {
        let (open, close) = (find(stat, b'(')?, stat.iter().rposition(|byte| *byte == b')')?);
        Some(Task {
            tid: field(status, "Pid:")?,
            pid: field(status, "Tgid:")?,
            parent: field(status, "PPid:")?,
            comm: stat.get(open + 1..close)?.to_vec(),
            kernel: !status.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"VmSize:")),
        })
    }
}

fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|b| *b == byte)
}

/// The number behind a name in a status file.
fn field<T: std::str::FromStr>(status: &[u8], name: &str) -> Option<T> {
    let mut lines = status.split(|byte| *byte == b'\n');
    number(lines.find_map(|line| line.strip_prefix(name.as_bytes()))?)
}

/// One task.
pub fn task(tid: i32) -> Result<Task, ProcError> {
    let stat = super::read(format!("/proc/{tid}/stat"))?;
    read_as(format!("/proc/{tid}/status"), |status| Task::parse(status, &stat))
}

/// Ids of a process's threads, in order; empty when it has ended meanwhile.
pub fn threads(pid: i32) -> Result<Vec<i32>, ProcError> {
    numbered_entries(format!("/proc/{pid}/task").as_ref())
}

/// Ids of all processes, in order.
pub fn processes() -> Result<Vec<i32>, ProcError> {
    numbered_entries("/proc".as_ref())
}

fn numbered_entries(directory: &Path) -> Result<Vec<i32>, ProcError> {
    let error = |source| ProcError::Io { path: directory.to_path_buf(), source };
    let entries = fs::read_dir(directory).map_err(error)?;
    let names = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
    let mut ids: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &[u8] =
        b"Name:\ta)\\nb\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t40\nNgid:\t0\n\
        Pid:\t41\nPPid:\t1\nTracerPid:\t0\nVmSize:\t   2500 kB\n";

    #[test]
    fn a_task_is_read_whatever_stands_in_its_name() {
        let task = Task::parse(STATUS, b"41 (a) R (\nb) S 1 40 40 0 -1\n").unwrap();
        let comm = b"a) R (\nb".to_vec();
        assert_eq!(task, Task { tid: 41, pid: 40, parent: 1, comm, kernel: false });
    }

    #[test]
    fn a_task_without_memory_is_a_kernel_thread() {
        let status = b"Name:\tkworker/0:1\nTgid:\t9\nPid:\t9\nPPid:\t2\n";
        assert!(Task::parse(status, b"9 (kworker/0:1) I 2").unwrap().kernel);
    }

    #[test]
    fn files_that_are_cut_are_no_task() {
        assert_eq!(Task::parse(STATUS, b"41 )("), None);
        assert_eq!(Task::parse(STATUS, b"41 (name"), None);
        assert_eq!(Task::parse(b"Pid:\t41\nTgid:\tmany\n", b"41 (x) S"), None);
    }

    #[test]
    fn our_own_task_is_found_and_one_that_ended_is_told_as_gone() {
        let own = rustix::process::getpid().as_raw_pid();
        assert!(processes().unwrap().contains(&own));
        assert!(threads(own).unwrap().contains(&own));
        assert_eq!(task(own).unwrap().pid, own);
        assert!(threads(i32::MAX).unwrap_err().is_gone());
        assert!(task(i32::MAX).unwrap_err().is_gone());
    }
}
