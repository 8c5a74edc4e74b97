//! A recording behind a screen: presses keys, answers what the screen asks, reads what it shows.

use std::path::Path;
use std::sync::{LazyLock, Mutex};

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::{Places, Wanted, find};
use lockprof::model::{Filter, Nanos};
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

/// What the screen asked is answered from here.
fn answer(recording: Recording, question: &Question) -> Snapshot {
    type Answers = Vec<(Recording, Question, Snapshot)>;
    static KNOWN: LazyLock<Mutex<Answers>> = LazyLock::new(Default::default);
    let mut known = KNOWN.lock().unwrap();
    let mut answers = known.iter();
    if let Some((.., snapshot)) = answers.find(|(of, q, _)| *of == recording && q == question) {
        return snapshot.clone();
    }
    let pipeline = pipeline(recording, question.query.filter.time);
    let snapshot = Snapshot {
        report: pipeline.report(&question.query),
        paths: pipeline.paths(&question.paths),
        slices: pipeline.slices(),
        span: pipeline.span(),
    };
    known.push((recording, question.clone(), snapshot.clone()));
    snapshot
}

/// A screen over a recording.
pub(crate) struct Screen {
    pub(crate) state: State,
    size: (u16, u16),
    recording: Recording,
    /// What the screen wanted and is not answered here.
    pub(crate) wanted: Vec<Effect>,
}

impl Screen {
    /// Over a recording of a convoy at the mmap_lock.
    pub(crate) fn new(columns: u16, lines: u16) -> Screen {
        Screen::of(("6.18", "convoy"), columns, lines)
    }

    pub(crate) fn of(recording: Recording, columns: u16, lines: u16) -> Screen {
        let mut state = State::new(columns, lines);
        state.show(answer(recording, &state.question()));
        Screen { state, size: (columns, lines), recording, wanted: Vec::new() }
    }

    /// As if it were recorded at this moment, with a command that printed something.
    pub(crate) fn live(columns: u16, lines: u16) -> Screen {
        let mut screen = Screen::new(columns, lines);
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
        let mut snapshot = answer(self.recording, &self.state.question());
        change(&mut snapshot);
        self.state.show(snapshot);
    }

    pub(crate) fn input(&mut self, input: Input) {
        if let Input::Resize(columns, lines) = input {
            self.size = (columns, lines);
        }
        match update(&mut self.state, input) {
            Some(Effect::Ask(question)) => {
                let snapshot = answer(self.recording, &question);
                self.state.show(snapshot);
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
