//! What a command printed on its terminal, as a picture: bytes in, lines with colours out.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Lines kept of what has left the command's screen.
const SCROLLBACK: usize = 1000;

/// A command's terminal.
pub struct Output {
    parser: vt100::Parser,
}

impl Output {
    /// An empty one of this many columns and lines.
    pub fn new(columns: u16, lines: u16) -> Output {
        Output { parser: vt100::Parser::new(lines.max(1), columns.max(1), SCROLLBACK) }
    }

    /// The command printed this.
    pub fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    /// It has another size now.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        self.parser.screen_mut().set_size(lines.max(1), columns.max(1));
    }

    /// What the terminal shows, with what has left it above.
    pub fn lines(&mut self) -> Vec<Line<'static>> {
        let (rows, columns) = self.parser.screen().size();
        let screen = self.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut lines = Vec::with_capacity(above + usize::from(rows));
        for scrolled in (1..=above).rev() {
            screen.set_scrollback(scrolled);
            lines.push(line(screen, 0, columns));
        }
        screen.set_scrollback(0);
        lines.extend((0..rows).map(|row| line(screen, row, columns)));
        while lines.last().is_some_and(|line| line.width() == 0) {
            lines.pop();
        }
        lines
    }
}

/// Cells of one look are one piece of text.
fn line(screen: &vt100::Screen, row: u16, columns: u16) -> Line<'static> {
    let mut spans: Vec<(String, Style)> = Vec::new();
    for cell in (0..columns).filter_map(|column| screen.cell(row, column)) {
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match spans.last_mut() {
            Some((said, style)) if *style == look(cell) => said.push_str(text),
            _ => spans.push((text.to_owned(), look(cell))),
        }
    }
    if let Some((last, style)) = spans.last_mut()
        && *style == Style::new()
    {
        last.truncate(last.trim_end().len());
    }
    spans.retain(|(text, _)| !text.is_empty());
    Line::from(spans.into_iter().map(|(text, style)| Span::styled(text, style)).collect::<Vec<_>>())
}

fn look(cell: &vt100::Cell) -> Style {
    let color = |color| match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(Color::Indexed(index)),
        vt100::Color::Rgb(red, green, blue) => Some(Color::Rgb(red, green, blue)),
    };
    let mut style = Style::new();
    (style.fg, style.bg) = (color(cell.fgcolor()), color(cell.bgcolor()));
    for (is_so, modifier) in [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ] {
        if is_so {
            style = style.add_modifier(modifier);
        }
    }
    style
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("size", &self.parser.screen().size()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(output: &mut Output) -> Vec<String> {
        output.lines().iter().map(Line::to_string).collect()
    }

    #[test]
    fn what_has_left_the_screen_stands_above_it() {
        let mut output = Output::new(20, 3);
        for n in 0..6 {
            output.take(format!("line {n}\r\n").as_bytes());
        }
        let wanted: Vec<String> = (0..6).map(|n| format!("line {n}")).collect();
        assert_eq!(text(&mut output), wanted);
    }

    #[test]
    fn colours_are_kept_and_nothing_acts() {
        let mut output = Output::new(20, 3);
        output.take(b"\x1b[31mred\x1b[0m \x1b]0;title\x07plain\x1b[2J\x1b[Hgone");
        output.take(b"\r\n\x1b[1;32mgreen\x1b[0m");
        assert_eq!(text(&mut output), ["gone", "green"]);
        let green = &output.lines()[1].spans[0];
        assert_eq!(green.style.fg, Some(Color::Indexed(2)));
        assert!(green.style.add_modifier.contains(Modifier::BOLD));
    }
}
