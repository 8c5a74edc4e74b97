//! A recording behind a screen: presses keys, answers what the screen asks, reads what it shows.

use std::path::Path;
use std::sync::{LazyLock, Mutex};

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::{Places, Wanted, find};
use lockprof::model::{Filter, Nanos, When};
use lockprof::pipeline::Pipeline;
use lockprof::source::{Replay, Round};
use lockprof::tui::{
    Effect, Input, Key, Live, Output, Question, Snapshot, State, Theme, draw, update,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// A kernel and a recording of it.
pub(crate) type Recording = (&'static str, &'static str);

fn pipeline((kernel, name): Recording, time: Option<(Nanos, Nanos)>) -> Pipeline {
    let root = Path::new("tests/fixtures/recordings").join(kernel);
    let kallsyms = root.join("kallsyms.xz");
    let wanted = Wanted { explicit: Some(&kallsyms), ..Wanted::default() };
    let (symbols, source) = find(&wanted, &Places::of_this_machine()).unwrap();
    let mut replay = Replay::open(&root.join(format!("{name}.data"))).unwrap();
    let slicing = Some(Slicing::WHOLE);
    let detail = Detail { cpu_stacks: true, slicing, ..Detail::default() };
    let filter = Filter { time, ..Filter::default() };
    let symbols = (symbols, source.to_string());
    let mut pipeline = Pipeline::new(replay.take_origin(), symbols, detail, &filter).unwrap();
    let mut round = Round::default();
    while replay.next_round(&mut round).unwrap() {
        pipeline.push(std::mem::take(&mut round));
    }
    pipeline.finish();
    pipeline
}

/// A part of a recording.
type Part = (Recording, Option<(Nanos, Nanos)>);

/// What the screen asked is answered from here; `when`: of which time while it runs.
fn answer(recording: Recording, question: &Question, when: Option<When>) -> Snapshot {
    static KNOWN: LazyLock<Mutex<Vec<(Part, Pipeline)>>> = LazyLock::new(Default::default);
    let part = (recording, question.query.filter.time.filter(|_| when.is_none()));
    let mut known = KNOWN.lock().unwrap();
    if !known.iter().any(|(before, _)| *before == part) {
        known.push((part, pipeline(part.0, part.1)));
    }
    let (_, pipeline) = known.iter_mut().find(|(before, _)| *before == part).unwrap();
    let now = pipeline.now(when.unwrap_or_default());
    Snapshot {
        report: pipeline.report_at(&now, &question.query),
        paths: pipeline.paths_at(&now, &question.paths),
        slices: pipeline.slices(),
        begin: pipeline.span().from,
        span: now.range.unwrap_or(pipeline.span()),
    }
}

/// A screen over a recording.
pub(crate) struct Screen {
    pub(crate) state: State,
    size: (u16, u16),
    recording: Recording,
    live: bool,
    /// What the screen wanted and is not answered here.
    pub(crate) wanted: Vec<Effect>,
}

impl Screen {
    /// Over a recording of a convoy at the mmap_lock.
    pub(crate) fn new(columns: u16, lines: u16) -> Screen {
        Screen::of(("6.18", "convoy"), columns, lines)
    }

    pub(crate) fn of(recording: Recording, columns: u16, lines: u16) -> Screen {
        let state = State::new(columns, lines);
        let mut screen =
            Screen { state, size: (columns, lines), recording, live: false, wanted: Vec::new() };
        screen.show(|_| {});
        screen
    }

    /// As if it were recorded at this moment, with a command that printed something.
    pub(crate) fn live(columns: u16, lines: u16) -> Screen {
        let mut screen = Screen { live: true, ..Screen::new(columns, lines) };
        let mut output = Output::new(columns, lines - 4);
        output.take(b"one\r\n\x1b[32mtwo\x1b[0m\r\nthree");
        screen.state.set_live(Live {
            command: true,
            output: Some(output.lines()),
            cost: 0.018,
            doubt: None,
        });
        screen
    }

    /// Shows the recording with something else in it.
    pub(crate) fn show(&mut self, change: impl FnOnce(&mut Snapshot)) {
        let when = self.live.then(|| self.state.when());
        let mut snapshot = answer(self.recording, &self.state.question(), when);
        change(&mut snapshot);
        self.state.show(snapshot);
    }

    pub(crate) fn input(&mut self, input: Input) {
        if let Input::Resize(columns, lines) = input {
            self.size = (columns, lines);
        }
        match update(&mut self.state, input) {
            Some(Effect::Ask(question)) => {
                assert_eq!(*question, self.state.question());
                self.show(|_| {});
            }
            other => self.wanted.extend(other),
        }
    }

    pub(crate) fn press(&mut self, keys: &[Key]) {
        keys.iter().for_each(|key| self.input(Input::Key(*key)));
    }

    /// Presses letters.
    pub(crate) fn type_in(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(&[Key::Char(c)]));
    }

    /// The picture as text, without spaces at the ends of lines.
    pub(crate) fn text(&self) -> String {
        let (columns, lines) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
        terminal.draw(|frame| draw(frame, &self.state, Theme::default())).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| {
            let cells = (0..columns).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned() + "\n"
        };
        (0..lines).map(line).collect()
    }
}
