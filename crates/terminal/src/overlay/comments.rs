//! Comments on the lines of a pager: a line is selected, commented, and the comments become the next message.

use crate::composer::TextField;

/// Comments on one page.
const MAX_COMMENTS: usize = 200;

#[derive(Default)]
pub(super) struct Comments {
    /// Place of each line, where it can be commented.
    places: Vec<Option<String>>,
    /// Lines that name a file.
    files: Vec<usize>,
    /// Line that is selected.
    pub(super) line: usize,
    /// The comment while it is typed.
    pub(super) field: Option<TextField>,
    made: Vec<(usize, String)>,
}

impl Comments {
    pub(super) fn on(places: Vec<Option<String>>, files: Vec<usize>) -> Self {
        let line = places.iter().position(Option::is_some).unwrap_or(0);
        Self { places, files, line, ..Self::default() }
    }

    /// Selects the first line of the next file in a direction, or of this file if it is the last one.
    pub(super) fn step_file(&mut self, down: bool) {
        let current = self.files.iter().rposition(|at| *at <= self.line).unwrap_or(0);
        let wanted = if down { current + 1 } else { current.saturating_sub(1) };
        let Some(start) = self.files.get(wanted).copied() else { return };
        let first = (start..self.places.len()).find(|at| self.places[*at].is_some());
        self.line = first.unwrap_or(self.line);
    }

    /// Line that names the file of the selected one.
    pub(super) fn file_line(&self) -> Option<usize> {
        self.files.iter().rev().copied().find(|at| *at <= self.line)
    }

    /// Selects the next line in a direction that can be commented.
    pub(super) fn step(&mut self, down: bool) {
        let is_place = |at: &usize| self.places.get(*at).is_some_and(Option::is_some);
        let found = match down {
            true => (self.line + 1..self.places.len()).find(is_place),
            false => (0..self.line).rev().find(is_place),
        };
        self.line = found.unwrap_or(self.line);
    }

    /// Opens the field for the selected line, with the comment that it has.
    pub(super) fn begin(&mut self) {
        if self.places.get(self.line).is_some_and(Option::is_some) {
            self.field = Some(TextField::new(self.comment(self.line).unwrap_or_default()));
        }
    }

    /// Keeps the comment that was typed; an empty one removes it.
    pub(super) fn finish(&mut self) {
        let Some(text) = self.field.take().map(|field| field.text().trim().to_owned()) else { return };
        self.made.retain(|(line, _)| *line != self.line);
        if !text.is_empty() && self.made.len() < MAX_COMMENTS {
            self.made.push((self.line, text));
        }
    }

    pub(super) fn comment(&self, line: usize) -> Option<&str> {
        self.made.iter().find(|(at, _)| *at == line).map(|(_, text)| text.as_str())
    }

    /// The comments as a message, in the order of their lines.
    pub(super) fn message(&self) -> Option<String> {
        let mut made: Vec<&(usize, String)> = self.made.iter().collect();
        made.sort();
        let lines = made.iter().filter_map(|(line, text)| {
            let place = self.places.get(*line)?.as_deref()?;
            Some(format!("\n- {place}: {text}"))
        });
        let lines: String = lines.collect();
        (!lines.is_empty()).then(|| format!("Comments on the changes:{lines}"))
    }
}
