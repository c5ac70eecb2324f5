//! History of prompts: walking through it from the composer, and its file as lines of JSON.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::composer::{DraftPiece, DraftSnapshot};

/// Prompts that are kept.
pub const ENTRY_LIMIT: usize = 1000;
/// Bytes of one prompt. Longer ones are cut.
pub const ENTRY_BYTES: usize = 64 * 1024;
/// Bytes of all prompts. The oldest are dropped above it.
const TOTAL_BYTES: usize = 8 * 1024 * 1024;
/// Last line of a piece that was cut.
const CUT: &str = "\n[cut: the history keeps 64 KB of a prompt]";

/// A past prompt, with its pastes in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pieces: Vec<DraftPiece>,
}

impl HistoryEntry {
    /// Entry of a prompt, or nothing for one that is empty or cannot be cut to the limit.
    fn new(pieces: &[DraftPiece]) -> Option<Self> {
        let mut pieces = pieces.to_vec();
        loop {
            let over = pieces.iter().map(DraftPiece::bytes).sum::<usize>().saturating_sub(ENTRY_BYTES);
            if over == 0 {
                break;
            }
            cut_longest(&mut pieces, over)?;
        }
        let blank = |piece: &DraftPiece| matches!(piece, DraftPiece::Text(text) if text.trim().is_empty());
        (!pieces.iter().all(blank)).then_some(Self { pieces })
    }

    /// Text with placeholders, as the composer shows it.
    pub fn label(&self) -> String {
        self.pieces.iter().map(DraftPiece::label).collect()
    }

    /// Prompt for the composer, with the cursor at its end.
    pub fn snapshot(&self) -> DraftSnapshot {
        DraftSnapshot { pieces: self.pieces.clone(), cursor: usize::MAX }
    }

    fn bytes(&self) -> usize {
        self.pieces.iter().map(DraftPiece::bytes).sum()
    }

    /// Line of the history file, without a line break.
    pub fn to_line(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

/// Cuts bytes from the end of the longest piece; nothing when there is no piece that becomes shorter.
fn cut_longest(pieces: &mut [DraftPiece], over: usize) -> Option<()> {
    let texts = pieces.iter_mut().filter_map(|piece| match piece {
        DraftPiece::Text(text) | DraftPiece::Paste { text, .. } => Some(text),
        DraftPiece::Attachment(_) => None,
    });
    let longest = texts.max_by_key(|text| text.len())?;
    let mut keep = longest.len().saturating_sub(over + CUT.len());
    while !longest.is_char_boundary(keep) {
        keep -= 1;
    }
    if keep + CUT.len() >= longest.len() {
        return None;
    }
    longest.truncate(keep);
    longest.push_str(CUT);
    Some(())
}

/// Place in the history, while the composer shows one of its entries.
#[derive(Debug, Clone)]
struct Walk {
    /// Index of the entry that is shown.
    at: usize,
    /// Draft from which the walk began, which is restored at its end.
    draft: DraftSnapshot,
    /// Text that the entries begin with.
    prefix: String,
}

#[derive(Debug, Clone, Default)]
pub struct History {
    /// Oldest first.
    entries: VecDeque<HistoryEntry>,
    bytes: usize,
    walk: Option<Walk>,
}

impl History {
    /// Reads the lines of a history file, the oldest first. Lines that are no entry are skipped.
    pub fn from_lines(lines: &str) -> Self {
        let mut history = Self::default();
        for line in lines.lines() {
            if let Ok(entry) = serde_json::from_str::<HistoryEntry>(line) {
                history.push_pieces(&entry.pieces);
            }
        }
        history
    }

    /// The whole history as the text of its file, for a caller that shortens it.
    pub fn to_lines(&self) -> String {
        self.entries.iter().map(|entry| entry.to_line() + "\n").collect()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries, the newest first.
    pub fn newest_first(&self) -> impl ExactSizeIterator<Item = &HistoryEntry> {
        self.entries.iter().rev()
    }

    /// Adds a prompt that was sent and ends the walk. Returns the entry for the file, or nothing when it repeats the newest one.
    pub fn push(&mut self, prompt: &DraftSnapshot) -> Option<&HistoryEntry> {
        self.walk = None;
        self.push_pieces(&prompt.pieces)
    }

    fn push_pieces(&mut self, pieces: &[DraftPiece]) -> Option<&HistoryEntry> {
        let entry = HistoryEntry::new(pieces)?;
        if self.entries.back() == Some(&entry) {
            return None;
        }
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > ENTRY_LIMIT || self.bytes > TOTAL_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
        self.entries.back()
    }

    /// Goes to the next older prompt that begins with the draft. `current` is the composer's content.
    ///
    /// A prompt of the history that was changed in the composer is a new draft: the walk begins again from it.
    pub fn prev(&mut self, current: &DraftSnapshot) -> Option<DraftSnapshot> {
        let label = current.label();
        let shown = self.shown();
        let walk = match self.walk.take() {
            Some(walk) if shown.as_ref() == Some(&label) => walk,
            _ => Walk { at: self.entries.len(), draft: current.clone(), prefix: label.clone() },
        };
        let found = (0..walk.at).rev().find(|index| {
            let entry = self.entries[*index].label();
            entry.starts_with(&walk.prefix) && entry != label
        });
        if let Some(at) = found {
            self.walk = Some(Walk { at, ..walk });
            return self.entries.get(at).map(HistoryEntry::snapshot);
        }
        // At the oldest prompt the walk stays where it is.
        self.walk = (walk.at < self.entries.len()).then_some(walk);
        None
    }

    /// Goes to the next newer prompt, and from the newest back to the draft. Nothing when no walk is under way.
    pub fn next(&mut self, current: &DraftSnapshot) -> Option<DraftSnapshot> {
        let label = current.label();
        let shown = self.shown();
        let walk = self.walk.take().filter(|_| shown.as_ref() == Some(&label))?;
        let found = (walk.at + 1..self.entries.len()).find(|index| {
            let entry = self.entries[*index].label();
            entry.starts_with(&walk.prefix) && entry != label
        });
        match found {
            Some(at) => {
                self.walk = Some(Walk { at, ..walk });
                self.entries.get(at).map(HistoryEntry::snapshot)
            }
            None => Some(walk.draft),
        }
    }

    /// Text of the entry that the walk has reached.
    fn shown(&self) -> Option<String> {
        self.entries.get(self.walk.as_ref()?.at).map(HistoryEntry::label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(prompts: &[&str]) -> History {
        let mut history = History::default();
        for prompt in prompts {
            history.push(&DraftSnapshot::of_text(*prompt));
        }
        history
    }

    /// Walks up (`^`) and down (`v`) from a draft; other letters are typed. Lists what the composer shows after each.
    fn check(prompts: &[&str], draft: &str, steps: &str, expected: &[&str]) {
        let mut history = history(prompts);
        let mut current = DraftSnapshot::of_text(draft);
        let mut shown = Vec::new();
        for step in steps.chars() {
            let to = match step {
                '^' => history.prev(&current),
                'v' => history.next(&current),
                typed => Some(DraftSnapshot::of_text(format!("{}{typed}", current.label()))),
            };
            shown.push(to.as_ref().map_or("-".to_owned(), DraftSnapshot::label));
            current = to.unwrap_or(current);
        }
        assert_eq!(shown, expected, "{steps}");
    }

    #[test]
    fn up_and_down_keep_the_draft_at_the_bottom() {
        check(&["a", "b", "c"], "", "^^^^vvvv", &["c", "b", "a", "-", "b", "c", "", "-"]);
        check(&["a", "b"], "", "v", &["-"]);
        check(&[], "x", "^v", &["-", "-"]);
        check(&["a"], "", "^v^", &["a", "", "a"]);
    }

    #[test]
    fn a_draft_is_the_prefix_of_what_is_found() {
        check(&["git a", "ls", "git b"], "git", "^^^vv", &["git b", "git a", "-", "git b", "git"]);
        check(&["git a", "ls"], "cat", "^v", &["-", "-"]);
        check(&["ls", "ls -l"], "ls", "^^", &["ls -l", "ls"]);
    }

    #[test]
    fn a_prompt_that_was_changed_is_a_new_draft() {
        check(&["ax", "b", "a"], "", "^x^vv", &["a", "ax", "-", "-", "-"]);
        check(&["aby", "b", "a"], "", "^b^v", &["a", "ab", "aby", "ab"]);
    }

    #[test]
    fn a_prompt_is_kept_once_in_a_row() {
        let history = history(&["a", "a", "b", "a", "", "  \n"]);
        let labels: Vec<_> = history.newest_first().map(HistoryEntry::label).collect();
        assert_eq!(labels, ["a", "b", "a"]);
        // Walking does not stop at a prompt that is shown already.
        check(&["a", "b", "a"], "a", "^", &["-"]);
    }

    #[test]
    fn the_file_brings_back_pastes_and_skips_what_it_cannot_read() {
        let paste = DraftPiece::Paste { number: 1, text: "1\n2\n3".into() };
        let prompt = DraftSnapshot { pieces: vec![DraftPiece::Text("see ".into()), paste], cursor: 0 };
        let mut history = history(&["first\nline"]);
        let line = history.push(&prompt).unwrap().to_line();
        assert!(!line.contains('\n'));
        let file = format!("{}no json\n{{\"pieces\":[{{\"later\":1}}]}}\n", history.to_lines());
        let read = History::from_lines(&file);
        assert_eq!(read.entries, history.entries);
        assert_eq!(read.entries[1].snapshot().draft().text, "see 1\n2\n3");
        assert_eq!(read.entries[1].label(), "see [Paste #1: 3 lines]");
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = History::default();
        for number in 0..ENTRY_LIMIT + 5 {
            history.push(&DraftSnapshot::of_text(number.to_string()));
        }
        assert_eq!((history.len(), history.entries[0].label()), (ENTRY_LIMIT, "5".into()));
        for number in 0..200 {
            history.push(&DraftSnapshot::of_text(format!("{number}{}", "x".repeat(ENTRY_BYTES - 10))));
        }
        assert!(history.len() < 130);
        assert_eq!(history.bytes, history.entries.iter().map(HistoryEntry::bytes).sum::<usize>());
    }

    #[test]
    fn a_long_prompt_is_cut_at_its_longest_piece() {
        let paste = DraftPiece::Paste { number: 1, text: "é".repeat(ENTRY_BYTES) };
        let prompt = DraftSnapshot { pieces: vec![DraftPiece::Text("why? ".into()), paste], cursor: 0 };
        let mut history = History::default();
        let entry = history.push(&prompt).unwrap();
        assert!(entry.bytes() <= ENTRY_BYTES && entry.bytes() > ENTRY_BYTES - 4);
        let text = entry.snapshot().draft().text;
        assert!(
            text.starts_with("why? éé") && text.ends_with("é\n[cut: the history keeps 64 KB of a prompt]")
        );
        // Nothing can be cut from many small pieces.
        let pieces = vec![DraftPiece::Text("0123456789".into()); 10_000];
        assert_eq!(history.push(&DraftSnapshot { pieces, cursor: 0 }), None);
    }
}
