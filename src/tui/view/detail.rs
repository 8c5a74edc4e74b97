//! All about one row: how long, in which phases, on which paths, because of whom.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::state::State;
use super::super::theme::Theme;
use super::bars::bar;
use super::call_tree;
use super::hotspots::type_style;
use super::names;
use super::over_time;
use crate::attribute::catalogue;
use crate::model::{Nanos, WaitStat};
use crate::render::paragraph::{columns, shorten};
use crate::render::{cells, explain, units};
use crate::report::{Report, Row, RowKey};

/// Columns of a bar.
const BAR: usize = 30;

/// From this width on, waiters and releasers stand side by side.
const WIDE: usize = 110;

/// Rows of a list.
const MOST: usize = 10;

pub(super) fn lines<'a>(state: &'a State, theme: Theme, width: usize) -> Vec<Line<'a>> {
    let (Some(snapshot), Some(row)) = (&state.snapshot, state.selected_row()) else {
        return vec![Line::from("   this row is gone: Esc goes back")];
    };
    let page = Page { report: &snapshot.report, row, theme, width };
    let when = over_time::lines(snapshot, row, theme, width);
    let parts = [
        page.title(),
        page.paths(),
        page.phases(),
        when,
        page.histogram(),
        page.tasks(),
        page.catalogue(),
    ];
    let mut lines = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        lines.extend(part);
        lines.push(Line::default());
    }
    lines.pop();
    lines
}

struct Page<'a> {
    report: &'a Report,
    row: &'a Row,
    theme: Theme,
    width: usize,
}

impl Page<'_> {
    fn title(&self) -> Vec<Line<'static>> {
        let names::Name { lock_type, name, beside } = names::name(self.row);
        let style = type_style(&lock_type, self.theme);
        let room = self.width.saturating_sub(columns(&lock_type) + 3);
        let mut lines = vec![Line::from(vec![
            Span::raw(" "),
            Span::styled(lock_type, style),
            Span::styled(shorten(&format!("  {}  {beside}", name.text), room), self.theme.strong()),
        ])];
        lines.push(Line::from(shorten(&format!(" {}", self.sum()), self.width)));
        if self.row.splits.len() > 1 {
            lines.extend(self.row.splits.iter().map(|split| {
                let share = split.stat.share_of(&self.row.stat);
                self.bar(
                    &split.lock_type.to_string(),
                    share,
                    type_style(&split.lock_type.to_string(), self.theme),
                )
            }));
        }
        lines
    }

    /// All its waits in one sentence.
    fn sum(&self) -> String {
        let stat = &self.row.stat;
        let share = units::percent(self.report.share(stat));
        let waits = units::counted(stat.contended(), "wait");
        let mut words = format!("{} ({share}) in {waits}", units::time(stat.wait()));
        let ended = &stat.ended;
        if let (Some(avg), Some(p50), Some(p99)) =
            (ended.avg(), ended.quantile(0.5), ended.quantile(0.99))
        {
            words += &format!(
                ": avg {}, p50 {}, p99 {}, max {}",
                units::time(avg),
                units::time(p50),
                units::time(p99),
                units::time(ended.max)
            );
        }
        if stat.spun.samples > 0 {
            let spun = units::estimate(stat.spun.time, stat.spun.interval());
            words += &format!("; {spun} spun unseen");
        }
        for (count, what) in
            [(stat.open, "still open"), (stat.failed, "failed"), (stat.uncertain, "uncertain")]
        {
            if count > 0 {
                words += &format!("; {} {what}", units::count(count));
            }
        }
        words
    }

    fn heading(&self, words: &str) -> Line<'static> {
        Line::from(Span::styled(format!(" {words}"), self.theme.strong()))
    }

    fn bar(&self, name: &str, share: f64, style: Style) -> Line<'static> {
        Line::from(vec![
            Span::raw(format!("   {name:<18} {:>5} ", units::percent(share))),
            Span::styled(bar(share, BAR), style),
        ])
    }

    fn phases(&self) -> Vec<Line<'static>> {
        let WaitStat { phases, holder, .. } = &self.row.stat;
        let waiters = [
            ("spinning", phases.spin),
            ("asleep", phases.asleep),
            ("without a CPU", phases.runnable),
            ("running", phases.rest),
            ("unknown", phases.unknown),
        ];
        let holders = [
            ("running", holder.running),
            ("without a CPU", holder.runnable),
            ("asleep", holder.asleep),
            ("unknown", holder.unknown),
        ];
        let mut lines = self.bars("what waiters did", &waiters, phases.total());
        let is_known = holder.known() > Nanos::ZERO;
        if is_known {
            lines.extend(self.bars("what those did who let them wait", &holders, holder.total()));
        }
        for (on, time) in self.row.holder_slept.iter().take(MOST).filter(|_| is_known) {
            let on = crate::render::escape::visible(on).into_owned();
            let share = units::share(*time, holder.total());
            lines.push(self.bar(&format!(". in {on}"), share, self.theme.bar()));
        }
        lines
    }

    fn bars(&self, title: &str, parts: &[(&str, Nanos)], whole: Nanos) -> Vec<Line<'static>> {
        if whole == Nanos::ZERO {
            return Vec::new();
        }
        let mut lines = vec![self.heading(title)];
        for (name, time) in parts.iter().filter(|(_, time)| *time > Nanos::ZERO) {
            lines.push(self.bar(name, units::share(*time, whole), self.theme.bar()));
        }
        lines
    }

    /// Waits by their length, a line for each power of two.
    fn histogram(&self) -> Vec<Line<'static>> {
        let mut octaves: Vec<(u64, u64)> = Vec::new();
        for (lower, count) in self.row.stat.ended.histogram.iter() {
            let octave = if lower == 0 { 0 } else { 1 << lower.ilog2() };
            match octaves.last_mut() {
                Some((last, sum)) if *last == octave => *sum += count,
                _ => octaves.push((octave, count)),
            }
        }
        let most = octaves.iter().map(|(_, count)| *count).max().unwrap_or(0);
        if most == 0 {
            return Vec::new();
        }
        let mut lines = vec![self.heading("how long single waits took")];
        lines.extend(octaves.iter().map(|(lower, count)| {
            let from = units::time_cell(Nanos(*lower));
            let to = units::time_cell(Nanos(lower.saturating_mul(2).max(1)));
            Line::from(vec![
                Span::raw(format!("   {from} .. {to} {:>9} ", units::count(*count))),
                Span::styled(bar(*count as f64 / most as f64, BAR), self.theme.bar()),
            ])
        }));
        lines
    }

    /// Who waited on which paths, and who released them.
    fn paths(&self) -> Vec<Line<'static>> {
        let side_by_side = self.width >= WIDE;
        let half = if side_by_side { self.width / 2 } else { self.width };
        let mut waiters = call_tree::lines(&self.row.stacks, half.saturating_sub(4));
        waiters.iter_mut().for_each(|line| line.insert_str(0, "  "));
        let mut releasers = self.releasers(half.saturating_sub(2));
        if !waiters.is_empty() {
            waiters.insert(0, " where waiters came from".to_owned());
        }
        if !releasers.is_empty() {
            let title =
                if self.row.key.releaser.is_some() { " who waited" } else { " released by" };
            releasers.insert(0, title.to_owned());
        }
        if !side_by_side {
            return waiters.into_iter().chain(releasers).map(|line| self.said(line)).collect();
        }
        let count = waiters.len().max(releasers.len());
        waiters.resize(count, String::new());
        releasers.resize(count, String::new());
        let line = |(left, right): (String, String)| {
            let gap = half.saturating_sub(columns(&left));
            Line::from(format!("{}{}{right}", shorten(&left, half), " ".repeat(gap)))
        };
        waiters.into_iter().zip(releasers).map(line).collect()
    }

    fn said(&self, line: String) -> Line<'static> {
        Line::from(shorten(&line, self.width))
    }

    /// The other side of the pairs of waiters and releasers that this row is one side of.
    fn releasers(&self, width: usize) -> Vec<String> {
        let pairs = self.report.charged.iter();
        let mut pairs: Vec<&Row> = pairs.filter(|pair| is_of(&pair.key, &self.row.key)).collect();
        let all: Nanos = pairs.iter().map(|pair| pair.stat.wait()).sum();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.stat.wait()));
        let is_releaser = self.row.key.releaser.is_some();
        let mut sums: Vec<(String, Nanos)> = Vec::new();
        for pair in pairs {
            let name = match is_releaser {
                true => waiter(pair),
                false => cells::charged(pair.key.releaser.as_ref()).text,
            };
            match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += pair.stat.wait(),
                None => sums.push((name, pair.stat.wait())),
            }
        }
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let line = |(name, sum): &(String, Nanos)| {
            let share = units::percent(units::share(*sum, all));
            shorten(&format!("  {share:>5}  {name}"), width)
        };
        sums.iter().take(MOST).map(line).collect()
    }

    fn tasks(&self) -> Vec<Line<'static>> {
        let tasks = &self.row.tasks;
        if tasks.is_empty() || self.row.key.task.is_some() {
            return Vec::new();
        }
        let all: Nanos = tasks.iter().map(|(_, wait)| *wait).sum();
        let count = units::counted(tasks.len() as u64, "task");
        let mut lines = vec![self.heading(&format!("who waited: {count}"))];
        lines.extend(tasks.iter().take(MOST).map(|(task, wait)| {
            self.bar(&shorten(&names::task(task), 18), units::share(*wait, all), self.theme.bar())
        }));
        lines
    }
}

impl Page<'_> {
    /// What the catalogue knows of the lock.
    fn catalogue(&self) -> Vec<Line<'static>> {
        let known = self.row.key.lock.as_ref().and_then(|lock| catalogue::entry(&lock.name));
        let Some(entry) = known else { return Vec::new() };
        let mut lines = vec![self.heading("what is known of this lock")];
        let text = explain::entry(entry, self.width.saturating_sub(4));
        lines.extend(text.lines().map(|line| self.said(format!("   {line}"))));
        lines
    }
}

fn waiter(pair: &Row) -> String {
    let lock_type = pair.key.lock_type.map(|t| format!("{t} ")).unwrap_or_default();
    format!("{lock_type}{}", cells::caller(&pair.key).text)
}

/// Whether a pair of waiter and releaser is part of a row.
fn is_of(pair: &RowKey, row: &RowKey) -> bool {
    if row.releaser.is_some() {
        return pair.releaser == row.releaser;
    }
    if row.lock_type.is_some() {
        let same_caller = pair.caller == row.caller && pair.wrappers == row.wrappers;
        return same_caller && pair.lock_type == row.lock_type && pair.lock == row.lock;
    }
    let kind = pair.lock_type.map(|lock_type| lock_type.kind);
    row.lock.is_some() && pair.lock == row.lock && kind == row.lock_kind
}
