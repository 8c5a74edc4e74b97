//! The lines above every screen: what was recorded, what it comes to, the tabs.

use ratatui::text::{Line, Span};

use super::super::state::{Screen, State};
use super::super::theme::Theme;
use crate::model::Nanos;
use crate::render::escape::visible;
use crate::render::paragraph::{columns, shorten};
use crate::render::units;
use crate::report::Report;

pub(super) fn lines<'a>(state: &'a State, theme: Theme, width: usize) -> Vec<Line<'a>> {
    let (first, second) = match &state.snapshot {
        Some(snapshot) => (
            title(state, &snapshot.report, theme, width),
            sum(state, &snapshot.report, theme, width),
        ),
        None => (Line::from(" lockprof"), Line::from(" reading ...")),
    };
    vec![first, second, tabs(state, theme, width)]
}

fn title(state: &State, report: &Report, theme: Theme, width: usize) -> Line<'static> {
    let header = &report.header;
    let command = state.live.as_ref().and_then(|live| live.command.as_deref());
    let elapsed = units::time(header.elapsed);
    let mut facts = match command {
        Some(command) => format!("{command}, {elapsed} on {} CPUs", header.cpus),
        None => format!("{elapsed} on {} CPUs", header.cpus),
    };
    if !header.kernel.is_empty() {
        facts += &format!("  kernel {}", visible(&header.kernel));
    }
    let facts = shorten(&facts, width / 2);
    let name = " lockprof  ";
    let room = width.saturating_sub(columns(name) + columns(&facts) + 3);
    let target = shorten(&visible(&header.target), room);
    Line::from(vec![
        Span::styled(name, theme.quiet()),
        Span::styled(target, theme.strong()),
        Span::raw(format!("  {facts}")),
    ])
}

fn sum(state: &State, report: &Report, theme: Theme, width: usize) -> Line<'static> {
    let total = &report.total;
    let waited = units::time(total.wait());
    let waits = units::counted(total.contended(), "wait");
    let mut words = format!(" waited {waited} in {waits}");
    if total.waiting > 0 {
        let (now, oldest) = (units::count(total.waiting), units::time(total.oldest));
        words += &format!(", now {now} waiting, oldest {oldest}");
    }
    if let Some(spent) = &report.thread_time {
        words += &format!(" by {}", units::counted(spent.threads, "thread"));
    }
    if let Some(cost) = report.trust.recorder_cpu {
        let share = units::share(cost, report.header.elapsed);
        words += &format!(", recorder {}", units::percent(share));
    }
    let lost: u64 = report.trust.lost.iter().map(|(_, lost)| lost).sum();
    let style = if lost > 0 { theme.warning() } else { theme.quiet() };
    let mut lost = format!("  lost {}", units::count(lost));
    let doubt = state.live.as_ref().and_then(|live| live.doubt.as_deref());
    lost.extend(doubt.map(|doubt| format!("  {doubt}")));
    let style = if doubt.is_some() { theme.warning() } else { style };
    let words = shorten(&words, width.saturating_sub(columns(&lost)));
    Line::from(vec![Span::raw(words), Span::styled(lost, style)])
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
        said.push(format!("sort: {}", state.sort.title()));
    }
    said.join("  ")
}
