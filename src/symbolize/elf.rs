//! ELF: headers, build id, debug link, symbols. Of 32 and 64 bits, either byte order.
//!
//! In: an [`Image`]. Any bytes give an answer or a [`Reason`]; what is allocated is bounded by the
//! image's size and by the limit of one piece. Tables are read whole, the rest of a file never: a
//! debug file of gigabytes costs its symbols only.

use std::path::Path;

use object::elf::{
    ELF_NOTE_GNU, EM_ARM, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PT_LOAD, PT_NOTE,
    SHF_EXECINSTR, SHT_DYNSYM, SHT_NOTE, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC,
    STT_NOTYPE, SectionType, SymbolType,
};
use object::pod::{Pod, slice_from_all_bytes};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader, Sym};
use object::{Endian, Endianness};

use super::Reason;
use super::image::Image;
use super::table::{Span, Table};

/// Notes beyond this size or number hold no build id.
const NOTE_SIZE_LIMIT: u64 = 64 << 10;
const NOTE_COUNT_LIMIT: usize = 64;

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    offset: u64,
    size: u64,
    address: u64,
}

/// Where the file says that `offset` is loaded, in its own addresses.
pub(super) fn address(loads: &[Load], offset: u64) -> Option<u64> {
    let of = |load: &Load| {
        let inside = offset.checked_sub(load.offset).filter(|&inside| inside < load.size)?;
        Some(load.address.wrapping_add(inside))
    };
    loads.iter().find_map(of)
}

#[derive(Clone, Copy, Debug)]
struct Section {
    name: u32,
    kind: SectionType,
    executable: bool,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    align: u64,
}

/// Bytes of a note section or segment.
#[derive(Clone, Copy, Debug)]
struct Notes {
    offset: u64,
    size: u64,
    align: u64,
}

/// Which table of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbols {
    /// `.symtab`: all of them, where the file was not stripped.
    All,
    /// `.dynsym`: those that other files may link to.
    Dynamic,
}

/// An ELF file.
#[derive(Debug)]
pub(super) struct Elf {
    image: Image,
    endian: Endianness,
    wide: bool,
    arm: bool,
    loads: Vec<Load>,
    notes: Vec<Notes>,
    sections: Vec<Section>,
    names: u32,
}

impl Elf {
    /// Reads the headers of the file at `path`.
    pub(super) fn open(path: &Path) -> Result<Elf, Reason> {
        Elf::new(Image::open(path)?)
    }

    /// Reads the headers.
    pub(super) fn new(image: Image) -> Result<Elf, Reason> {
        let head = image.read(0, image.len().min(64))?;
        if let Ok(header) = FileHeader64::<Endianness>::parse(head.as_slice()) {
            Elf::with_header(header, image)
        } else if let Ok(header) = FileHeader32::<Endianness>::parse(head.as_slice()) {
            Elf::with_header(header, image)
        } else {
            Err(Reason::NotElf)
        }
    }

    fn with_header<H: FileHeader<Endian = Endianness>>(
        header: &H,
        image: Image,
    ) -> Result<Elf, Reason> {
        let endian = header.endian().map_err(|_| Reason::NotElf)?;
        let mut elf = Elf {
            image,
            endian,
            wide: header.is_class_64(),
            arm: header.e_machine(endian) == EM_ARM,
            loads: Vec::new(),
            notes: Vec::new(),
            sections: Vec::new(),
            names: header.e_shstrndx(endian).0.into(),
        };
        elf.read_sections(header)?;
        elf.read_segments(header)?;
        Ok(elf)
    }

    /// Reads `count` structures.
    fn structs<T: Pod>(&self, offset: u64, count: u64) -> Result<Vec<u8>, Reason> {
        let size = count.checked_mul(size_of::<T>() as u64).ok_or(Reason::Damaged)?;
        self.image.read(offset, size)
    }

    fn read_segments<H: FileHeader<Endian = Endianness>>(
        &mut self,
        header: &H,
    ) -> Result<(), Reason> {
        let (endian, offset) = (self.endian, header.e_phoff(self.endian).into());
        let count = if offset == 0 { 0 } else { header.e_phnum(endian) };
        let bytes = self.structs::<H::ProgramHeader>(offset, count.into())?;
        for segment in slice::<H::ProgramHeader>(&bytes)? {
            let (offset, size) = segment.file_range(endian);
            let address = segment.p_vaddr(endian).into();
            match segment.p_type(endian) {
                PT_LOAD => self.loads.push(Load { offset, size, address }),
                PT_NOTE => {
                    let align = segment.p_align(endian).into();
                    self.notes.push(Notes { offset, size, align });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A file with more than 65,279 sections keeps their number elsewhere; only object files before
    /// linking have so many.
    fn read_sections<H: FileHeader<Endian = Endianness>>(
        &mut self,
        header: &H,
    ) -> Result<(), Reason> {
        let (endian, offset) = (self.endian, header.e_shoff(self.endian).into());
        let count = if offset == 0 { 0 } else { header.e_shnum(endian) };
        let bytes = self.structs::<H::SectionHeader>(offset, count.into())?;
        for section in slice::<H::SectionHeader>(&bytes)? {
            let section = Section {
                name: section.sh_name(endian),
                kind: section.sh_type(endian),
                executable: section.sh_flags(endian).0 & SHF_EXECINSTR.0 != 0,
                address: section.sh_addr(endian).into(),
                offset: section.sh_offset(endian).into(),
                size: section.sh_size(endian).into(),
                link: section.sh_link(endian),
                align: section.sh_addralign(endian).into(),
            };
            if section.kind == SHT_NOTE {
                let Section { offset, size, align, .. } = section;
                self.notes.push(Notes { offset, size, align });
            }
            self.sections.push(section);
        }
        Ok(())
    }

    /// The parts that are loaded.
    pub(super) fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// The build id that the linker wrote.
    pub(super) fn build_id(&self) -> Option<Vec<u8>> {
        self.notes.iter().take(NOTE_COUNT_LIMIT).find_map(|notes| {
            let bytes = self.image.read(notes.offset, notes.size.min(NOTE_SIZE_LIMIT)).ok()?;
            // Notes of 32 and 64 bits have the same form.
            let endian = self.endian;
            type Header = FileHeader64<Endianness>;
            let mut notes = NoteIterator::<Header>::new(endian, notes.align, &bytes).ok()?;
            while let Ok(Some(note)) = notes.next() {
                if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                    return Some(note.desc().to_vec()).filter(|id| !id.is_empty());
                }
            }
            None
        })
    }

    /// `.gnu_debuglink`: the name of the debug file, padded, and the CRC-32 of its bytes.
    pub(super) fn debug_link(&self) -> Option<(Vec<u8>, u32)> {
        let mut bytes = self.section_named(b".gnu_debuglink")?;
        let len = bytes.iter().position(|&byte| byte == 0)?;
        let crc = bytes.get((len / 4 + 1) * 4..)?.first_chunk::<4>()?;
        let crc = self.endian.read_u32(*crc);
        bytes.truncate(len);
        Some((bytes, crc))
    }

    fn section_named(&self, name: &[u8]) -> Option<Vec<u8>> {
        let names = self.sections.get(self.names as usize)?;
        let names = self.image.read(names.offset, names.size).ok()?;
        let named = |section: &&Section| {
            let rest = names.get(section.name as usize..).unwrap_or_default();
            rest.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
        };
        let section = self.sections.iter().find(named)?;
        self.image.read(section.offset, section.size).ok()
    }

    /// The functions of one of its tables; an empty one when the file has none.
    pub(super) fn symbols(&self, which: Symbols) -> Result<Table, Reason> {
        if self.wide {
            self.symbols_of::<FileHeader64<Endianness>>(which)
        } else {
            self.symbols_of::<FileHeader32<Endianness>>(which)
        }
    }

    fn symbols_of<H: FileHeader<Endian = Endianness>>(
        &self,
        which: Symbols,
    ) -> Result<Table, Reason> {
        let kind = if which == Symbols::All { SHT_SYMTAB } else { SHT_DYNSYM };
        let Some(section) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(Table::default());
        };
        let names = self.sections.get(section.link as usize).ok_or(Reason::Damaged)?;
        let text = self.image.read(names.offset, names.size)?;
        let count = section.size / size_of::<H::Sym>() as u64;
        let bytes = self.structs::<H::Sym>(section.offset, count)?;
        let symbols = slice::<H::Sym>(&bytes)?.iter();
        let spans = symbols.filter_map(|symbol| self.span::<H>(symbol, &text)).collect();
        Ok(Table::new(spans, text))
    }

    /// The span of a symbol that is code of this file.
    fn span<H: FileHeader<Endian = Endianness>>(
        &self,
        symbol: &H::Sym,
        text: &[u8],
    ) -> Option<Span> {
        let section = self.sections.get(usize::from(symbol.st_shndx(self.endian).index()?))?;
        let name = symbol.st_name(self.endian);
        let first = text.get(name as usize..)?;
        if !is_code(symbol.st_type(), section, first) {
            return None;
        }
        let value: u64 = symbol.st_value(self.endian).into();
        // Bit 0 of an ARM function's address tells its instruction set.
        let start = if self.arm { value & !1 } else { value };
        let end = match symbol.st_size(self.endian).into() {
            0 => start,
            size => start.saturating_add(size),
        };
        // Past the end of its section: the end of the image, as linkers define it.
        let section_end = section.address.saturating_add(section.size);
        (start < section_end).then(|| Span { start, end, name, rank: rank(symbol, first) })
    }
}

fn is_code(kind: SymbolType, section: &Section, name: &[u8]) -> bool {
    match kind {
        STT_FUNC | STT_GNU_IFUNC => true,
        // Assembly without types. Not the marks between code and data, nor local labels.
        STT_NOTYPE => section.executable && !name.starts_with(b"$") && !name.starts_with(b".L"),
        _ => false,
    }
}

/// People know `mprotect`, not `__mprotect` or `__GI___mprotect`, and a global name rather than a
/// local one. An indirect function's name stands for what its code chooses, not for that code.
fn rank<S: Sym>(symbol: &S, name: &[u8]) -> u32 {
    let underscores = name.iter().take(8).take_while(|&&byte| byte == b'_').count() as u32;
    let kind = match symbol.st_type() {
        STT_FUNC => 0,
        STT_GNU_IFUNC => 1,
        _ => 2,
    };
    let binding = match symbol.st_bind() {
        STB_GLOBAL => 0,
        STB_WEAK => 1,
        _ => 2,
    };
    (kind << 8) | (underscores << 4) | binding
}

fn slice<T: Pod>(bytes: &[u8]) -> Result<&[T], Reason> {
    slice_from_all_bytes(bytes).map_err(|()| Reason::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::vdso;

    /// Asks everything of an image; answers how many symbols it has.
    fn ask(bytes: &[u8]) -> usize {
        let Ok(elf) = Elf::new(Image::Memory(bytes.to_vec())) else { return 0 };
        let _ = (elf.build_id(), elf.debug_link(), address(elf.loads(), 0x800));
        let count = |which| elf.symbols(which).map_or(0, |table| table.len());
        count(Symbols::All) + count(Symbols::Dynamic)
    }

    fn vdso() -> Option<Vec<u8>> {
        let own = vdso::own().and_then(|image| image.read(0, image.len()));
        if let Err(reason) = &own {
            println!("skipped: this process has no vdso: {reason}");
        }
        own.ok()
    }

    #[test]
    fn the_vdso_has_symbols_and_a_build_id() {
        let Some(bytes) = vdso() else { return };
        assert!(ask(&bytes) > 3);
        let elf = Elf::new(Image::Memory(bytes)).unwrap();
        assert!(elf.build_id().is_some_and(|id| id.len() == 20));
        let table = elf.symbols(Symbols::Dynamic).unwrap();
        let names: Vec<_> = (0..table.len()).map(|index| table.name(index)).collect();
        assert!(
            names.contains(&&b"clock_gettime"[..])
                || names.contains(&&b"__kernel_clock_gettime"[..])
        );
    }

    #[test]
    fn an_image_cut_anywhere_gives_an_answer() {
        let Some(bytes) = vdso() else { return };
        for len in 0..bytes.len() {
            ask(&bytes[..len]);
        }
    }

    #[test]
    fn an_image_with_any_wrong_byte_gives_an_answer() {
        let Some(mut bytes) = vdso() else { return };
        for at in 0..bytes.len() {
            let right = bytes[at];
            for wrong in [0, 1, 0x7f, 0x80, 0xff, !right] {
                bytes[at] = wrong;
                ask(&bytes);
            }
            bytes[at] = right;
        }
    }

    #[test]
    fn counts_beyond_the_image_allocate_nothing() {
        let Some(mut bytes) = vdso() else { return };
        let header = FileHeader64::<Endianness>::parse(bytes.as_slice()).unwrap();
        let sections = header.e_shoff(Endianness::default()) as usize;
        // Every section's size becomes 2^63.
        for section in bytes[sections..].chunks_exact_mut(64) {
            section[32..40].copy_from_slice(&(1u64 << 63).to_le_bytes());
        }
        let elf = Elf::new(Image::Memory(bytes)).unwrap();
        assert_eq!(elf.symbols(Symbols::Dynamic).unwrap_err(), Reason::Damaged);
    }
}
