//! The TRACING_DATA section: the kernel's tracepoint formats, as perf keeps them.
//!
//! In: its bytes, or the text of tracefs. Out: the other one. perf refuses a file with tracepoints
//! but without this section, and one whose `header_page` is empty.
//!
//! ```text
//! 17 08 44 "tracing" | "0.6" NUL | u8 big endian | u8 bytes of a long | u32 bytes of a page
//! "header_page" NUL  | u64 n, n bytes      "header_event" NUL | u64 n, n bytes
//! u32 ftrace formats | each u64 n, n bytes
//! u32 systems        | each name NUL, u32 events, each u64 n, n bytes: the text of `format`
//! u32 n, n bytes: kallsyms | u32 n, n bytes: printk formats | u64 n, n bytes: comms (from 0.6 on)
//! ```
//!
//! Source: `tools/perf/util/trace-event-read.c` and `trace-event-info.c` read for their layout.

use std::sync::Arc;

use lockprof_collectors::procfs::tracefs::Format;

use super::bytes::Cursor;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const VERSION: &str = "0.6";
/// Tracepoints of a kernel are counted in thousands. The two limits keep a hostile section, which
/// repeats one long name for millions of empty texts, from asking for more memory than it has bytes.
const FORMATS_MAX: usize = 1 << 16;
const SYSTEM_NAME_MAX: usize = 256;

/// The text of tracefs that goes with a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingData {
    /// `events/header_page`. The kernel gives it in one read at offset 0 only: a reader that probes
    /// with a small buffer first gets a piece of it.
    pub header_page: Vec<u8>,
    /// `events/header_event`; read like `header_page`.
    pub header_event: Vec<u8>,
    /// System and text of each `events/SYSTEM/NAME/format`.
    pub formats: Vec<(String, Vec<u8>)>,
    /// Bytes of a page.
    pub page_size: u32,
}

impl TracingData {
    /// Reads the section. What stands behind the formats is not looked at.
    pub fn decode(bytes: &[u8]) -> Option<TracingData> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(MAGIC.len() as u64)? != MAGIC {
            return None;
        }
        let _version = cursor.c_string()?;
        let (big_endian, _long) = (cursor.u8()?, cursor.u8()?);
        if big_endian != 0 {
            return None;
        }
        let page_size = cursor.u32()?;
        let header_page = named(&mut cursor, "header_page")?;
        let header_event = named(&mut cursor, "header_event")?;
        for _ in 0..cursor.u32()? {
            sized(&mut cursor)?;
        }
        let formats = decode_systems(&mut cursor)?;
        Some(TracingData { header_page, header_event, formats, page_size })
    }

    /// The section's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_c_string(&mut bytes, VERSION);
        bytes.extend([0, size_of::<u64>() as u8]);
        bytes.extend(self.page_size.to_le_bytes());
        put_c_string(&mut bytes, "header_page");
        put_sized(&mut bytes, &self.header_page);
        put_c_string(&mut bytes, "header_event");
        put_sized(&mut bytes, &self.header_event);
        bytes.extend(0u32.to_le_bytes());
        self.encode_systems(&mut bytes);
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes
    }

    fn encode_systems(&self, into: &mut Vec<u8>) {
        let mut systems: Vec<&str> = self.formats.iter().map(|(system, _)| &**system).collect();
        systems.sort_unstable();
        systems.dedup();
        into.extend((systems.len() as u32).to_le_bytes());
        for system in systems {
            let texts = || self.formats.iter().filter(|(of, _)| of == system);
            put_c_string(into, system);
            into.extend((texts().count() as u32).to_le_bytes());
            texts().for_each(|(_, text)| put_sized(into, text));
        }
    }

    /// System and layout of every format that can be understood.
    pub(super) fn parsed(&self) -> Vec<(String, Arc<Format>)> {
        let parse = |(system, text): &(String, Vec<u8>)| {
            let format = Format::parse(&String::from_utf8_lossy(text))?;
            Some((system.clone(), Arc::new(format)))
        };
        self.formats.iter().filter_map(parse).collect()
    }
}

fn decode_systems(cursor: &mut Cursor<'_>) -> Option<Vec<(String, Vec<u8>)>> {
    let mut formats = Vec::new();
    for _ in 0..cursor.u32()? {
        let system = cursor.c_string().filter(|name| name.len() <= SYSTEM_NAME_MAX)?;
        for _ in 0..cursor.u32()? {
            if formats.len() == FORMATS_MAX {
                return None;
            }
            formats.push((system.clone(), sized(cursor)?.to_vec()));
        }
    }
    Some(formats)
}

fn named(cursor: &mut Cursor<'_>, name: &str) -> Option<Vec<u8>> {
    if cursor.c_string()? != name {
        return None;
    }
    sized(cursor).map(<[u8]>::to_vec)
}

fn sized<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u64()?;
    cursor.take(len)
}

fn put_sized(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend((bytes.len() as u64).to_le_bytes());
    into.extend_from_slice(bytes);
}

fn put_c_string(into: &mut Vec<u8>, text: &str) {
    into.extend(text.bytes().filter(|&byte| byte != 0));
    into.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracing_data() -> TracingData {
        let text = |id| {
            format!(
                "name: e{id}\nID: {id}\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;\n"
            )
        };
        let format = |system: &str, id| (system.to_owned(), text(id).into_bytes());
        TracingData {
            header_page: b"page".to_vec(),
            header_event: b"<header event>".to_vec(),
            formats: vec![format("lock", 1), format("lock", 2), format("sched", 3)],
            page_size: 4096,
        }
    }

    #[test]
    fn tracing_data_survives_the_round_trip() {
        let data = tracing_data();
        assert_eq!(TracingData::decode(&data.encode()), Some(data.clone()));
        let parsed = data.parsed();
        let names: Vec<_> =
            parsed.iter().map(|(s, f)| (s.as_str(), f.name.as_str(), f.id)).collect();
        assert_eq!(names, [("lock", "e1", 1), ("lock", "e2", 2), ("sched", "e3", 3)]);
    }

    #[test]
    fn ftrace_formats_and_an_older_version_are_skipped_over() {
        let mut bytes = tracing_data().encode();
        let after =
            |what: &[u8]| what.len() + bytes.windows(what.len()).position(|w| w == what).unwrap();
        let count = after(b"<header event>");
        let format = [&1u32.to_le_bytes()[..], &3u64.to_le_bytes(), b"abc"].concat();
        bytes.splice(count..count + 4, format);
        let version = bytes.windows(3).position(|w| w == b"0.6").unwrap();
        bytes[version + 2] = b'5';
        bytes.truncate(bytes.len() - 8);
        assert_eq!(TracingData::decode(&bytes), Some(tracing_data()));
    }

    #[test]
    fn a_cut_anywhere_before_the_end_of_the_formats_gives_nothing() {
        let bytes = tracing_data().encode();
        for len in 0..bytes.len() - 16 {
            assert_eq!(TracingData::decode(&bytes[..len]), None, "cut at {len}");
        }
    }
}
