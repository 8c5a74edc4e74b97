//! lockprof as a library: the three locks of a recording that were waited for longest.
//!
//!     cargo run --release --example library -- lockprof.data
//!
//! In: a recording of lockprof or perf. Out: one line a lock on stdout. It is the whole road in small:
//! a source hands over the origin and then rounds, the pipeline takes them, a query gets a report.

use std::error::Error;
use std::path::{Path, PathBuf};

use lockprof::analyse::Detail;
use lockprof::kernel::{self, Places, Wanted};
use lockprof::model::{Filter, GroupBy, Query};
use lockprof::pipeline::Pipeline;
use lockprof::render::units;
use lockprof::report::{Report, Row};
use lockprof::source::{Replay, Round};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map_or("lockprof.data".into(), PathBuf::from);
    let report = worst_locks(&path)?;
    for row in report.rows.iter().take(report.top) {
        println!("{}", line(&report, row));
    }
    Ok(())
}

/// Reads the recording and asks it for its locks, most waited for first.
fn worst_locks(path: &Path) -> Result<Report, Box<dyn Error>> {
    let mut replay = Replay::open(path)?;
    let origin = replay.take_origin();
    // The symbols that lockprof stored; of a perf.data those of this machine, when its kernel is the
    // recorded one. Without symbols the report has addresses.
    let (symbols, found) = kernel::find(
        &Wanted {
            explicit: None,
            embedded: origin.kallsyms.as_deref(),
            build_id: origin.kernel_build_id(),
            release: &origin.host.release,
        },
        &Places::of_this_machine(),
    )?;
    let symbols = (symbols, found.to_string());
    let mut pipeline = Pipeline::new(origin, symbols, Detail::default(), &Filter::default())?;
    let mut round = Round::default();
    while replay.next_round(&mut round)? {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    Ok(pipeline.report(&Query { by: GroupBy::Lock, top: 3, ..Query::default() }))
}

/// `mmap_lock: 27.6 s (97 %) in 5,268 waits, p99 22 ms`
fn line(report: &Report, row: &Row) -> String {
    let lock = row.key.lock.as_ref().map_or("?", |lock| &lock.name);
    let (wait, share) = (row.stat.wait(), units::percent(report.share(&row.stat)));
    let waits = units::counted(row.stat.contended(), "wait");
    let how = match row.stat.ended.quantile(0.99) {
        Some(p99) => format!("in {waits}, p99 {}", units::time(p99)),
        None => "of spinning that only CPU samples saw".into(),
    };
    format!("{lock}: {} ({share}) {how}", units::time(wait))
}
