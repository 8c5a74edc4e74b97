//! The help: the table of bindings, and what the numbers mean.

use ratatui::text::{Line, Span};

use super::super::bindings::BINDINGS;
use super::super::theme::Theme;
use crate::render::paragraph::wrap;

const NUMBERS: [(&str, &str); 8] = [
    (
        "wait",
        "time that threads stood still for it, spinning that only CPU samples saw included; no second of a thread counts twice",
    ),
    (
        "wait/s",
        "while it runs, of each second: 3.4 s means that 3.4 threads stood still on average",
    ),
    ("share", "of all waiting that is shown"),
    ("waits", "how often somebody had to wait; an uncontended lock is not seen"),
    ("avg p99 max", "of single waits that ended"),
    ("R|W", "how much of the waiting was for reading (░) and for writing (▓)"),
    ("cost", "of all CPUs, what lockprof takes"),
    (
        "rows",
        "of releasers: who handed the lock over, and where; each is charged with what others waited for it",
    ),
];

pub(super) fn lines(theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(Span::styled(" keys", theme.strong()))];
    let mut said: Vec<&str> = Vec::new();
    for binding in BINDINGS.iter() {
        if !said.contains(&binding.named) {
            said.push(binding.named);
            lines.extend(entry(binding.named, binding.says, theme, width));
        }
    }
    lines.push(Line::default());
    lines.push(Line::from(Span::styled(" numbers", theme.strong())));
    for (name, says) in NUMBERS {
        lines.extend(entry(name, says, theme, width));
    }
    lines
}

fn entry(name: &str, says: &str, theme: Theme, width: usize) -> Vec<Line<'static>> {
    const INDENT: usize = 17;
    let text = wrap("", says, width.saturating_sub(INDENT + 1));
    let line = |(at, text): (usize, String)| {
        let name = if at == 0 { name } else { "" };
        Line::from(vec![Span::styled(format!("   {name:<14}"), theme.strong()), Span::raw(text)])
    };
    text.into_iter().enumerate().map(line).collect()
}
