//! Records of context switches: which ring they come through, what of them is missing, when they ended.
//!
//! ```text
//!   CPU 0   all other records   ════════════════════════════════════
//!           switches            ══════ LOST ═══ THROTTLE ╎  none any more: they came too fast
//! ```
//!
//! In: all events. Out: since when a ring that lost records may have lost them; whether a loss or an
//! end is one of switches only. What is lost of them makes states unknown and touches no wait.

use crate::correlate::{RingId, Rings};
use crate::decode::{Body, Event};
use crate::model::Timestamp;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Switches {
    rings: Rings,
    /// Instances that record switches and nothing else, sorted.
    instances: Vec<u64>,
    /// They were recorded until then.
    until: Option<Timestamp>,
    lost: u64,
}

impl Switches {
    /// For a recording in which these instances record switches and nothing else.
    pub(super) fn of(mut instances: Vec<u64>) -> Switches {
        instances.sort_unstable();
        Switches { instances, ..Switches::default() }
    }

    /// An event was read and dealt with.
    #[inline]
    pub(super) fn read(&mut self, event: &Event<'_>) {
        self.rings.read(self.ring(event), event.time);
    }

    /// Whether a switch came after the event that records them was stopped: some are missing before it.
    pub(super) fn have_ended(&self) -> bool {
        self.until.is_some()
    }

    /// Whether this LOST or THROTTLE record speaks of switches only.
    pub(super) fn is_meant(&self, event: &Event<'_>) -> bool {
        self.instances.binary_search(&event.instance).is_ok()
    }

    /// The ring that lost records may have lost them since then.
    pub(super) fn lost_since(&self, event: &Event<'_>) -> Timestamp {
        self.rings.last_read(self.ring(event))
    }

    /// Switches were lost.
    pub(super) fn lose(&mut self, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
    }

    /// The event was stopped. Whether that is news.
    pub(super) fn end(&mut self, time: Timestamp) -> bool {
        let first = self.until.is_none();
        self.until.get_or_insert(time);
        first
    }

    /// Until when they were recorded, when not until the end; and how many were lost before.
    pub(super) fn missing(&self) -> (Option<Timestamp>, u64) {
        (self.until, self.lost)
    }

    fn ring(&self, event: &Event<'_>) -> RingId {
        let switches = match event.body {
            Body::Switch(_) => !self.instances.is_empty(),
            Body::Lost(_) => self.is_meant(event),
            _ => false,
        };
        RingId { cpu: event.cpu, switches }
    }
}
