//! Incremental search of the history, as ctrl+r opens it.

use std::collections::HashSet;

use crate::completion::{Keep, Match, Ranking, emphasised, rank};
use crate::composer::{DraftSnapshot, TextField};
use crate::history::{History, HistoryEntry};
use crate::key::{Key, KeyCode};
use crate::keymap::{Action, KeyContext, KeyMeaning, Keymap, PendingKeys};
use crate::row::{Row, Span, Style};

/// Label of the query, and the columns below which it is left out.
const LABEL: &str = "search: ";
const LABEL_FROM: usize = 24;

/// Styles of the search, which the theme gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct SearchStyles {
    pub label: Style,
    pub text: Style,
    pub matched: Style,
    pub selected: Style,
}

/// Result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchOutcome {
    Open,
    /// The prompt that was found, for the composer.
    Accept(DraftSnapshot),
    /// The draft as it was before the search.
    Restore(DraftSnapshot),
}

/// Search on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchView {
    pub rows: Vec<Row>,
    pub cursor: (usize, usize),
}

/// Open search over the prompts that the history had when it began.
#[derive(Debug, Clone)]
pub struct SearchPrompt {
    query: TextField,
    /// Prompts, the newest first, each once.
    entries: Vec<(String, HistoryEntry)>,
    found: Vec<Match>,
    total: usize,
    selected: usize,
    draft: DraftSnapshot,
}

impl SearchPrompt {
    pub fn new(history: &History, draft: DraftSnapshot) -> Self {
        let mut seen = HashSet::new();
        let entries = history.newest_first().map(|entry| (entry.label(), entry.clone()));
        let entries = entries.filter(|(label, _)| seen.insert(label.clone())).collect();
        let mut search =
            Self { query: TextField::default(), entries, found: Vec::new(), total: 0, selected: 0, draft };
        search.refresh();
        search
    }

    fn refresh(&mut self) {
        let labels: Vec<&str> = self.entries.iter().map(|(label, _)| label.as_str()).collect();
        let ranked = rank(self.query.text(), &labels, Ranking::Words);
        self.found = ranked.matches;
        self.total = ranked.total;
        self.selected = 0;
    }

    pub fn query(&self) -> &str {
        self.query.text()
    }

    /// The prompt that is selected, as text with placeholders.
    pub fn selected(&self) -> Option<&str> {
        self.entry().map(|(label, _)| label.as_str())
    }

    fn entry(&self) -> Option<&(String, HistoryEntry)> {
        self.entries.get(self.found.get(self.selected)?.index)
    }

    /// Handles a key. Keys that mean nothing here leave the search as it is.
    pub fn key(&mut self, key: Key, keymap: &Keymap) -> SearchOutcome {
        let restore = || SearchOutcome::Restore(self.draft.clone());
        match key.code {
            KeyCode::Enter | KeyCode::Tab => {
                return self
                    .entry()
                    .map_or_else(restore, |(_, entry)| SearchOutcome::Accept(entry.snapshot()));
            }
            KeyCode::Esc => return restore(),
            KeyCode::Up => self.step(1),
            KeyCode::Down => self.step(-1),
            _ => match keymap.resolve(&mut PendingKeys::default(), key, KeyContext::default()) {
                KeyMeaning::Action(Action::HistorySearch | Action::HistoryPrev) => self.step(1),
                KeyMeaning::Action(Action::HistoryNext) => self.step(-1),
                KeyMeaning::Action(Action::Clear | Action::Cancel) => return restore(),
                _ => {
                    let before = self.query.text().to_owned();
                    self.query.key(key, keymap);
                    if self.query.text() != before {
                        self.refresh();
                    }
                }
            },
        }
        SearchOutcome::Open
    }

    /// Adds pasted text to the query.
    pub fn paste(&mut self, text: &str) {
        self.query.insert(text);
        self.refresh();
    }

    /// Selects an older or newer match; the ends are ends.
    fn step(&mut self, by: isize) {
        let last = self.found.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Shows the query and below it the matches around the selected one.
    pub fn view(&self, columns: usize, max_rows: usize, styles: &SearchStyles) -> SearchView {
        let label = Row::styled(if columns >= LABEL_FROM { LABEL } else { "" }, styles.label);
        let indent = label.width();
        let field = self.query.view(columns.saturating_sub(indent), styles.text);
        let mut first = label;
        first.spans.extend(field.row.spans);
        let count = format!("  {}/{}", (self.selected + 1).min(self.total), self.total);
        if first.width() + count.len() <= columns {
            first.push(Span::new(count, styles.label));
        }
        let mut rows = vec![first];
        let room = max_rows.saturating_sub(1);
        let from = (self.selected + 1).saturating_sub(room.max(1));
        for (index, found) in self.found.iter().enumerate().skip(from).take(room) {
            let over = if index == self.selected { styles.selected } else { Style::PLAIN };
            let mark = if index == self.selected { "❯ " } else { "  " };
            let style = styles.text.with(over);
            let (text, _) = &self.entries[found.index];
            let mut row = Row::styled(mark, style);
            let left = columns.saturating_sub(2);
            row.spans.extend(emphasised(text, &found.matched, left, Keep::Start, style, styles.matched));
            rows.push(row.clipped(columns));
        }
        SearchView { rows, cursor: (0, (indent + field.cursor).min(columns.saturating_sub(1))) }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn search(prompts: &[&str]) -> SearchPrompt {
        let mut history = History::default();
        for prompt in prompts {
            history.push(&DraftSnapshot::of_text(*prompt));
        }
        SearchPrompt::new(&history, DraftSnapshot::of_text("my draft"))
    }

    const PROMPTS: &[&str] =
        &["fix the login", "write tests", "fix the logout", "write tests", "explain\nthe log"];

    fn check(keys: &str, expected: &str) {
        let mut search = search(PROMPTS);
        let keymap = Keymap::default();
        let mut outcome = SearchOutcome::Open;
        let keys = keys.split_whitespace().flat_map(|word| match Key::parse(word) {
            Ok(key) => vec![key],
            Err(_) => word.chars().map(Key::char).collect(),
        });
        for key in keys {
            outcome = search.key(key, &keymap);
        }
        let shown = match outcome {
            SearchOutcome::Open => format!("{} <{}>", search.query(), search.selected().unwrap_or("-")),
            SearchOutcome::Accept(found) => format!("accept {}", found.label()),
            SearchOutcome::Restore(draft) => format!("restore {}", draft.label()),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_search_finds_the_newest_first_and_goes_on() {
        check("", " <explain\nthe log>");
        check("fix", "fix <fix the logout>");
        check("fix ctrl+r", "fix <fix the login>");
        check("fix ctrl+r ctrl+r", "fix <fix the login>");
        check("fix ctrl+r down", "fix <fix the logout>");
        check("fix up enter", "accept fix the login");
        check("ftl tab", "accept fix the logout");
        check("test ctrl+r", "test <write tests>");
        check("zzz", "zzz <->");
        check("zzz backspace backspace backspace", " <explain\nthe log>");
        check("fix ctrl+r x backspace", "fix <fix the logout>");
    }

    #[test]
    fn leaving_a_search_restores_the_draft() {
        check("fix esc", "restore my draft");
        check("fix ctrl+c", "restore my draft");
        check("zzz enter", "restore my draft");
    }

    fn check_view(query: &str, columns: usize, rows: usize, expected: Expect) {
        let mut search = search(PROMPTS);
        search.paste(query);
        let styles = SearchStyles { matched: Style::BOLD, ..SearchStyles::default() };
        let view = search.view(columns, rows, &styles);
        assert!(view.cursor.1 < columns && view.rows.iter().all(|row| row.width() <= columns));
        let shown: Vec<String> = view
            .rows
            .iter()
            .map(|row| {
                let spans = row.spans.iter();
                spans
                    .map(|span| if span.style.bold { format!("[{}]", span.text) } else { span.text.clone() })
                    .chain(["\n".to_owned()])
                    .collect()
            })
            .collect();
        expected.assert_eq(&shown.concat());
    }

    #[test]
    fn the_view_lists_matches_in_single_rows() {
        check_view(
            "log",
            30,
            4,
            expect![[r#"
            search: log  1/3
            ❯ explain⏎the [log]
              fix the [log]out
              fix the [log]in
        "#]],
        );
        check_view(
            "log",
            9,
            2,
            expect![[r#"
                log  1/3
                ❯ explai…
            "#]],
        );
        check_view(
            "log",
            1,
            2,
            expect![[r#"

            …
        "#]],
        );
    }

    proptest! {
        #[test]
        fn any_keys_leave_a_view_that_fits(
            keys in prop::collection::vec(prop::sample::select(&["a", "l", "漢", "ctrl+r", "up", "down", "backspace", "home"][..]), 0..30),
            columns in 1usize..40,
            max_rows in 0usize..6,
        ) {
            let mut search = search(PROMPTS);
            for key in keys {
                search.key(Key::parse(key).unwrap(), &Keymap::default());
                let view = search.view(columns, max_rows, &SearchStyles::default());
                prop_assert!(view.rows.len() <= max_rows.max(1) && view.cursor.1 < columns);
                prop_assert!(view.rows.iter().all(|row| row.width() <= columns), "{:?}", view);
            }
        }
    }
}
