//! ELF files of every class and byte order, made here: one segment, one table of symbols.

use lockprof::model::UserFrame;
use lockprof::symbolize::{Places, Reason, Symbolizer};
use lockprof::unwind::Objects;

/// A kind of ELF file.
#[derive(Clone, Copy, Debug)]
struct Kind {
    wide: bool,
    big: bool,
    machine: u16,
}

const ARM: u16 = 40;
const KINDS: [Kind; 5] = [
    Kind { wide: true, big: false, machine: 62 },
    Kind { wide: true, big: true, machine: 22 },
    Kind { wide: false, big: false, machine: 3 },
    Kind { wide: false, big: true, machine: 8 },
    Kind { wide: false, big: false, machine: ARM },
];

/// (name, value, size, st_info = binding << 4 | type)
type Symbol = (&'static str, u64, u64, u8);

const LOCAL_FUNC: u8 = 2;
const GLOBAL_FUNC: u8 = 0x12;
const WEAK_FUNC: u8 = 0x22;
const GLOBAL_OBJECT: u8 = 0x11;
const NOTYPE: u8 = 0;

/// Code stands at 0x1000 of the file, and is loaded at 0x40_2000.
const TEXT: u64 = 0x1000;
const ADDRESS: u64 = 0x40_2000;
const TEXT_SIZE: u64 = 0x800;

struct Writer {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Writer {
    fn number(&mut self, value: u64, size: usize) {
        if self.kind.big {
            self.bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]);
        } else {
            self.bytes.extend_from_slice(&value.to_le_bytes()[..size]);
        }
    }

    fn word(&mut self, value: u64) {
        self.number(value, if self.kind.wide { 8 } else { 4 });
    }

    fn header(&mut self, sections: u64) {
        let Kind { wide, big, machine } = self.kind;
        self.bytes.extend_from_slice(b"\x7fELF");
        self.bytes.extend_from_slice(&[1 + u8::from(wide), 1 + u8::from(big), 1]);
        self.bytes.resize(16, 0);
        self.number(3, 2);
        self.number(machine.into(), 2);
        self.number(1, 4);
        self.word(0);
        self.word(if wide { 64 } else { 52 });
        self.word(sections);
        self.number(0, 4);
        let sizes = if wide { [64, 56, 1, 64, 4, 0] } else { [52, 32, 1, 40, 4, 0] };
        sizes.into_iter().for_each(|size| self.number(size, 2));
    }

    fn segment(&mut self) {
        self.number(1, 4);
        if self.kind.wide {
            self.number(5, 4);
        }
        [TEXT, ADDRESS, ADDRESS, TEXT_SIZE, TEXT_SIZE].into_iter().for_each(|word| self.word(word));
        if !self.kind.wide {
            self.number(5, 4);
        }
        self.word(0x1000);
    }

    /// [type, flags, address, offset, size, link, entry size]
    fn section(&mut self, [kind, flags, address, offset, size, link, entry]: [u64; 7]) {
        self.number(0, 4);
        self.number(kind, 4);
        [flags, address, offset, size].into_iter().for_each(|word| self.word(word));
        self.number(link, 4);
        self.number(0, 4);
        self.word(8);
        self.word(entry);
    }

    fn symbol(&mut self, name: u64, &(_, value, size, info): &Symbol) {
        self.number(name, 4);
        if !self.kind.wide {
            self.number(value, 4);
            self.number(size, 4);
        }
        self.bytes.extend_from_slice(&[info, 0]);
        self.number(1, 2);
        if self.kind.wide {
            self.number(value, 8);
            self.number(size, 8);
        }
    }
}

fn elf(kind: Kind, symbols: &[Symbol]) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = Writer { kind, bytes: Vec::new() };
    for symbol in symbols {
        table.symbol(names.len() as u64, symbol);
        names.extend_from_slice(symbol.0.as_bytes());
        names.push(0);
    }
    let entry = if kind.wide { 24 } else { 16 };
    let table_at = TEXT + TEXT_SIZE;
    let names_at = table_at + table.bytes.len() as u64;
    let sections_at = (names_at + names.len() as u64).next_multiple_of(8);
    let mut file = Writer { kind, bytes: Vec::new() };
    file.header(sections_at);
    file.segment();
    file.bytes.resize(table_at as usize, 0);
    file.bytes.extend_from_slice(&table.bytes);
    file.bytes.extend_from_slice(&names);
    file.bytes.resize(sections_at as usize, 0);
    file.section([0; 7]);
    file.section([1, 6, ADDRESS, TEXT, TEXT_SIZE, 0, 0]);
    file.section([2, 0, 0, table_at, table.bytes.len() as u64, 3, entry]);
    file.section([3, 0, 0, names_at, names.len() as u64, 0, 0]);
    file.bytes
}

const SYMBOLS: &[Symbol] = &[
    ("__alias", ADDRESS, 0x20, GLOBAL_FUNC),
    ("alias", ADDRESS, 0x20, WEAK_FUNC),
    ("local", ADDRESS + 0x40, 0x10, LOCAL_FUNC),
    ("data", ADDRESS + 0x60, 0x10, GLOBAL_OBJECT),
    ("$x", ADDRESS + 0x80, 0, NOTYPE),
    (".Llabel", ADDRESS + 0x80, 0, NOTYPE),
    ("assembly", ADDRESS + 0x80, 0, NOTYPE),
    ("_ZN3Foo3barEv", ADDRESS + 0x100, 0x10, GLOBAL_FUNC),
    ("past_the_end", ADDRESS + TEXT_SIZE, 0, NOTYPE),
];

#[test]
fn every_class_and_byte_order_gives_the_same_names() {
    let cases: [(u64, Result<&str, Reason>); 10] = [
        (TEXT, Ok("alias")),
        (TEXT + 0x1f, Ok("alias")),
        (TEXT + 0x20, Err(Reason::OutsideSymbols)),
        (TEXT + 0x4f, Ok("local")),
        (TEXT + 0x60, Err(Reason::OutsideSymbols)),
        (TEXT + 0x90, Ok("assembly")),
        (TEXT + 0x10f, Ok("Foo::bar")),
        (TEXT + 0x110, Err(Reason::OutsideSymbols)),
        (TEXT + TEXT_SIZE, Err(Reason::OutsideSymbols)),
        (0, Err(Reason::OutsideSymbols)),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let path = directory.path().join(format!("{number}.so"));
        std::fs::write(&path, elf(kind, SYMBOLS)).unwrap();
        let mut objects = Objects::default();
        let object = objects.intern(7, path.as_os_str().as_encoded_bytes(), None);
        let mut symbolizer = Symbolizer::new(Places::default());
        for (offset, expected) in cases {
            let symbol = symbolizer.symbol(&objects, UserFrame { object, offset });
            let found = symbol.unknown.map_or(Ok(symbol.name), Err);
            assert_eq!(found, expected, "{kind:?} {offset:#x}");
        }
    }
}

#[test]
fn the_bit_of_an_arm_function_is_not_part_of_its_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("arm.so");
    let kind = Kind { wide: false, big: false, machine: ARM };
    std::fs::write(&path, elf(kind, &[("thumb", ADDRESS + 1, 0x10, GLOBAL_FUNC)])).unwrap();
    let mut objects = Objects::default();
    let object = objects.intern(7, path.as_os_str().as_encoded_bytes(), None);
    let mut symbolizer = Symbolizer::new(Places::default());
    assert_eq!(symbolizer.frame(&objects, UserFrame { object, offset: TEXT }), "thumb");
}

#[test]
fn a_file_without_symbols_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stripped.so");
    std::fs::write(&path, elf(KINDS[0], &[])).unwrap();
    let mut objects = Objects::default();
    let object = objects.intern(7, path.as_os_str().as_encoded_bytes(), None);
    let mut symbolizer = Symbolizer::new(Places::default());
    let symbol = symbolizer.symbol(&objects, UserFrame { object, offset: TEXT });
    assert_eq!((symbol.name, symbol.unknown), ("[stripped.so+0x1000]", Some(Reason::NoSymbols)));
}
