//! Rows of styled text, the one form in which everything reaches the screen.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Colour of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Color {
    /// One of the 16 colours that the terminal's own theme defines.
    Ansi(u8),
    Rgb(u8, u8, u8),
}

/// Look of a piece of text. The default is the terminal's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Style {
    pub fg: Option<Color>,
    pub bg: Option<Color>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strike: bool,
    pub reverse: bool,
}

impl Style {
    pub const PLAIN: Self = Self {
        fg: None,
        bg: None,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
        reverse: false,
    };
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub const ITALIC: Self = Self { italic: true, ..Self::PLAIN };
    pub const REVERSE: Self = Self { reverse: true, ..Self::PLAIN };

    pub const fn ansi(color: u8) -> Self {
        Self { fg: Some(Color::Ansi(color)), ..Self::PLAIN }
    }

    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    #[must_use]
    pub const fn dim(self) -> Self {
        Self { dim: true, ..self }
    }

    /// This style with everything that `over` sets.
    #[must_use]
    pub fn with(self, over: Self) -> Self {
        Self {
            fg: over.fg.or(self.fg),
            bg: over.bg.or(self.bg),
            bold: self.bold || over.bold,
            dim: self.dim || over.dim,
            italic: self.italic || over.italic,
            underline: self.underline || over.underline,
            strike: self.strike || over.strike,
            reverse: self.reverse || over.reverse,
        }
    }
}

/// Text in one style. It holds no control characters: untrusted text passes [`crate::gate`] before it becomes a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

impl Span {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::PLAIN)
    }
}

/// One row of the screen, or a line of text that the terminal itself may wrap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    pub spans: Vec<Span>,
    /// Whether the row may be wider than the screen: it goes out as one line, so that a copy of it has no breaks.
    pub unwrapped: bool,
    /// Of a row in two columns (a name, blanks, the rest), the column in which the second begins, for pages that wrap it.
    pub hanging: usize,
}

impl Row {
    pub fn new(spans: Vec<Span>) -> Self {
        Self { spans, unwrapped: false, hanging: 0 }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(vec![Span::plain(text)])
    }

    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self::new(vec![Span::new(text, style)])
    }

    #[must_use]
    pub fn unwrapped(self) -> Self {
        Self { unwrapped: true, ..self }
    }

    /// The row of a list whose second column begins here.
    #[must_use]
    pub fn hanging(self, columns: usize) -> Self {
        Self { hanging: columns, ..self }
    }

    pub fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// The row with a span before it.
    #[must_use]
    pub fn after(mut self, span: Span) -> Self {
        self.spans.insert(0, span);
        self
    }

    /// Number of columns that the row takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The row cut to a width; a cut one ends in `…`.
    #[must_use]
    pub fn clipped(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut left = columns.saturating_sub(1);
        let mut spans = Vec::new();
        for span in &self.spans {
            let mut text = String::new();
            let mut full = false;
            for cluster in span.text.graphemes(true) {
                let width = cluster.width();
                if width > left {
                    full = true;
                    break;
                }
                left -= width;
                text.push_str(cluster);
            }
            spans.push(Span::new(text, span.style));
            if full {
                break;
            }
        }
        if columns > 0
            && let Some(last) = spans.last_mut()
        {
            last.text.push('…');
        }
        Self::new(spans)
    }
}

impl From<&str> for Row {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_row_ends_in_an_ellipsis_and_keeps_clusters_whole() {
        let row = Row::new(vec![Span::plain("ab"), Span::plain("漢字e\u{301}f")]);
        assert_eq!(row.width(), 8);
        assert_eq!(row.clipped(8).text(), "ab漢字e\u{301}f");
        assert_eq!(row.clipped(7).text(), "ab漢字…");
        assert_eq!(row.clipped(6).text(), "ab漢…");
        assert_eq!(row.clipped(1).text(), "…");
        assert_eq!(row.clipped(0).text(), "");
    }
}
