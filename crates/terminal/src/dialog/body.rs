//! Body of a dialog: the whole subject of a question as rows of the screen, none of them cut.

use crate::blocks::{self, Detail, Rendering};
use crate::diff;
use crate::gate;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::wrap;

/// Row limit of a body. A longer one says so and cannot be approved with one key.
const BODY_ROWS: usize = 5_000;

/// Piece of a body, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPart {
    Text(String),
    /// A text of the model or of a tool, marked on each row so that it cannot look like a part of the dialog.
    Quoted(String),
    Warning(String),
    /// A command, a path or a document: exact, with everything invisible shown, and marked on each row as well.
    Code(String),
    /// The change of a file that is named before it.
    Diff(String),
    Markdown(String),
}

/// Rows of the parts at one width.
#[derive(Debug, Clone, Default)]
pub struct DialogBody {
    parts: Vec<BodyPart>,
    rows: Vec<Row>,
    columns: usize,
    /// Whether rows beyond the limit were left out.
    cut: bool,
}

impl DialogBody {
    pub fn new(parts: Vec<BodyPart>) -> Self {
        Self { parts, ..Self::default() }
    }

    pub fn layout(&mut self, columns: usize, theme: &Theme) {
        if self.columns == columns {
            return;
        }
        self.columns = columns;
        self.rows.clear();
        for part in &self.parts {
            self.rows.extend(rows(part, columns, theme));
        }
        self.cut = self.rows.len() > BODY_ROWS;
        self.rows.truncate(BODY_ROWS);
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

fn rows(part: &BodyPart, columns: usize, theme: &Theme) -> Vec<Row> {
    let look = Rendering { columns, detail: Detail::Full, reasoning: false, theme };
    match part {
        BodyPart::Text(text) => plain(text, Style::PLAIN, columns, &[]),
        BodyPart::Quoted(text) => plain(text, Style::PLAIN, columns, &[Span::new("  │ ", theme.dim)]),
        BodyPart::Warning(text) => plain(text, theme.warning, columns, &[Span::new("! ", theme.warning)]),
        BodyPart::Code(text) => plain(text, theme.code, columns, &[Span::new("  ┃ ", theme.dim)]),
        BodyPart::Diff(text) => {
            let rows = diff::inline_rows(text, theme, BODY_ROWS + 1);
            // A row of a diff may be wider than the screen, but must be visible as a whole.
            rows.iter().flat_map(|row| wrap(&row.spans, columns, &[], &[])).collect()
        }
        BodyPart::Markdown(text) => {
            let mark = [Span::new("  │ ", theme.dim)];
            let rows =
                blocks::markdown(text, Rendering { columns: columns.saturating_sub(4).max(1), ..look });
            let marked = |row: &Row| match row.unwrapped {
                true => wrap(&row.spans, columns, &mark, &mark),
                false => vec![row.clone().after(mark[0].clone())],
            };
            rows.iter().flat_map(marked).collect()
        }
    }
}

fn plain(text: &str, style: Style, columns: usize, indent: &[Span]) -> Vec<Row> {
    let lines = gate::lines(text);
    lines.flat_map(|line| wrap(&[Span::new(gate::visible(line), style)], columns, indent, indent)).collect()
}

/// A row of a body in plain lines, where answers are told apart by their numbers alone: one that begins with a number is marked.
pub(super) fn apart(row: Row) -> Row {
    let text = row.text();
    let rest = text.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
    let is_numbered = rest.len() < text.trim_start().len() && rest.starts_with(['.', ')', ':', ' ']);
    if is_numbered { row.after(Span::plain("│ ")) } else { row }
}
