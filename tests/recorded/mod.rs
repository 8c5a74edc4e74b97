//! Synthetic streams through the recorder: made-up rings in, a file of lockprof's own and the rounds that a
//! live screen is handed out.

#![allow(dead_code)] // Each test program uses its part.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use lockprof::analyse::Detail;
use lockprof::kernel::Kernel;
use lockprof::model::{Filter, GroupBy, Query};
use lockprof::pipeline::Pipeline;
use lockprof::recording::{End, Host, Origin, RecordedTarget, Settings, Synthesizer, Writer};
use lockprof::render::{Folded, Json, Renderer, Table};
use lockprof::report::Report;
use lockprof::source::{Recorder, Replay, Rings, Round, Synthetic};
use lockprof_collectors::perf::attr::flag;
use lockprof_collectors::perf::session::{Ready, SessionError};

/// Rings that hold what a test put there: each drain finds the next of its rounds.
#[derive(Debug)]
struct MadeUp(VecDeque<Vec<u8>>);

impl Rings for MadeUp {
    fn poll(&self, _timeout: Duration, _stop: BorrowedFd<'_>) -> Result<Ready, SessionError> {
        let stopped = if self.0.is_empty() { vec![0] } else { Vec::new() };
        Ok(Ready { rings: true, others: stopped })
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        let round = self.0.pop_front().unwrap_or_default();
        into.extend_from_slice(&round);
        round.len()
    }
}

/// What is known before the first record.
pub(crate) fn origin(kallsyms: &str) -> Origin {
    let mut origin = Synthetic::new().origin();
    origin.events[0].attr.flags |= flag::CONTEXT_SWITCH;
    let release = "6.12.0-rt".to_owned();
    origin.host =
        Host { release, cpus_online: 3, cpus_available: 3, page_size: 4096, ..Host::default() };
    origin.kallsyms = Some(kallsyms.as_bytes().to_vec());
    origin.settings = Some(Settings {
        lockprof_version: "0.1.0".to_owned(),
        target: RecordedTarget::System,
        floor_ns: Some(900),
        ..Settings::default()
    });
    origin
}

/// Records `rounds` into the file at `path`. Gives the rounds that a listener heard, and the file as
/// it stands before its end is written.
pub(crate) fn record(
    origin: &Origin,
    rounds: &[Vec<u8>],
    path: &Path,
) -> (Vec<Round>, Option<(u64, u64)>, Writer) {
    let writer = Writer::create(path, origin, &Synthetic::new().tracing_data()).unwrap();
    let rings = MadeUp(rounds.iter().cloned().collect());
    let never = File::open("/dev/null").unwrap();
    let mut heard = Vec::new();
    let recorded = Recorder::new(rings, writer, None).run(never.as_fd(), |round| {
        heard.push(round);
        None
    });
    assert!(recorded.failure.is_none(), "{:?}", recorded.failure);
    assert!(recorded.rings.0.is_empty());
    (heard, recorded.sample_time, recorded.writer.unwrap())
}

/// The end of a recording, with `lost` records by the counters of its events.
pub(crate) fn end(lost: u64) -> End {
    End { exit_status: Some(0), lost, recorder_cpu_ns: 12_345, ..End::default() }
}

/// Finishes the file as `record` does.
pub(crate) fn finish(mut writer: Writer, origin: &Origin, end: &End, time: Option<(u64, u64)>) {
    if end.lost > 0 {
        let mut records = Synthesizer::new(origin.events[0].attr.sample_type);
        records.lost_samples(1, end.lost);
        writer.append(&records.take()).unwrap();
    }
    writer.finish(end, &[], time).unwrap();
}

/// An empty pipe.
fn pipe(origin: Origin) -> Pipeline {
    let kernel = Kernel::from_kallsyms(origin.kallsyms.as_deref().unwrap_or_default());
    let detail = Detail { user_stacks: true, cpu_stacks: true, ..Detail::default() };
    Pipeline::new(origin, (kernel, "from the recording".into()), detail, &Filter::default())
        .unwrap()
}

/// What a live screen has at the end.
pub(crate) fn live(origin: &Origin, heard: &[Round], end: Option<End>) -> Pipeline {
    let mut pipeline = pipe(origin.clone());
    heard.iter().for_each(|round| pipeline.push(round.clone()));
    pipeline.finish();
    end.into_iter().for_each(|end| pipeline.set_end(end));
    pipeline
}

/// What a report of the file has, and what was said about its records.
pub(crate) fn replayed(mut replay: Replay) -> (Pipeline, Vec<String>) {
    let mut pipeline = pipe(replay.take_origin());
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    (pipeline, replay.warnings().to_vec())
}

/// Every kind of report, notes left out when they are not wanted.
pub(crate) fn reports(pipeline: &Pipeline, notes: bool) -> Vec<Report> {
    let ask = |by| {
        let mut report = pipeline.report(&Query { by, top: 0, stacks: true, ..Query::default() });
        if !notes {
            report.trust.notes.clear();
        }
        report
    };
    [GroupBy::Site, GroupBy::Lock, GroupBy::Task].map(ask).to_vec()
}

/// What is printed of them.
pub(crate) fn printed(reports: &[Report]) -> String {
    let renderers: [&dyn Renderer; 3] = [&Table::default(), &Json, &Folded::default()];
    let mut out = Vec::new();
    for report in reports {
        renderers.iter().for_each(|renderer| renderer.render(report, &mut out).unwrap());
    }
    String::from_utf8(out).unwrap()
}
