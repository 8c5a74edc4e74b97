//! The recording that a command reads: opened, its kernel's symbols found, run through the pipe.

use std::io;
use std::path::Path;

use anyhow::{Context, anyhow};

use super::read_ahead::ReadAhead;
use crate::analyse::Detail;
use crate::cli::args::InputArgs;
use crate::cli::messages::{self, Failure};
use crate::decode::{Body, Event};
use crate::kernel::{self, Kernel, Places, SymbolSource, Wanted};
use crate::model::Filter;
use crate::order::Dater;
use crate::pipeline::{EventStream, Pipeline};
use crate::recording::{Origin, ReadError};
use crate::source::Replay;

/// Opens the recording.
pub(super) fn open(path: &Path) -> Result<Replay, Failure> {
    Replay::open(path).map_err(|error| {
        let missing = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
        let (error, hint) = match error {
            ReadError::Io { source, .. } if missing(&source) => {
                let hint = "record something first: lockprof record -- COMMAND".to_owned();
                (anyhow::Error::new(source), Some(hint))
            }
            error => {
                let hint = error.hint();
                (anyhow::Error::new(error), hint)
            }
        };
        Failure::new(error.context(format!("cannot read `{}`", path.display()))).hint(hint)
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
    if !filter.cgroup.is_empty() && !origin.has_cgroups() {
        return Err(no_cgroups());
    }
    // Reading goes on while symbols are looked for.
    let dater = Dater::new(&origin.events)?;
    let mut ahead = ReadAhead::start(replay, dater).context("cannot start a thread")?;
    let (kernel, source) = kernel_symbols(&origin, input.kallsyms.as_deref())?;
    let mut pipeline = Pipeline::new(origin, (kernel, source.to_string()), detail, filter)?;
    while let Some(ordered) = ahead.next() {
        pipeline.push_ordered(ordered);
        ahead.give_back(|| pipeline.spare_buffer());
    }
    pipeline.finish();
    ahead.finish()?;
    Ok(pipeline)
}

/// The question is about cgroups, of which the recording knows nothing.
pub(super) fn no_cgroups() -> Failure {
    let hint = "lockprof record --cgroups -- COMMAND, or lockprof record -G PATH".to_owned();
    Failure::new(anyhow!("the recording does not say in which cgroups tasks were")).hint(hint)
}

/// Hands every event of a recording to `sink`, in order of time.
pub(super) fn events(
    replay: Replay,
    origin: &Origin,
    mut sink: impl FnMut(&Event<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut stream = EventStream::new(origin)?;
    let dater = Dater::new(&origin.events)?;
    let mut ahead = ReadAhead::start(replay, dater).context("cannot start a thread")?;
    let mut result = Ok(());
    let mut take = |event: &Event<'_>| {
        if result.is_ok() && !is_round_mark(event) {
            result = sink(event);
        }
    };
    while let Some(ordered) = ahead.next() {
        stream.push_ordered(ordered, &mut take);
        ahead.give_back(|| stream.spare_buffer());
    }
    stream.finish(&mut take);
    result?;
    ahead.finish()
}

fn is_round_mark(event: &Event<'_>) -> bool {
    use lockprof_collectors::perf::record::kind;
    matches!(event.body, Body::Other(kind::FINISHED_ROUND))
}
