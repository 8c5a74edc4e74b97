//! How a lock came to a waiter, and why part of a wait has nobody to charge it to.

/// What a task did to a lock when it woke a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandOverKind {
    /// It released the lock.
    Release,
    /// It waited itself, and its slow path woke others: a reader that takes those behind it along.
    PassOn,
}

impl HandOverKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            HandOverKind::Release => "release",
            HandOverKind::PassOn => "pass-on",
        }
    }
}

/// Why no task is charged with a part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uncharged {
    /// After the last hand-over: the waiter was free to go, and had no CPU yet or lost the race.
    Own,
    /// The wait failed: a signal or a timeout ended it.
    Signal,
    /// The wait was still open at the end of the recording or of its task.
    Open,
    /// Records were lost meanwhile: the hand-over that is charged may not be the first.
    Lost,
    /// Its releaser waited for such a lock too, this one or another: who held this one until then is not
    /// known, as it has no address.
    WaitedItself,
    /// No waking was seen: never slept, or the lock's releaser was not recorded.
    NoWaking,
}

impl Uncharged {
    /// The word for it, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Uncharged::Own => "own",
            Uncharged::Signal => "signal",
            Uncharged::Open => "open",
            Uncharged::Lost => "lost",
            Uncharged::WaitedItself => "waited_itself",
            Uncharged::NoWaking => "no_waking",
        }
    }
}
