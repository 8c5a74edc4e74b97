//! The recording that a command reads: opened, its kernel's symbols found, run through the pipe.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::analyse::Detail;
use crate::cli::args::InputArgs;
use crate::cli::messages::{self, Failure};
use crate::decode::{Body, Event};
use crate::kernel::{self, Kernel, Places, SymbolSource, Wanted};
use crate::model::Filter;
use crate::pipeline::{EventStream, Pipeline};
use crate::recording::Origin;
use crate::source::{Replay, Round};

/// Reading that takes longer than this shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens the recording.
pub(super) fn open(path: &Path) -> Result<Replay, Failure> {
    let replay = Replay::open(path);
    replay.map_err(|error| {
        let missing = matches!(&error, crate::recording::ReadError::Io { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound);
        let record = "record something first: lockprof record -- COMMAND".to_owned();
        let hint = if missing { Some(record) } else { error.hint() };
        let error = anyhow::Error::new(error).context(format!("cannot read `{}`", path.display()));
        Failure::new(error).hint(hint)
    })
}

/// The symbols of the recorded kernel, and where they are from.
pub(super) fn kernel_symbols(
    origin: &Origin,
    kallsyms: Option<&Path>,
) -> Result<(Kernel, SymbolSource), Failure> {
    let wanted = Wanted {
        explicit: kallsyms,
        embedded: origin.kallsyms.as_deref(),
        build_id: origin.kernel_build_id(),
        release: &origin.host.release,
    };
    let (kernel, source) = kernel::find(&wanted, &Places::of_this_machine())?;
    if let SymbolSource::None(_) = source {
        messages::warn(format_args!("kernel symbols: {source}"));
    }
    Ok((kernel, source))
}

/// Runs a whole recording through the pipe.
pub(super) fn analyse(
    input: &InputArgs,
    detail: Detail,
    filter: &Filter,
) -> Result<Pipeline, Failure> {
    let mut replay = open(&input.file)?;
    let origin = replay.take_origin();
    let (kernel, source) = kernel_symbols(&origin, input.kallsyms.as_deref())?;
    let mut pipeline = Pipeline::new(origin, (kernel, source.to_string()), detail, filter)?;
    let mut progress = Progress::new();
    let mut round = Round::default();
    while next(&mut replay, &mut round)? {
        progress.show(&replay);
        let bytes = pipeline.spare_buffer();
        pipeline.push(std::mem::replace(&mut round, Round { bytes, ..Round::default() }));
    }
    pipeline.finish();
    warn_of(&replay);
    Ok(pipeline)
}

/// Hands every event of a recording to `sink`, in order of time.
pub(super) fn events(
    replay: &mut Replay,
    origin: &Origin,
    mut sink: impl FnMut(&Event<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut stream = EventStream::new(origin)?;
    let mut progress = Progress::new();
    let mut round = Round::default();
    let mut result = Ok(());
    let mut take = |event: &Event<'_>| {
        if result.is_ok() && !is_round_mark(event) {
            result = sink(event);
        }
    };
    while next(replay, &mut round)? {
        progress.show(replay);
        let bytes = stream.spare_buffer();
        stream.push(std::mem::replace(&mut round, Round { bytes, ..Round::default() }), &mut take);
    }
    stream.finish(&mut take);
    result?;
    warn_of(replay);
    Ok(())
}

fn is_round_mark(event: &Event<'_>) -> bool {
    use lockprof_collectors::perf::record::kind;
    matches!(event.body, Body::Other(kind::FINISHED_ROUND))
}

fn next(replay: &mut Replay, round: &mut Round) -> Result<bool, Failure> {
    Ok(replay.next_round(round).context("cannot read the recording")?)
}

fn warn_of(replay: &Replay) {
    for warning in replay.warnings() {
        messages::warn(warning);
    }
}

/// How far the reading is, once it takes long.
struct Progress {
    begun: Instant,
    shown: Instant,
}

impl Progress {
    fn new() -> Progress {
        let now = Instant::now();
        Progress { begun: now, shown: now }
    }

    fn show(&mut self, replay: &Replay) {
        let due = self.begun.elapsed() > PATIENCE && self.shown.elapsed() > PATIENCE / 5;
        if due && !replay.is_empty() {
            let done = 100 * replay.position() / replay.len();
            let bar = "#".repeat(done as usize / 4);
            messages::status(format_args!("reading [{bar:<25}] {done} %"));
            self.shown = Instant::now();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown != self.begun {
            messages::clear_status();
        }
    }
}
