//! Names from the machine before they meet a terminal, a spreadsheet or a stack line.
//!
//! In: a comm, path or symbol, whatever bytes it had (already lossy UTF-8). Out: the same text with
//! everything that acts instead of showing written out: `\x1b`, `\n`, `\u{202e}`. XML is escaped by
//! its writer; it gets [`visible`] text, because XML 1.0 has no way to write most control
//! characters.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does something instead of showing something.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Zero width, and marks of writing direction.
            '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            // Line and paragraph separator; embeddings and overrides of writing direction.
            | '\u{2028}'..='\u{202e}'
            // Word joiner, invisible operators, isolates.
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Invisible tags.
            | '\u{e0000}'..='\u{e007f}')
        // No characters at all, and forbidden in XML.
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The text with every acting character written out.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push_visible(&mut safe, c);
    }
    Cow::Owned(safe)
}

fn push_visible(safe: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => safe.write_str("\\n"),
        '\r' => safe.write_str("\\r"),
        '\t' => safe.write_str("\\t"),
        c if c.is_ascii_control() => write!(safe, "\\x{:02x}", u32::from(c)),
        c if acts(c) => write!(safe, "\\u{{{:x}}}", u32::from(c)),
        c => safe.write_char(c),
    };
}

/// A text field of a CSV file (RFC 4180): quoted where it must be.
///
/// A leading `=`, `+`, `-` or `@` would make a spreadsheet run the cell; an apostrophe in front
/// keeps it text.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    let mut field = visible(text);
    if field.starts_with(['=', '+', '-', '@']) {
        field = Cow::Owned(format!("'{field}"));
    }
    if field.contains(['"', ',', '\r', '\n']) || field.starts_with(' ') || field.ends_with(' ') {
        field = Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")));
    }
    field
}

/// A frame of a folded stack: `;` separates frames and becomes `:`, spaces stay.
pub fn folded_frame(text: &str) -> Cow<'_, str> {
    let frame = visible(text);
    if frame.contains(';') { Cow::Owned(frame.replace(';', ":")) } else { frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_written_out() {
        let cases = [
            ("do_mprotect_pkey", "do_mprotect_pkey"),
            ("a\x1b[31mred", "a\\x1b[31mred"),
            ("two\nlines\tand\rmore", "two\\nlines\\tand\\rmore"),
            ("nul\0del\x7f", "nul\\x00del\\x7f"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("evil\u{202e}gpj.exe", "evil\\u{202e}gpj.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{ffff}\u{1fffe}", "\\u{ffff}\\u{1fffe}"),
            ("caf\u{e9} \u{65e5}\u{672c} <b>;", "caf\u{e9} \u{65e5}\u{672c} <b>;"),
            ("\u{fffd}", "\u{fffd}"),
        ];
        for (raw, safe) in cases {
            assert_eq!(visible(raw), safe);
        }
    }

    #[test]
    fn csv_fields_are_quoted_and_run_nothing() {
        let cases = [
            ("xfs_ilock", "xfs_ilock"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("-bash", "'-bash"),
            ("@x,y", "\"'@x,y\""),
            ("line\nbreak", "line\\nbreak"),
            ("\t=1", "\\t=1"),
        ];
        for (raw, field) in cases {
            assert_eq!(csv_field(raw), field);
        }
    }

    #[test]
    fn folded_frames_cannot_split_a_stack() {
        assert_eq!(folded_frame("f(u8; 8) const"), "f(u8: 8) const");
        assert_eq!(folded_frame("a\nb"), "a\\nb");
    }
}
