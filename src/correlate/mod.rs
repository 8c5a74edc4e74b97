//! Events -> Waits.

/// How begins and ends were paired. Nothing is dropped without being counted here:
///
/// ```text
/// begins read = begun + phases + restarts        begun = ended + open + uncertain
/// ends read   = ended + unmatched                restarts also begin a wait: they are in `begun`
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `contention_begin` records read.
    pub begins: u64,
    /// `contention_end` records read.
    pub ends: u64,
    /// Begins that only changed the phase of an open wait: spinning to sleeping and back.
    pub phases: u64,
    /// Begins over an open wait whose end was lost.
    pub restarts: u64,
    /// Ends without a begin.
    pub unmatched: u64,
}
