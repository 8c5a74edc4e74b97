//! How long a frame takes: 10,000 rows, 120x40, each screen.
//!
//! `cargo bench --bench screen` prints the median and fails where that is 5 ms or more.

use std::time::{Duration, Instant};

use lockprof::analyse::{Detail, Slicing};
use lockprof::kernel::Kernel;
use lockprof::model::Filter;
use lockprof::pipeline::Pipeline;
use lockprof::source::{At, Synthetic};
use lockprof::tui::{Input, Key, Palette, Snapshot, State, Theme, draw, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const ROWS: u64 = 10_000;
const FRAMES: usize = 200;
const LIMIT: Duration = Duration::from_millis(5);

fn main() {
    let mut state = State::new(120, 40);
    state.show(snapshot(&state));
    assert_eq!(state.rows().count() as u64, ROWS);
    let mut slow = false;
    for (name, keys) in [
        ("hotspots", &[][..]),
        ("timeline", &[Key::Char('3')]),
        ("detail", &[Key::Char('1'), Key::Enter]),
    ] {
        keys.iter().for_each(|key| drop(update(&mut state, Input::Key(*key))));
        let median = frames(&state);
        println!("{name:<10} {ROWS} rows, 120x40: {median:?} a frame");
        slow |= median >= LIMIT;
    }
    assert!(!slow, "a frame takes {LIMIT:?} or more");
}

fn frames(state: &State) -> Duration {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a buffer");
    let theme = Theme { palette: Palette::Many };
    let mut times: Vec<Duration> = (0..FRAMES)
        .map(|_| {
            let begun = Instant::now();
            terminal.draw(|frame| draw(frame, state, theme)).expect("a buffer");
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[FRAMES / 2]
}

/// As many locks as rows, over a second.
fn snapshot(state: &State) -> Snapshot {
    const MUTEX: u32 = 32;
    let mut stream = Synthetic::new();
    let detail = Detail { slicing: Some(Slicing::WHOLE), ..Detail::default() };
    let symbols = (Kernel::default(), String::new());
    let mut pipeline =
        Pipeline::new(stream.origin(), symbols, detail, &Filter::default()).expect("layouts");
    for row in 0..ROWS {
        let (begin, lock) = (1_000_000 + row * 100_000, 0xffff_8880_0000_0000 + row * 64);
        let task = 10 + (row % 50) as i32;
        stream.begin(At::new(begin, 0, task), lock, MUTEX, &[0xffff_ffff_8100_0000]);
        stream.end(At::new(begin + 50_000 + row, 1, task), lock, 0);
    }
    pipeline.push(stream.take_round());
    pipeline.finish();
    let question = state.question();
    Snapshot {
        report: pipeline.report(&question.query),
        paths: pipeline.paths(&question.paths),
        slices: pipeline.slices(),
        span: pipeline.span(),
    }
}
