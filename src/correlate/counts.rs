//! How begins and ends were paired. Nothing is dropped without being counted here.

/// ```text
/// begins = begun + phases + restarts + joined      begun + restarts = ended + open + uncertain
/// ends   = ended + uncertain_ended + unmatched + not_asked_for + joined_ends
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `contention_begin` records read.
    pub begins: u64,
    /// `contention_end` records read.
    pub ends: u64,
    /// Begins that began a wait.
    pub begun: u64,
    /// Begins that changed the phase of a wait: a mutex waiter spins, queues, spins again.
    pub phases: u64,
    /// Begins over an open wait whose end was lost: the old one is uncertain, a new one began.
    pub restarts: u64,
    /// Begins of the rt-mutex inside an rw lock of PREEMPT_RT: part of the wait for the rw lock.
    pub joined: u64,
    /// Waits that ended with an end of their own.
    pub ended: u64,
    /// Of those: killed or timed out.
    pub failed: u64,
    /// Of those: ww_mutex backed off.
    pub backed_off: u64,
    /// Waits open at the end of the recording or of their task.
    pub open: u64,
    /// Waits that lost records may have cut or joined.
    pub uncertain: u64,
    /// Ends of uncertain waits.
    pub uncertain_ended: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Ends without a begin in a recording that left spinlocks out: `contention_end` has no flags to
    /// leave them out by.
    pub not_asked_for: u64,
    /// Ends of the rt-mutex inside an rw lock of PREEMPT_RT.
    pub joined_ends: u64,
    /// Begins and ends of tasks outside the target, left out of all of the above.
    pub outside: u64,
}

impl Counts {
    /// Adds what another recording counted.
    pub fn merge(&mut self, other: &Counts) {
        // All fields by name: one that is added later cannot be left out.
        let Counts {
            begins,
            ends,
            begun,
            phases,
            restarts,
            joined,
            ended,
            failed,
            backed_off,
            open,
            uncertain,
            uncertain_ended,
            unmatched,
            not_asked_for,
            joined_ends,
            outside,
        } = *other;
        self.begins += begins;
        self.ends += ends;
        self.begun += begun;
        self.phases += phases;
        self.restarts += restarts;
        self.joined += joined;
        self.ended += ended;
        self.failed += failed;
        self.backed_off += backed_off;
        self.open += open;
        self.uncertain += uncertain;
        self.uncertain_ended += uncertain_ended;
        self.unmatched += unmatched;
        self.not_asked_for += not_asked_for;
        self.joined_ends += joined_ends;
        self.outside += outside;
    }

    /// Whether both equations hold.
    pub fn balance(&self) -> bool {
        self.begins == self.begun + self.phases + self.restarts + self.joined
            && self.begun + self.restarts == self.ended + self.open + self.uncertain
            && self.ends
                == self.ended
                    + self.uncertain_ended
                    + self.unmatched
                    + self.not_asked_for
                    + self.joined_ends
    }
}
