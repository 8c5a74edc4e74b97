//! Keys and what they do: one table, from which the help is made too.

use super::input::Key;
use super::state::Screen;
use crate::model::GroupBy;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Go(Screen),
    NextScreen,
    /// Lines down; negative ones up.
    Move(i32),
    /// Pages down.
    Page(i32),
    First,
    Last,
    Open,
    Back,
    By(GroupBy),
    /// The next column to the right, or to the left, is sorted by.
    Sort(i32),
    Invert,
    Filter,
    Raw,
    Mark,
    /// A longer window of time, or a shorter one.
    Window(i32),
    Freeze,
    Reset,
    Focus,
    FlameGraph,
    Json,
    Help,
    Suspend,
    Quit,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// These keys, as help names them.
    pub named: &'static str,
    /// The keys.
    pub keys: &'static [Key],
    /// What each of them does.
    pub action: Action,
    /// In words, once for all lines of one `named`.
    pub says: &'static str,
    /// In a word, for the line at the bottom; empty where there is no room for it.
    pub short: &'static str,
}

const fn line(
    named: &'static str,
    keys: &'static [Key],
    action: Action,
    says: &'static str,
    short: &'static str,
) -> Binding {
    Binding { named, keys, action, says, short }
}

const CURSOR: &str = "move; in the timeline left and right move in time";
const PAGES: &str = "move by a page";
const ENDS: &str = "to the first, to the last row";
const TABS: &str = "the screens: Hotspots, Paths, Timeline, the output of the command";
const BY: &str = "rows by lock, call site, task, releaser, cgroup";
const SORT: &str = "sort by the column to the left, to the right";

const RAW: &str = "Paths: samples as taken, or moved to where interrupts were off";
const MARK: &str = "Timeline: mark a begin; again: only that range of time, everywhere";
const WINDOW: &str = "while it runs: since it began, or the last 60, 10, 5 s";
const FREEZE: &str = "while it runs: hold the picture still, or let it go on";
const RESET: &str = "while it runs: count from now on; the recording keeps everything";

/// Every key.
#[rustfmt::skip]
pub const BINDINGS: [Binding; 36] = [
    line("?", &[Key::Char('?')], Action::Help, "this help", "help"),
    line("q Ctrl-C", &[Key::Char('q'), Key::Ctrl('c')], Action::Quit, "quit", "quit"),
    line("1 2 3 4", &[Key::Char('1')], Action::Go(Screen::Hotspots), TABS, ""),
    line("1 2 3 4", &[Key::Char('2')], Action::Go(Screen::Paths), TABS, ""),
    line("1 2 3 4", &[Key::Char('3')], Action::Go(Screen::Timeline), TABS, ""),
    line("1 2 3 4", &[Key::Char('4')], Action::Go(Screen::Output), TABS, ""),
    line("Tab", &[Key::Tab], Action::NextScreen, "the next screen", ""),
    line("arrows j k", &[Key::Up, Key::Char('k')], Action::Move(-1), CURSOR, ""),
    line("arrows j k", &[Key::Down, Key::Char('j')], Action::Move(1), CURSOR, ""),
    line("arrows j k", &[Key::Left], Action::Sort(-1), CURSOR, ""),
    line("arrows j k", &[Key::Right], Action::Sort(1), CURSOR, ""),
    line("PgUp PgDn", &[Key::PageUp, Key::Ctrl('b')], Action::Page(-1), PAGES, ""),
    line("PgUp PgDn", &[Key::PageDown, Key::Ctrl('f')], Action::Page(1), PAGES, ""),
    line("Home End g G", &[Key::Home, Key::Char('g')], Action::First, ENDS, ""),
    line("Home End g G", &[Key::End, Key::Char('G')], Action::Last, ENDS, ""),
    line("Enter", &[Key::Enter], Action::Open, "all about the selected row", "detail"),
    line("Esc", &[Key::Esc, Key::Backspace], Action::Back, "back; drop filter and range of time", ""),
    line("l s t r c", &[Key::Char('l')], Action::By(GroupBy::Lock), BY, "rows by"),
    line("l s t r c", &[Key::Char('s')], Action::By(GroupBy::Site), BY, ""),
    line("l s t r c", &[Key::Char('t')], Action::By(GroupBy::Task), BY, ""),
    line("l s t r c", &[Key::Char('r')], Action::By(GroupBy::Releaser), BY, ""),
    line("l s t r c", &[Key::Char('c')], Action::By(GroupBy::Cgroup), BY, ""),
    line("< >", &[Key::Char('<'), Key::Char(',')], Action::Sort(-1), SORT, "sort"),
    line("< >", &[Key::Char('>'), Key::Char('.')], Action::Sort(1), SORT, ""),
    line("i", &[Key::Char('i')], Action::Invert, "sort the other way round", ""),
    line("/", &[Key::Char('/')], Action::Filter, "only rows with a text in them: lock, site, task", "filter"),
    line("x", &[Key::Char('x')], Action::Raw, RAW, ""),
    line("m", &[Key::Char('m')], Action::Mark, MARK, ""),
    line("+ -", &[Key::Char('+'), Key::Char('=')], Action::Window(1), WINDOW, ""),
    line("+ -", &[Key::Char('-')], Action::Window(-1), WINDOW, ""),
    line("space", &[Key::Char(' ')], Action::Freeze, FREEZE, ""),
    line("0", &[Key::Char('0')], Action::Reset, RESET, ""),
    line("f", &[Key::Char('f')], Action::Focus, "Output: keys go to the command, until Ctrl-]", ""),
    line("w", &[Key::Char('w')], Action::FlameGraph, "write the flame graph of what is shown", "picture"),
    line("e", &[Key::Char('e')], Action::Json, "write what is shown as JSON", ""),
    line("Ctrl-Z", &[Key::Ctrl('z')], Action::Suspend, "stop; fg goes on", ""),
];

/// What a key does.
pub fn action(key: Key) -> Option<Action> {
    BINDINGS.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        for (at, binding) in BINDINGS.iter().enumerate() {
            for key in binding.keys {
                let others = BINDINGS[at + 1..].iter();
                assert!(!others.clone().any(|other| other.keys.contains(key)), "{key:?}");
            }
        }
    }
}
