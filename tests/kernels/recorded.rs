//! A recording of a guest, as it is or with something broken, and what reports say of it here.
//!
//! In: the file and a [`Fault`]. Out: [`Recorded`]. Symbols are those that the recording carries: nothing
//! of the machine that runs the tests plays a part.

use std::collections::BTreeSet;
use std::path::Path;

use lockprof::analyse::Detail;
use lockprof::decode::{Body, Callchain};
use lockprof::kernel::{Kernel, Verdict, verdict};
use lockprof::model::{Filter, GroupBy, PathQuery, Query};
use lockprof::pipeline::{EventStream, Pipeline};
use lockprof::report::{Paths, Report};
use lockprof::source::{Replay, Round};

use crate::fault::Fault;

/// What reports say of a recording, all rows shown.
pub(crate) struct Recorded {
    pub(crate) by_site: Report,
    pub(crate) by_lock: Report,
    pub(crate) by_task: Report,
    pub(crate) paths: Paths,
    /// Names of the recorded events.
    pub(crate) events: Vec<String>,
    /// Functions of recorded stacks that the kernel has among its lock code and the table does not know.
    pub(crate) unknown: BTreeSet<String>,
    /// Functions of recorded stacks that are among the kernel's lock code.
    pub(crate) lock_code: BTreeSet<String>,
}

impl Recorded {
    /// Reads the recording, with `fault` in it.
    pub(crate) fn read(file: &Path, fault: Fault) -> Result<Recorded, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let mut replay = Replay::open(file).map_err(|error| said(&error))?;
        let mut origin = replay.take_origin();
        fault.in_origin(&mut origin);
        let kallsyms = origin.kallsyms.as_deref().ok_or_else(|| said(&"it has no symbols"))?;
        let kernel = Kernel::from_kallsyms(kallsyms);
        let events = origin.events.iter().map(|event| event.name.clone()).collect();
        let mut frames = Frames::default();
        let mut stream = EventStream::new(&origin).map_err(|error| said(&error))?;
        let symbols = (kernel.clone(), "from the recording".to_owned());
        let detail = Detail { cpu_stacks: true, ..Detail::default() };
        let broken = fault.in_records(&origin).map_err(|error| said(&error))?;
        let mut pipeline = Pipeline::new(origin, symbols, detail, &Filter::default())
            .map_err(|error| said(&error))?;
        let mut round = Round::default();
        while replay.next_round(&mut round).map_err(|error| said(&error))? {
            let mut round = std::mem::take(&mut round);
            broken.change(&mut round.bytes);
            stream.push(round.clone(), &mut |event| frames.add(&event.body));
            pipeline.push(round);
        }
        stream.finish(&mut |event| frames.add(&event.body));
        pipeline.finish();
        if let Some(warning) = replay.warnings().first() {
            return Err(said(warning));
        }
        let report = |by| pipeline.report(&Query { by, top: 0, ..Query::default() });
        let (lock_code, unknown) = frames.in_lock_text(&kernel);
        Ok(Recorded {
            by_site: report(GroupBy::Site),
            by_lock: report(GroupBy::Lock),
            by_task: report(GroupBy::Task),
            paths: pipeline.paths(&PathQuery::default()),
            events,
            unknown,
            lock_code,
        })
    }

    pub(crate) fn has_event(&self, name: &str) -> bool {
        self.events.iter().any(|event| event == name)
    }
}

/// Kernel addresses of all stacks.
#[derive(Default)]
struct Frames(BTreeSet<u64>);

impl Frames {
    fn add(&mut self, body: &Body<'_>) {
        let Some(chain) = chain(body) else { return };
        let ips = chain.kernel.chunks_exact(8);
        self.0.extend(ips.filter_map(|ip| Some(u64::from_le_bytes(ip.try_into().ok()?))));
    }

    /// Names of the functions that lie where the kernel keeps its lock code, and which of them are not known.
    fn in_lock_text(&self, kernel: &Kernel) -> (BTreeSet<String>, BTreeSet<String>) {
        let in_text = self.0.iter().filter(|&&ip| kernel.in_lock_text(ip));
        let name =
            |&ip: &u64| kernel.function(ip).map_or("[no symbol]", |found| kernel.name(found));
        let names: BTreeSet<String> = in_text.map(|ip| name(ip).to_owned()).collect();
        let unknown = names.iter().filter(|name| verdict(name) == Verdict::Unknown);
        let unknown = unknown.cloned().collect();
        (names, unknown)
    }
}

fn chain<'a>(body: &Body<'a>) -> Option<Callchain<'a>> {
    match body {
        Body::ContentionBegin(begin) => Some(begin.chain.split()),
        Body::SchedWaking(waking) => Some(waking.chain.split()),
        Body::SchedSwitch(switch) => Some(switch.chain.split()),
        Body::CpuSample(sample) => Some(sample.chain.split()),
        Body::Tracepoint(_, _, chain) => Some(chain.split()),
        _ => None,
    }
}
