//! Themes: a style for every role that text has on the screen.
//!
//! [`Theme::ansi`], the default, has the terminal's own 16 colours and fits every background. [`Theme::dark`] and [`Theme::light`]
//! have fixed colours. [`Theme::none`] is for `NO_COLOR` and has bold, dim, underlined and reversed text only.

use crate::row::{Color, Style};

/// Role of a piece of source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    Comment,
    Keyword,
    String,
    Number,
    Constant,
    Function,
    Type,
    Variable,
    Attribute,
    Tag,
    Operator,
    Punctuation,
    Heading,
    Inserted,
    Deleted,
}

/// Styles of source code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyntaxStyles {
    pub comment: Style,
    pub keyword: Style,
    pub string: Style,
    pub number: Style,
    pub constant: Style,
    pub function: Style,
    pub type_name: Style,
    pub variable: Style,
    pub attribute: Style,
    pub tag: Style,
    pub operator: Style,
    pub punctuation: Style,
}

/// Styles of everything on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub name: &'static str,
    pub text: Style,
    pub dim: Style,
    pub heading: Style,
    pub code: Style,
    pub link: Style,
    pub quote: Style,
    pub added: Style,
    pub removed: Style,
    /// Look of a whole added line. One with a background only keeps the colours of its code.
    pub added_line: Style,
    pub removed_line: Style,
    pub added_word: Style,
    pub removed_word: Style,
    pub line_number: Style,
    pub hunk: Style,
    pub user_prompt: Style,
    pub tool_ok: Style,
    pub tool_failed: Style,
    pub tool_running: Style,
    pub warning: Style,
    pub error: Style,
    pub accent: Style,
    pub selection: Style,
    pub border: Style,
    pub mode_plan: Style,
    pub mode_autopilot: Style,
    pub syntax: SyntaxStyles,
}

const UNDERLINE: Style = Style { underline: true, ..Style::PLAIN };

const fn rgb(hex: u32) -> Style {
    Style { fg: Some(color(hex)), ..Style::PLAIN }
}

const fn color(hex: u32) -> Color {
    let [_, red, green, blue] = hex.to_be_bytes();
    Color::Rgb(red, green, blue)
}

const fn on(style: Style, hex: u32) -> Style {
    Style { bg: Some(color(hex)), ..style }
}

impl Default for Theme {
    fn default() -> Self {
        Self::ansi()
    }
}

impl Theme {
    /// Names that [`Theme::named`] knows.
    pub const fn names() -> &'static [&'static str] {
        &["ansi", "dark", "light", "none"]
    }

    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ansi" => Some(Self::ansi()),
            "dark" => Some(Self::dark()),
            "light" => Some(Self::light()),
            "none" => Some(Self::none()),
            _ => None,
        }
    }

    /// The dark or the light theme, by the luminance of the terminal's background.
    pub fn for_background(red: u8, green: u8, blue: u8) -> Self {
        let luminance = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
        if luminance >= 128 * 1000 { Self::light() } else { Self::dark() }
    }

    /// The terminal's own 16 colours.
    pub const fn ansi() -> Self {
        Self {
            name: "ansi",
            text: Style::PLAIN,
            dim: Style::DIM,
            heading: Style::BOLD,
            code: Style::ansi(6),
            link: Style { underline: true, ..Style::ansi(4) },
            quote: Style::DIM,
            added: Style::ansi(2),
            removed: Style::ansi(1),
            added_line: Style::ansi(2),
            removed_line: Style::ansi(1),
            added_word: Style { reverse: true, ..Style::ansi(2) },
            removed_word: Style { reverse: true, ..Style::ansi(1) },
            line_number: Style::DIM,
            hunk: Style::ansi(6),
            user_prompt: Style::BOLD,
            tool_ok: Style::ansi(2),
            tool_failed: Style::ansi(1),
            tool_running: Style::ansi(3),
            warning: Style::ansi(3),
            error: Style::ansi(1).bold(),
            accent: Style::ansi(5),
            selection: Style::REVERSE,
            border: Style::DIM,
            mode_plan: Style::ansi(4).bold(),
            mode_autopilot: Style::ansi(5).bold(),
            syntax: SyntaxStyles {
                comment: Style::DIM,
                keyword: Style::ansi(5),
                string: Style::ansi(2),
                number: Style::ansi(3),
                constant: Style::ansi(3),
                function: Style::ansi(4),
                type_name: Style::ansi(6),
                variable: Style::PLAIN,
                attribute: Style::ansi(6),
                tag: Style::ansi(1),
                operator: Style::PLAIN,
                punctuation: Style::PLAIN,
            },
        }
    }

    /// Bright colours for a dark background.
    pub const fn dark() -> Self {
        Self {
            name: "dark",
            text: Style::PLAIN,
            dim: rgb(0x8b_929e),
            heading: rgb(0xe6_e9ef).bold(),
            code: rgb(0x7f_d6d0),
            link: Style { underline: true, ..rgb(0x7a_b8ff) },
            quote: rgb(0x9a_a3b2),
            added: rgb(0x7e_d491),
            removed: rgb(0xf2_8b8b),
            added_line: on(Style::PLAIN, 0x12_2a18),
            removed_line: on(Style::PLAIN, 0x30_1619),
            added_word: on(rgb(0xe4_ffe9), 0x1f_6b33),
            removed_word: on(rgb(0xff_ecec), 0x8a_2a2a),
            line_number: rgb(0x6b_7280),
            hunk: rgb(0x7f_b8d6),
            user_prompt: rgb(0xff_ffff).bold(),
            tool_ok: rgb(0x7e_d491),
            tool_failed: rgb(0xf2_8b8b),
            tool_running: rgb(0xe8_c872),
            warning: rgb(0xe8_c872),
            error: rgb(0xff_7b7b).bold(),
            accent: rgb(0xc6_a0f6),
            selection: on(rgb(0xff_ffff), 0x3a_4a66),
            border: rgb(0x5c_6370),
            mode_plan: rgb(0x7a_b8ff).bold(),
            mode_autopilot: rgb(0xc6_a0f6).bold(),
            syntax: SyntaxStyles {
                comment: Style { italic: true, ..rgb(0x7f_8796) },
                keyword: rgb(0xc6_a0f6),
                string: rgb(0x9b_d48a),
                number: rgb(0xf0_a875),
                constant: rgb(0xf0_a875),
                function: rgb(0x7a_b8ff),
                type_name: rgb(0xe8_c872),
                variable: Style::PLAIN,
                attribute: rgb(0x7f_d6d0),
                tag: rgb(0xf2_8b8b),
                operator: rgb(0x9f_c7d8),
                punctuation: rgb(0x9a_a3b2),
            },
        }
    }

    /// Deep colours for a light background.
    pub const fn light() -> Self {
        Self {
            name: "light",
            text: Style::PLAIN,
            dim: rgb(0x63_6b78),
            heading: rgb(0x14_181f).bold(),
            code: rgb(0x0b_6b66),
            link: Style { underline: true, ..rgb(0x0b_57c4) },
            quote: rgb(0x58_606d),
            added: rgb(0x1a_6e2e),
            removed: rgb(0xb1_2424),
            added_line: on(Style::PLAIN, 0xe9_f9ed),
            removed_line: on(Style::PLAIN, 0xfd_eeee),
            added_word: on(rgb(0x0c_3b18), 0xa9_e5b8),
            removed_word: on(rgb(0x5c_0f0f), 0xf7_b9b9),
            line_number: rgb(0x7b_8290),
            hunk: rgb(0x1c_6a8f),
            user_prompt: rgb(0x00_0000).bold(),
            tool_ok: rgb(0x1a_6e2e),
            tool_failed: rgb(0xb1_2424),
            tool_running: rgb(0x87_5c00),
            warning: rgb(0x87_5c00),
            error: rgb(0xa8_1010).bold(),
            accent: rgb(0x76_2fb8),
            selection: on(rgb(0x00_0000), 0xc4_d8f7),
            border: rgb(0x9a_a1ad),
            mode_plan: rgb(0x0b_57c4).bold(),
            mode_autopilot: rgb(0x76_2fb8).bold(),
            syntax: SyntaxStyles {
                comment: Style { italic: true, ..rgb(0x6a_7280) },
                keyword: rgb(0x76_2fb8),
                string: rgb(0x2b_6b1c),
                number: rgb(0x9c_4a05),
                constant: rgb(0x9c_4a05),
                function: rgb(0x0b_57c4),
                type_name: rgb(0x87_5c00),
                variable: Style::PLAIN,
                attribute: rgb(0x0b_6b66),
                tag: rgb(0xb1_2424),
                operator: rgb(0x2d_5e75),
                punctuation: rgb(0x58_606d),
            },
        }
    }

    /// No colours.
    pub const fn none() -> Self {
        Self {
            name: "none",
            text: Style::PLAIN,
            dim: Style::PLAIN,
            heading: Style::BOLD,
            code: Style::BOLD,
            link: UNDERLINE,
            quote: Style::PLAIN,
            added: Style::PLAIN,
            removed: Style::PLAIN,
            added_line: Style::PLAIN,
            removed_line: Style::PLAIN,
            added_word: Style::REVERSE,
            removed_word: Style::REVERSE,
            line_number: Style::PLAIN,
            hunk: Style::PLAIN,
            user_prompt: Style::BOLD,
            tool_ok: Style::PLAIN,
            tool_failed: Style::BOLD,
            tool_running: Style::PLAIN,
            warning: Style::BOLD,
            error: Style::BOLD,
            accent: Style::BOLD,
            selection: Style::REVERSE,
            border: Style::PLAIN,
            mode_plan: Style::BOLD,
            mode_autopilot: Style { bold: true, ..UNDERLINE },
            syntax: SyntaxStyles {
                comment: Style::PLAIN,
                keyword: Style::BOLD,
                string: Style::PLAIN,
                number: Style::PLAIN,
                constant: Style::PLAIN,
                function: Style::PLAIN,
                type_name: Style::PLAIN,
                variable: Style::PLAIN,
                attribute: Style::PLAIN,
                tag: Style::PLAIN,
                operator: Style::PLAIN,
                punctuation: Style::PLAIN,
            },
        }
    }

    /// Style of a piece of source code.
    pub const fn of(&self, syntax: Syntax) -> Style {
        match syntax {
            Syntax::Comment => self.syntax.comment,
            Syntax::Keyword => self.syntax.keyword,
            Syntax::String => self.syntax.string,
            Syntax::Number => self.syntax.number,
            Syntax::Constant => self.syntax.constant,
            Syntax::Function => self.syntax.function,
            Syntax::Type => self.syntax.type_name,
            Syntax::Variable => self.syntax.variable,
            Syntax::Attribute => self.syntax.attribute,
            Syntax::Tag => self.syntax.tag,
            Syntax::Operator => self.syntax.operator,
            Syntax::Punctuation => self.syntax.punctuation,
            Syntax::Heading => self.heading,
            Syntax::Inserted => self.added,
            Syntax::Deleted => self.removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(theme: &Theme) -> Vec<Style> {
        let t = theme;
        let s = t.syntax;
        vec![
            t.text,
            t.dim,
            t.heading,
            t.code,
            t.link,
            t.quote,
            t.added,
            t.removed,
            t.added_line,
            t.removed_line,
            t.added_word,
            t.removed_word,
            t.line_number,
            t.hunk,
            t.user_prompt,
            t.tool_ok,
            t.tool_failed,
            t.tool_running,
            t.warning,
            t.error,
            t.accent,
            t.selection,
            t.border,
            t.mode_plan,
            t.mode_autopilot,
            s.comment,
            s.keyword,
            s.string,
            s.number,
            s.constant,
            s.function,
            s.type_name,
            s.variable,
            s.attribute,
            s.tag,
            s.operator,
            s.punctuation,
        ]
    }

    #[test]
    fn every_name_gives_the_theme_of_that_name() {
        for name in Theme::names() {
            assert_eq!(Theme::named(name).map(|theme| theme.name), Some(*name));
        }
        assert_eq!(Theme::named("neon"), None);
    }

    #[test]
    fn the_theme_without_colours_has_none() {
        assert!(all(&Theme::none()).iter().all(|style| style.fg.is_none() && style.bg.is_none()));
    }

    #[test]
    fn the_terminals_theme_has_only_the_terminals_colours() {
        let own = |color: Option<Color>| !matches!(color, Some(Color::Rgb(..)));
        assert!(all(&Theme::ansi()).iter().all(|style| own(style.fg) && own(style.bg)));
    }

    #[test]
    fn the_background_decides_between_dark_and_light() {
        let names = [(0, 0, 0), (40, 44, 52), (253, 246, 227), (255, 255, 255)]
            .map(|(red, green, blue)| Theme::for_background(red, green, blue).name);
        assert_eq!(names, ["dark", "dark", "light", "light"]);
    }

    /// Contrast ratio of WCAG between two colours.
    fn contrast(one: Color, other: Color) -> f64 {
        let light = |color: Color| {
            let Color::Rgb(red, green, blue) = color else { panic!("{color:?} is not RGB") };
            let part = |value: u8| {
                let value = f64::from(value) / 255.0;
                if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
        };
        let (one, other) = (light(one), light(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_of_both_fixed_themes_is_readable_on_its_background() {
        for (theme, background) in [(Theme::dark(), color(0x1e_1e1e)), (Theme::light(), color(0xff_ffff))] {
            for style in all(&theme) {
                let Some(text) = style.fg else { continue };
                // Borders and line numbers are not text that has to be read.
                let least = if [theme.border, theme.line_number].contains(&style) { 2.5 } else { 4.5 };
                let ratio = contrast(text, style.bg.unwrap_or(background));
                assert!(ratio >= least, "{}: {style:?} has {ratio:.1}", theme.name);
            }
            let s = theme.syntax;
            for line in [theme.added_line, theme.removed_line] {
                for style in
                    [s.comment, s.keyword, s.string, s.number, s.function, s.type_name, s.tag, s.punctuation]
                {
                    let (Some(text), Some(background)) = (style.fg, line.bg) else { continue };
                    let ratio = contrast(text, background);
                    assert!(ratio >= 4.0, "{}: {style:?} has {ratio:.1} in a diff", theme.name);
                }
            }
        }
    }
}
