//! Readers and writers of a row, for programs.
//!
//! In: a row of a report. Out: the `readers_writers` object of its JSON, described with the rest in
//! `schema/report-v1.json`.

use serde::Serialize;

use crate::model::QueueStat;
use crate::report::{Row, Side};

#[derive(Serialize)]
pub(super) struct ReadersWritersOut {
    readers: Option<ReadersOut>,
    writers: Option<WritersOut>,
    queue: Option<QueueOut>,
    convoys: Option<ConvoysOut>,
}

#[derive(Serialize)]
struct ReadersOut {
    contended: u64,
    wait_ns: u64,
    traced_ns: u64,
    behind_writer_ns: u64,
    behind_queued_writer_ns: u64,
    woken_ns: u64,
    unknown_ns: u64,
}

#[derive(Serialize)]
struct WritersOut {
    contended: u64,
    wait_ns: u64,
    traced_ns: u64,
    behind_reader_ns: u64,
    behind_writer_ns: u64,
    woken_ns: u64,
    unknown_ns: u64,
}

#[derive(Serialize)]
struct QueueOut {
    busy_ns: u64,
    readers_waiting_ns: u64,
    writers_waiting_ns: u64,
    reader_share: f64,
    most_readers: u64,
    most_writers: u64,
}

#[derive(Serialize)]
struct ConvoysOut {
    count: u64,
    waits: u64,
    hand_overs: u64,
    time_ns: u64,
    longest_waits: u64,
    longest_ns: u64,
    doubtful: u64,
}

/// `None` for rows without readers and writers.
pub(super) fn readers_writers(row: &Row) -> Option<ReadersWritersOut> {
    let sides = row.sides()?;
    Some(ReadersWritersOut {
        readers: sides.readers.map(readers),
        writers: sides.writers.map(writers),
        queue: row.queue.as_ref().map(queue),
        convoys: row.queue.as_ref().map(convoys),
    })
}

fn readers(side: Side) -> ReadersOut {
    ReadersOut {
        contended: side.contended,
        wait_ns: side.wait.0,
        traced_ns: side.traced.0,
        behind_writer_ns: side.behind.writer.0,
        behind_queued_writer_ns: side.behind.queued_writer.0,
        woken_ns: side.behind.woken.0,
        unknown_ns: side.behind.unknown.0,
    }
}

fn writers(side: Side) -> WritersOut {
    WritersOut {
        contended: side.contended,
        wait_ns: side.wait.0,
        traced_ns: side.traced.0,
        behind_reader_ns: side.behind.reader.0,
        behind_writer_ns: side.behind.writer.0,
        woken_ns: side.behind.woken.0,
        unknown_ns: side.behind.unknown.0,
    }
}

fn queue(stat: &QueueStat) -> QueueOut {
    let all = stat.readers + stat.writers;
    QueueOut {
        busy_ns: stat.busy.0,
        readers_waiting_ns: stat.readers.0,
        writers_waiting_ns: stat.writers.0,
        reader_share: super::units::share(stat.readers, all),
        most_readers: stat.most_readers,
        most_writers: stat.most_writers,
    }
}

fn convoys(stat: &QueueStat) -> ConvoysOut {
    ConvoysOut {
        count: stat.convoys,
        waits: stat.convoy_waits,
        hand_overs: stat.convoy_hand_overs,
        time_ns: stat.convoy_time.0,
        longest_waits: stat.longest_waits,
        longest_ns: stat.longest_time.0,
        doubtful: stat.doubtful,
    }
}
