//! The report as a picture: a flame graph of waiting, drawn by inferno.
//!
//! In: a report whose query asked for stacks. Out: an SVG, the same bytes every time. Lock types
//! are the lowest frames: readers cold, writers warm, other locks green, user code grey, and who let
//! them wait violet; within a hue the name decides. Tooltips say times in human units. Without waits the picture says so in
//! words.

use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection};

use crate::model::Nanos;
use crate::render::escape::folded_frame;
use crate::render::folded::{Frame, NOT_IN_LOCK_CODE, Place, Weight, fold, total};
use crate::render::paragraph::shorten;
use crate::render::{Renderer, units};
use crate::report::Report;

/// `lockprof flamegraph`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlameGraph {
    /// What the width of a frame means.
    pub weight: Weight,
}

/// Columns of the title; more would run into the buttons beside it.
const TITLE_WIDTH: usize = 90;
/// Columns of the line below it.
const SUBTITLE_WIDTH: usize = 150;

impl Renderer for FlameGraph {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let folded = fold(report, self.weight);
        if folded.is_empty() {
            return write_empty(report, self.weight, out);
        }
        let mut palette = PaletteMap::default();
        // Inferno's own frame below all others has no name.
        palette.insert("", Color { r: 225, g: 225, b: 225 });
        let lines: Vec<String> =
            folded.iter().map(|(path, weight)| line(path, *weight, &mut palette)).collect();
        let mut options = Options::default();
        options.title = title(report, self.weight);
        options.subtitle = Some(subtitle(report, self.weight, total(&folded)));
        options.count_name = self.weight.unit().into();
        options.name_type = String::new();
        options.bgcolors = Some(BackgroundColor::Flat(Color { r: 250, g: 250, b: 250 }));
        options.text_truncate_direction = TextTruncateDirection::Right;
        options.palette_map = Some(&mut palette);
        options.deterministic = true;
        let mut svg = Vec::new();
        inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
        write_with_human_titles(&String::from_utf8_lossy(&svg), self.weight, out)
    }
}

impl Weight {
    /// What inferno is told to write behind a number, and what is looked for afterwards.
    fn unit(self) -> &'static str {
        match self {
            Weight::Wait | Weight::Cpu | Weight::Blame => "ns",
            Weight::Count => "waits",
        }
    }

    fn say(self, weight: u64) -> String {
        match self {
            Weight::Wait | Weight::Cpu | Weight::Blame => units::time(Nanos(weight)),
            Weight::Count => units::counted(weight, "wait"),
        }
    }
}

/// A hue: who a frame belongs to.
#[derive(Clone, Copy)]
enum Hue {
    Cold,
    Warm,
    Green,
    Violet,
    Grey,
}

impl Hue {
    /// Of the frames above a label.
    fn of_type(lock_type: &str) -> Hue {
        match lock_type {
            name if name.contains(":R") => Hue::Cold,
            name if name.contains(":W") => Hue::Warm,
            NOT_IN_LOCK_CODE => Hue::Grey,
            _ => Hue::Green,
        }
    }

    /// Inferno cuts these off a name before it shows it. They keep frames of one name and two hues
    /// apart, and a frame that ends in a number from looking like a weight.
    fn suffix(self) -> &'static str {
        match self {
            Hue::Cold => "_[i]",
            Hue::Warm => "_[j]",
            Hue::Green => "_[k]",
            // Inferno knows four. Who is at the root of these stands above them, in grey.
            Hue::Violet => "",
            Hue::Grey => "_[w]",
        }
    }

    /// Of a frame above a label of this hue.
    fn of_place(self, place: Place) -> Hue {
        match place {
            Place::User | Place::Divider => Hue::Grey,
            Place::Releaser => Hue::Violet,
            Place::Label | Place::Kernel => self,
        }
    }

    /// The shade of a name. Labels are darker than the code above them.
    fn shade(self, name: &str, place: Place) -> Color {
        let (one, two) = two_bytes(name);
        let deep = if matches!(place, Place::Label | Place::Divider) { 30 } else { 0 };
        let channel = |base: u8, spread: u8, by: u8| {
            let varied = u16::from(base) + u16::from(spread) * u16::from(by) / 255;
            u8::try_from(varied.saturating_sub(deep)).unwrap_or(u8::MAX)
        };
        match self {
            Hue::Cold => Color { r: channel(110, 55, one), g: channel(170, 45, two), b: 235 },
            Hue::Warm => Color { r: 245, g: channel(125, 75, one), b: channel(85, 45, two) },
            Hue::Green => Color { r: channel(120, 55, one), g: channel(195, 30, two), b: 115 },
            Hue::Violet => Color { r: channel(175, 40, one), g: channel(140, 40, two), b: 225 },
            Hue::Grey => {
                let grey = channel(200, 30, one);
                Color { r: grey, g: grey, b: grey }
            }
        }
    }
}

/// FNV-1a, folded to two bytes: the same name has the same shade in every picture.
fn two_bytes(name: &str) -> (u8, u8) {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = hash ^ (hash >> 32);
    (folded as u8, (folded >> 8) as u8)
}

/// A stack as inferno reads it. The shades of its frames go to the palette.
fn line(path: &[Frame], weight: u64, palette: &mut PaletteMap) -> String {
    let hue = path.first().map_or(Hue::Grey, |first| Hue::of_type(&first.name));
    let mut line = String::new();
    for frame in path {
        let hue = hue.of_place(frame.place);
        let name = format!("{}{}", folded_frame(&frame.name), hue.suffix());
        palette.insert(&name, hue.shade(&frame.name, frame.place));
        if !line.is_empty() {
            line.push(';');
        }
        line.push_str(&name);
    }
    format!("{line} {weight}")
}

fn title(report: &Report, weight: Weight) -> String {
    let what = match weight {
        Weight::Wait => "Waiting for kernel locks",
        Weight::Cpu => "CPU time",
        Weight::Count => "Waits for kernel locks",
        Weight::Blame => "Waiting for kernel locks, and above who let them wait",
    };
    let target = folded_frame(&report.header.target);
    let colon = if target.is_empty() { "" } else { ": " };
    shorten(&format!("{what}{colon}{target}"), TITLE_WIDTH)
}

fn subtitle(report: &Report, weight: Weight, total: Nanos) -> String {
    let header = &report.header;
    let sum = match weight {
        Weight::Wait | Weight::Blame => {
            let waits = units::counted(report.total.contended(), "wait");
            format!("waited {} in {waits}; ", units::time(total))
        }
        Weight::Cpu => format!("{} of CPU time, sampled; ", units::time(total)),
        Weight::Count => format!("{}; ", units::counted(total.0, "wait")),
    };
    let sum = if total == Nanos::ZERO { String::new() } else { sum };
    let mut text = format!("{sum}recorded {}", units::time(header.elapsed));
    if header.cpus > 0 {
        text += &format!(" on {}", units::counted(header.cpus.into(), "CPU"));
    }
    if header.threads > 0 {
        text += &format!(", {}", units::counted(header.threads, "thread"));
    }
    if !header.kernel.is_empty() {
        text += &format!(", kernel {}", folded_frame(&header.kernel));
    }
    shorten(&text, SUBTITLE_WIDTH)
}

/// Copies the SVG with `(1,234,567 ns, 12.34%)` at the end of each title said as `(1.2 ms,
/// 12.34%)`.
///
/// The number is looked for from the end, so that a name cannot pretend to be one. The brackets
/// stay: inferno's script cuts them off a title to get the frame's name.
fn write_with_human_titles(svg: &str, weight: Weight, out: &mut dyn io::Write) -> io::Result<()> {
    let mut rest = svg;
    while let Some((before, title, after)) = next_title(rest) {
        write!(out, "{before}{}", human_title(title, weight).as_deref().unwrap_or(title))?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Splits before and after the text of the next title.
fn next_title(svg: &str) -> Option<(&str, &str, &str)> {
    const OPEN: &str = "<title>";
    let start = svg.find(OPEN)? + OPEN.len();
    let end = start + svg[start..].find("</title>")?;
    Some((&svg[..start], &svg[start..end], &svg[end..]))
}

fn human_title(title: &str, weight: Weight) -> Option<String> {
    let (name, numbers) = title.rsplit_once('(')?;
    let (number, share) = numbers.split_once(&format!(" {}, ", weight.unit()))?;
    let number: u64 = number.replace(',', "").parse().ok()?;
    Some(format!("{name}({}, {share}", weight.say(number)))
}

/// A picture without frames: inferno has none, and an empty recording is no error.
fn write_empty(report: &Report, weight: Weight, out: &mut dyn io::Write) -> io::Result<()> {
    let nothing = match weight {
        Weight::Wait | Weight::Count | Weight::Blame => "no lock waits recorded",
        Weight::Cpu => "no CPU samples recorded",
    };
    let text = |y: u32, size: u32, text: &str| {
        format!(
            "<text x=\"50%\" y=\"{y}\" text-anchor=\"middle\" font-family=\"monospace\" \
             font-size=\"{size}\">{}</text>\n",
            xml_text(text)
        )
    };
    write!(
        out,
        "<?xml version=\"1.0\" standalone=\"no\"?>\n\
         <svg version=\"1.1\" width=\"1200\" height=\"160\" viewBox=\"0 0 1200 160\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"rgb(250,250,250)\"/>\n\
         {}{}{}</svg>\n",
        text(34, 17, &title(report, weight)),
        text(84, 17, nothing),
        text(124, 12, &subtitle(report, weight, Nanos::ZERO)),
    )
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_at_the_end_of_a_title_is_said_anew() {
        let cases = [
            ("all (2,100,000,000 ns, 100%)", "all (2.1 s, 100%)"),
            ("f(int) (812 ns, 0.01%)", "f(int) (812 ns, 0.01%)"),
            ("x (5 ns, 1%) (44,000,000 ns, 3.10%)", "x (5 ns, 1%) (44 ms, 3.10%)"),
            ("a &lt;b&gt; (1,000 ns, 3.10%)", "a &lt;b&gt; (1 us, 3.10%)"),
        ];
        for (title, human) in cases {
            assert_eq!(human_title(title, Weight::Wait).as_deref(), Some(human));
        }
        assert_eq!(human_title("no number", Weight::Wait), None);
        assert_eq!(human_title("f (1 waits, 2.00%)", Weight::Count).unwrap(), "f (1 wait, 2.00%)");
    }
}
