//! The last line: what is typed, what was said, or the keys.

use ratatui::text::{Line, Span};

use super::super::bindings::BINDINGS;
use super::super::state::State;
use super::super::theme::Theme;
use crate::render::escape::visible;
use crate::render::paragraph::{columns, shorten};

pub(super) fn line(state: &State, theme: Theme, width: usize) -> Line<'static> {
    if state.typing {
        let typed = format!(" /{}_   Enter keeps it, Esc drops it", visible(&state.filter));
        return Line::from(Span::styled(shorten(&typed, width), theme.strong()));
    }
    if state.asking {
        let asked = " the command runs: e ends the recording, s stops the command, Esc stays";
        return Line::from(Span::styled(shorten(asked, width), theme.strong()));
    }
    match &state.said {
        Some(said) => {
            let said = shorten(&format!(" {}", visible(said)), width);
            Line::from(Span::styled(said, theme.strong()))
        }
        None => keys(theme, width),
    }
}

/// As many keys as there is room for.
fn keys(theme: Theme, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut left = width;
    for binding in BINDINGS.iter().filter(|binding| !binding.short.is_empty()) {
        let key = format!(" {} ", binding.named);
        let says = format!("{} ", binding.short);
        let taken = columns(&key) + columns(&says);
        if taken > left {
            continue;
        }
        left -= taken;
        spans.push(Span::styled(key, theme.strong()));
        spans.push(Span::styled(says, theme.quiet()));
    }
    Line::from(spans)
}
