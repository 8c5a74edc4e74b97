//! State -> picture. Nothing here changes anything; every name from the machine is escaped.

mod bars;
mod call_tree;
mod detail;
mod footer;
mod header;
mod help;
mod hotspots;
pub(super) mod layout;
pub(super) mod names;
mod over_time;
mod paths;
mod timeline;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::state::{Screen, State};
use super::theme::Theme;
use layout::Parts;

/// Draws the state.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    let Some(parts) = Parts::of(area) else {
        return frame.render_widget(Paragraph::new(too_small(area)), area);
    };
    put(frame, parts.head, header::lines(state, theme, area.width.into()));
    put(frame, parts.body, body(state, theme, parts.body));
    put(frame, parts.foot, vec![footer::line(state, theme, area.width.into())]);
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

fn too_small(area: Rect) -> String {
    let (width, height) = (layout::LEAST.0, layout::LEAST.1);
    format!("{}x{}: too small,\n{width}x{height} is needed\n(q quits)", area.width, area.height)
}

fn body<'a>(state: &'a State, theme: Theme, area: Rect) -> Vec<Line<'a>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    match text(state, theme, width) {
        Some(lines) => {
            let longest = lines.len().saturating_sub(height);
            let scroll = state.scroll.min(longest);
            // Of what a command prints the end is of interest: it is scrolled upwards.
            let is_output = state.screen == Screen::Output && !state.help;
            let scroll = if is_output { longest - scroll } else { scroll };
            lines.into_iter().skip(scroll).take(height).collect()
        }
        None if state.screen == Screen::Timeline => timeline::lines(state, theme, (width, height)),
        None => hotspots::lines(state, theme, (width, height)),
    }
}

/// The screens that are one long text.
fn text<'a>(state: &'a State, theme: Theme, width: usize) -> Option<Vec<Line<'a>>> {
    match state.screen {
        _ if state.help => Some(help::lines(theme, width)),
        Screen::Hotspots if state.detail => Some(detail::lines(state, theme, width)),
        Screen::Paths => Some(paths::lines(state, theme, width)),
        Screen::Output => state.live.as_ref()?.output.clone(),
        _ => None,
    }
}
