//! The report on a terminal: verdict, table, doubts, next step, in this order.
//!
//! In: a report, the width of the terminal, whether to colour. Out: text no wider than that, every
//! name escaped. Wider terminals get wider names; narrow ones lose columns that can be derived, and
//! are told which.

use std::io;

use crate::model::{GroupBy, Nanos};
use crate::render::cells::Shape;
use crate::render::chains;
use crate::render::doubts::{Doubt, doubts};
use crate::render::escape::visible;
use crate::render::findings::{Sentence, sentence};
use crate::render::grid::Grid;
use crate::render::paint::{Paint, Style};
use crate::render::paragraph::{columns, pack, shorten, wrap};
use crate::render::readers_writers::section;
use crate::render::{Renderer, phases, thread_time, units};
use crate::report::{Header, Report, Row, StackShare, ThreadTime, Trust};

/// The default format of `lockprof report`.
#[derive(Clone, Debug)]
pub struct Table {
    /// Columns of the terminal; 100 when there is none.
    pub width: usize,
    /// Whether to colour. `NO_COLOR` and pipes are the caller's business.
    pub color: bool,
    /// Commands to try next.
    pub next: Vec<String>,
    /// Say below each row what its waiters did, and those who let them wait.
    pub phases: bool,
    /// ` FILE` behind a command that reads this recording; nothing when it takes it by default.
    pub file: String,
    /// Whether readers and writers are told apart below the table.
    pub readers_writers: bool,
}

impl Default for Table {
    fn default() -> Table {
        let (next, file) = (Vec::new(), String::new());
        Table { width: 100, color: false, next, file, phases: false, readers_writers: false }
    }
}

/// Stacks shown under a row, unless all rows are asked for.
const STACKS_SHOWN: usize = 5;

impl Renderer for Table {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let paint = Paint { color: self.color };
        let page = Page { report, width: self.width, paint, phases: self.phases };
        let body = if report.rows.is_empty() { page.nothing() } else { page.table() };
        let user_locks = thread_time::user_locks(report, page.width, page.paint);
        let chains = chains::lines(report, self.width, page.paint);
        let findings = page.findings(&self.file);
        let sides = if self.readers_writers { page.readers_writers() } else { Vec::new() };
        let (doubts, next) = (page.doubts(), page.next(&self.next));
        let parts = [page.verdict(), body, sides, chains, user_locks, findings, doubts, next];
        write_parts(&parts, out)
    }
}

/// A report on its way to a terminal.
struct Page<'a> {
    report: &'a Report,
    width: usize,
    paint: Paint,
    phases: bool,
}

impl Page<'_> {
    fn verdict(&self) -> Vec<String> {
        let first = headline(&self.report.header, self.width, self.paint);
        let mut lines = vec![first];
        if !self.report.rows.is_empty() {
            lines.extend(wrap("", &self.sum(), self.width));
            lines.extend(self.phases().iter().flat_map(|said| wrap("", said, self.width)));
        }
        if let Some(spent) = self.report.thread_time.as_ref().filter(|spent| spent.threads > 0) {
            lines.extend(wrap("", &thread_time::sentence(spent), self.width));
            let verdict = thread_time::verdict(spent).into_iter();
            lines.extend(verdict.flat_map(|verdict| wrap("", &verdict, self.width)));
        }
        lines
    }

    /// All waiting in one sentence.
    fn sum(&self) -> String {
        let total = &self.report.total;
        let mut waits = units::counted(total.contended(), "wait");
        if self.report.trust.sleeps_only() {
            waits += ", each a run of sleeps";
        }
        let spun = units::estimate(total.spun.time, total.spun.interval());
        let mut sum = match (total.contended(), total.spun.samples) {
            (0, _) => format!("spun {spun} for kernel locks, by CPU samples"),
            _ if self.report.trust.begins_only() => format!("{waits} for kernel locks"),
            _ => format!("waited {} for kernel locks: {waits}", units::time(total.wait())),
        };
        if total.contended() > 0 && total.spun.samples > 0 {
            sum += &format!(", and {spun} of spinning that only CPU samples saw");
        }
        if let Some(cpu) = self.report.header.cpu_time {
            sum += &format!("; CPU time {}", units::time(cpu));
        }
        sum
    }

    /// What waiters did and those who let them wait.
    fn phases(&self) -> Vec<String> {
        let total = &self.report.total;
        let waiters = phases::waiters(&total.phases).map(|said| format!("waiters: {said}"));
        let holders = phases::holders(&total.holder).map(|said| format!("holders: {said}"));
        waiters.into_iter().chain(holders).collect()
    }

    /// The same for a row. In blame a holder that did not run is worth a line of its own.
    fn phases_of(&self, row: &Row) -> Vec<String> {
        let waiters = phases::waiters(&row.stat.phases).filter(|_| self.phases);
        let waiters = waiters.map(|said| format!("waiters: {said}"));
        let holder = match (self.phases, self.report.by.is_blame()) {
            (true, false) => phases::holders(&row.stat.holder),
            (_, true) => phases::holder_of(row),
            (false, false) => None,
        };
        let holder = holder.map(|said| format!("holder: {said}"));
        let said = waiters.into_iter().chain(holder);
        said.map(|said| shorten(&format!("{:11}{said}", ""), self.width)).collect()
    }

    fn nothing(&self) -> Vec<String> {
        let counts = &self.report.trust.counts;
        let why = if counts.begins > 0 {
            let begins = units::counted(counts.begins, "contention_begin event");
            format!("{begins} were read, but the filters leave none of them.")
        } else if counts.outside > 0 {
            let outside = units::counted(counts.outside, "event");
            format!(
                "Nothing that was asked for had to wait; {outside} of other tasks were left out."
            )
        } else if self.report.trust.records == 0 {
            "The recording has no records: it ended before anything happened.".into()
        } else if self.report.trust.sleeps_only() {
            "No task slept in lock code while recording; the kernel had no contention events, by which \
             shorter waits are seen."
                .into()
        } else if self.report.trust.rung == Trust::NO_EVENTS {
            "The recording has neither contention events nor CPU samples: it does not tell of lock \
             waits."
                .into()
        } else if self.report.trust.rung == Trust::SAMPLES_ONLY {
            "No CPU sample was waiting for a kernel lock. Tasks that sleep in one are not seen by CPU \
             samples."
                .into()
        } else {
            "No task had to wait for a kernel lock while recording. Waiting for disks, sockets, \
             timers and user locks (futex) is no lock wait and is not counted here."
                .into()
        };
        let mut lines = vec![self.paint.apply(Style::Strong, "no lock waits recorded")];
        lines.extend(wrap("  ", &why, self.width));
        lines
    }

    fn table(&self) -> Vec<String> {
        let report = self.report;
        let (rows, rest) = self.shown();
        let shape = Shape::of(report, &rows);
        let mut grid = Grid::new(shape.columns());
        let mut marked = false;
        for row in &rows {
            marked |= shape.is_near_floor(&row.stat);
            grid.row(shape.row(row));
            if report.by == GroupBy::Lock && row.splits.len() > 1 {
                row.splits.iter().for_each(|split| grid.row(shape.split(split)));
            }
            self.phases_of(row).into_iter().for_each(|line| grid.text(line));
            self.stacks(row).into_iter().for_each(|line| grid.text(line));
        }
        let (mut lines, gone) = grid.print(self.width, self.paint);
        let mut legend = Vec::new();
        legend.extend(self.rest(rest));
        legend.extend(marked.then(|| self.floor_legend()));
        legend.extend(missing(&gone));
        lines.extend(pack("", &legend, self.width));
        lines
    }

    /// The rows that are shown, and those that are not.
    fn shown(&self) -> (Vec<&Row>, &[Row]) {
        let report = self.report;
        let shown = if report.top == 0 { report.rows.len() } else { report.top };
        // What nobody is charged with stands at the end, and is always shown.
        let charged = report.rows.iter().take_while(|row| !row.is_uncharged()).count();
        let (charged, uncharged) = report.rows.split_at(charged);
        let (top, rest) = charged.split_at(shown.min(charged.len()));
        (top.iter().chain(uncharged).collect(), rest)
    }

    fn readers_writers(&self) -> Vec<String> {
        section(self.report, &self.shown().0, self.width, self.paint)
    }

    /// The rows that are not shown.
    fn rest(&self, rows: &[Row]) -> Option<String> {
        if rows.is_empty() {
            return None;
        }
        let wait: Nanos = rows.iter().map(|row| row.stat.wait()).sum();
        let share = units::percent(units::share(wait, self.report.total.wait()));
        let more = units::counted(rows.len() as u64, "more row");
        Some(format!("... {more}, {} ({share}): --top 0", units::time(wait)))
    }

    fn floor_legend(&self) -> String {
        let floor = self.report.trust.floor.map_or(String::new(), units::time);
        format!("~ p50 is near the cost of measuring ({floor})")
    }

    /// Full stacks under their row.
    fn stacks(&self, row: &Row) -> Vec<String> {
        let shown = if self.report.top == 0 { row.stacks.len() } else { STACKS_SHOWN };
        let mut lines = Vec::new();
        for stack in row.stacks.iter().take(shown) {
            lines.extend(self.stack(row, stack));
        }
        let rest = row.stacks.get(shown..).unwrap_or_default();
        if !rest.is_empty() {
            let wait: Nanos = rest.iter().map(|stack| stack.stat.wait()).sum();
            let more = units::counted(rest.len() as u64, "more stack");
            let share = units::percent(units::share(wait, row.stat.wait()));
            lines.push(format!("      ... {more} ({share} of the row): --top 0"));
        }
        lines
    }

    fn stack(&self, row: &Row, stack: &StackShare) -> Vec<String> {
        let share = units::percent(stack.stat.share_of(&row.stat));
        let waits = units::counted(stack.stat.contended(), "wait");
        let wait = units::time(stack.stat.wait());
        let lock = visible(&stack.lock.name);
        let title = format!("{share:>11}  {} {lock}, {wait} in {waits}", stack.lock_type);
        let mut lines = vec![shorten(&title, self.width)];
        let mut frames = |frames: &[String], mark: &str| {
            for frame in frames {
                lines.push(shorten(&format!("{:13}{mark}{}", "", visible(frame)), self.width));
            }
        };
        frames(&stack.kernel, "");
        frames(&stack.user, "user ");
        if stack.kernel.is_empty() && stack.user.is_empty() {
            lines.push(format!("{:13}(no stack recorded)", ""));
        }
        lines
    }

    /// A sentence each, and what shows more of it. Where waiting for locks is little, they say of what they
    /// speak.
    fn findings(&self, file: &str) -> Vec<String> {
        let findings = self.report.findings();
        let little = self.report.thread_time.as_ref().and_then(ThreadTime::verdict);
        let wait = units::time(self.report.total.wait());
        let of_which = (little.is_some() && !findings.is_empty())
            .then(|| format!("of the {wait} of waiting for kernel locks:"));
        let lines = |finding| {
            let Sentence { text, more, .. } = sentence(finding);
            let (mut lines, more) = (wrap("* ", &text, self.width), command(more, file));
            match lines.last_mut() {
                // Commands are for copying: they do not break.
                Some(last) if columns(last) + 1 + columns(&more) <= self.width => {
                    *last += " ";
                    *last += &more;
                }
                _ => lines.push(format!("  {more}")),
            }
            lines
        };
        of_which.into_iter().chain(findings.iter().flat_map(lines)).collect()
    }

    fn doubts(&self) -> Vec<String> {
        said(&doubts(self.report), self.width, self.paint)
    }

    fn next(&self, commands: &[String]) -> Vec<String> {
        if commands.is_empty() { Vec::new() } else { pack("next: ", commands, self.width) }
    }
}

/// What to type for `more`, of that recording.
fn command(more: &str, file: &str) -> String {
    match more.split_once(' ') {
        Some(("report", options)) => format!("lockprof report{file} {options}"),
        _ => format!("lockprof {more}"),
    }
}

/// What was recorded, in one line.
pub(super) fn headline(header: &Header, width: usize, paint: Paint) -> String {
    let mut facts = vec![units::time(header.elapsed)];
    if header.cpus > 0 {
        facts[0] += &format!(" on {}", units::counted(header.cpus.into(), "CPU"));
    }
    if header.threads > 0 {
        facts[0] += &format!(", {}", units::counted(header.threads, "thread"));
    }
    if !header.kernel.is_empty() {
        facts.push(format!("kernel {}", shorten(&visible(&header.kernel), 30)));
    }
    let facts = facts.join("    ");
    let room = width.saturating_sub(columns(&facts) + 4).max(20);
    let target = shorten(&visible(&header.target), room);
    let gap = if target.is_empty() { "" } else { "    " };
    format!("{}{gap}{facts}", paint.apply(Style::Strong, &target))
}

/// Doubts, each in lines of its own.
pub(super) fn said(doubts: &[Doubt], width: usize, paint: Paint) -> Vec<String> {
    let lines = |doubt: &Doubt| {
        let style = if doubt.warning { Style::Warning } else { Style::Plain };
        let lines = wrap(&format!("{}: ", doubt.label), &doubt.text, width);
        lines.into_iter().map(move |line| paint.apply(style, &line))
    };
    doubts.iter().flat_map(lines).collect()
}

/// Parts of a page, an empty line between them.
pub(super) fn write_parts(parts: &[Vec<String>], out: &mut dyn io::Write) -> io::Result<()> {
    let mut separator = "";
    for part in parts.iter().filter(|part| !part.is_empty()) {
        out.write_all(separator.as_bytes())?;
        separator = "\n";
        for line in part {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What there was no room for; `traced` can be had from its neighbours.
fn missing(gone: &[&str]) -> Vec<String> {
    let (traced, others): (Vec<&str>, Vec<&str>) = gone.iter().partition(|t| **t == "traced");
    let mut said: Vec<String> = traced.iter().map(|t| format!("{t} = wait - spun")).collect();
    if !others.is_empty() {
        said.push(format!("no room for {}", others.join(", ")));
    }
    said
}
