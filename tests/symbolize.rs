//! Names of real functions: of this test binary, of the C library, of small ELF files made here.

// Its helpers are part of the tests: what they cannot read fails the test.
#![allow(clippy::unwrap_used)]

mod aloud;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use lockprof::decode::{Body, Event, Mmap};
use lockprof::model::{ObjectId, Timestamp, UserFrame};
use lockprof::stacks::Stacks;
use lockprof::symbolize::{Places, Reason, Symbolizer};
use lockprof::unwind::{Maps, Object, Objects};
use object::elf::{FileHeader64, STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{ElfFile, ElfSymbol64};
use object::{Endianness, Object as _, ObjectSegment, ObjectSymbol};

type Elf64<'a> = ElfFile<'a, FileHeader64<Endianness>>;

#[inline(never)]
fn a_function_of_this_test(seed: u64) -> u64 {
    std::hint::black_box(seed).wrapping_mul(3)
}

/// A line of /proc/self/maps that maps code.
struct Line {
    start: u64,
    len: u64,
    pgoff: u64,
    path: String,
}

fn own_code() -> Vec<Line> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        fields.next().filter(|protection| protection.contains('x'))?;
        let pgoff = hex(fields.next()?);
        let path = fields.nth(2).unwrap_or_default().to_owned();
        Some(Line { start: hex(start), len: hex(end) - hex(start), pgoff, path })
    };
    text.lines().filter_map(line).collect()
}

fn map(maps: &mut Maps, line: &Line, build_id: Option<&[u8]>) {
    let Line { start: addr, len, pgoff, ref path } = *line;
    let name = path.as_bytes();
    let mmap = Mmap { pid: 7, addr, len, pgoff, kernel: false, name, build_id };
    let (time, body) = (Timestamp(1), Body::Mmap(mmap));
    maps.apply(&Event {
        time,
        cpu: None,
        pid: 7,
        tid: 7,
        instance: 0,
        cgroup: None,
        offset: 0,
        body,
    });
}

fn libc() -> PathBuf {
    let is_libc = |line: &Line| line.path.contains("/libc.so.6") || line.path.contains("/libc-2");
    PathBuf::from(own_code().into_iter().find(is_libc).expect("no glibc is mapped").path)
}

/// Where functions start in `libc`: (name, offset in the file), from the symbols of `symbols`.
fn functions(libc: &[u8], symbols: &[u8]) -> Vec<(String, u64)> {
    let libc = Elf64::parse(libc).unwrap();
    let symbols = Elf64::parse(symbols).unwrap();
    let offset = |address: u64| {
        libc.segments().find_map(|segment| {
            let inside = address.checked_sub(segment.address())?;
            let (start, size) = segment.file_range();
            (inside < size).then_some(start + inside)
        })
    };
    let all = symbols.symbols().chain(symbols.dynamic_symbols());
    let function = |symbol: &ElfSymbol64<'_, '_, Endianness>| {
        matches!(symbol.elf_symbol().st_type(), STT_FUNC | STT_GNU_IFUNC)
    };
    all.filter(|symbol| function(symbol) && symbol.address() != 0)
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), offset(symbol.address())?)))
        .collect()
}

fn offset_of(functions: &[(String, u64)], wanted: &str) -> u64 {
    let plain = |name: &str| name.split('@').next() == Some(wanted);
    functions.iter().find(|(name, _)| plain(name)).expect("libc lacks the function").1
}

fn build_id(file: &[u8]) -> Vec<u8> {
    Elf64::parse(file).unwrap().build_id().unwrap().expect("libc has no build id").to_vec()
}

fn debug_file(id: &[u8]) -> Option<PathBuf> {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]);
    if !Path::new(&path).exists() {
        aloud::skipped(format_args!("{path} is not there (Debian package libc6-dbg)"));
        return None;
    }
    Some(PathBuf::from(path))
}

/// The name at `offset` of the object mapped from `path`, or why there is none.
fn name(
    places: &Places,
    path: &Path,
    id: Option<&[u8]>,
    offset: u64,
) -> Result<String, (String, Reason)> {
    let mut objects = Objects::default();
    let object = objects.intern(7, path.as_os_str().as_encoded_bytes(), id);
    let mut symbolizer = Symbolizer::new(places.clone());
    let symbol = symbolizer.symbol(&objects, UserFrame { object, offset });
    match symbol.unknown {
        None => Ok(symbol.name.to_owned()),
        Some(reason) => Err((symbol.name.to_owned(), reason)),
    }
}

#[test]
fn a_function_of_this_binary_is_found_through_its_own_maps() {
    let (mut maps, mut stacks) = (Maps::default(), Stacks::default());
    for line in own_code() {
        map(&mut maps, &line, None);
    }
    let address = a_function_of_this_test as *const () as u64;
    let chain: Vec<u8> = [address, address + 1].iter().flat_map(|ip| ip.to_le_bytes()).collect();
    let stack = maps.resolve(7, &chain, &mut stacks);
    let mut symbolizer = Symbolizer::default();
    let frames = stacks.user(stack);
    assert_eq!(frames.len(), 2);
    for &frame in frames {
        let name = symbolizer.frame(maps.objects(), frame);
        assert_eq!(name, "symbolize::a_function_of_this_test");
    }
    assert!(symbolizer.sources().all(|(_, source)| source.is_ok_and(|s| s.symbols > 100)));
}

#[test]
fn a_stripped_library_has_the_names_of_its_dynamic_symbols() {
    let path = libc();
    let bytes = fs::read(&path).unwrap();
    let mprotect = offset_of(&functions(&bytes, &bytes), "mprotect");
    let nowhere = Places::default();
    assert_eq!(name(&nowhere, &path, None, mprotect), Ok("mprotect".to_owned()));
    assert_eq!(
        name(&nowhere, &path, Some(&build_id(&bytes)), mprotect + 8),
        Ok("mprotect".to_owned())
    );
}

#[test]
fn the_debug_file_of_the_build_id_names_static_functions() {
    let path = libc();
    let bytes = fs::read(&path).unwrap();
    let id = build_id(&bytes);
    let Some(debug) = debug_file(&id) else { return };
    let functions = functions(&bytes, &fs::read(debug).unwrap());
    let mut names: HashMap<u64, Vec<&str>> = HashMap::new();
    for (name, offset) in &functions {
        names.entry(*offset).or_default().push(name);
    }
    let mut objects = Objects::default();
    let object = objects.intern(7, path.as_os_str().as_encoded_bytes(), Some(&id));
    let mut symbolizer = Symbolizer::default();
    for (offset, names) in &names {
        let found = symbolizer.frame(&objects, UserFrame { object, offset: *offset });
        let same = |name: &&str| name.split('@').next() == Some(found);
        assert!(names.iter().any(same), "{offset:#x}: {found}, not of {names:?}");
    }
    let mut at = |name| {
        let offset = offset_of(&functions, name);
        symbolizer.frame(&objects, UserFrame { object, offset }).to_owned()
    };
    assert_eq!(
        (at("_int_malloc"), at("__GI___mprotect")),
        ("_int_malloc".into(), "mprotect".into())
    );
    let sources: Vec<_> = symbolizer.sources().collect();
    assert!(matches!(sources[..], [(_, Ok(source))] if source.verified && source.symbols > 2000));
}

#[test]
fn debug_files_and_copies_are_found_in_every_place() {
    let path = libc();
    let bytes = fs::read(&path).unwrap();
    let id = build_id(&bytes);
    let Some(debug) = debug_file(&id) else { return };
    let malloc = offset_of(&functions(&bytes, &fs::read(&debug).unwrap()), "_int_malloc");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at(2);
    let elf = format!(".build-id/{first}/{rest}/elf");
    let debug_name = format!(".build-id/{first}/{rest}.debug");
    let link = format!("{rest}.debug");
    let executable = format!("{hex}/executable");
    let debuginfo = format!("{hex}/debuginfo");
    // (name, where the file is, where its debug file is); the path is LIB/libc.so.
    let cases = [
        ("beside it", "lib/libc.so", format!("lib/{link}")),
        ("in .debug", "lib/libc.so", format!("lib/.debug/{link}")),
        ("in the debug directory", "lib/libc.so", debug_name.clone()),
        ("in debuginfod's cache", "lib/libc.so", debuginfo),
        ("perf's copy", elf.as_str(), debug_name.clone()),
        ("debuginfod's copy", executable.as_str(), debug_name),
    ];
    for (case, file, debug_file) in cases {
        let root = tempfile::tempdir().unwrap();
        for (from, to) in [(&path, file), (&debug, debug_file.as_str())] {
            let to = root.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        let here = root.path().to_owned();
        let places = Places {
            debug: vec![here.clone()],
            perf: Some(here.clone()),
            debuginfod: Some(here.clone()),
            perf_maps: here.clone(),
        };
        let found = name(&places, &here.join("lib/libc.so"), Some(&id), malloc);
        assert_eq!(found, Ok("_int_malloc".to_owned()), "{case}");
    }
}

#[test]
fn what_is_not_the_recorded_file_gives_no_names() {
    let path = libc();
    let bytes = fs::read(&path).unwrap();
    let id = build_id(&bytes);
    let mut other = id.clone();
    other[0] ^= 1;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let text = file("text", b"#!/bin/sh\n");
    let empty = file("empty", b"");
    let missing = directory.path().join("missing");
    let deleted = PathBuf::from(format!("{} (deleted)", path.display()));
    let device = PathBuf::from("/dev/tty");
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let cases: [(&Path, Option<&[u8]>, Reason); 9] = [
        (&path, Some(&other), Reason::OtherBuildId),
        (&path, Some(&id[..19]), Reason::OtherBuildId),
        (&text, None, Reason::NotElf),
        (&text, Some(&id), Reason::NotElf),
        (&empty, None, Reason::NotElf),
        (&missing, None, Reason::FileMissing),
        (&deleted, None, Reason::FileDeleted),
        (&device, None, Reason::NotElf),
        (&fifo, None, Reason::NotElf),
    ];
    for (path, id, reason) in cases {
        let base = path.file_name().unwrap().to_str().unwrap().replace(" (deleted)", "");
        let expected = Err((format!("[{base}+0x30000]"), reason));
        assert_eq!(name(&Places::default(), path, id, 0x30000), expected, "{path:?}");
    }
}

#[test]
fn frames_without_a_file_say_why() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("perf-7.map"), "1000 10 LazyCompile:~f /a.js:1\n").unwrap();
    let places = Places { perf_maps: directory.path().to_owned(), ..Places::default() };
    let mut objects = Objects::default();
    let (jit, other) = (objects.intern(7, b"//anon", None), objects.intern(8, b"//anon", None));
    let vdso = objects.intern(7, b"[vdso]", None);
    let foreign_vdso = objects.intern(7, b"[vdso]", Some(&[1; 20]));
    let cases = [
        (ObjectId::UNKNOWN, "[unknown+0x1008]", Some(Reason::NoMapping)),
        (Objects::BROKEN_STACK, "[broken stack]", Some(Reason::BrokenStack)),
        (Objects::VSYSCALL, "[vsyscall+0x1008]", Some(Reason::NoFile)),
        (jit, "LazyCompile:~f /a.js:1", None),
        (other, "[anon+0x1008]", Some(Reason::NoPerfMap)),
        (vdso, "[vdso+0x1008]", Some(Reason::NoBuildId)),
        (foreign_vdso, "[vdso+0x1008]", Some(Reason::OtherBuildId)),
    ];
    let mut symbolizer = Symbolizer::new(places);
    for (object, name, unknown) in cases {
        let symbol = symbolizer.symbol(&objects, UserFrame { object, offset: 0x1008 });
        assert_eq!((symbol.name, symbol.unknown), (name, unknown));
    }
    let past = symbolizer.symbol(&objects, UserFrame { object: jit, offset: 0x1010 });
    assert_eq!((past.name, past.unknown), ("[anon+0x1010]", Some(Reason::OutsideSymbols)));
    assert!(objects.iter().any(|(_, object)| *object == Object::Anonymous { pid: 8 }));
}

#[test]
fn a_library_cut_at_many_lengths_gives_a_name_or_a_reason() {
    let path = libc();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.so");
    fs::copy(&path, &cut).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&cut).unwrap();
    let len = file.metadata().unwrap().len();
    let mprotect = {
        let bytes = fs::read(&path).unwrap();
        offset_of(&functions(&bytes, &bytes), "mprotect")
    };
    let lengths = (0..2048).chain((2048..len).step_by(8191)).chain([len - 1]);
    for length in lengths.collect::<Vec<_>>().into_iter().rev() {
        file.set_len(length).unwrap();
        let found = name(&Places::default(), &cut, None, mprotect);
        // The section headers are the end of the file: without them there are no symbols.
        let reason = found.unwrap_err().1;
        assert!(matches!(reason, Reason::NotElf | Reason::Damaged), "{length}: {reason:?}");
    }
}
