//! Input -> a new state, and what is wanted because of it.

use super::bindings::{Action, action};
use super::input::{Input, Key};
use super::state::{Effect, Format, Screen, State};
use super::view::layout;

/// Takes an input.
pub fn update(state: &mut State, input: Input) -> Option<Effect> {
    if !matches!(input, Input::Resize(..)) {
        state.unsay();
    }
    match input {
        Input::Resize(columns, lines) => {
            state.size = (columns, lines);
            None
        }
        Input::Key(key) if state.focus => type_to_command(state, key),
        Input::Key(key) if state.asking => decide(state, key),
        Input::Key(key) if state.typing => type_filter(state, key),
        Input::Key(key) if state.help => leave_help(state, key),
        Input::Key(key) => match action(key)? {
            Action::Quit => quit(state, key),
            action => act(state, action),
        },
        Input::Wheel(lines) => act(state, Action::Move(i32::from(lines))),
        Input::Click(column, line) => click(state, column, line),
    }
}

/// Help goes away at any key but those that scroll it.
fn leave_help(state: &mut State, key: Key) -> Option<Effect> {
    match action(key) {
        Some(action @ (Action::Move(_) | Action::Page(_) | Action::First | Action::Last)) => {
            act(state, action)
        }
        Some(Action::Quit) if key == Key::Ctrl('c') => quit(state, key),
        _ => {
            (state.help, state.scroll) = (false, 0);
            None
        }
    }
}

/// What to end is asked while a command runs.
fn decide(state: &mut State, key: Key) -> Option<Effect> {
    state.asking = false;
    match key {
        Key::Char('e' | 'q') => Some(Effect::Quit),
        Key::Char('s') => Some(Effect::StopCommand),
        Key::Ctrl('c') => Some(Effect::Interrupt),
        _ => None,
    }
}

fn type_to_command(state: &mut State, key: Key) -> Option<Effect> {
    if matches!(key, Key::Ctrl(']' | '5')) {
        state.focus = false;
        return None;
    }
    Some(Effect::Type(bytes(key)?))
}

/// What a terminal sends for a key (`man console_codes`, xterm's ctlseqs).
fn bytes(key: Key) -> Option<Vec<u8>> {
    let text = match key {
        Key::Char(c) => return Some(c.to_string().into_bytes()),
        Key::Ctrl(c) => return c.is_ascii_alphabetic().then(|| vec![c as u8 & 0x1f]),
        Key::Enter => "\r",
        Key::Esc => "\x1b",
        Key::Backspace => "\x7f",
        Key::Tab => "\t",
        Key::Up => "\x1b[A",
        Key::Down => "\x1b[B",
        Key::Right => "\x1b[C",
        Key::Left => "\x1b[D",
        Key::Home => "\x1b[H",
        Key::End => "\x1b[F",
        Key::PageUp => "\x1b[5~",
        Key::PageDown => "\x1b[6~",
    };
    Some(text.as_bytes().to_vec())
}

fn type_filter(state: &mut State, key: Key) -> Option<Effect> {
    match key {
        Key::Char(c) => state.filter.push(c),
        Key::Backspace => drop(state.filter.pop()),
        Key::Ctrl('u') => state.filter.clear(),
        Key::Enter => state.typing = false,
        Key::Esc => {
            state.typing = false;
            state.filter.clear();
        }
        Key::Ctrl('c') => return quit(state, key),
        _ => return None,
    }
    arrange(state);
    None
}

fn act(state: &mut State, action: Action) -> Option<Effect> {
    match action {
        Action::Go(screen) => go(state, screen),
        Action::NextScreen => {
            let screens: Vec<Screen> = state.screens().collect();
            let at = screens.iter().position(|screen| *screen == state.screen).unwrap_or(0);
            go(state, screens[(at + 1) % screens.len()])
        }
        Action::Move(lines) => move_by(state, lines),
        Action::Page(pages) => move_by(state, pages.saturating_mul(layout::page(state) as i32)),
        Action::First => move_by(state, i32::MIN),
        Action::Last => move_by(state, i32::MAX),
        Action::Open => open(state),
        Action::Back => back(state),
        Action::By(by) if by != state.by => {
            (state.by, state.selected, state.scroll) = (by, 0, 0);
            state.detail = false;
            state.screen = Screen::Hotspots;
            Some(ask(state))
        }
        Action::By(_) => go(state, Screen::Hotspots),
        Action::Sort(steps) => sort(state, steps),
        Action::Invert => {
            state.inverted = !state.inverted;
            arrange(state);
            None
        }
        Action::Filter => {
            (state.typing, state.detail) = (true, false);
            None
        }
        Action::Raw => {
            state.raw = !state.raw;
            Some(ask(state))
        }
        Action::Mark => mark(state),
        Action::Window(_) | Action::Freeze | Action::Reset | Action::Focus => live(state, action),
        Action::FlameGraph => Some(write(state, Format::FlameGraph)),
        Action::Json => Some(write(state, Format::Json)),
        Action::Help => {
            (state.help, state.scroll) = (true, 0);
            None
        }
        Action::Suspend => Some(Effect::Suspend),
        Action::Quit => Some(Effect::Quit),
    }
}

/// What only a recording that runs can do.
fn live(state: &mut State, action: Action) -> Option<Effect> {
    state.live.as_ref()?;
    match action {
        Action::Window(steps) => {
            state.set_window(steps);
            return Some(ask(state));
        }
        Action::Freeze => state.frozen = !state.frozen,
        Action::Reset => {
            state.say("counting from now on");
            return Some(Effect::Restart);
        }
        Action::Focus if state.screen == Screen::Output => state.focus = true,
        _ => {}
    }
    None
}

/// While a command runs there is something to decide; Ctrl-C is what it is without a screen.
fn quit(state: &mut State, key: Key) -> Option<Effect> {
    let runs = state.live.as_ref().is_some_and(|live| live.command);
    match (runs, key) {
        (false, _) => return Some(Effect::Quit),
        (true, Key::Ctrl(_)) => return Some(Effect::Interrupt),
        (true, _) => state.asking = true,
    }
    None
}

fn ask(state: &State) -> Effect {
    Effect::Ask(Box::new(state.question()))
}

fn write(state: &State, format: Format) -> Effect {
    Effect::Write(format, Box::new(state.question()))
}

fn arrange(state: &mut State) {
    let selected = state.selected_row().map(|row| row.key.clone());
    state.arrange(selected.as_ref());
}

fn go(state: &mut State, screen: Screen) -> Option<Effect> {
    if state.screens().any(|known| known == screen) {
        (state.screen, state.detail, state.scroll) = (screen, false, 0);
    }
    None
}

/// The cursor in a table, the lines of a long text.
fn move_by(state: &mut State, lines: i32) -> Option<Effect> {
    let is_output = state.screen == Screen::Output && !state.help;
    let lines = if is_output { lines.saturating_neg() } else { lines };
    let by = |at: usize, last: usize| {
        (at as i64 + i64::from(lines)).clamp(0, i64::try_from(last).unwrap_or(i64::MAX)) as usize
    };
    if state.help || state.detail || state.screen.is_text() {
        state.scroll = by(state.scroll, layout::longest_scroll(state));
    } else {
        state.selected = by(state.selected, state.shown.len().saturating_sub(1));
    }
    None
}

fn open(state: &mut State) -> Option<Effect> {
    if state.screen.is_text() || state.detail || state.selected_row().is_none() {
        return None;
    }
    (state.screen, state.detail, state.scroll) = (Screen::Hotspots, true, 0);
    Some(ask(state))
}

/// One step back: the detail, the mark, the filter, the range of time.
fn back(state: &mut State) -> Option<Effect> {
    if state.detail {
        (state.detail, state.scroll) = (false, 0);
    } else if state.mark.take().is_some() {
    } else if !state.filter.is_empty() {
        state.filter.clear();
        arrange(state);
    } else if state.time.take().is_some() {
        return Some(ask(state));
    }
    None
}

/// In the timeline left and right move in time.
fn sort(state: &mut State, steps: i32) -> Option<Effect> {
    if state.screen == Screen::Timeline {
        let slices = state.snapshot.as_ref().map_or(0, |snapshot| snapshot.slices.len());
        let at = state.slice as i64 + i64::from(steps);
        state.slice = at.clamp(0, slices.saturating_sub(1) as i64) as usize;
    } else {
        state.sort = state.sort.beside(steps, state.live.is_some());
        arrange(state);
    }
    None
}

/// The first time a range begins, the second time it is what all screens show.
fn mark(state: &mut State) -> Option<Effect> {
    if state.screen != Screen::Timeline || state.live.is_some() {
        return None;
    }
    if state.mark.is_none() {
        state.mark = Some(state.slice);
        return None;
    }
    state.time = state.marked();
    state.mark = None;
    Some(ask(state))
}

fn click(state: &mut State, column: u16, line: u16) -> Option<Effect> {
    if state.help {
        return leave_help(state, Key::Esc);
    }
    if let Some(screen) = layout::tab_at(state, column, line) {
        return go(state, screen);
    }
    let row = layout::row_at(state, line)?;
    if row == state.selected {
        return open(state);
    }
    state.selected = row;
    None
}
