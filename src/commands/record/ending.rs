//! The end of a recording: what was lost, what it cost, which files it speaks of.

use std::path::Path;

use anyhow::Context;
use lockprof_collectors::perf::plan::Lane;
use lockprof_collectors::perf::session::{LostCount, Session};
use lockprof_collectors::procfs::system::online_cpus;

use super::cost::Cost;
use crate::cli::messages::Failure;
use crate::cli::plan::RecordPlan;
use crate::recording::{BuildId, End, Synthesizer};
use crate::source::{LiveError, Recorded};
use crate::symbolize;

/// Finishes the file. A failure that ended the recording early is handed back when the file is good all
/// the same.
pub(super) fn finish(
    cost: &Cost,
    plan: &RecordPlan,
    recorded: Recorded<Session>,
    status: Option<i32>,
) -> Result<(End, Option<LiveError>), Failure> {
    let Recorded { rings: session, writer, sample_time, mapped_files, failure } = recorded;
    let mut writer = writer.context("the recording had no file")?;
    // Of wakings and switches that were lost LOST records tell: they touch no wait.
    let is_main = |count: &LostCount| session.events()[count.event].lane == Lane::Main;
    let mut lost = session.lost_counts()?;
    lost.retain(is_main);
    let mut records = Synthesizer::new(plan.events[0].attr.sample_type);
    lost.iter().for_each(|count| records.lost_samples(count.id, count.lost));
    let records = records.take();
    if failure.is_none() && !records.is_empty() {
        writer.append(&records)?;
    }
    let end = End {
        exit_status: status,
        lost: lost.iter().map(|count| count.lost).sum(),
        recorder_cpu_ns: cost.cpu().as_nanos() as u64,
        cpus_changed: cpus_changed(&plan.system.cpus_online),
        elapsed_ns: cost.elapsed().as_nanos() as u64,
        ..End::default()
    };
    let build_ids = build_ids(plan, &mapped_files);
    writer.finish(&end, &build_ids, sample_time).context("cannot finish the recording")?;
    Ok((end, failure))
}
/// CPUs that came or went since `before`.
fn cpus_changed(before: &[u32]) -> Vec<u32> {
    let now = online_cpus().unwrap_or_else(|_| before.to_vec());
    let came = now.iter().filter(|cpu| !before.contains(cpu));
    let went = before.iter().filter(|cpu| !now.contains(cpu));
    came.chain(went).copied().collect()
}

fn build_ids(plan: &RecordPlan, files: &[Vec<u8>]) -> Vec<BuildId> {
    let kernel = plan.system.kernel_build_id.clone();
    let kernel = kernel.map(|id| BuildId { id, name: "[kernel.kallsyms]".into(), kernel: true });
    let of_file = |file: &Vec<u8>| {
        let name = String::from_utf8_lossy(file).into_owned();
        let id = symbolize::build_id(Path::new(&name))?;
        Some(BuildId { id, name, kernel: false })
    };
    kernel.into_iter().chain(files.iter().filter_map(of_file)).collect()
}
