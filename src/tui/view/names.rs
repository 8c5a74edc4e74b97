//! What a row is called: its type, its name, and what stands beside it. Escaped.

use crate::model::{LockType, Mode};
use crate::render::escape::visible;
use crate::render::{Cell, cells};
use crate::report::{Row, TaskName};

/// A row in words.
pub(in crate::tui) struct Name {
    /// The lock's type, or where rows are tasks the type that they waited for most.
    pub(in crate::tui) lock_type: String,
    /// The lock, the caller, the task or the releaser.
    pub(in crate::tui) name: Cell,
    /// Its lock, its address or its number.
    pub(in crate::tui) beside: String,
}

/// The words of a row, whatever rows stand for.
pub(in crate::tui) fn name(row: &Row) -> Name {
    let key = &row.key;
    let lock_type = match (key.lock_type, row.splits.as_slice(), key.lock_kind) {
        (Some(lock_type), ..) => lock_type.to_string(),
        (None, [only], _) => only.lock_type.to_string(),
        (None, _, Some(kind)) => kind.name().to_owned(),
        (None, ..) => mostly(row).map_or("-".to_owned(), |lock_type| lock_type.to_string()),
    };
    let (name, beside) = if key.releaser.is_some() {
        (cells::charged(key.releaser.as_ref()), String::new())
    } else if let Some(task) = &key.task {
        (Cell::new(visible(&task.comm)), id(task))
    } else if let Some(cgroup) = &key.cgroup {
        (Cell::new(visible(cgroup)), String::new())
    } else if key.lock_type.is_some() {
        let lock = cells::lock_beside_caller(key);
        (cells::caller(key), visible(&lock).into_owned())
    } else {
        let address = key.lock_addr.map_or(String::new(), |addr| addr.to_string());
        (cells::lock_and_owner(key), address)
    };
    Name { lock_type, name, beside }
}

/// Whether a row has a text, in lower case, in its words or in the names of its tasks.
pub(in crate::tui) fn contain(row: &Row, wanted: &str) -> bool {
    let Name { lock_type, name, beside } = name(row);
    let tasks = row.tasks.iter().map(|(task, _)| task.comm.as_str());
    [lock_type.as_str(), &name.text, &beside]
        .into_iter()
        .chain(tasks)
        .any(|word| word.to_lowercase().contains(wanted))
}

/// `comm/tid`.
pub(super) fn task(task: &TaskName) -> String {
    match task.tid {
        0 => visible(&task.comm).into_owned(),
        tid => format!("{}/{tid}", visible(&task.comm)),
    }
}

fn id(task: &TaskName) -> String {
    match (task.pid, task.tid) {
        (0, 0) => String::new(),
        (pid, tid) if pid == tid => format!("{pid}"),
        (pid, tid) => format!("{pid}/{tid}"),
    }
}

fn mostly(row: &Row) -> Option<LockType> {
    let most = row.splits.iter().max_by_key(|split| (split.stat.wait(), split.stat.contended()));
    most.map(|split| split.lock_type)
}

/// Readers' and writers' shares of a row's waiting; `None` where nobody reads.
pub(super) fn balance(row: &Row) -> Option<f64> {
    let of = |mode: Mode| -> u64 {
        let of_mode = row.splits.iter().filter(|split| split.lock_type.mode == mode);
        of_mode.map(|split| split.stat.wait().0).sum()
    };
    let (read, write) = (of(Mode::Read), of(Mode::Write));
    (read + write > 0 && row.splits.len() > 1)
        .then(|| read as f64 / (u128::from(read) + u128::from(write)) as f64)
}
