//! Motions of vim, as functions of the text.

use super::super::text::{self, WordClass};

/// Range that a motion spans for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MotionSpan {
    /// Up to the target.
    Exclusive,
    /// With the cluster at the target.
    Inclusive,
    /// All lines from the cursor's to the target's.
    Lines,
}

/// Target of a motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Motion {
    pub(super) to: usize,
    pub(super) span: MotionSpan,
}

/// Search for a character in the line of the cursor: `f`, `t`, `F`, `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) char: char,
    pub(super) back: bool,
    /// Whether the cursor stops one cluster before the character.
    pub(super) till: bool,
}

impl Find {
    /// The place of the `count`th match. A repeated search does not stay at the match next to the cursor.
    pub(super) fn motion(self, text: &str, at: usize, count: usize, repeated: bool) -> Option<Motion> {
        let (start, end) = (text::line_start(text, at), text::line_end(text, at));
        let mut found = at;
        let mut skip_next = repeated && self.till;
        let mut left = count;
        while left > 0 {
            found = if self.back {
                if found == start {
                    return None;
                }
                text::prev(text, found)
            } else {
                text::next(text, found)
            };
            if found >= end {
                return None;
            }
            let adjacent = std::mem::take(&mut skip_next);
            if text[found..].starts_with(self.char) && !adjacent {
                left -= 1;
            }
        }
        let to = match (self.till, self.back) {
            (false, _) => found,
            (true, false) => text::prev(text, found),
            (true, true) => text::next(text, found),
        };
        Some(Motion { to, span: if self.back { MotionSpan::Exclusive } else { MotionSpan::Inclusive } })
    }

    pub(super) fn reversed(self) -> Self {
        Self { back: !self.back, ..self }
    }
}

/// Start of the next word.
pub(super) fn word(text: &str, at: usize) -> usize {
    text::skip(text, run_end(text, at), |class| class == WordClass::Blank)
}

/// Start of the word before.
pub(super) fn word_back(text: &str, at: usize) -> usize {
    let at = text::skip_back(text, at, |class| class == WordClass::Blank);
    let before = text::prev(text, at);
    match text::class(text, before) {
        WordClass::Part => before,
        class => text::skip_back(text, at, |other| other == class),
    }
}

/// Last cluster of the word at or after the next cluster.
pub(super) fn word_end(text: &str, at: usize) -> usize {
    let at = text::skip(text, text::next(text, at), |class| class == WordClass::Blank);
    if at >= text.len() { text::prev(text, at) } else { text::prev(text, run_end(text, at)) }
}

/// End of the run of clusters of one class at an offset.
pub(super) fn run_end(text: &str, at: usize) -> usize {
    match text::class(text, at) {
        WordClass::Blank => at,
        WordClass::Part => text::next(text, at),
        class => text::skip(text, at, |other| other == class),
    }
}

/// First cluster of a line that is not blank.
pub(super) fn first_nonblank(text: &str, at: usize) -> usize {
    let (start, end) = (text::line_start(text, at), text::line_end(text, at));
    text::skip(text, start, |class| class == WordClass::Blank).min(end)
}

/// Start of the line that is `count` lines below, or of the last.
pub(super) fn lines_down(text: &str, at: usize, count: usize) -> usize {
    let mut start = text::line_start(text, at);
    for _ in 0..count {
        let end = text::line_end(text, start);
        if end == text.len() {
            break;
        }
        start = end + 1;
    }
    start
}

/// Start of the line that is `count` lines above, or of the first.
pub(super) fn lines_up(text: &str, at: usize, count: usize) -> usize {
    let mut start = text::line_start(text, at);
    for _ in 0..count {
        if start == 0 {
            break;
        }
        start = text::line_start(text, start - 1);
    }
    start
}

/// Repeats a step until it makes no progress.
pub(super) fn repeat(count: usize, mut at: usize, mut step: impl FnMut(usize) -> usize) -> usize {
    for _ in 0..count {
        let next = step(at);
        if next == at {
            break;
        }
        at = next;
    }
    at
}
