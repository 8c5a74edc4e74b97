//! The small sections about host, command line, events and clock: payload <-> [`Origin`].
//!
//! In: kind and payload of one section, one after the other. Out: an [`Origin`] that grows, and the
//! pieces ([`Collected`]) that only make sense when all are there. A section that is malformed
//! gives nothing; the caller says so.
//!
//! ```text
//! strings       perf's string                     NRCPUS      u32 available, u32 online
//! CMDLINE       u32 n, n strings                  TOTAL_MEM   u64 kB
//! SAMPLE_TIME   u64 first, u64 last               CLOCKID     u64 resolution in ns
//! CLOCK_DATA    u32 version 1, u32 clockid, u64 ns since 1970, u64 ns on the clock
//! EVENT_DESC    u32 events, u32 bytes of an attr, each: attr | u32 ids | string name | u64 ids
//! ```

use std::io::Read;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use lockprof_collectors::perf::attr::{ATTR_SIZE, Attr};
use lockprof_collectors::procfs::tracefs::Format;

use super::block::kind;
use super::build_id;
use super::bytes::{Cursor, put_perf_string};
use super::origin::{EventDesc, Host, Origin};
use super::tracing_data::TracingData;

/// Real kallsyms are 6 to 20 MB; a bomb of zeros is not unpacked beyond this.
const KALLSYMS_MAX: u64 = 128 << 20;
const CLOCK_DATA_VERSION: u32 = 1;

/// An event of the EVENT_DESC section.
#[derive(Clone, Debug, Default)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
}

/// What the sections say.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) origin: Origin,
    pub(super) described: Vec<Described>,
    /// System and layout of tracepoints.
    pub(super) formats: Vec<(String, Arc<Format>)>,
}

impl Collected {
    /// Takes in one section; kinds that nobody needs are fine. `None` when it is malformed.
    pub(super) fn add(&mut self, kind: u64, payload: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        let origin = &mut self.origin;
        match kind {
            kind::TRACING_DATA => self.add_tracing_data(&TracingData::decode(payload)?),
            kind::EVENT_DESC => self.described = decode_event_desc(&mut cursor)?,
            kind::BUILD_ID => origin.build_ids = build_id::decode(payload),
            kind::HOSTNAME => origin.host.hostname = cursor.perf_string()?,
            kind::OSRELEASE => origin.host.release = cursor.perf_string()?,
            kind::ARCH => origin.host.arch = cursor.perf_string()?,
            kind::CPUDESC => origin.host.cpu_desc = cursor.perf_string()?,
            kind::TOTAL_MEM => origin.host.total_mem_kb = cursor.u64()?,
            kind::NRCPUS => {
                (origin.host.cpus_available, origin.host.cpus_online) =
                    (cursor.u32()?, cursor.u32()?);
            }
            kind::CMDLINE => origin.command_line = decode_strings(&mut cursor)?,
            kind::SAMPLE_TIME => {
                let times = (cursor.u64()?, cursor.u64()?);
                // `perf record -B` does not look at times and writes zeros.
                origin.sample_time = (times != (0, 0)).then_some(times);
            }
            kind::CLOCK_DATA => origin.clock.wall = decode_clock_data(&mut cursor)?,
            kind::KALLSYMS => origin.kallsyms = Some(inflate(payload)?),
            kind::ORIGIN => origin.settings = Some(serde_json::from_slice(payload).ok()?),
            kind::END => origin.end = Some(serde_json::from_slice(payload).ok()?),
            _ => {}
        }
        Some(())
    }

    fn add_tracing_data(&mut self, data: &TracingData) {
        self.origin.host.page_size = data.page_size;
        self.formats = data.parsed();
    }
}

/// What a section of `kind` is called in messages: perf's name of it, or ours.
pub(super) fn name_of(kind: u64) -> &'static str {
    match kind {
        kind::TRACING_DATA => "TRACING_DATA",
        kind::BUILD_ID => "BUILD_ID",
        kind::HOSTNAME => "HOSTNAME",
        kind::OSRELEASE => "OSRELEASE",
        kind::ARCH => "ARCH",
        kind::NRCPUS => "NRCPUS",
        kind::CPUDESC => "CPUDESC",
        kind::TOTAL_MEM => "TOTAL_MEM",
        kind::CMDLINE => "CMDLINE",
        kind::EVENT_DESC => "EVENT_DESC",
        kind::SAMPLE_TIME => "SAMPLE_TIME",
        kind::CLOCK_DATA => "CLOCK_DATA",
        kind::KALLSYMS => "kallsyms",
        kind::ORIGIN => "origin",
        kind::END => "end",
        _ => "feature",
    }
}

/// Whether [`Collected::add`] would look at such a section.
pub(super) fn is_read(kind: u64) -> bool {
    name_of(kind) != "feature"
}

/// Sections that are known before the first record, in the order in which they are written.
pub(super) fn encode_start(origin: &Origin) -> serde_json::Result<Vec<(u64, Vec<u8>)>> {
    let mut sections = encode_host(&origin.host);
    sections.push((kind::CMDLINE, encode_strings(&origin.command_line)));
    sections.push((kind::EVENT_DESC, encode_event_desc(&origin.events)));
    if origin.clock.clockid.is_some() {
        sections.push((kind::CLOCKID, 1u64.to_le_bytes().to_vec()));
    }
    if let Some((wall, clock)) = origin.clock.wall {
        let clockid = origin.clock.clockid.unwrap_or(-1);
        let words = [CLOCK_DATA_VERSION.to_le_bytes(), clockid.to_le_bytes()].concat();
        sections.push((kind::CLOCK_DATA, [words, words_of([wall, clock])].concat()));
    }
    if !origin.build_ids.is_empty() {
        sections.push((kind::BUILD_ID, build_id::encode(&origin.build_ids)));
    }
    if let Some(settings) = &origin.settings {
        let version = format!("lockprof {}", settings.lockprof_version);
        sections.push((kind::VERSION, encode_string(&version)));
        sections.push((kind::ORIGIN, serde_json::to_vec(settings)?));
    }
    if let Some(kallsyms) = &origin.kallsyms {
        sections.push((kind::KALLSYMS, deflate(kallsyms)));
    }
    Ok(sections)
}

/// Numbers back to back.
pub(super) fn words_of(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn encode_host(host: &Host) -> Vec<(u64, Vec<u8>)> {
    let strings = [
        (kind::HOSTNAME, &host.hostname),
        (kind::OSRELEASE, &host.release),
        (kind::ARCH, &host.arch),
        (kind::CPUDESC, &host.cpu_desc),
    ];
    let known = strings.into_iter().filter(|(_, text)| !text.is_empty());
    let mut sections: Vec<_> = known.map(|(kind, text)| (kind, encode_string(text))).collect();
    if host.cpus_available != 0 {
        let cpus = [host.cpus_available.to_le_bytes(), host.cpus_online.to_le_bytes()];
        sections.push((kind::NRCPUS, cpus.concat()));
    }
    if host.total_mem_kb != 0 {
        sections.push((kind::TOTAL_MEM, words_of([host.total_mem_kb])));
    }
    sections
}

fn encode_string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_perf_string(&mut bytes, text);
    bytes
}

fn encode_strings(strings: &[String]) -> Vec<u8> {
    let mut bytes = (strings.len() as u32).to_le_bytes().to_vec();
    strings.iter().for_each(|text| put_perf_string(&mut bytes, text));
    bytes
}

fn decode_strings(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    let mut strings = Vec::new();
    for _ in 0..cursor.u32()? {
        strings.push(cursor.perf_string()?);
    }
    Some(strings)
}

/// `None` when malformed, `Some(None)` of a version that is not known.
fn decode_clock_data(cursor: &mut Cursor<'_>) -> Option<Option<(u64, u64)>> {
    let (version, _clockid) = (cursor.u32()?, cursor.u32()?);
    let wall = (cursor.u64()?, cursor.u64()?);
    Some((version == CLOCK_DATA_VERSION).then_some(wall))
}

fn encode_event_desc(events: &[EventDesc]) -> Vec<u8> {
    let counts = [events.len() as u32, ATTR_SIZE as u32];
    let mut bytes: Vec<u8> = counts.into_iter().flat_map(u32::to_le_bytes).collect();
    for event in events {
        bytes.extend(event.attr.to_bytes());
        bytes.extend((event.ids.len() as u32).to_le_bytes());
        put_perf_string(&mut bytes, &event.name);
        bytes.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
    }
    bytes
}

fn decode_event_desc(cursor: &mut Cursor<'_>) -> Option<Vec<Described>> {
    let (count, attr_size) = (cursor.u32()?, cursor.u32()?);
    let mut events = Vec::new();
    for _ in 0..count {
        let attr = cursor.take(attr_size.into())?;
        Attr::parse(attr)?;
        let ids = cursor.u32()?;
        let name = cursor.perf_string()?;
        let ids = Cursor::new(cursor.take(u64::from(ids) * 8)?).u64s();
        events.push(Described { name, ids });
    }
    Some(events)
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    // Reading from memory into memory cannot fail.
    let _ = ZlibEncoder::new(text, Compression::new(4)).read_to_end(&mut packed);
    packed
}

fn inflate(packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed).take(KALLSYMS_MAX + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= KALLSYMS_MAX).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{BuildId, Clock, End, Settings};

    fn origin() -> Origin {
        Origin {
            host: Host {
                hostname: "box".to_owned(),
                release: "6.1.0".to_owned(),
                arch: "x86_64".to_owned(),
                cpu_desc: "A CPU @ 3 GHz".to_owned(),
                cpus_online: 3,
                cpus_available: 4,
                total_mem_kb: 1 << 33,
                page_size: 0,
            },
            clock: Clock { clockid: None, wall: Some((1_700_000_000_000_000_000, 5)) },
            command_line: vec!["lockprof".to_owned(), "record".to_owned()],
            kallsyms: Some(b"ffffffff81000000 T _text\n".repeat(1000)),
            build_ids: vec![BuildId {
                id: vec![7; 20],
                name: "[kernel.kallsyms]".to_owned(),
                kernel: true,
            }],
            settings: Some(Settings { floor_ns: Some(900), ..Settings::default() }),
            ..Origin::default()
        }
    }

    #[test]
    fn what_is_written_at_the_start_is_read_back() {
        let mut collected = Collected::default();
        for (kind, payload) in encode_start(&origin()).unwrap() {
            assert_eq!(collected.add(kind, &payload), Some(()), "{}", name_of(kind));
        }
        assert_eq!(collected.origin, origin());
    }

    #[test]
    fn a_section_cut_anywhere_is_refused_or_shorter_but_never_a_panic() {
        let end = serde_json::to_vec(&End { lost: 5, ..End::default() }).unwrap();
        let mut sections = encode_start(&origin()).unwrap();
        sections.push((kind::END, end));
        for (kind, payload) in sections {
            for len in 0..payload.len() {
                let read = Collected::default().add(kind, &payload[..len]);
                let tolerant = [kind::BUILD_ID, kind::VERSION, kind::CLOCKID, kind::EVENT_DESC];
                if !tolerant.contains(&kind) {
                    assert_eq!(read, None, "{} cut at {len}", name_of(kind));
                }
            }
        }
    }

    #[test]
    fn counts_beyond_the_bytes_are_refused_without_asking_for_memory() {
        let huge = [u32::MAX.to_le_bytes(), 64u32.to_le_bytes()].concat();
        for kind in [kind::CMDLINE, kind::EVENT_DESC] {
            assert_eq!(Collected::default().add(kind, &huge), None, "{}", name_of(kind));
        }
    }
}
