//! Popup with the candidates of a completion.

use super::emphasis::{Keep, emphasised};
use super::trigger::{Trigger, TriggerKind};
use super::{Candidate, Filtered};
use crate::keymap::Action;
use crate::row::{Row, Span, Style};

/// Rows that the popup scrolls by when its height is not known yet.
const USUAL_ROWS: usize = 8;

/// Styles of a popup, which the theme gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompletionStyles {
    pub label: Style,
    pub detail: Style,
    /// Letters that matched.
    pub matched: Style,
    /// The row that is selected.
    pub selected: Style,
}

/// Result of an action for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionOutcome {
    Moved,
    /// The selected candidate is inserted.
    Accepted,
    /// The selected candidate is inserted and the prompt, a command, is to be sent.
    Submitted,
    Closed,
    /// The action is not the popup's.
    Pass,
}

/// Open popup.
#[derive(Debug, Clone)]
pub struct Completion {
    trigger: Trigger,
    items: Vec<Candidate>,
    total: usize,
    selected: usize,
    scroll: usize,
    /// Whether the person has moved the selection.
    moved: bool,
}

impl Completion {
    pub(super) fn new(trigger: Trigger, filtered: Filtered) -> Self {
        Self { trigger, items: filtered.items, total: filtered.total, selected: 0, scroll: 0, moved: false }
    }

    pub fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    pub fn items(&self) -> &[Candidate] {
        &self.items
    }

    /// Number of all candidates that match.
    pub fn total(&self) -> usize {
        self.total
    }

    pub fn selected(&self) -> Option<&Candidate> {
        self.items.get(self.selected)
    }

    /// Whether the selected candidate was not chosen: an argument of which nothing was typed and to which the selection
    /// was not moved.
    pub(super) fn is_unasked(&self) -> bool {
        let argument = matches!(self.trigger.kind, TriggerKind::Argument { .. });
        argument && self.trigger.query.is_empty() && !self.moved
    }

    pub(super) fn apply(&mut self, action: Action) -> CompletionOutcome {
        match action {
            Action::CompletionPrev => self.step(self.items.len().saturating_sub(1)),
            Action::CompletionNext => self.step(1),
            Action::AcceptCompletion => CompletionOutcome::Accepted,
            // Enter on a file inserts it; only a command is run at once.
            Action::SubmitCompletion => match self.trigger.kind {
                TriggerKind::Command | TriggerKind::Argument { .. } => CompletionOutcome::Submitted,
                TriggerKind::File | TriggerKind::Issue => CompletionOutcome::Accepted,
            },
            Action::CloseCompletion => CompletionOutcome::Closed,
            _ => CompletionOutcome::Pass,
        }
    }

    /// Moves the selection; beyond the last candidate comes the first.
    fn step(&mut self, by: usize) -> CompletionOutcome {
        if !self.items.is_empty() {
            self.selected = (self.selected + by) % self.items.len();
            self.moved = true;
        }
        self.scroll = first_row(self.scroll, self.selected, USUAL_ROWS);
        CompletionOutcome::Moved
    }

    /// Shows at most `max_rows` candidates around the selected one.
    pub fn view(&self, columns: usize, max_rows: usize, styles: &CompletionStyles) -> Vec<Row> {
        let first = first_row(self.scroll, self.selected, max_rows.max(1));
        let shown = self.items.iter().enumerate().skip(first).take(max_rows);
        let keep = if self.trigger.kind == TriggerKind::File { Keep::End } else { Keep::Start };
        let has_detail = self.items.iter().any(|item| !item.detail.is_empty());
        let width = |item: &Candidate| {
            let spans = emphasised(&item.label, &[], usize::MAX, keep, Style::PLAIN, Style::PLAIN);
            Row::new(spans).width()
        };
        let room = columns.saturating_sub(2);
        let widest = shown.clone().map(|(_, item)| width(item)).max().unwrap_or(0);
        let label_columns = if has_detail { widest.min(room / 2) } else { room };
        shown
            .map(|(index, item)| {
                let over = if index == self.selected { styles.selected } else { Style::PLAIN };
                let mark = if index == self.selected { "❯ " } else { "  " };
                let style = styles.label.with(over);
                let mut row = Row::new(vec![Span::new(mark, style)]);
                let label =
                    emphasised(&item.label, &item.matched, label_columns, keep, style, styles.matched);
                row.spans.extend(label);
                if has_detail {
                    let gap = (2 + label_columns + 2).saturating_sub(row.width());
                    row.push(Span::new(" ".repeat(gap), style));
                    let left = columns.saturating_sub(row.width());
                    let detail = styles.detail.with(over);
                    row.spans.extend(emphasised(&item.detail, &[], left, Keep::Start, detail, detail));
                }
                row.clipped(columns)
            })
            .collect()
    }
}

/// First row of a window that shows the selected row and moves as little as possible.
fn first_row(scroll: usize, selected: usize, rows: usize) -> usize {
    scroll.min(selected).max((selected + 1).saturating_sub(rows))
}
