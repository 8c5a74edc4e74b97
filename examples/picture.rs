//! A captured terminal screen as a picture.
//!
//!     tmux capture-pane -p -e | cargo run --example picture -- 120 30 > screen.svg
//!
//! In: columns and lines, and on stdin text with colours (SGR), a line of the screen each. Out: SVG on
//! stdout, its letters as text. `docs/pictures.sh` makes those of the README with it.

use std::error::Error;
use std::fmt::Write;
use std::io::Read;

use vt100::{Cell, Color, Parser, Screen};

/// Pixels that a letter takes, and how far below its top it stands.
const LETTER: (f64, f64) = (7.8, 16.0);
const BASELINE: f64 = 12.0;

/// Pixels around the screen.
const MARGIN: f64 = 10.0;

const FONT: &str = "DejaVu Sans Mono,Menlo,Consolas,monospace";
const PAPER: u32 = 0x1b_1d_1e;
const INK: u32 = 0xd3_d7_cf;

/// The sixteen colours.
const COLORS: [u32; 16] = [
    0x2e3436, 0xcc3333, 0x4e9a06, 0xc4a000, 0x3465a4, 0xa050a0, 0x06989a, 0xd3d7cf, 0x555753,
    0xef2929, 0x8ae234, 0xfce94f, 0x729fcf, 0xad7fa8, 0x34e2e2, 0xeeeeec,
];

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<u16> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[columns, lines] = sizes.as_slice() else {
        return Err("usage: picture COLUMNS LINES".into());
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut parser = Parser::new(lines, columns, 0);
    parser.process(text.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    print!("{}", picture(parser.screen())?);
    Ok(())
}

fn picture(screen: &Screen) -> Result<String, std::fmt::Error> {
    let (lines, columns) = screen.size();
    let width = f64::from(columns) * LETTER.0 + 2.0 * MARGIN;
    let height = f64::from(lines) * LETTER.1 + 2.0 * MARGIN;
    let mut svg = String::new();
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}""#
    )?;
    writeln!(svg, r#"     font-family="{FONT}" font-size="13">"#)?;
    writeln!(svg, r##"<rect width="100%" height="100%" fill="#{PAPER:06x}" rx="6"/>"##)?;
    for line in 0..lines {
        for piece in pieces(screen, line) {
            piece.draw(line, &mut svg)?;
        }
    }
    svg += "</svg>\n";
    Ok(svg)
}

/// Neighbours of one look.
struct Piece {
    column: u16,
    cells: u16,
    text: String,
    look: Look,
}

#[derive(Clone, Copy, PartialEq)]
struct Look {
    ink: u32,
    paper: u32,
    bold: bool,
    dim: bool,
}

fn pieces(screen: &Screen, line: u16) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..screen.size().1 {
        let Some(cell) = screen.cell(line, column) else { continue };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match pieces.last_mut() {
            Some(last) if last.look == look(cell) => {
                last.cells += 1;
                last.text += text;
            }
            _ => pieces.push(Piece { column, cells: 1, text: text.to_owned(), look: look(cell) }),
        }
    }
    pieces
}

fn look(cell: &Cell) -> Look {
    let (ink, paper) = (rgb(cell.fgcolor(), INK), rgb(cell.bgcolor(), PAPER));
    let (ink, paper) = if cell.inverse() { (paper, ink) } else { (ink, paper) };
    Look { ink, paper, bold: cell.bold(), dim: cell.dim() }
}

fn rgb(color: Color, default: u32) -> u32 {
    match color {
        Color::Default => default,
        Color::Rgb(red, green, blue) => u32::from_be_bytes([0, red, green, blue]),
        Color::Idx(index @ 0..16) => COLORS[usize::from(index)],
        // A cube of 6 x 6 x 6, then greys.
        Color::Idx(index @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let index = index - 16;
            let (red, green, blue) = (index / 36, index / 6 % 6, index % 6);
            u32::from_be_bytes([0, level(red), level(green), level(blue)])
        }
        Color::Idx(index) => u32::from(8 + 10 * (index - 232)) * 0x01_01_01,
    }
}

impl Piece {
    fn draw(&self, line: u16, svg: &mut String) -> std::fmt::Result {
        let x = f64::from(self.column) * LETTER.0 + MARGIN;
        let y = f64::from(line) * LETTER.1 + MARGIN;
        let (width, height) = (f64::from(self.cells) * LETTER.0, LETTER.1);
        let Look { ink, paper, bold, dim } = self.look;
        if paper != PAPER {
            write!(svg, r#"<rect x="{x:.1}" y="{y:.0}" width="{width:.1}" height="{height:.0}" "#)?;
            writeln!(svg, r##"fill="#{paper:06x}"/>"##)?;
        }
        if self.text.trim().is_empty() {
            return Ok(());
        }
        // Readers of SVG do not agree on spaces at the ends of a text.
        let before = self.text.len() - self.text.trim_start().len();
        let around = self.text.len() - self.text.trim().len();
        let x = x + before as f64 * LETTER.0;
        let (y, width) = (y + BASELINE, width - around as f64 * LETTER.0);
        write!(
            svg,
            r#"<text x="{x:.1}" y="{y:.0}" textLength="{width:.1}" xml:space="preserve" "#
        )?;
        write!(svg, r##"fill="#{ink:06x}""##)?;
        svg.push_str(if bold { r#" font-weight="bold""# } else { "" });
        svg.push_str(if dim { r#" opacity="0.65""# } else { "" });
        writeln!(svg, ">{}</text>", escape(self.text.trim()))
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
