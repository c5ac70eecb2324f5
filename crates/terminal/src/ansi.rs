//! Output of tools as spans: colours are kept, everything else that a terminal would obey is dropped or shown.
//!
//! A line is played as on a terminal with one endless row, so that `\r`, backspaces and "erase to the end" leave the
//! final state of a progress bar. SGR sets colours and attributes; blink, conceal and fonts are ignored, and text in
//! the colour of its background gets the terminal's own colours. Other sequences (OSC, DCS, cursor moves, modes) are
//! dropped; other controls pass [`crate::gate`].

use unicode_width::UnicodeWidthChar as _;
use vte::{Params, Parser, Perform};

use crate::gate;
use crate::row::{Color, Span, Style};

/// Style that SGR sequences have set so far. It carries over to the next line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SgrState {
    style: Style,
}

/// Longest line in bytes whose sequences are played; those of longer ones are shown as marks.
const LONGEST_LINE: usize = 64 * 1024;

/// Spans of one line of output, without its newline.
pub fn spans(line: &str, state: &mut SgrState) -> Vec<Span> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let played = line.bytes().any(|byte| matches!(byte, b'\x1b' | b'\r' | b'\x08'));
    if !played || line.len() > LONGEST_LINE {
        let text = gate::visible(line);
        return if text.is_empty() { Vec::new() } else { vec![Span::new(text, shown(state.style))] };
    }
    let mut screen = Screen { cells: Vec::new(), at: 0, style: state.style };
    let mut parser = Parser::new();
    parser.advance(&mut screen, line.as_bytes());
    state.style = screen.style;
    screen.spans()
}

/// Style with colours that differ.
fn shown(style: Style) -> Style {
    let same = match (style.fg, style.bg) {
        (Some(Color::Ansi(text)), Some(Color::Ansi(background))) => text == background,
        (Some(Color::Rgb(r, g, b)), Some(Color::Rgb(br, bg, bb))) => {
            r.abs_diff(br).max(g.abs_diff(bg)).max(b.abs_diff(bb)) < INDISTINCT
        }
        _ => false,
    };
    if same { Style { fg: None, bg: None, ..style } } else { style }
}

/// Difference in each component below which text and background look the same.
const INDISTINCT: u8 = 24;

/// One column of the row.
#[derive(Debug, Clone)]
struct Cell {
    /// Empty for the second column of a wide character.
    text: String,
    style: Style,
    /// Combining marks that the gate has still to bound.
    joined: bool,
}

impl Cell {
    fn blank() -> Self {
        Self { text: " ".to_owned(), style: Style::PLAIN, joined: false }
    }
}

struct Screen {
    cells: Vec<Cell>,
    at: usize,
    style: Style,
}

impl Screen {
    fn put(&mut self, c: char) {
        match c.width().unwrap_or(0) {
            0 => self.join(c),
            width => {
                self.split(self.at);
                self.split(self.at + width);
                self.set(c.to_string());
                for _ in 1..width {
                    self.set(String::new());
                }
            }
        }
    }

    fn set(&mut self, text: String) {
        let cell = Cell { text, style: self.style, joined: false };
        match self.cells.get_mut(self.at) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        self.at += 1;
    }

    fn mark(&mut self, mark: &str) {
        for c in mark.chars() {
            self.put(c);
        }
    }

    /// Blanks a wide character that starts before a column and ends after it: half of it is about to be overwritten.
    fn split(&mut self, at: usize) {
        if let Some(before) = at.checked_sub(1)
            && self.cells.get(at).is_some_and(|cell| cell.text.is_empty())
            && let Some(pair) = self.cells.get_mut(before..=at)
        {
            pair.fill(Cell::blank());
        }
    }

    /// Adds a character without width to the one before the cursor.
    fn join(&mut self, c: char) {
        let base =
            (0..self.at).rev().find(|at| self.cells.get(*at).is_some_and(|cell| !cell.text.is_empty()));
        match base.and_then(|at| self.cells.get_mut(at)) {
            Some(cell) => {
                cell.text.push(c);
                cell.joined = true;
            }
            None => self.mark(&gate::visible(c.encode_utf8(&mut [0; 4]))),
        }
    }

    fn erase(&mut self, what: u16) {
        match what {
            0 => self.cells.truncate(self.at),
            1 => {
                let end = (self.at + 1).min(self.cells.len());
                for cell in self.cells.iter_mut().take(end) {
                    *cell = Cell::blank();
                }
            }
            2 => {
                self.cells.clear();
                self.cells.resize(self.at, Cell::blank());
            }
            _ => {}
        }
    }

    fn spans(self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut joined = false;
        for cell in self.cells {
            let style = shown(cell.style);
            joined |= cell.joined;
            match spans.last_mut() {
                Some(span) if span.style == style => span.text.push_str(&cell.text),
                _ => spans.push(Span::new(cell.text, style)),
            }
        }
        if joined {
            for span in &mut spans {
                span.text = gate::visible(&span.text).into_owned();
            }
        }
        spans
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        match gate::mark(c) {
            Some(mark) => self.mark(&mark),
            None => self.put(c),
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.at = 0,
            0x08 => self.at = self.at.saturating_sub(1),
            b'\t' => {
                let stop = (self.at / gate::TAB + 1) * gate::TAB;
                if self.cells.len() < stop {
                    self.cells.resize(stop, Cell::blank());
                }
                self.at = stop;
            }
            byte => self.print(char::from(byte)),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        match action {
            'm' => self.style = sgr(self.style, params),
            'K' => self.erase(params.iter().next().and_then(|param| param.first().copied()).unwrap_or(0)),
            _ => {}
        }
    }
}

/// Style after the parameters of an SGR sequence.
fn sgr(mut style: Style, params: &Params) -> Style {
    let mut params = params.iter();
    while let Some(param) = params.next() {
        let Some((&code, rest)) = param.split_first() else { continue };
        match code {
            0 => style = Style::PLAIN,
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = rest.first() != Some(&0),
            7 => style.reverse = true,
            9 => style.strike = true,
            21 => style.underline = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            29 => style.strike = false,
            30..=37 => style.fg = ansi(code - 30),
            39 => style.fg = None,
            40..=47 => style.bg = ansi(code - 40),
            49 => style.bg = None,
            90..=97 => style.fg = ansi(code - 90 + 8),
            100..=107 => style.bg = ansi(code - 100 + 8),
            38 | 48 => {
                let color = if rest.is_empty() {
                    extended(&mut || params.next().and_then(|param| param.first().copied()))
                } else {
                    colon(rest)
                };
                let Some(color) = color else { continue };
                *(if code == 38 { &mut style.fg } else { &mut style.bg }) = Some(color);
            }
            _ => {}
        }
    }
    style
}

fn ansi(color: u16) -> Option<Color> {
    u8::try_from(color).ok().map(Color::Ansi)
}

/// Colour after `38:` or `48:`, where a colour space may stand before red.
fn colon(parts: &[u16]) -> Option<Color> {
    let rgb = match parts {
        [2, _, red, green, blue, ..] | [2, red, green, blue] => [2, *red, *green, *blue],
        [5, index, ..] => [5, *index, 0, 0],
        _ => return None,
    };
    let mut rgb = rgb.into_iter();
    extended(&mut || rgb.next())
}

/// Colour after `38;` or `48;`.
fn extended(next: &mut dyn FnMut() -> Option<u16>) -> Option<Color> {
    match next()? {
        2 => {
            let (red, green, blue) = (next()?, next()?, next()?);
            let part = |value: u16| u8::try_from(value).ok();
            Some(Color::Rgb(part(red)?, part(green)?, part(blue)?))
        }
        5 => u8::try_from(next()?).ok().map(indexed),
        _ => None,
    }
}

/// Colour of the palette of 256: 16 of the terminal, a cube of 6×6×6, 24 greys.
fn indexed(index: u8) -> Color {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..=15 => Color::Ansi(index),
        16..=231 => {
            let cube = index - 16;
            Color::Rgb(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            Color::Rgb(grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(lines: &[&str], expected: Expect) {
        let mut state = SgrState::default();
        let mut shown = String::new();
        for line in lines {
            for span in spans(line, &mut state) {
                shown.push_str(&format!("{:?} {}\n", span.text, look(span.style)));
            }
            shown.push_str("--\n");
        }
        expected.assert_eq(&shown);
    }

    fn look(style: Style) -> String {
        let attributes = [
            ("bold", style.bold),
            ("dim", style.dim),
            ("italic", style.italic),
            ("underline", style.underline),
            ("strike", style.strike),
            ("reverse", style.reverse),
        ];
        let mut words: Vec<String> =
            attributes.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()).collect();
        words.extend(style.fg.map(|color| format!("{color:?}")));
        words.extend(style.bg.map(|color| format!("on {color:?}")));
        words.join(" ")
    }

    #[test]
    fn colours_and_attributes_go_on_until_they_are_reset() {
        check(
            &["a\x1b[1;31mb", "c\x1b[22;39md\x1b[94;103me\x1b[m", "f"],
            expect![[r#"
            "a" 
            "b" bold Ansi(1)
            --
            "c" bold Ansi(1)
            "d" 
            "e" Ansi(12) on Ansi(11)
            --
            "f" 
            --
        "#]],
        );
    }

    #[test]
    fn palettes_and_rgb_in_both_forms() {
        check(
            &[
                "\x1b[38;5;9ma\x1b[38;5;196mb\x1b[38;5;244mc\x1b[38;2;1;2;3md\x1b[48:2::4:5:6me\x1b[38:5:12mf\x1b[38;2;1m\x1b[38;5;999mg",
            ],
            expect![[r#"
                "a" Ansi(9)
                "b" Rgb(255, 0, 0)
                "c" Rgb(128, 128, 128)
                "d" Rgb(1, 2, 3)
                "e" 
                "fg" Ansi(12) on Rgb(4, 5, 6)
                --
            "#]],
        );
    }

    #[test]
    fn hidden_text_is_visible() {
        check(
            &["\x1b[8mhidden\x1b[0m\x1b[5mblink\x1b[31;41mred\x1b[38;2;0;0;0;48;2;1;1;1mblack"],
            expect![[r#"
                "hiddenblinkredblack" 
                --
            "#]],
        );
    }

    #[test]
    fn progress_bars_leave_their_last_state() {
        check(
            &[
                "Building [=>  ] 1/3\rBuilding [==> ] 2/3\r\x1b[KFinished",
                "12345\rab",
                "50%\x08\x08\x0899%",
                "a\r\n",
                "漢字\rx",
            ],
            expect![[r#"
                "Finished" 
                --
                "ab345" 
                --
                "99%" 
                --
                "a" 
                --
                "x 字" 
                --
            "#]],
        );
    }

    #[test]
    fn other_sequences_are_dropped_and_controls_shown() {
        check(
            &[
                "\x1b]0;title\x07a\x1b]52;c;x\x1b\\b\x1b[2J\x1b[5;5Hc\x1bPq\x1b\\d\x1b_G\x1b\\e\x1b[?1049h\x1b(0f",
                "\x1b[m\x07\u{9b}31m\u{202e}\tx",
            ],
            expect![[r#"
                "abcdef" 
                --
                "␇<U+009B>31m<U+202E>    x" 
                --
            "#]],
        );
    }

    #[test]
    fn a_line_beyond_the_bound_is_shown_with_its_marks() {
        let line = format!("{}\x1b[1mb", "a".repeat(LONGEST_LINE));
        let shown = spans(&line, &mut SgrState::default());
        assert!(shown.len() == 1 && shown[0].text.ends_with("a␛[1mb"));
    }

    #[test]
    fn no_attack_leaves_a_character_that_a_terminal_obeys() {
        for (name, text) in gate::attacks::ATTACKS {
            for line in [(*text).to_owned(), format!("\x1b[1m{text}\x1b[0m"), format!("x\r{text}")] {
                for span in spans(&line, &mut SgrState::default()) {
                    assert_eq!(gate::attacks::obeyed(&span.text), None, "{name}");
                }
            }
        }
    }

    #[test]
    fn combining_marks_are_bounded_here_too() {
        check(
            &[&format!("\x1b[1me{}x", "\u{301}".repeat(12)), "\r\u{301}"],
            expect![[r#"
            "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}<+4>x" bold
            --
            "◌\u{301}" bold
            --
        "#]],
        );
    }
}
