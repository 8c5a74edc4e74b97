//! Text to a width: cutting names short, breaking sentences into lines.
//!
//! In: escaped text and a width in columns of a terminal. Out: text no wider than that.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that `text` takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// `text` in at most `width` columns; what is cut off leaves `..`.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_string();
    }
    let mut left = width.saturating_sub(2);
    let kept = text.chars().take_while(|c| {
        let needed = c.width().unwrap_or(0);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    let mut short: String = kept.collect();
    short.extend(std::iter::repeat_n('.', width.min(2)));
    short
}

/// Breaks at spaces. The first line begins with `first`, the others with as many spaces. A word
/// wider than a line stands alone and sticks out: addresses and commands are for copying.
pub(crate) fn wrap(first: &str, text: &str, width: usize) -> Vec<String> {
    let indent = columns(first);
    let mut lines = Vec::new();
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && columns(&line) + 1 + columns(word) > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}

/// As many items on a line as fit, four spaces apart. The first line begins with `first`, the others
/// with as many spaces.
pub(crate) fn pack(first: &str, items: &[String], width: usize) -> Vec<String> {
    let indent = " ".repeat(columns(first));
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if columns(line) + 4 + columns(item) <= width => {
                *line += "    ";
                *line += item;
            }
            Some(_) => lines.push(format!("{indent}{item}")),
            None => lines.push(format!("{first}{item}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_to_the_columns_it_may_take() {
        let cases = [
            ("mmap_lock", 9, "mmap_lock"),
            ("lock_mm_and_find_vma", 9, "lock_mm.."),
            ("\u{65e5}\u{672c}\u{8a9e}", 5, "\u{65e5}.."),
            ("abc", 1, "."),
            ("abc", 0, ""),
        ];
        for (name, width, short) in cases {
            assert_eq!(shorten(name, width), short);
            assert!(columns(&shorten(name, width)) <= width);
        }
    }

    #[test]
    fn sentences_break_at_spaces_and_keep_their_indent() {
        let lines = wrap("  trust: ", "8,624 events, 0 lost; 1 failed", 24);
        assert_eq!(lines, ["  trust: 8,624 events, 0", "         lost; 1 failed"]);
        assert_eq!(wrap("", "0xffff888103f4a1c8 is", 5), ["0xffff888103f4a1c8", "is"]);
    }
}
