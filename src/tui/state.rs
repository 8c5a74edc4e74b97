//! What is on the screen, without a screen: which rows, in which order, where the cursor is.
//!
//! ```text
//!   Hotspots --Enter--> Detail --Esc--> Hotspots        1 2 3: from anywhere to a screen
//!   any screen --?--> help --any key--> back            /: typing, until Enter or Esc
//! ```

use std::sync::Arc;

use ratatui::text::Line;

use super::columns::Column;
use super::pace::Pace;
use super::view::names;
use crate::model::{GroupBy, Nanos, PathQuery, Query, TimeRange, Timestamp};
use crate::report::{Paths, Report, Row, RowKey};

/// A screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// Which locks, sites, tasks or releasers.
    #[default]
    Hotspots,
    /// On which lock paths CPU time went.
    Paths,
    /// When.
    Timeline,
    /// What the command printed.
    Output,
}

impl Screen {
    /// From left to right.
    pub const ALL: [Screen; 4] =
        [Screen::Hotspots, Screen::Paths, Screen::Timeline, Screen::Output];

    /// Whether it is one long text, not a table.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Screen::Paths | Screen::Output)
    }

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Screen::Hotspots => "Hotspots",
            Screen::Paths => "Paths",
            Screen::Timeline => "Timeline",
            Screen::Output => "Output",
        }
    }
}

/// What the screen shows an answer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Of waits.
    pub query: Query,
    /// Of CPU samples.
    pub paths: PathQuery,
}

/// An answer, as of one moment of the recording.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Of waits; all rows, in any order.
    pub report: Report,
    /// Of CPU samples.
    pub paths: Paths,
    /// The slices of time that the history of rows speaks of, from the first event on.
    pub slices: Vec<TimeRange>,
    /// From when to when `report` counts waits.
    pub span: TimeRange,
}

impl Snapshot {
    /// How long `report` counted waits.
    pub(super) fn time(&self) -> Nanos {
        self.span.to.since(self.span.from)
    }
}

/// A form in which what is shown can be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A picture, SVG.
    FlameGraph,
    /// JSON by the schema of `report`.
    Json,
}

/// What the screen wants done. Whoever runs it answers with [`State::show`] or [`State::say`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An answer.
    Ask(Box<Question>),
    /// A file with what the question is about.
    Write(Format, Box<Question>),
    /// The terminal back to the shell until it says to go on.
    Suspend,
    /// Counting from now on.
    Restart,
    /// Bytes to the command's terminal.
    Type(Vec<u8>),
    /// What Ctrl-C does to a command and its recording.
    Interrupt,
    /// The end of the command, and with it of the recording.
    StopCommand,
    /// The end of the screen, and of a recording; a command goes on.
    Quit,
}

/// Windows of time, the longest first.
const WINDOWS: [Option<Nanos>; 4] =
    [None, Some(Nanos(60_000_000_000)), Some(Nanos(10_000_000_000)), Some(Nanos(5_000_000_000))];

/// What a recording that runs adds.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// A command runs.
    pub command: bool,
    /// The picture of its output; `None` without a command.
    pub output: Option<Vec<Line<'static>>>,
    /// The share of all CPUs that lockprof takes, 0 to 1.
    pub cost: f64,
    /// What makes the numbers doubtful.
    pub doubt: Option<String>,
}

/// What is on the screen.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) live: Option<Live>,
    pub(super) window: usize,
    pub(super) frozen: bool,
    /// Whether to end the recording, the command or nothing is being asked.
    pub(super) asking: bool,
    /// Keys go to the command.
    pub(super) focus: bool,
    pub(super) size: (u16, u16),
    pub(super) screen: Screen,
    /// The selected row is shown alone.
    pub(super) detail: bool,
    pub(super) help: bool,
    pub(super) by: GroupBy,
    pub(super) sort: Column,
    pub(super) inverted: bool,
    pub(super) filter: String,
    pub(super) typing: bool,
    /// CPU samples as taken.
    pub(super) raw: bool,
    /// Only this part of the recording, from its first event on.
    pub(super) time: Option<(Nanos, Nanos)>,
    /// Cursor of the timeline, and where a range was begun: slices.
    pub(super) slice: usize,
    pub(super) mark: Option<usize>,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// How fast events come.
    pub(super) pace: Pace,
    /// Rows that pass the filter, sorted: indexes into the snapshot.
    pub(super) shown: Vec<usize>,
    pub(super) selected: usize,
    /// Lines that a long text is scrolled by.
    pub(super) scroll: usize,
    /// Said in the last line until the next key.
    pub(super) said: Option<String>,
}

impl State {
    /// Nothing to show yet, on a terminal of this many columns and lines.
    pub fn new(columns: u16, lines: u16) -> State {
        State {
            live: None,
            window: 0,
            frozen: false,
            asking: false,
            focus: false,
            size: (columns, lines),
            screen: Screen::Hotspots,
            detail: false,
            help: false,
            by: GroupBy::Lock,
            sort: Column::Wait,
            inverted: false,
            filter: String::new(),
            typing: false,
            raw: false,
            time: None,
            slice: 0,
            mark: None,
            snapshot: None,
            pace: Pace::default(),
            shown: Vec::new(),
            selected: 0,
            scroll: 0,
            said: None,
        }
    }

    /// The same of a recording that runs.
    pub fn live(self, live: Live) -> State {
        State { live: Some(live), ..self }
    }

    /// How the recording is; nothing of a finished one.
    pub fn set_live(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// Only the last so much of the time.
    pub fn window(&self) -> Option<Nanos> {
        WINDOWS[self.window.min(WINDOWS.len() - 1)].filter(|_| self.live.is_some())
    }

    /// Whether new answers are not wanted.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The screens there are.
    pub(super) fn screens(&self) -> impl Iterator<Item = Screen> + '_ {
        let has_output = self.live.as_ref().is_some_and(|live| live.output.is_some());
        Screen::ALL.into_iter().filter(move |screen| has_output || *screen != Screen::Output)
    }

    pub(super) fn set_window(&mut self, steps: i32) {
        let last = WINDOWS.len() as i32 - 1;
        self.window = (self.window as i32 - steps).clamp(0, last) as usize;
    }

    /// What the screen wants to know.
    pub fn question(&self) -> Question {
        let mut question = Question::default();
        question.query.by = self.by;
        question.query.top = 0;
        question.query.stacks = self.detail;
        question.query.filter.time = self.time;
        question.paths.raw = self.raw;
        question.paths.filter.time = self.time;
        question
    }

    /// Takes an answer. The cursor stays on its row.
    pub fn show(&mut self, snapshot: Snapshot) {
        let selected = self.selected_row().map(|row| row.key.clone());
        self.pace.note(snapshot.span.to, snapshot.report.trust.records);
        self.snapshot = Some(Arc::new(snapshot));
        self.arrange(selected.as_ref());
    }

    /// Says something in the last line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.said = Some(text.into());
    }

    /// Takes back what was said.
    pub fn unsay(&mut self) {
        self.said = None;
    }

    /// The text that rows must contain.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// The screen that is shown.
    pub fn screen(&self) -> Screen {
        self.screen
    }

    /// The range of time that is shown; `None` for all of it.
    pub fn time(&self) -> Option<(Nanos, Nanos)> {
        self.time
    }

    /// The row under the cursor.
    pub fn selected_row(&self) -> Option<&Row> {
        let snapshot = self.snapshot.as_ref()?;
        snapshot.report.rows.get(*self.shown.get(self.selected)?)
    }

    /// Rows in the order in which they are shown.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let rows = self.snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.report.rows);
        self.shown.iter().filter_map(|at| rows.get(*at))
    }

    /// Filters and sorts anew; the cursor goes to `selected`, where that is shown.
    pub(super) fn arrange(&mut self, selected: Option<&RowKey>) {
        let Some(snapshot) = self.snapshot.clone() else { return };
        let rows = &snapshot.report.rows;
        let wanted = self.filter.to_lowercase();
        let passes = |row: &Row| wanted.is_empty() || names::contain(row, &wanted);
        let shown = (0..rows.len()).filter(|at| passes(&rows[*at])).collect();
        self.shown = self.sort.sort(rows, shown, self.inverted);
        let place = selected.and_then(|key| self.rows().position(|row| row.key == *key));
        let last = self.shown.len().saturating_sub(1);
        self.selected = place.unwrap_or(self.selected).min(last);
        self.slice = self.slice.min(snapshot.slices.len().saturating_sub(1));
    }

    /// The slices that the cursor of the timeline spans, as a range of time.
    pub(super) fn marked(&self) -> Option<(Nanos, Nanos)> {
        let slices = &self.snapshot.as_ref()?.slices;
        let mark = self.mark?;
        let (first, last) = (mark.min(self.slice), mark.max(self.slice));
        let zero = slices.first()?.from;
        let until = slices.get(last)?.to;
        let to = if last + 1 == slices.len() { Timestamp(u64::MAX) } else { until };
        let to = if to.0 == u64::MAX { Nanos(u64::MAX) } else { to.since(zero) };
        Some((slices.get(first)?.from.since(zero), to))
    }
}
