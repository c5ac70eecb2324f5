//! Redaction of a streaming text, in which a secret may begin in one delta and end in another.

use super::{MASK, Redactor, Secrets};

/// Text that is held back because it may be the beginning of a secret. Never longer than the longest secret.
#[derive(Default)]
pub(super) struct Held {
    text: String,
    /// Length of its part behind a mask that was already emitted.
    masked: usize,
}

impl Held {
    /// Takes a delta and returns the text that can be shown.
    pub(super) fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        let Some(secrets) = &redactor.0 else { return piece.to_owned() };
        self.text.push_str(piece);
        let safe = secrets.unfinished(&self.text);
        self.release(secrets, safe)
    }

    /// Ends the stream and returns the held text, which did not become a secret.
    pub(super) fn finish(&mut self, redactor: &Redactor) -> String {
        let Some(secrets) = &redactor.0 else { return String::new() };
        self.release(secrets, self.text.len())
    }

    /// Passes on the text up to `end`, masked.
    fn release(&mut self, secrets: &Secrets, end: usize) -> String {
        let mut out = String::new();
        let mut shown = self.masked;
        let mut still_masked = 0;
        for range in secrets.find(&self.text) {
            if range.start >= end {
                break;
            }
            // A secret that overlaps one which has its mask needs none of its own.
            if range.start >= shown {
                out.push_str(&self.text[shown..range.start]);
                out.push_str(MASK);
            }
            shown = shown.max(range.end);
        }
        if shown > end {
            still_masked = shown - end;
        } else {
            out.push_str(&self.text[shown..end]);
        }
        self.text.drain(..end);
        self.masked = still_masked;
        out
    }
}

impl Secrets {
    /// Position at which an incomplete secret may begin.
    fn unfinished(&self, text: &str) -> usize {
        let longest = self.forms.iter().map(String::len).max().unwrap_or_default();
        let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
        let tail = &text[from..];
        let begins =
            |rest: &str| self.forms.iter().any(|form| form.len() > rest.len() && form.starts_with(rest));
        tail.char_indices().map(|(at, _)| from + at).find(|at| begins(&text[*at..])).unwrap_or(text.len())
    }
}
