//! Readers and writers: whom a wait stood behind, and what the queue of a lock did meanwhile.
//!
//! Both are sums that merge. They exist for locks that know readers and writers: rwlock, rwsem,
//! pcpu-sem, rwlock-rt.

use super::Nanos;

/// Whom a part of a wait stood behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BehindWhom {
    /// A writer that held the lock.
    Writer,
    /// Of a reader: readers held the lock, and a writer that was queued before stood in between.
    QueuedWriter,
    /// Of a writer: readers held the lock.
    Reader,
    /// Nobody: it was woken, and had no CPU yet or lost the race.
    Woken,
    /// It is not known.
    Unknown,
}

/// Waiting by whom it stood behind; adds up to the waits' own time, ended and open ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// A writer that held the lock.
    pub writer: Nanos,
    /// Of readers: a writer that was queued before them.
    pub queued_writer: Nanos,
    /// Of writers: readers that held the lock.
    pub reader: Nanos,
    /// Nobody: woken, and not running yet.
    pub woken: Nanos,
    /// It is not known.
    pub unknown: Nanos,
}

impl Behind {
    /// Adds a part of a wait.
    pub fn add(&mut self, whom: BehindWhom, time: Nanos) {
        *match whom {
            BehindWhom::Writer => &mut self.writer,
            BehindWhom::QueuedWriter => &mut self.queued_writer,
            BehindWhom::Reader => &mut self.reader,
            BehindWhom::Woken => &mut self.woken,
            BehindWhom::Unknown => &mut self.unknown,
        } += time;
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: Behind) {
        let Behind { writer, queued_writer, reader, woken, unknown } = other;
        self.writer += writer;
        self.queued_writer += queued_writer;
        self.reader += reader;
        self.woken += woken;
        self.unknown += unknown;
    }

    /// All of it.
    pub fn all(self) -> Nanos {
        self.writer + self.queued_writer + self.reader + self.woken + self.unknown
    }
}

/// What the queue of a lock did, or the queues of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStat {
    /// Time in which somebody waited.
    pub busy: Nanos,
    /// Readers waiting, integrated over time.
    pub readers: Nanos,
    /// Writers waiting, integrated over time.
    pub writers: Nanos,
    /// The most readers that waited at a time.
    pub most_readers: u64,
    /// The most writers.
    pub most_writers: u64,
    /// Convoys: the lock was handed over at least twice, and the queue never ran empty.
    pub convoys: u64,
    /// Waits that got the lock in convoys.
    pub convoy_waits: u64,
    /// How often convoys handed their lock over; readers that follow one another take it once.
    pub convoy_hand_overs: u64,
    /// How long convoys lasted together.
    pub convoy_time: Nanos,
    /// The most waits of one convoy.
    pub longest_waits: u64,
    /// The longest convoy.
    pub longest_time: Nanos,
    /// Times that the queue was busy with a wait in it that lost records may have cut or joined: no
    /// convoy is told from those.
    pub doubtful: u64,
}

impl QueueStat {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &QueueStat) {
        // All fields by name: one that is added later cannot be left out.
        let QueueStat {
            busy,
            readers,
            writers,
            most_readers,
            most_writers,
            convoys,
            convoy_waits,
            convoy_hand_overs,
            convoy_time,
            longest_waits,
            longest_time,
            doubtful,
        } = *other;
        self.busy += busy;
        self.readers += readers;
        self.writers += writers;
        self.most_readers = self.most_readers.max(most_readers);
        self.most_writers = self.most_writers.max(most_writers);
        self.convoys += convoys;
        self.convoy_waits += convoy_waits;
        self.convoy_hand_overs += convoy_hand_overs;
        self.convoy_time += convoy_time;
        self.longest_waits = self.longest_waits.max(longest_waits);
        self.longest_time = self.longest_time.max(longest_time);
        self.doubtful += doubtful;
    }
}
