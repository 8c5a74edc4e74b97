//! What came back from the guests of one kernel.
//!
//! In: the folder that `run.sh` left, `VERSION/` with `skipped` or with `events/` and `spin/`; in each of
//! these `boot` (how it went), `cpu` (what the emulator had), `steps` (name, exit status, seconds), `*.data`,
//! `report-*.out` (what `lockprof report` said in the guest). Out: [`Booted`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::fault::Fault;
use crate::recorded::Recorded;

/// A command that a guest ran.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) status: i32,
}

/// One boot of a kernel: `events` or `spin`.
pub(crate) struct Booted {
    folder: PathBuf,
    fault: Fault,
    /// How long it took, or why it is not there.
    pub(crate) seconds: Result<f64, String>,
    pub(crate) steps: Vec<Step>,
    read: Mutex<BTreeMap<String, Arc<Recorded>>>,
}

impl Booted {
    /// The guest in `folder`.
    pub(crate) fn of(folder: &Path) -> Booted {
        let steps = fs::read_to_string(folder.join("steps")).unwrap_or_default();
        Booted {
            folder: folder.to_owned(),
            fault: Fault::None,
            seconds: seconds(folder),
            steps: steps.lines().filter_map(step).collect(),
            read: Mutex::default(),
        }
    }

    /// Recordings that travelled: they are in `folder`, and what ran beside them is not.
    pub(crate) fn travelled(folder: &Path) -> Booted {
        Booted { seconds: Ok(0.0), ..Booted::of(folder) }
    }

    /// The same, its recordings broken.
    pub(crate) fn with(&self, fault: Fault) -> Booted {
        Booted { fault, ..Booted::of(&self.folder) }
    }

    /// A recording, read once.
    pub(crate) fn recorded(&self, name: &str) -> Result<Arc<Recorded>, String> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = known.get(name) {
            return Ok(Arc::clone(read));
        }
        let file = self.folder.join(format!("{name}.data"));
        let read = Arc::new(Recorded::read(&file, self.fault)?);
        known.insert(name.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    /// Names of its recordings.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let data = paths.filter(|path| path.extension().is_some_and(|end| end == "data"));
        let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut names: Vec<String> = data.filter_map(stem).collect();
        names.sort();
        names
    }

    /// How much of a real CPU the emulator had.
    pub(crate) fn cpu_share(&self) -> Option<f64> {
        let text = self.text("cpu").ok()?;
        let times: Vec<f64> =
            text.split_whitespace().filter_map(|time| time.parse().ok()).collect();
        let [user, system, clock] = times[..] else { return None };
        Some((user + system) / clock)
    }

    /// JSON that a step printed.
    pub(crate) fn printed(&self, step: &str) -> Result<Value, String> {
        let text = self.text(&format!("{step}.out"))?;
        serde_json::from_str(&text).map_err(|error| format!("{step}: {error}"))
    }

    /// A file that it brought.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let bytes = fs::read(self.folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn seconds(folder: &Path) -> Result<f64, String> {
    let how = fs::read_to_string(folder.join("boot"));
    let how = how.map_err(|error| format!("no boot: {error}"))?;
    let booted = how.strip_prefix("booted ").and_then(|seconds| seconds.trim().parse().ok());
    booted.ok_or_else(|| how.trim().to_owned())
}

fn step(line: &str) -> Option<Step> {
    let mut words = line.split('\t');
    let name = words.next()?.to_owned();
    let status = words.next()?.parse().ok()?;
    Some(Step { name, status })
}
