//! Names for the locks of cells: what lies between the tables of ids and [`LockNames`].
//!
//! In: the tables and the books. Out: the name of the lock that a cell's waits were for. What a call
//! path claims is looked up once for each distinct stack.

use std::cell::RefCell;

use hashbrown::HashMap;

use super::build::caller;
use super::lock_name::{Evidence, LockNames, Named};
use super::sources::Sources;
use crate::analyse::{CellKey, StackKey, TaskKey};
use crate::attribute::CallPath;
use crate::attribute::catalogue::{self, Claim};
use crate::model::{Context, LockAddr, LockType, Mode, Stat};

type Claims = HashMap<(StackKey, LockType), Claim>;

/// Names of the locks of one report.
#[derive(Debug)]
pub(super) struct Namer {
    names: LockNames,
    claims: RefCell<Claims>,
}

impl Namer {
    /// Learns from all waits of the recording, whatever the query filters.
    pub(super) fn learn(sources: &Sources<'_>) -> Namer {
        let claims = RefCell::default();
        // What is learnt first may decide: the same waits must give the same names.
        let mut keys: Vec<&CellKey> = sources.waits().map(|(key, _)| key).collect();
        keys.sort_unstable();
        let evidence = keys.into_iter().map(|key| evidence(sources, &claims, key));
        let release = &sources.origin.host.release;
        let names = LockNames::learn(evidence, sources.spaces, release);
        Namer { names, claims }
    }

    /// The lock that the waits of `key` were for.
    pub(super) fn name(&self, sources: &Sources<'_>, key: &CellKey) -> Named {
        let evidence = evidence(sources, &self.claims, key);
        self.names.name(&evidence, sources.kernel)
    }

    /// How long a lock was held in this mode, where that was recorded. An `mm_struct` is used again:
    /// `others` are the processes that its lock belonged to at other times.
    pub(super) fn hold(
        &self,
        sources: &Sources<'_>,
        lock: LockAddr,
        mode: Mode,
        others: &[i32],
    ) -> Option<Stat> {
        let mm = self.names.mm_of(lock)?;
        sources.spaces.holds(mm, mode, |pid| !others.contains(&pid))
    }
}

fn evidence<'a>(sources: &Sources<'a>, claims: &RefCell<Claims>, key: &CellKey) -> Evidence<'a> {
    let find = || catalogue::claim(key.lock_type, &path(sources, key.kernel));
    let claim = *claims.borrow_mut().entry((key.kernel, key.lock_type)).or_insert_with(find);
    let pid = match key.task {
        TaskKey::Task(task) if key.context == Context::Task => sources.tasks.info(task).pid,
        _ => 0,
    };
    Evidence {
        lock: key.lock,
        lock_type: key.lock_type,
        caller: caller(sources, key),
        claim,
        pid,
        seen: sources.sums.seen(key),
    }
}

/// The functions of a cell's waits; a folded one has its site only.
fn path<'a>(sources: &Sources<'a>, key: StackKey) -> CallPath<'a> {
    let Sources { kernel, stacks, attribution, .. } = sources;
    match key {
        StackKey::Folded => CallPath::default(),
        StackKey::Site(site) => {
            site.map(|site| CallPath::of_site(site, kernel)).unwrap_or_default()
        }
        StackKey::Stack(stack) => {
            let site = attribution.known(stack).and_then(|facts| facts.site.caller);
            CallPath::of_frames(stacks.kernel(stack), kernel, site)
        }
    }
}
