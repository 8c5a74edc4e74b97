//! What things look like. Colour repeats what words and signs already say.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// None: `NO_COLOR`, or a terminal without.
    #[default]
    None,
    /// The sixteen that users choose themselves.
    Sixteen,
    /// 256.
    Many,
    /// 24 bits.
    True,
}

impl Palette {
    /// By `NO_COLOR` (<https://no-color.org>), `COLORTERM` and `TERM`.
    pub fn of(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Palette {
        let term = term.unwrap_or("");
        match colorterm {
            _ if no_color.is_some_and(|value| !value.is_empty()) => Palette::None,
            _ if term.is_empty() || term == "dumb" || term.starts_with("vt") => Palette::None,
            Some("truecolor" | "24bit") => Palette::True,
            _ if term.contains("256color") || term.contains("direct") => Palette::Many,
            _ => Palette::Sixteen,
        }
    }
}

/// What a piece of the screen is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theme {
    /// The colours there are.
    pub palette: Palette,
}

impl Theme {
    fn color(self, sixteen: Color) -> Style {
        match self.palette {
            Palette::None => Style::new(),
            _ => Style::new().fg(sixteen),
        }
    }

    /// Something with a large share; the name of what is shown.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Titles, small print.
    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The row under the cursor; it has a `>` too.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A lock type that reads.
    pub(super) fn read(self) -> Style {
        self.color(Color::Cyan)
    }

    /// A lock type that writes.
    pub(super) fn write(self) -> Style {
        self.color(Color::Magenta)
    }

    /// Something that makes the numbers doubtful.
    pub(super) fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    /// The bars of shares and histograms.
    pub(super) fn bar(self) -> Style {
        self.color(Color::Green)
    }

    /// One cell of the heat map, 0 to 1; the sign in it says the same.
    pub(super) fn heat(self, share: f64) -> Style {
        let share = share.clamp(0.0, 1.0);
        match self.palette {
            Palette::None => Style::new(),
            Palette::Sixteen if share < 0.34 => Style::new().fg(Color::Green),
            Palette::Sixteen if share < 0.67 => Style::new().fg(Color::Yellow),
            Palette::Sixteen => Style::new().fg(Color::Red),
            // From green over yellow to red in the cube of 6 x 6 x 6 that starts at 16.
            Palette::Many => {
                let (red, green) = ramp(share, 5.0);
                Style::new().fg(Color::Indexed(16 + 36 * red + 6 * green))
            }
            Palette::True => {
                let (red, green) = ramp(share, 255.0);
                Style::new().fg(Color::Rgb(red, green, 64))
            }
        }
    }
}

fn ramp(share: f64, full: f64) -> (u8, u8) {
    let red = (share * 2.0).min(1.0);
    let green = ((1.0 - share) * 2.0).min(1.0);
    ((red * full) as u8, (green * full) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_is_what_the_environment_says() {
        let cases = [
            ((None, Some("truecolor"), Some("xterm-256color")), Palette::True),
            ((None, None, Some("screen-256color")), Palette::Many),
            ((None, None, Some("linux")), Palette::Sixteen),
            ((None, None, Some("dumb")), Palette::None),
            ((None, None, None), Palette::None),
            ((Some("1"), Some("truecolor"), Some("xterm")), Palette::None),
            ((Some(""), None, Some("xterm")), Palette::Sixteen),
        ];
        for ((no_color, colorterm, term), palette) in cases {
            assert_eq!(Palette::of(no_color, colorterm, term), palette, "{term:?}");
        }
    }

    #[test]
    fn without_colours_nothing_has_a_colour() {
        let theme = Theme::default();
        for style in [theme.read(), theme.write(), theme.warning(), theme.bar(), theme.heat(0.9)] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
