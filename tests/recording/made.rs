//! Recordings for the tests: fixtures, and small ones that the writer makes of their records.

use std::path::{Path, PathBuf};

use lockprof::recording::{
    BuildId, End, Host, KernelMap, Origin, Reader, Settings, Synthesizer, TracingData, Writer,
};
use lockprof::source::{Replay, Round};
use tempfile::TempDir;

pub(crate) const FIXTURES: [&str; 4] = [
    "6.1/contention-mmap.data",
    "6.12-rt/contention-mmap.data",
    "7.2/contention-mmap.data",
    "5.10/pairs-pipe.data",
];

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings").join(name)
}

/// Kind and bytes of each record in `rounds`.
pub(crate) fn records(rounds: &[Round]) -> Vec<(u32, Vec<u8>)> {
    let mut records = Vec::new();
    for round in rounds {
        let mut rest = round.bytes.as_slice();
        while !rest.is_empty() {
            let kind = u32::from_le_bytes(rest[..4].try_into().unwrap());
            let (record, after) = rest.split_at(u16::from_le_bytes([rest[6], rest[7]]).into());
            records.push((kind, record.to_vec()));
            rest = after;
        }
    }
    records
}

/// All rounds that can be read, and what was said about the rest.
pub(crate) fn drain(mut replay: Replay) -> (Vec<Round>, Vec<String>) {
    let mut rounds = Vec::new();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        rounds.push(round.clone());
    }
    assert_eq!((round.bytes.len(), replay.position() <= replay.len()), (0, true));
    (rounds, replay.warnings().to_vec())
}

/// The raw formats of a recording.
pub(crate) fn tracing_data(path: &Path) -> TracingData {
    let bytes = std::fs::read(path).unwrap();
    let magic = b"\x17\x08\x44tracing";
    let at = bytes.windows(magic.len()).position(|window| window == magic).unwrap();
    TracingData::decode(&bytes[at..]).unwrap()
}

/// Writes everything of `from` anew with our writer, with what only lockprof stores.
pub(crate) fn rewritten(from: &Path, to: &Path) -> Origin {
    let mut origin = Reader::open(from).unwrap().origin().clone();
    origin.kallsyms = Some(b"ffffffff81000000 T _text\n".repeat(100));
    origin.settings =
        Some(Settings { lockprof_version: "0.1.0".to_owned(), ..Settings::default() });
    let mut writer = Writer::create(to, &origin, &tracing_data(from)).unwrap();
    let (rounds, _) = drain(Replay::open(from).unwrap());
    for round in rounds {
        let records = match round.finished {
            true => &round.bytes[..round.bytes.len() - 8],
            false => &round.bytes,
        };
        writer.append(records).unwrap();
        if round.finished {
            writer.finished_round().unwrap();
        }
    }
    let end = End { exit_status: Some(0), ..End::default() };
    writer.finish(&end, &origin.build_ids, origin.sample_time).unwrap();
    origin
}

/// A complete recording of less than 8 KiB: a format, kallsyms, a kernel map, five samples of a
/// real one in two rounds.
pub(crate) struct Small {
    pub(crate) dir: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) tracing: TracingData,
    pub(crate) samples: Vec<Vec<u8>>,
}

impl Small {
    pub(crate) fn new() -> Small {
        let from = fixture(FIXTURES[0]);
        let mut origin = Reader::open(&from).unwrap().origin().clone();
        origin.events.truncate(1);
        origin.host = Host { hostname: "box".to_owned(), page_size: 4096, ..Host::default() };
        origin.command_line = vec!["lockprof".to_owned(), "record".to_owned()];
        origin.kallsyms = Some(b"ffffffff81000000 T _text\n".repeat(10));
        origin.settings = Some(Settings { floor_ns: Some(900), ..Settings::default() });
        let tracing = TracingData { header_page: b"\n".to_vec(), ..tracing_data(&from) };
        let (rounds, _) = drain(Replay::open(&from).unwrap());
        let samples = records(&rounds).into_iter().filter(|(kind, _)| *kind == 9);
        let samples = samples.take(5).map(|(_, record)| record).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("small.data");
        Small { dir, path, origin, tracing, samples }
    }

    /// Lays down everything in front of the records, and the records.
    pub(crate) fn recording(&self) -> Writer {
        let mut writer = Writer::create(&self.path, &self.origin, &self.tracing).unwrap();
        let mut kernel = Synthesizer::new(self.origin.events[0].attr.sample_type);
        let start = 0xffff_ffff_8100_0000;
        let name = "[kernel.kallsyms]_text";
        kernel.kernel_map(&KernelMap { start, len: 0x100_0000, pgoff: start, name });
        writer.append(kernel.bytes()).unwrap();
        for round in self.samples.chunks(3) {
            writer.append(&round.concat()).unwrap();
            writer.finished_round().unwrap();
        }
        writer
    }

    /// Finishes it, and gives its bytes.
    pub(crate) fn finished(&self) -> Vec<u8> {
        self.recording().finish(&self.end(), &self.build_ids(), Some((5, 9))).unwrap();
        std::fs::read(&self.path).unwrap()
    }

    pub(crate) fn end(&self) -> End {
        End { exit_status: Some(3), lost: 7, ..End::default() }
    }

    pub(crate) fn build_ids(&self) -> Vec<BuildId> {
        let name = "[kernel.kallsyms]".to_owned();
        vec![BuildId { id: vec![0xab; 20], name, kernel: true }]
    }
}
