//! The lines above every screen: what was recorded, what it comes to, the tabs.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use signal_hook::low_level::signal_name;

use super::super::state::{Screen, State};
use super::super::theme::Theme;
use crate::model::Nanos;
use crate::render::escape::visible;
use crate::render::paragraph::{columns, shorten};
use crate::render::units;
use crate::report::{Header, Report, Trust};

/// Columns that a target has before anything else may have them.
const TARGET: usize = 20;

pub(super) fn lines<'a>(state: &'a State, theme: Theme, width: usize) -> Vec<Line<'a>> {
    let (first, second) = match &state.snapshot {
        Some(snapshot) => (
            title(state, &snapshot.report, theme, width),
            Line::from(fit(sum(state, &snapshot.report, theme), width)),
        ),
        None => (Line::from(" lockprof"), Line::from(" reading ...")),
    };
    vec![first, second, tabs(state, theme, width)]
}

/// A piece of a line.
struct Piece {
    text: String,
    style: Style,
    /// Where there is no room, pieces with the lowest number go first; those with 0 stay.
    give_up: u8,
}

impl Piece {
    fn new(give_up: u8, text: impl Into<String>) -> Piece {
        Piece { text: text.into(), style: Style::new(), give_up }
    }

    fn styled(self, style: Style) -> Piece {
        Piece { style, ..self }
    }
}

/// The pieces that there is room for.
fn fit(mut pieces: Vec<Piece>, width: usize) -> Vec<Span<'static>> {
    let taken = |pieces: &[Piece]| pieces.iter().map(|piece| columns(&piece.text)).sum::<usize>();
    while taken(&pieces) > width {
        let spare = pieces.iter().enumerate().filter(|(_, piece)| piece.give_up > 0);
        let Some((first, _)) = spare.min_by_key(|(_, piece)| piece.give_up) else { break };
        pieces.remove(first);
    }
    pieces.into_iter().map(|piece| Span::styled(piece.text, piece.style)).collect()
}

/// What was recorded, how and for how long.
fn title(state: &State, report: &Report, theme: Theme, width: usize) -> Line<'static> {
    let header = &report.header;
    let target = visible(&header.target);
    let name = " lockprof  ";
    let room = width.saturating_sub(columns(name));
    let facts = fit(facts(state, report), room.saturating_sub(columns(&target).min(TARGET)));
    let taken: usize = facts.iter().map(Span::width).sum();
    let target = shorten(&target, room.saturating_sub(taken));
    let mut spans = vec![Span::styled(name, theme.quiet()), Span::styled(target, theme.strong())];
    spans.extend(facts);
    Line::from(spans)
}

fn facts(state: &State, report: &Report) -> Vec<Piece> {
    let (header, mut facts) = (&report.header, Vec::new());
    facts.extend(status(state, header).map(|status| Piece::new(0, format!("  {status}"))));
    let cpus = units::counted(header.cpus.into(), "CPU");
    facts.push(Piece::new(0, format!("  {} on {cpus}", units::time(header.elapsed))));
    facts.push(Piece::new(2, format!("  {}", visible(rung(&report.trust)))));
    if !header.kernel.is_empty() {
        facts.push(Piece::new(1, format!("  kernel {}", visible(&header.kernel))));
    }
    facts
}

/// How the command is.
fn status(state: &State, header: &Header) -> Option<String> {
    if state.live.as_ref().is_some_and(|live| live.command) {
        return Some("running".to_owned());
    }
    // As a shell says it: 128 and the signal that ended the command.
    let status = header.exit_status?;
    Some(match signal_name(status.saturating_sub(128)) {
        Some(signal) => format!("exited {status} ({signal})"),
        None => format!("exited {status}"),
    })
}

/// The rung in a few words.
fn rung(trust: &Trust) -> &str {
    match trust.sleeps_only() {
        true => "sleeps in lock code",
        false => trust.rung.split([':', ';']).next().unwrap_or_default(),
    }
}

/// What it comes to.
fn sum(state: &State, report: &Report, theme: Theme) -> Vec<Piece> {
    let total = &report.total;
    let waits = units::counted(total.contended(), "wait");
    let mut pieces = vec![
        Piece::new(0, format!(" waited {}", units::time(total.wait()))),
        Piece::new(3, format!(" in {waits}")),
    ];
    if let Some(spent) = &report.thread_time {
        pieces.push(Piece::new(1, format!(" by {}", units::counted(spent.threads, "thread"))));
    }
    if total.waiting > 0 {
        pieces.push(Piece::new(6, format!("  now {} waiting", units::count(total.waiting))));
        pieces.push(Piece::new(2, format!(", oldest {}", units::time(total.oldest))));
    }
    let rate = state.live.as_ref().and_then(|_| state.pace.words());
    pieces.extend(rate.map(|rate| Piece::new(5, format!("  {rate}"))));
    let lost: u64 = report.trust.lost.iter().map(|(_, lost)| lost).sum();
    let style = if lost > 0 { theme.warning() } else { theme.quiet() };
    pieces.push(Piece::new(0, format!("  lost {}", units::count(lost))).styled(style));
    let cost = cost(state, report).map(|cost| format!("  cost {}", units::percent(cost)));
    pieces.extend(cost.map(|cost| Piece::new(4, cost).styled(theme.quiet())));
    let doubt = state.live.as_ref().and_then(|live| live.doubt.as_deref());
    let doubt = doubt.map(|doubt| Piece::new(0, format!("  {doubt}")).styled(theme.warning()));
    pieces.extend(doubt);
    pieces
}

/// The recorder's share of all CPUs.
fn cost(state: &State, report: &Report) -> Option<f64> {
    if let Some(live) = &state.live {
        return Some(live.cost);
    }
    let all = Nanos(report.header.elapsed.0.saturating_mul(report.header.cpus.into()));
    report.trust.recorder_cpu.map(|cost| units::share(cost, all))
}

/// A tab as it is written; the brackets show which one is open.
pub(super) fn tab(state: &State, at: usize, screen: Screen) -> String {
    let (left, right) = if screen == state.screen { ('[', ']') } else { (' ', ' ') };
    format!(" {left}{} {}{right}", at + 1, screen.title())
}

fn tabs<'a>(state: &State, theme: Theme, width: usize) -> Line<'a> {
    let mut spans = Vec::new();
    for (at, screen) in state.screens().enumerate() {
        let style = if screen == state.screen { theme.strong() } else { theme.quiet() };
        spans.push(Span::styled(tab(state, at, screen), style));
    }
    let taken: usize = spans.iter().map(|span| columns(&span.content)).sum();
    let said = shorten(&conditions(state), width.saturating_sub(taken + 2));
    let gap = width.saturating_sub(taken + columns(&said) + 1);
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::raw(said));
    Line::from(spans)
}

/// What narrows or orders what is shown.
fn conditions(state: &State) -> String {
    let mut said = Vec::new();
    if let Some((from, to)) = state.time {
        let to = if to.0 == u64::MAX { String::new() } else { units::time(to) };
        let from = if from == Nanos::ZERO { String::new() } else { units::time(from) };
        said.push(format!("time: {from}..{to}"));
    }
    if state.live.is_some() {
        said.push(match state.window() {
            Some(window) => format!("last {}", units::time(window)),
            None => "since it began".to_owned(),
        });
    }
    said.extend(state.frozen.then(|| "FROZEN".to_owned()));
    said.extend(state.focus.then(|| "keys go to the command: Ctrl-] ends that".to_owned()));
    if !state.filter.is_empty() {
        said.push(format!("filter: {}", visible(&state.filter)));
    }
    if state.screen == Screen::Paths {
        said.push(if state.raw { "samples as taken" } else { "samples corrected" }.to_owned());
    } else {
        said.push(format!("sort: {}", state.sort.title(state.live.is_some())));
    }
    said.join("  ")
}
