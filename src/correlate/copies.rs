//! Samples that came twice, from threads that events were opened on although they had inherited them.
//!
//! ```text
//!   attach opens events on A      A creates B: B inherits A's, samples carry A's ids
//!                                 attach finds B before it learns that, opens events on B: own ids
//! ```
//!
//! From then on each sample of B, and of what B creates, is written twice, under two ids and some
//! hundred nanoseconds apart (each event reads the clock itself), so that times do not tell copies. But
//! on one CPU one event has one id for a thread's whole life: what came under another is a copy.

use hashbrown::HashMap;

use crate::model::Cpu;
use crate::recording::EventDesc;

/// Tells samples that are copies.
#[derive(Debug, Default)]
pub struct Copies {
    event_of: HashMap<u64, usize>,
    /// By thread: (event, CPU) and the id that its samples carry.
    threads: HashMap<i32, Vec<(usize, Option<Cpu>, u64)>>,
    found: u64,
}

impl Copies {
    /// For a recording of these events that was attached to threads.
    pub fn of(events: &[EventDesc]) -> Copies {
        let ids = events.iter().enumerate();
        let event_of = ids.flat_map(|(index, event)| event.ids.iter().map(move |&id| (id, index)));
        Copies { event_of: event_of.collect(), ..Copies::default() }
    }

    /// Whether a sample is a copy of another; counts it if so. Threads without a number (0 outside the
    /// recorder's pid namespace, -1 while exiting) cannot be told apart.
    pub fn is_copy(&mut self, tid: i32, cpu: Option<Cpu>, id: u64) -> bool {
        if tid <= 0 {
            return false;
        }
        let Some(&event) = self.event_of.get(&id) else { return false };
        let known = self.threads.entry(tid).or_default();
        match known.iter().find(|(of, on, _)| (*of, *on) == (event, cpu)) {
            Some((.., first)) => {
                let copy = *first != id;
                self.found += u64::from(copy);
                copy
            }
            None => {
                known.push((event, cpu, id));
                false
            }
        }
    }

    /// A thread began or ended: its number may be another's.
    pub fn forget(&mut self, tid: i32) {
        self.threads.remove(&tid);
    }

    /// Copies so far.
    pub fn found(&self) -> u64 {
        self.found
    }
}
