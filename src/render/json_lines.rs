//! How JSON is laid out: the document's fields and the entries of its arrays on lines of their own,
//! everything below on one line, for grep and diff.
//!
//! In: what serde_json writes, piece by piece. Out: the pieces with line breaks, and with
//! characters that would act on a terminal as `\u....`, which is the same string to a program.

use std::io;

use serde_json::ser::Formatter;

use crate::render::escape::acts;

/// The layout, and how deep the writer is in it.
#[derive(Default)]
pub(super) struct Lines {
    depth: usize,
    /// The array or object being written has an entry.
    has_entry: bool,
}

/// The document's fields are 1 deep, the entries of its `rows` 2.
const ROWS: usize = 2;

impl Lines {
    fn begin_entry<W: ?Sized + io::Write>(
        &self,
        out: &mut W,
        first: bool,
        breaks: bool,
    ) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if breaks { write!(out, "\n{:1$}", "", self.depth * 2) } else { Ok(()) }
    }
}

impl Formatter for Lines {
    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"\n}" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_entry(out, first, self.depth < ROWS)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_entry = false;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.has_entry && self.depth + 1 == ROWS {
            out.write_all(b"\n  ")?;
        }
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_entry(out, first, self.depth == ROWS)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_entry = true;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = fragment;
        while let Some(at) = plain.find(acts) {
            let (before, rest) = plain.split_at(at);
            out.write_all(before.as_bytes())?;
            let mut chars = rest.chars();
            if let Some(c) = chars.next() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            plain = chars.as_str();
        }
        out.write_all(plain.as_bytes())
    }
}
