//! Settled blocks: parsed, not yet laid out, so that the width may change until they are.

use super::table::Table;
use crate::row::{Row, Span, Style};
use crate::wrap::{self, Text};

/// Widest row of prose, for lines that the eye can follow.
pub(super) const WIDEST_PROSE: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MarkdownBlock {
    /// Empty row between blocks, with the bars of quotes that both are in.
    Gap(Vec<Span>),
    Prose {
        first: Vec<Span>,
        next: Vec<Span>,
        text: Text,
    },
    /// One line of code, which is not wrapped.
    Code(Vec<Span>),
    Table {
        first: Vec<Span>,
        next: Vec<Span>,
        table: Box<Table>,
    },
    Rule {
        first: Vec<Span>,
        style: Style,
    },
}

impl MarkdownBlock {
    pub(super) fn rows(&self, columns: usize) -> Vec<Row> {
        let prose = columns.min(WIDEST_PROSE);
        match self {
            Self::Gap(indent) => Text::default().rows(prose, indent, indent),
            Self::Prose { first, next, text } => text.rows(prose, first, next),
            Self::Code(spans) => vec![Row::new(spans.clone()).unwrapped()],
            Self::Table { first, next, table } => table.layout(columns, first, next),
            Self::Rule { first, style } => {
                let mut row = Row::new(wrap::clip(first, prose));
                let left = prose.saturating_sub(row.width()).max(1);
                row.push(Span::new("─".repeat(left), *style));
                vec![row]
            }
        }
    }
}
