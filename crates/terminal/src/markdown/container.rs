//! Containers of blocks, quotes and list items: their marks in the source and their indents on the screen.

use super::line::{self, CODE_INDENT, Cursor};
use crate::row::Span;
use crate::theme::Theme;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Container {
    Quote,
    Item {
        /// Columns before the text of the item, in its container.
        indent: usize,
        /// Mark that the first row shows, with the blank after it.
        mark: String,
        /// Whether a row has shown the mark.
        shown: bool,
    },
}

/// Indent of the rows in a container, after its first.
pub(super) fn indent(container: &Container, theme: &Theme) -> Span {
    match container {
        Container::Quote => Span::new("│ ", theme.quote),
        Container::Item { mark, .. } => Span::plain(" ".repeat(mark.chars().count())),
    }
}

/// Indent of the first row in a container, which shows its mark.
pub(super) fn mark(container: &Container, theme: &Theme) -> Span {
    match container {
        Container::Item { mark, shown: false, .. } => Span::new(mark.clone(), theme.accent),
        container => indent(container, theme),
    }
}

/// Consumes the mark or the indentation that keeps a line in an open container.
pub(super) fn enter(container: &Container, cursor: &mut Cursor<'_>) -> bool {
    match container {
        Container::Quote => quote(cursor),
        Container::Item { indent, .. } => {
            let inside = cursor.is_blank() || cursor.indent() >= *indent;
            if inside {
                cursor.skip(*indent);
            }
            inside
        }
    }
}

fn quote(cursor: &mut Cursor<'_>) -> bool {
    let inside = cursor.indent() < CODE_INDENT && cursor.text().starts_with('>');
    if inside {
        cursor.skip_mark(1);
        cursor.skip(1);
    }
    inside
}

/// Consumes the mark of a new container. Inside of a paragraph only a quote, a bullet and `1.` start one.
pub(super) fn open(cursor: &mut Cursor<'_>, interrupts: bool) -> Option<Container> {
    if quote(cursor) {
        return Some(Container::Quote);
    }
    let item = line::item(cursor.text())?;
    let before = cursor.indent();
    let mut after = *cursor;
    after.skip_mark(item.mark.len());
    if interrupts && (after.is_blank() || item.number.is_some_and(|number| number != 1)) {
        return None;
    }
    let blanks = after.indent();
    // Code that starts in the line of the mark has its indentation after one blank.
    let gap = if after.is_blank() || blanks > CODE_INDENT { 1 } else { blanks };
    after.skip(gap);
    let indent = before + item.mark.len() + gap;
    let task = line::task(after.text());
    let mark = match (item.number, task) {
        (None, None) => "• ".to_owned(),
        (None, Some(done)) => if done { "[x] " } else { "[ ] " }.to_owned(),
        (Some(_), None) => format!("{} ", item.mark),
        (Some(_), Some(done)) => format!("{} {} ", item.mark, if done { "[x]" } else { "[ ]" }),
    };
    if task.is_some() {
        after.skip_mark("[x]".len());
        after.skip(1);
    }
    *cursor = after;
    Some(Container::Item { indent, mark, shown: false })
}
