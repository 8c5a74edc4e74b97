//! Lock paths for programs: every path, every number in full, units in the names.
//!
//! In: [`Paths`]. Out: one JSON object, described by `schema/paths-v1.json`. All rows are written
//! whatever `--top` says, each on a line of its own.

use std::io;

use serde::Serialize;

use crate::attribute::CpuPath;
use crate::model::Spun;
use crate::render::json::{HeaderOut, header};
use crate::render::json_lines::Lines;
use crate::render::trust_json::{CpuEventOut, LostOut, lost};
use crate::render::{Json, Renderer, path_words};
use crate::report::{PathPart, PathRow, PathSkid, Paths, SkidPoint};

/// Goes up when a field changes its name, type or meaning; new fields do not count.
pub const PATHS_SCHEMA_VERSION: u32 = 1;

/// JSON Schema of the output.
pub const PATHS_SCHEMA: &str = include_str!("../../schema/paths-v1.json");

impl Renderer<Paths> for Json {
    fn render(&self, paths: &Paths, out: &mut dyn io::Write) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
        document(paths).serialize(&mut serializer).map_err(io::Error::from)?;
        out.write_all(b"\n")
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    lockprof_version: &'static str,
    by: &'static str,
    header: HeaderOut<'a>,
    total: SpunOut,
    machine: Option<SpunOut>,
    idle: SpunOut,
    irq_off_measurable: bool,
    paths: Vec<RowOut<'a>>,
    unclassified: Vec<UnclassifiedOut<'a>>,
    skid: SkidOut<'a>,
    trust: TrustOut<'a>,
}

#[derive(Serialize)]
struct SpunOut {
    cpu_ns: u64,
    interval_ns: u64,
    samples: u64,
}

#[derive(Serialize)]
struct RowOut<'a> {
    path: &'static str,
    lock_type: Option<String>,
    share: f64,
    machine_share: Option<f64>,
    #[serde(flatten)]
    spun: SpunOut,
    parts: Vec<PartOut<'a>>,
}

#[derive(Serialize)]
struct PartOut<'a> {
    function: &'a str,
    caller: Option<&'a str>,
    #[serde(flatten)]
    spun: SpunOut,
}

#[derive(Serialize)]
struct UnclassifiedOut<'a> {
    function: &'a str,
    #[serde(flatten)]
    spun: SpunOut,
}

#[derive(Default, Serialize)]
struct SkidOut<'a> {
    state: &'static str,
    moved_ns: u64,
    late_after_ns: Option<u64>,
    elsewhere_samples: u64,
    elsewhere_late: u64,
    points: Vec<PointOut<'a>>,
}

#[derive(Serialize)]
struct PointOut<'a> {
    function: &'a str,
    samples: u64,
    late: u64,
    moved: u64,
}

#[derive(Serialize)]
struct TrustOut<'a> {
    records: u64,
    lost: Vec<LostOut>,
    throttled: u64,
    cpu_samples: u64,
    cpu_event: Option<CpuEventOut<'a>>,
    wakings_with_stacks: bool,
    kernel_symbols: &'a str,
    folded_keys: u64,
    notes: &'a [String],
}

fn document(paths: &Paths) -> Document<'_> {
    let unclassified = paths.unclassified.iter();
    Document {
        schema_version: PATHS_SCHEMA_VERSION,
        lockprof_version: env!("CARGO_PKG_VERSION"),
        by: "path",
        header: header(&paths.header),
        total: spun(paths.total),
        machine: paths.machine.map(spun),
        idle: spun(paths.idle),
        irq_off_measurable: paths.irq_off_measurable,
        paths: paths.rows.iter().map(|r| row(paths, r)).collect(),
        unclassified: unclassified
            .map(|(function, time)| UnclassifiedOut { function, spun: spun(*time) })
            .collect(),
        skid: skid(&paths.skid),
        trust: trust(paths),
    }
}

fn spun(spun: Spun) -> SpunOut {
    SpunOut { cpu_ns: spun.time.0, interval_ns: spun.interval().0, samples: spun.samples }
}

fn row<'a>(paths: &Paths, row: &'a PathRow) -> RowOut<'a> {
    RowOut {
        path: word(row.path),
        lock_type: path_words::lock_type(row.path),
        share: paths.share(row.spun),
        machine_share: paths.machine_share(row.spun),
        spun: spun(row.spun),
        parts: row.parts.iter().map(part).collect(),
    }
}

/// The word for people, or one without a space.
pub(super) fn word(path: CpuPath) -> &'static str {
    match path {
        CpuPath::Work => "work",
        CpuPath::ContextSwitch => "context-switch",
        _ => path_words::path(path),
    }
}

fn part(part: &PathPart) -> PartOut<'_> {
    PartOut { function: &part.function, caller: part.caller.as_deref(), spun: spun(part.spun) }
}

fn skid(skid: &PathSkid) -> SkidOut<'_> {
    let none = |state| SkidOut { state, ..SkidOut::default() };
    match skid {
        PathSkid::Raw => none("raw"),
        PathSkid::NoClock => none("no-clock"),
        PathSkid::NoGrid => none("no-grid"),
        PathSkid::Moved(moved) => SkidOut {
            state: "corrected",
            moved_ns: moved.time.0,
            late_after_ns: Some(moved.late_after.0),
            elsewhere_samples: moved.elsewhere,
            elsewhere_late: moved.elsewhere_late,
            points: moved.points.iter().map(point).collect(),
        },
    }
}

fn point(point: &SkidPoint) -> PointOut<'_> {
    let SkidPoint { function, samples, late, moved } = point;
    PointOut { function, samples: *samples, late: *late, moved: *moved }
}

fn trust(paths: &Paths) -> TrustOut<'_> {
    let trust = &paths.trust;
    let event = trust.cpu_event.as_ref();
    TrustOut {
        records: trust.records,
        lost: lost(trust),
        throttled: trust.throttled,
        cpu_samples: trust.cpu_samples,
        cpu_event: event.map(|(name, period)| CpuEventOut { name, period_ns: period.0 }),
        wakings_with_stacks: paths.wakings_with_stacks,
        kernel_symbols: &trust.kernel_symbols,
        folded_keys: trust.folded_keys,
        notes: &trust.notes,
    }
}
