//! Where things are on the screen: for drawing, and for what a click or a page means.

use ratatui::layout::Rect;

use super::super::state::{Screen, State};
use super::super::theme::Theme;

/// Columns and lines below which nothing useful fits.
pub(super) const LEAST: (u16, u16) = (80, 24);

/// Lines above the body: title, sum, tabs.
const HEAD: u16 = 3;

/// Lines of titles above the rows of a table.
const TITLES: u16 = 1;

/// The parts of the screen.
pub(super) struct Parts {
    pub(super) head: Rect,
    pub(super) body: Rect,
    pub(super) foot: Rect,
}

impl Parts {
    /// `None` where there is no room.
    pub(super) fn of(area: Rect) -> Option<Parts> {
        let Rect { x, y, width, height } = area;
        (width >= LEAST.0 && height >= LEAST.1).then(|| Parts {
            head: Rect { x, y, width, height: HEAD },
            body: Rect { x, y: y + HEAD, width, height: height - HEAD - 1 },
            foot: Rect { x, y: y + height - 1, width, height: 1 },
        })
    }
}

fn body_height(state: &State) -> usize {
    usize::from(state.size.1.saturating_sub(HEAD + 1))
}

/// Rows of a page.
pub(in crate::tui) fn page(state: &State) -> usize {
    let is_text = state.help || state.detail || state.screen.is_text();
    let titles = match state.screen {
        _ if is_text => 0,
        Screen::Timeline => super::timeline::TITLES,
        _ => usize::from(TITLES),
    };
    body_height(state).saturating_sub(titles).max(1)
}

/// The first row of the page that the selected row is on.
pub(super) fn first_row(selected: usize, page: usize) -> usize {
    selected / page.max(1) * page.max(1)
}

/// The row that a line of the screen shows.
pub(in crate::tui) fn row_at(state: &State, line: u16) -> Option<usize> {
    let above = match state.screen {
        _ if state.detail => return None,
        Screen::Paths | Screen::Output => return None,
        Screen::Hotspots | Screen::Timeline => HEAD + TITLES,
    };
    let page = page(state);
    let at = usize::from(line.checked_sub(above)?);
    let row = first_row(state.selected, page) + at;
    (at < page && row < state.shown.len()).then_some(row)
}

/// The tab at a place.
pub(in crate::tui) fn tab_at(state: &State, column: u16, line: u16) -> Option<Screen> {
    if line + 1 != HEAD {
        return None;
    }
    let mut from = 0;
    let tabs = state.screens().enumerate();
    let mut spans = tabs.map(|(at, screen)| {
        let width = super::header::tab(state, at, screen).chars().count();
        from += width;
        (from - width..from, screen)
    });
    spans.find(|(span, _)| span.contains(&usize::from(column))).map(|(_, screen)| screen)
}

/// Lines of a text that do not fit the body.
pub(in crate::tui) fn longest_scroll(state: &State) -> usize {
    let lines = super::text(state, Theme::default(), state.size.0.into());
    lines.map_or(0, |lines| lines.len().saturating_sub(body_height(state)))
}
