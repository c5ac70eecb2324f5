//! Completions: the word at the cursor, its candidates by fuzzy match, and the popup that shows them.

mod emphasis;
mod mention;
mod popup;
mod rank;
mod trigger;

pub use emphasis::{Keep, emphasised};
pub use mention::{mention, mentions};
pub use popup::{Completion, CompletionOutcome, CompletionStyles};
pub use rank::{MATCH_LIMIT, Match, Ranked, Ranking, rank};
pub use trigger::{Trigger, TriggerKind, trigger};

use crate::composer::Composer;

/// Candidate as the caller passes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Text that is shown and compared.
    pub label: String,
    /// Explanation beside it.
    pub detail: String,
    /// Text that replaces the word at the cursor, with its sign.
    pub replacement: String,
}

impl Suggestion {
    /// Slash command, named without its slash.
    pub fn command(name: &str, about: &str) -> Self {
        Self { label: name.to_owned(), detail: about.to_owned(), replacement: format!("/{name} ") }
    }

    /// Argument of a command.
    pub fn argument(value: &str, about: &str) -> Self {
        Self { label: value.to_owned(), detail: about.to_owned(), replacement: format!("{value} ") }
    }

    pub fn issue(number: u64, title: &str) -> Self {
        Self {
            label: format!("#{number} {title}"),
            detail: String::new(),
            replacement: format!("#{number} "),
        }
    }
}

impl AsRef<str> for Suggestion {
    fn as_ref(&self) -> &str {
        &self.label
    }
}

/// Candidate in the popup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub label: String,
    pub detail: String,
    pub replacement: String,
    /// Indices of the grapheme clusters of the label that matched.
    pub matched: Vec<usize>,
}

/// Candidates that match, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filtered {
    pub items: Vec<Candidate>,
    /// Number of all candidates that match.
    pub total: usize,
}

/// Ranks choices by a query.
pub fn filter(query: &str, choices: &[Suggestion]) -> Filtered {
    let ranked = rank(query, choices, Ranking::Words);
    let items = ranked.matches.into_iter().map(|found| {
        let Suggestion { label, detail, replacement } = choices[found.index].clone();
        Candidate { label, detail, replacement, matched: found.matched }
    });
    Filtered { items: items.collect(), total: ranked.total }
}

/// Ranks paths by a query. The path of a folder ends in a slash.
pub fn filter_paths<T: AsRef<str>>(query: &str, paths: &[T]) -> Filtered {
    let ranked = rank(query, paths, Ranking::Paths);
    let items = ranked.matches.into_iter().map(|found| {
        let path = paths[found.index].as_ref();
        Candidate {
            label: path.to_owned(),
            detail: String::new(),
            replacement: mention(path),
            matched: found.matched,
        }
    });
    Filtered { items: items.collect(), total: ranked.total }
}

/// Popup of completions beside a composer.
#[derive(Debug, Clone, Default)]
pub struct Completions {
    open: Option<Completion>,
    /// Start of the word whose popup was closed: it stays closed until another word is completed.
    dismissed: Option<usize>,
}

impl Completions {
    /// Finds the word at the cursor after a change. The caller answers it with [`Completions::offer`]; without one the popup is closed.
    pub fn refresh(&mut self, composer: &Composer) -> Option<Trigger> {
        let found = trigger(composer.text(), composer.cursor());
        match found {
            Some(trigger) if self.dismissed == Some(trigger.range.start) => None,
            found => {
                self.dismissed = None;
                if found.is_none() {
                    self.open = None;
                }
                found
            }
        }
    }

    /// Finds the word at the cursor for an explicit request, also after the popup was closed.
    pub fn request(&mut self, composer: &Composer) -> Option<Trigger> {
        self.dismissed = None;
        self.refresh(composer)
    }

    /// Opens the popup with candidates, or closes it when there are none.
    pub fn offer(&mut self, trigger: Trigger, filtered: Filtered) {
        self.open = (!filtered.items.is_empty()).then(|| Completion::new(trigger, filtered));
    }

    /// Closes the popup until the draft is edited again.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Closes a popup whose word is not at the cursor any more: the draft was replaced.
    pub fn drop_stale(&mut self, composer: &Composer) {
        let is_stale = |open: &mut Completion| {
            trigger(composer.text(), composer.cursor()).as_ref() != Some(open.trigger())
        };
        self.open.take_if(is_stale);
    }

    pub fn open(&self) -> Option<&Completion> {
        self.open.as_ref()
    }

    /// Runs an action of the popup. An accepted candidate is inserted in the composer.
    pub fn apply(&mut self, action: crate::keymap::Action, composer: &mut Composer) -> CompletionOutcome {
        let Some(open) = &mut self.open else { return CompletionOutcome::Pass };
        let outcome = open.apply(action);
        match outcome {
            CompletionOutcome::Accepted | CompletionOutcome::Submitted => {
                // Enter after a command without arguments runs it.
                let unasked = outcome == CompletionOutcome::Submitted && open.is_unasked();
                if let Some(candidate) = open.selected().filter(|_| !unasked) {
                    composer.replace(open.trigger().range.clone(), &candidate.replacement);
                }
                self.open = None;
            }
            CompletionOutcome::Closed => {
                self.dismissed = Some(open.trigger().range.start);
                self.open = None;
            }
            CompletionOutcome::Moved | CompletionOutcome::Pass => {}
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
