//! What comes from the terminal, in words of our own: crossterm's events -> [`Input`].

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
}

/// What a user or the terminal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Pressed a key.
    Key(Key),
    /// Turned the wheel, so many lines down.
    Wheel(i8),
    /// Clicked at a column and a line.
    Click(u16, u16),
    /// The terminal has this many columns and lines now.
    Resize(u16, u16),
}

/// What an event means; `None` where it means nothing here.
pub fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => self::key(*key).map(Input::Key),
        Event::Resize(columns, lines) => Some(Input::Resize(*columns, *lines)),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollDown => Some(Input::Wheel(3)),
            MouseEventKind::ScrollUp => Some(Input::Wheel(-3)),
            MouseEventKind::Down(MouseButton::Left) => Some(Input::Click(mouse.column, mouse.row)),
            _ => None,
        },
        _ => None,
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    let is_ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(c) if is_ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_control_is_no_letter_and_a_released_key_is_nothing() {
        let event = |code, modifiers, kind| {
            input(&Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
        };
        let c = KeyCode::Char('c');
        let pressed = event(c, KeyModifiers::CONTROL, KeyEventKind::Press);
        assert_eq!(pressed, Some(Input::Key(Key::Ctrl('c'))));
        let plain = event(c, KeyModifiers::NONE, KeyEventKind::Repeat);
        assert_eq!(plain, Some(Input::Key(Key::Char('c'))));
        assert_eq!(event(c, KeyModifiers::NONE, KeyEventKind::Release), None);
        assert_eq!(event(KeyCode::F(1), KeyModifiers::NONE, KeyEventKind::Press), None);
    }
}
