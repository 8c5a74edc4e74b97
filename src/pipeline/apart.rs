//! Records that come through rings of their own: wakings and context switches, of which a workload can
//! make more than anyone can take.
//!
//! ```text
//!   CPU 0   all other records     ════════════════════════════════════
//!           wakings, switches     ══════ LOST ═══ THROTTLE ╎  none any more: they came too fast
//! ```
//!
//! In: all events. Out: which ring an event came through, since when a ring that lost records may have
//! lost them, whether such records ended. What is lost of them makes releasers and phases unknown, and
//! touches no wait.

use crate::correlate::{RingId, Rings};
use crate::decode::{Body, Event};
use crate::model::Timestamp;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Apart {
    rings: Rings,
    /// Instances of the events that have rings of their own, sorted.
    instances: Vec<u64>,
    /// Records of switches, which do not say whose they are, are among them.
    switches: bool,
    /// They were recorded until then.
    until: Option<Timestamp>,
    lost: u64,
}

impl Apart {
    /// For a recording in which these instances have rings of their own, the one that records switches
    /// among them or not.
    pub(super) fn of(mut instances: Vec<u64>, switches: bool) -> Apart {
        instances.sort_unstable();
        Apart { instances, switches, ..Apart::default() }
    }

    /// An event was read and dealt with.
    #[inline]
    pub(super) fn read(&mut self, event: &Event<'_>) {
        self.rings.read(self.ring(event), event.time);
    }

    /// Whether the event came after its kind was stopped: others before it are missing.
    #[inline]
    pub(super) fn is_late(&self, event: &Event<'_>) -> bool {
        let told = matches!(event.body, Body::Lost(_) | Body::Throttle);
        self.until.is_some() && !told && self.ring(event).apart
    }

    /// Whether this LOST or THROTTLE record speaks of them.
    pub(super) fn is_meant(&self, event: &Event<'_>) -> bool {
        self.instances.binary_search(&event.instance).is_ok()
    }

    /// The ring that this LOST record speaks of may have lost records since then.
    pub(super) fn lost_since(&self, event: &Event<'_>) -> Timestamp {
        self.rings.last_read(self.ring(event))
    }

    /// Such records were lost.
    pub(super) fn lose(&mut self, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
    }

    /// They were stopped. Whether that is news.
    pub(super) fn end(&mut self, time: Timestamp) -> bool {
        let first = self.until.is_none();
        self.until.get_or_insert(time);
        first
    }

    /// Until when they were recorded, when not until the end; and how many were lost before.
    pub(super) fn missing(&self) -> (Option<Timestamp>, u64) {
        (self.until, self.lost)
    }

    #[inline]
    fn ring(&self, event: &Event<'_>) -> RingId {
        let apart = match event.body {
            Body::Switch(_) => self.switches,
            Body::SchedWaking(_) | Body::SchedSwitch(_) | Body::Lost(_) | Body::Throttle => {
                self.is_meant(event)
            }
            _ => false,
        };
        RingId { cpu: event.cpu, apart }
    }
}
