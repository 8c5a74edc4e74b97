//! The one pipe: rounds in, a report out. The only room that knows every stage.
//!
//! Live rings, recordings of lockprof and of perf, and tests push the same [`Round`]s. No stage after
//! the source reads a clock or a file: what a live screen shows and what a report says later are
//! equal by construction.

mod apart;
mod events;
mod faults;
mod hand_overs;
mod live;
mod lives;
mod recorded;
mod sink;
mod stages;

use crate::analyse::Detail;
use crate::correlate::{Copies, Sleeps, Wakeups};
use crate::decode::LayoutError;
use crate::kernel::Kernel;
use crate::model::{Filter, PathQuery, Query, TimeRange, TreeQuery};
use crate::order::Ordered;
use crate::recording::{End, Origin};
use crate::report::{self, Paths, Report, Sources, Tree};
use crate::source::Round;

pub use events::EventStream;
pub use faults::Faults;
pub use live::Now;
use lives::Lives;
use stages::Stages;

/// Rounds -> report.
#[derive(Debug)]
pub struct Pipeline {
    stream: EventStream,
    stages: Stages,
}

impl Pipeline {
    /// A pipe for the records of `origin`. `kernel_symbols` says where `kernel` came from. The parts of
    /// `filter` that need single waits apply from here on; queries cannot change them.
    pub fn new(
        origin: Origin,
        (kernel, kernel_symbols): (Kernel, String),
        detail: Detail,
        filter: &Filter,
    ) -> Result<Pipeline, LayoutError> {
        let stream = EventStream::new(&origin)?;
        let stages = Stages::new(origin, (kernel, kernel_symbols), detail, filter);
        Ok(Pipeline { stream, stages })
    }

    /// Takes a round.
    pub fn push(&mut self, round: Round) {
        let Pipeline { stream, stages } = self;
        stream.push(round, &mut |event| stages.take(event));
    }

    /// Takes records that another thread has put in order; instead of any round.
    pub fn push_ordered(&mut self, ordered: Ordered) {
        let Pipeline { stream, stages } = self;
        stream.push_ordered(ordered, &mut |event| stages.take(event));
    }

    /// The recording is over: waits that did not end stay open.
    pub fn finish(&mut self) {
        let Pipeline { stream, stages } = self;
        stream.finish(&mut |event| stages.take(event));
        stages.finish();
    }

    /// A buffer for the next round, whose memory was used before.
    pub fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.stream.spare_buffer()
    }

    /// Whether the recording says in which cgroups tasks were.
    pub fn has_cgroups(&self) -> bool {
        self.stages.origin.has_cgroups()
    }

    /// Waits that ended so far.
    pub fn waits(&self) -> u64 {
        self.stages.correlate.counts().ended
    }

    /// From the first event, or from where counting began anew, to the last one.
    pub fn span(&self) -> TimeRange {
        let (from, to) = self.stages.tables.span().unwrap_or_default();
        TimeRange { from, to }
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.stages.faults.all_lost().values().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    /// What the end of a recording says, when it is known only later than its beginning.
    pub fn set_end(&mut self, end: End) {
        // In a file LOST_SAMPLES records say the same.
        self.stages.faults.lose_samples(end.lost);
        self.stages.origin.end = Some(end);
    }

    /// The answer to `query` from what was pushed so far.
    pub fn report(&self, query: &Query) -> Report {
        report::build(&self.sources(None), query)
    }

    /// On which lock paths CPU time went. Wants [`Detail::cpu_stacks`].
    pub fn paths(&self, query: &PathQuery) -> Paths {
        report::paths(&self.sources(None), query)
    }

    /// On which call paths lock code was entered. Wants [`Detail::cpu_stacks`] for trees over CPU time.
    pub fn tree(&self, query: &TreeQuery) -> Tree {
        report::tree(&self.sources(None), query)
    }

    /// The slices of time that the history of rows speaks of; none unless waits are kept by time.
    pub fn slices(&self) -> Vec<TimeRange> {
        let timeline = self.stages.tables.timeline();
        timeline.map_or(Vec::new(), |timeline| timeline.slices().map(|s| s.range).collect())
    }

    /// Books and counts; `now`: what a question is about, where that is not all.
    fn sources<'a>(&'a self, now: Option<&'a Now>) -> Sources<'a> {
        let stages = &self.stages;
        let unreadable =
            self.stream.unreadable().iter().map(|(e, n)| (e.to_string(), *n)).collect();
        Sources {
            origin: &stages.origin,
            kernel: &stages.kernel,
            kernel_symbols: &stages.kernel_symbols,
            stacks: &stages.stacks,
            objects: stages.maps.objects(),
            symbolizer: &stages.symbolizer,
            tasks: &stages.tasks,
            cgroups: &stages.cgroups,
            attribution: &stages.attribution,
            tables: &stages.tables,
            sums: now.and_then(|now| now.sums.as_ref()).unwrap_or(stages.tables.whole()),
            part: now.map(|now| &now.waits),
            counts: stages.correlate.counts(),
            lost: stages.faults.all_lost(),
            throttled: stages.faults.throttled,
            unreadable,
            order: self.stream.order_faults(),
            records: self.stream.records(),
            cpu_samples: stages.cpu_samples,
            skid: stages.skid.as_ref(),
            wakings: stages.wakeups.is_some(),
            switches: stages.lives.is_some(),
            sched_missing: stages.apart.missing(),
            sleeps: stages.lives.as_ref().and_then(Lives::sleeps).map(Sleeps::counts),
            chains: stages.wakeups.as_ref().map(Wakeups::chains),
            spaces: &stages.spaces,
            copies: stages.copies.as_ref().map_or(0, Copies::found),
            not_queued: stages.queues.untracked(),
        }
    }
}
