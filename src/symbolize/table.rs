//! A table of symbols: address -> name, by binary search.
//!
//! In: spans with the place of their names in one text (an ELF string table, a perf map). Out: for
//! each address the one name that people know the function by.

/// How many symbols before the address are looked at for one that spans it. Labels inside of a
/// function start after it and may end before the address.
const ENCLOSING_LIMIT: usize = 16;

/// Bytes of a name at the most. C++ templates make names of 10,000.
const NAME_LIMIT: usize = 64 << 10;

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// First address.
    pub(super) start: u64,
    /// First address after it; equal to `start` when it reaches up to the next symbol.
    pub(super) end: u64,
    /// Where its name starts in the text.
    pub(super) name: u32,
    /// Of several names for one address that of the lowest rank counts.
    pub(super) rank: u32,
}

/// A table of symbols.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// By start; no two with the same.
    spans: Vec<Span>,
    text: Vec<u8>,
}

impl Table {
    /// From spans in any order. Names end in `text` with NUL or a line feed.
    pub(super) fn new(mut spans: Vec<Span>, text: Vec<u8>) -> Table {
        spans.retain(|span| !name(&text, span).is_empty());
        spans.sort_by(|a, b| {
            let names = || {
                let (a, b) = (name(&text, a), name(&text, b));
                a.len().cmp(&b.len()).then(a.cmp(b))
            };
            (a.start, a.rank).cmp(&(b.start, b.rank)).then_with(names)
        });
        spans.dedup_by(|next, kept| {
            let same = next.start == kept.start;
            if same {
                kept.end = kept.end.max(next.end);
            }
            same
        });
        Table { spans, text }
    }

    /// How many symbols there are, aliases counted once.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The number of the symbol that spans `addr`.
    pub(super) fn find(&self, addr: u64) -> Option<usize> {
        let after = self.spans.partition_point(|span| span.start <= addr);
        let spans = self.spans.get(..after)?.iter().enumerate().rev().take(ENCLOSING_LIMIT);
        for (index, span) in spans {
            let open = span.end <= span.start && index + 1 == after;
            if open || addr < span.end {
                return Some(index);
            }
        }
        None
    }

    /// Its name, as it stands in the text.
    pub(super) fn name(&self, index: usize) -> &[u8] {
        self.spans.get(index).map_or(&[], |span| name(&self.text, span))
    }
}

fn name<'a>(text: &'a [u8], span: &Span) -> &'a [u8] {
    let start = text.get(span.name as usize..).unwrap_or_default();
    let start = &start[..start.len().min(NAME_LIMIT)];
    let end = start.iter().position(|byte| matches!(byte, 0 | b'\n')).unwrap_or(start.len());
    &start[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(spans: &[(u64, u64, u32, &str)]) -> Table {
        let mut text = Vec::new();
        let mut all = Vec::new();
        for &(start, end, rank, name) in spans {
            all.push(Span { start, end, name: text.len() as u32, rank });
            text.extend_from_slice(name.as_bytes());
            text.push(0);
        }
        Table::new(all, text)
    }

    fn find(table: &Table, addr: u64) -> Option<&str> {
        table.find(addr).map(|index| std::str::from_utf8(table.name(index)).unwrap())
    }

    #[test]
    fn an_address_has_the_name_of_the_symbol_that_spans_it() {
        let table = table(&[
            (0x30, 0x38, 0, "c"),
            (0x10, 0x20, 0, "a"),
            (0x20, 0x20, 0, "open"),
            (0x40, 0x80, 0, "outer"),
            (0x50, 0x58, 0, "label"),
        ]);
        let cases = [
            (0xf, None),
            (0x10, Some("a")),
            (0x1f, Some("a")),
            (0x20, Some("open")),
            (0x2f, Some("open")),
            (0x37, Some("c")),
            (0x38, None),
            (0x4f, Some("outer")),
            (0x57, Some("label")),
            (0x58, Some("outer")),
            (0x80, None),
            (u64::MAX, None),
        ];
        for (addr, expected) in cases {
            assert_eq!(find(&table, addr), expected, "{addr:#x}");
        }
    }

    #[test]
    fn of_aliases_the_lowest_rank_then_the_shortest_name_counts() {
        let table = table(&[
            (0x10, 0x20, 1, "a"),
            (0x10, 0x30, 0, "longer"),
            (0x10, 0x18, 0, "long"),
            (0x10, 0x18, 0, ""),
        ]);
        assert_eq!(table.len(), 1);
        assert_eq!(find(&table, 0x2f), Some("long"));
    }

    #[test]
    fn names_outside_of_the_text_are_none() {
        let span = Span { start: 0, end: 9, name: 5, rank: 0 };
        assert_eq!(Table::new(vec![span], b"abc".to_vec()).len(), 0);
    }
}
