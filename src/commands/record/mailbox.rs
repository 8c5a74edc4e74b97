//! Between the pipeline's thread and a screen: one question, one answer, each replaced by a newer one.
//!
//! ```text
//!   screen ──ask──> [ question ] ──> pipeline, between two rounds ──> [ answer ] ──take──> screen
//! ```
//!
//! Nobody waits for the other while a recording runs: the recorder knows of neither.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::{Nanos, TimeRange};
use crate::pipeline::Pipeline;
use crate::tui::{Question, Snapshot};

/// A question while a recording runs.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Asked {
    /// About what.
    pub(in crate::commands) question: Question,
    /// Only the last so much of the time.
    pub(in crate::commands) last: Option<Nanos>,
    /// Once it is answered, counting starts anew.
    pub(in crate::commands) restart: bool,
}

/// An answer.
#[derive(Debug)]
pub(in crate::commands) struct Answer {
    /// What a screen shows.
    pub(in crate::commands) snapshot: Snapshot,
}

#[derive(Debug, Default)]
struct Slots {
    asked: Option<Asked>,
    answer: Option<Answer>,
}

/// The two slots.
#[derive(Debug, Default)]
pub(in crate::commands) struct Mailbox {
    slots: Mutex<Slots>,
    answered: Condvar,
    restarted: AtomicBool,
}

impl Mailbox {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; what was asked before and not answered is forgotten.
    pub(in crate::commands) fn ask(&self, asked: Asked) {
        self.slots().asked = Some(asked);
    }

    /// The answer, when there is one, or soon.
    pub(in crate::commands) fn take(&self, patience: Duration) -> Option<Answer> {
        let no_answer = |slots: &mut Slots| slots.answer.is_none();
        let waited = self.answered.wait_timeout_while(self.slots(), patience, no_answer);
        waited.unwrap_or_else(PoisonError::into_inner).0.answer.take()
    }

    /// Whether the pipeline has forgotten what was before somebody asked for it.
    pub(super) fn has_restarted(&self) -> bool {
        self.restarted.load(Ordering::Relaxed)
    }

    /// The pipeline's side: answers what was asked, if anything was.
    pub(super) fn serve(&self, pipeline: &mut Pipeline) {
        let Some(asked) = self.slots().asked.take() else { return };
        let (report, range) = pipeline.now(&asked.question.query, asked.last);
        let paths = pipeline.paths(&asked.question.paths);
        let span = pipeline.span();
        // Releasers are those of all the time; the last slice of a range is not over yet.
        let range = range.filter(|_| !report.by.is_blame());
        let span = range.map_or(span, |range| TimeRange { to: range.to.min(span.to), ..range });
        let snapshot = Snapshot { report, paths, slices: pipeline.slices(), span };
        if asked.restart {
            pipeline.restart();
            self.restarted.store(true, Ordering::Relaxed);
        }
        self.slots().answer = Some(Answer { snapshot });
        self.answered.notify_one();
    }
}
