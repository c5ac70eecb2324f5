//! Styles as SGR sequences: the shortest change from one style to the next, in the colours that the terminal has.

use crate::row::{Color, Style};

/// Colours that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// No colours at all (`NO_COLOR`): bold, underline and reverse remain.
    None,
    Ansi16,
    Ansi256,
    Rgb,
}

/// One colour as the terminal is told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tint {
    Ansi(u8),
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// Style as a terminal shows it: the colours are reduced to those that it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pen {
    fg: Option<Tint>,
    bg: Option<Tint>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    reverse: bool,
}

impl Pen {
    pub(super) fn new(style: Style, depth: ColorDepth) -> Self {
        Self {
            fg: style.fg.and_then(|color| reduce(color, depth)),
            bg: style.bg.and_then(|color| reduce(color, depth)),
            bold: style.bold,
            dim: style.dim,
            italic: style.italic,
            underline: style.underline,
            strike: style.strike,
            reverse: style.reverse,
        }
    }

    /// Whether a blank in this style looks like an empty cell.
    pub(super) fn hides_blanks(self) -> bool {
        self.bg.is_none() && !self.underline && !self.strike && !self.reverse
    }

    /// Appends the shortest sequence that turns `self` into `next`.
    pub(super) fn change_to(self, next: Self, out: &mut Vec<u8>) {
        if self == next {
            return;
        }
        let step = codes(&self.step(next));
        let anew = codes(&next.anew());
        out.extend_from_slice(if anew.len() <= step.len() { &anew } else { &step });
    }

    /// Codes that set everything from a reset on.
    fn anew(self) -> Vec<u8> {
        let mut list = Vec::with_capacity(8);
        if self != Self::default() {
            list.extend_from_slice(b"0;");
            Self::default().set(self, &mut list);
        }
        list
    }

    /// Codes that change only what differs.
    fn step(self, next: Self) -> Vec<u8> {
        let mut list = Vec::with_capacity(8);
        let mut from = self;
        // One code ends both intensities.
        if (from.bold && !next.bold) || (from.dim && !next.dim) {
            list.extend_from_slice(b"22;");
            from.bold = false;
            from.dim = false;
        }
        for (was, is, off) in [
            (from.italic, next.italic, &b"23;"[..]),
            (from.underline, next.underline, b"24;"),
            (from.reverse, next.reverse, b"27;"),
            (from.strike, next.strike, b"29;"),
            (from.fg.is_some(), next.fg.is_some(), b"39;"),
            (from.bg.is_some(), next.bg.is_some(), b"49;"),
        ] {
            if was && !is {
                list.extend_from_slice(off);
            }
        }
        from.set(next, &mut list);
        list
    }

    /// Appends the codes that switch on what `next` has and `self` has not.
    fn set(self, next: Self, list: &mut Vec<u8>) {
        for (was, is, on) in [
            (self.bold, next.bold, b"1;"),
            (self.dim, next.dim, b"2;"),
            (self.italic, next.italic, b"3;"),
            (self.underline, next.underline, b"4;"),
            (self.reverse, next.reverse, b"7;"),
            (self.strike, next.strike, b"9;"),
        ] {
            if is && !was {
                list.extend_from_slice(on);
            }
        }
        for (was, is, ground) in [(self.fg, next.fg, 30), (self.bg, next.bg, 40)] {
            if let Some(tint) = is
                && was != is
            {
                list.extend_from_slice(tint.code(ground).as_bytes());
            }
        }
    }
}

impl Tint {
    /// SGR parameters of the colour; `ground` is 30 for text, 40 for its background.
    fn code(self, ground: u8) -> String {
        match self {
            Self::Ansi(color @ 0..8) => format!("{};", ground + color),
            Self::Ansi(color) => format!("{};", ground + 52 + color),
            Self::Indexed(color) => format!("{};5;{color};", ground + 8),
            Self::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue};", ground + 8),
        }
    }
}

/// The SGR sequence of a list of codes, each of which ends in `;`.
fn codes(list: &[u8]) -> Vec<u8> {
    let mut out = b"\x1b[".to_vec();
    out.extend_from_slice(list.strip_suffix(b";").unwrap_or(list));
    out.push(b'm');
    out
}

fn reduce(color: Color, depth: ColorDepth) -> Option<Tint> {
    match (color, depth) {
        (_, ColorDepth::None) => None,
        (Color::Ansi(color), _) => Some(Tint::Ansi(color & 15)),
        (Color::Rgb(red, green, blue), ColorDepth::Rgb) => Some(Tint::Rgb(red, green, blue)),
        (Color::Rgb(red, green, blue), ColorDepth::Ansi256) => {
            Some(Tint::Indexed(nearest_256([red, green, blue])))
        }
        (Color::Rgb(red, green, blue), ColorDepth::Ansi16) => {
            Some(Tint::Ansi(nearest_16([red, green, blue])))
        }
    }
}

/// The colour of the 6×6×6 cube or the grey ramp that is nearest.
fn nearest_256(rgb: [u8; 3]) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let index = rgb
        .map(|part| (0u8..6).min_by_key(|step| STEPS[usize::from(*step)].abs_diff(part)).unwrap_or_default());
    let cube = index.map(|step| STEPS[usize::from(step)]);
    let mean = rgb.iter().map(|part| u16::from(*part)).sum::<u16>() / 3;
    // 24 greys from 8 to 238 in steps of ten.
    let grey = u8::try_from((mean.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    let level = 8 + 10 * grey;
    if distance([level; 3], rgb) < distance(cube, rgb) {
        232 + grey
    } else {
        16 + 36 * index[0] + 6 * index[1] + index[2]
    }
}

/// The nearest of the 16 colours, in the values that most themes are near to.
fn nearest_16(rgb: [u8; 3]) -> u8 {
    const COLORS: [[u8; 3]; 16] = [
        [0, 0, 0],
        [205, 0, 0],
        [0, 205, 0],
        [205, 205, 0],
        [0, 0, 238],
        [205, 0, 205],
        [0, 205, 205],
        [229, 229, 229],
        [127, 127, 127],
        [255, 0, 0],
        [0, 255, 0],
        [255, 255, 0],
        [92, 92, 255],
        [255, 0, 255],
        [0, 255, 255],
        [255, 255, 255],
    ];
    (0u8..16).min_by_key(|color| distance(COLORS[usize::from(*color)], rgb)).unwrap_or(7)
}

fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter().zip(other).map(|(one, other)| u32::from(one.abs_diff(other)).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(depth: ColorDepth, from: Style, to: Style, expected: &str) {
        let mut out = Vec::new();
        Pen::new(from, depth).change_to(Pen::new(to, depth), &mut out);
        assert_eq!(String::from_utf8(out).unwrap().replace('\x1b', "^"), expected);
    }

    #[test]
    fn a_change_of_style_takes_the_shorter_of_two_ways() {
        let red = Style::ansi(1);
        check(ColorDepth::Rgb, Style::PLAIN, Style::PLAIN, "");
        check(ColorDepth::Rgb, red, Style::PLAIN, "^[m");
        check(ColorDepth::Rgb, Style::PLAIN, red, "^[31m");
        check(ColorDepth::Rgb, red, red.bold(), "^[1m");
        check(ColorDepth::Rgb, red.bold(), red, "^[22m");
        check(ColorDepth::Rgb, red.bold(), Style::DIM, "^[0;2m");
        check(ColorDepth::Rgb, Style::BOLD.dim(), Style::BOLD, "^[0;1m");
        check(ColorDepth::Rgb, red.bold().with(Style::ITALIC), red.bold(), "^[23m");
        check(ColorDepth::Rgb, red, Style::ansi(9), "^[91m");
        check(ColorDepth::Rgb, Style { bg: Some(Color::Ansi(12)), ..red }, red, "^[49m");
    }

    #[test]
    fn colours_are_reduced_to_those_of_the_terminal() {
        let orange = Style { fg: Some(Color::Rgb(255, 135, 0)), ..Style::PLAIN };
        let grey = Style { bg: Some(Color::Rgb(48, 49, 47)), ..Style::BOLD };
        for (depth, first, second) in [
            (ColorDepth::Rgb, "^[38;2;255;135;0m", "^[0;1;48;2;48;49;47m"),
            (ColorDepth::Ansi256, "^[38;5;208m", "^[0;1;48;5;236m"),
            (ColorDepth::Ansi16, "^[33m", "^[0;1;40m"),
            (ColorDepth::None, "", "^[1m"),
        ] {
            check(depth, Style::PLAIN, orange, first);
            check(depth, orange, grey, second);
        }
    }
}
