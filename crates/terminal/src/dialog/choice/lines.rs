//! A question with a few answers in plain lines, for terminals that only print and those that are read aloud. Only the number of
//! an answer gives it: an empty line, which a terminal may send by itself, approves nothing.

use super::super::body::apart;
use super::{ChoiceDialog, DialogEnd, TextNeed};
use crate::composer::TextField;
use crate::gate;
use crate::row::Row;
use crate::theme::Theme;

impl ChoiceDialog {
    /// Takes a line: the number of an answer, with its text behind it or on the next line.
    pub fn line(&mut self, line: &str) -> DialogEnd {
        let line = line.trim();
        if self.field.is_some() {
            self.field = Some(TextField::new(line));
            return self.choose(self.selected);
        }
        let (number, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let number = number.trim_end_matches('.').parse::<usize>().ok();
        let chosen = number.and_then(|number| number.checked_sub(1));
        let takes_text = |at: &usize| self.choices.get(*at).map(|choice| choice.text != TextNeed::None);
        match chosen.and_then(|at| Some((at, takes_text(&at)?))) {
            Some((at, takes_text)) if takes_text || text.is_empty() => {
                self.selected = at;
                if !text.is_empty() {
                    self.field = Some(TextField::new(text.trim()));
                }
                self.choose(at)
            }
            _ => {
                if !self.is_seen() {
                    self.scroll_by(self.page());
                }
                DialogEnd::Open
            }
        }
    }

    /// Rows where nothing can be redrawn: no answer is selected, and each has its number.
    pub fn plain(&self, theme: &Theme) -> Vec<Row> {
        if self.field.is_some() && self.choices.len() > 1 {
            let label = self.choices.get(self.selected).map_or("", |choice| &choice.label);
            return vec![
                Row::plain(format!("{}. {}", self.selected + 1, gate::visible(label))),
                Row::styled(self.line_hint(), theme.dim),
            ];
        }
        let all = self.body.rows();
        let end = (self.scroll + self.shape().body).min(all.len());
        let mut rows = vec![Row::styled(gate::visible(&self.title), theme.accent)];
        rows.extend(all[self.scroll.min(end)..end].iter().cloned().map(apart));
        if end < all.len() {
            rows.push(Row::styled(format!("… {} more rows", all.len() - end), theme.warning));
        }
        if self.field.is_none() {
            rows.extend(self.labels.iter().flatten().cloned());
        }
        rows.push(Row::styled(self.line_hint(), theme.dim));
        rows
    }

    fn line_hint(&self) -> &'static str {
        let text = self.choices.get(self.selected).map_or(TextNeed::None, |choice| choice.text);
        if self.field.is_some() {
            return match text {
                TextNeed::Required => "the next line is the answer; an empty line asks again",
                TextNeed::None | TextNeed::Optional => {
                    "the next line is the reason; an empty line gives none"
                }
            };
        }
        if self.body.is_cut() {
            "too long to show in full; the last number refuses"
        } else if !self.is_seen() {
            "an empty line shows the rest, which has to be seen first"
        } else {
            "a number, then enter; an empty line asks again"
        }
    }
}
