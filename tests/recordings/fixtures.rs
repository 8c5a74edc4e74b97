//! The recordings under `tests/fixtures/recordings`, each with its kernel's symbols. What takes long is
//! done once for all tests: unpacking symbols, and running recordings through the pipe.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;

use lockprof::analyse::Detail;
use lockprof::decode::Event;
use lockprof::kernel::{Kernel, Places, Wanted, find};
use lockprof::model::{Filter, GroupBy, Query};
use lockprof::pipeline::{EventStream, Pipeline};
use lockprof::report::Report;
use lockprof::source::{Replay, Round};

/// Relative to the package, where tests run: the path is part of what reports say.
const ROOT: &str = "tests/fixtures/recordings";

pub(crate) const KERNELS: [&str; 7] = ["5.10", "5.10-rt", "6.1", "6.12", "6.12-rt", "6.18", "7.2"];

pub(crate) fn root() -> &'static Path {
    Path::new(ROOT)
}

/// Names of a kernel's recordings, `cpu-mmap` and so on.
pub(crate) fn names_of(kernel: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(kernel)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let data = paths.filter(|path| path.extension().is_some_and(|end| end == "data"));
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = data.map(stem).collect();
    names.sort();
    names
}

/// A recording's replay from its first record on.
pub(crate) fn replay(kernel: &str, name: &str) -> Replay {
    Replay::open(&root().join(kernel).join(format!("{name}.data"))).unwrap()
}

/// A kernel's symbols, and where they are from.
pub(crate) fn symbols(kernel: &str) -> (Kernel, String) {
    static SYMBOLS: LazyLock<Vec<(Kernel, String)>> =
        LazyLock::new(|| side_by_side(&KERNELS, |kernel| unpack(kernel)));
    let at = KERNELS.iter().position(|known| *known == kernel).unwrap();
    SYMBOLS[at].clone()
}

fn unpack(kernel: &str) -> (Kernel, String) {
    let kallsyms = root().join(kernel).join("kallsyms.xz");
    let wanted = Wanted { explicit: Some(&kallsyms), ..Wanted::default() };
    let (kernel, source) = find(&wanted, &Places::of_this_machine()).unwrap();
    (kernel, source.to_string())
}

/// What is made of each item, on a thread each.
fn side_by_side<T: Sync, U: Send>(items: &[T], make: impl Fn(&T) -> U + Sync) -> Vec<U> {
    thread::scope(|scope| {
        let make = &make;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || make(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A recording and what reports say of it, all rows shown.
pub(crate) struct Recording {
    pub(crate) kernel: &'static str,
    pub(crate) name: String,
    pub(crate) by_site: Report,
    pub(crate) by_lock: Report,
    pub(crate) by_task: Report,
}

/// All recordings.
pub(crate) fn recordings() -> &'static [Recording] {
    static RECORDINGS: LazyLock<Vec<Recording>> =
        LazyLock::new(|| side_by_side(&KERNELS, |k| of_kernel(k)).into_iter().flatten().collect());
    &RECORDINGS
}

/// One of them.
pub(crate) fn recording(kernel: &str, name: &str) -> &'static Recording {
    let wanted = |recording: &&Recording| recording.kernel == kernel && recording.name == name;
    recordings().iter().find(wanted).unwrap_or_else(|| panic!("there is no {kernel}/{name}"))
}

fn of_kernel(kernel: &'static str) -> Vec<Recording> {
    let analyse = |name: String| {
        let pipeline = pipeline(kernel, &name);
        let report = |by| pipeline.report(&Query { by, top: 0, ..Query::default() });
        let [by_site, by_lock, by_task] = [GroupBy::Site, GroupBy::Lock, GroupBy::Task].map(report);
        Recording { kernel, name, by_site, by_lock, by_task }
    };
    names_of(kernel).into_iter().map(analyse).collect()
}

/// The pipe with a whole recording in it.
pub(crate) fn pipeline(kernel: &str, name: &str) -> Pipeline {
    let mut replay = replay(kernel, name);
    let pipeline = empty_pipeline(kernel, &mut replay);
    filled(pipeline, &mut replay)
}

/// A pipe for the records of `replay`.
pub(crate) fn empty_pipeline(kernel: &str, replay: &mut Replay) -> Pipeline {
    let (origin, symbols) = (replay.take_origin(), symbols(kernel));
    Pipeline::new(origin, symbols, Detail::default(), &Filter::default()).unwrap()
}

/// The same, its contention events hidden.
pub(crate) fn without_contention_events(kernel: &str, name: &str) -> Pipeline {
    hiding_contention(kernel, name, symbols(kernel))
}

/// The same, with these symbols.
pub(crate) fn hiding_contention(kernel: &str, name: &str, symbols: (Kernel, String)) -> Pipeline {
    let mut replay = replay(kernel, name);
    let mut origin = replay.take_origin();
    for event in origin.events.iter_mut().filter(|event| event.name.starts_with("lock:")) {
        event.name = "hidden:event".to_owned();
    }
    let pipeline = Pipeline::new(origin, symbols, Detail::default(), &Filter::default()).unwrap();
    filled(pipeline, &mut replay)
}

/// The pipe with all records of `replay` in it.
fn filled(mut pipeline: Pipeline, replay: &mut Replay) -> Pipeline {
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    assert_eq!(replay.warnings(), [""; 0]);
    pipeline
}

/// Every event of a recording in order of time.
pub(crate) fn events(kernel: &str, name: &str, mut sink: impl FnMut(&Event<'_>)) {
    let mut replay = replay(kernel, name);
    let mut stream = EventStream::new(replay.origin()).unwrap();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        stream.push(std::mem::take(&mut round), &mut sink);
    }
    stream.finish(&mut sink);
}
