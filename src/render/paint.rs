//! Colour for a terminal: it repeats what the words already say, so that leaving it out loses
//! nothing.
//!
//! In: text without escapes. Out: the same text, between SGR sequences when colour is on.

/// What a piece of text is, not what it looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// Ordinary text.
    #[default]
    Plain,
    /// What was asked about: the target, a row that has a large share.
    Strong,
    /// Titles of columns, small print.
    Quiet,
    /// A lock type that reads.
    Read,
    /// A lock type that writes.
    Write,
    /// Something that makes the numbers doubtful.
    Warning,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// Set by the caller, who knows the terminal and `NO_COLOR`.
    pub(crate) color: bool,
}

impl Paint {
    /// `text` in the look of `style`.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => "",
            Style::Strong => "1",
            Style::Quiet => "2",
            Style::Read => "36",
            Style::Write => "35",
            Style::Warning => "33",
        };
        if !self.color || code.is_empty() || text.trim().is_empty() {
            return text.to_string();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
