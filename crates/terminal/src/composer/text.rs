//! Boundaries in the composer's text: clusters, words and lines, as byte offsets.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

/// Characters that stand for a part (a paste, an attachment) in the text. They are the last private ones of Unicode, which no
/// icon font uses; text from outside that holds one becomes a part itself, so they never mean anything else.
pub(super) const PART_FIRST: char = '\u{10F000}';
pub(super) const PART_LAST: char = '\u{10FFFD}';

pub(crate) fn is_part(char: char) -> bool {
    (PART_FIRST..=PART_LAST).contains(&char)
}

/// Characters that never join with their neighbours, whatever Unicode says of the ones around a part.
fn stands_alone(char: char) -> bool {
    char == '\n' || is_part(char)
}

/// Range around an offset in which clusters can join.
fn segment(text: &str, at: usize) -> (usize, usize) {
    let start = text[..at].char_indices().rfind(|(_, char)| stands_alone(*char));
    let start = start.map_or(0, |(index, char)| index + char.len_utf8());
    let end = text[at..].find(stands_alone).map_or(text.len(), |index| at + index);
    (start, end)
}

/// The boundary after `at`, or the end of the text.
pub(super) fn next(text: &str, at: usize) -> usize {
    match text[at..].chars().next() {
        None => text.len(),
        Some(char) if stands_alone(char) => at + char.len_utf8(),
        Some(_) => {
            let (start, end) = segment(text, at);
            let mut cursor = GraphemeCursor::new(at - start, end - start, true);
            cursor.next_boundary(&text[start..end], 0).ok().flatten().map_or(end, |offset| start + offset)
        }
    }
}

/// The boundary before `at`, or the start of the text.
pub(super) fn prev(text: &str, at: usize) -> usize {
    match text[..at].chars().next_back() {
        None => 0,
        Some(char) if stands_alone(char) => at - char.len_utf8(),
        Some(_) => {
            let (start, end) = segment(text, at);
            let mut cursor = GraphemeCursor::new(at - start, end - start, true);
            cursor.prev_boundary(&text[start..end], 0).ok().flatten().map_or(start, |offset| start + offset)
        }
    }
}

/// The first cluster boundary at or after an offset.
pub(super) fn snap(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().next();
    match (before, after) {
        (Some(before), Some(after)) if !stands_alone(before) && !stands_alone(after) => {
            let (start, end) = segment(text, at);
            let mut cursor = GraphemeCursor::new(at - start, end - start, true);
            if cursor.is_boundary(&text[start..end], 0).unwrap_or(true) { at } else { next(text, at) }
        }
        _ => at,
    }
}

/// The clusters of a text with their offsets. A line break and a part are each a cluster of their own.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive(stands_alone)
        .scan(0, |offset, piece| {
            let start = *offset;
            *offset += piece.len();
            Some((start, piece))
        })
        .flat_map(|(start, piece)| {
            let alone =
                piece.chars().next_back().filter(|char| stands_alone(*char)).map_or(0, char::len_utf8);
            let (joined, last) = piece.split_at(piece.len() - alone);
            let joined = joined.grapheme_indices(true).map(move |(index, cluster)| (start + index, cluster));
            let last = (!last.is_empty()).then_some((start + piece.len() - alone, last));
            joined.chain(last)
        })
}

/// Start of the line that holds an offset.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |index| index + 1)
}

/// End of the line that holds an offset, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |index| at + index)
}

/// Kind of a cluster for moves by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordClass {
    Blank,
    Word,
    Punctuation,
    Part,
}

/// Kind of the cluster that starts at an offset. The end of the text is blank.
pub(super) fn class(text: &str, at: usize) -> WordClass {
    match text[at..].chars().next() {
        None => WordClass::Blank,
        Some(char) if is_part(char) => WordClass::Part,
        Some(char) if char.is_whitespace() => WordClass::Blank,
        Some(char) if char.is_alphanumeric() || char == '_' => WordClass::Word,
        Some(_) => WordClass::Punctuation,
    }
}

/// The offset that moves forward while the cluster at it satisfies a condition.
pub(super) fn skip(text: &str, mut at: usize, mut wanted: impl FnMut(WordClass) -> bool) -> usize {
    while at < text.len() && wanted(class(text, at)) {
        at = next(text, at);
    }
    at
}

/// The offset that moves back while the cluster before it satisfies a condition.
pub(super) fn skip_back(text: &str, mut at: usize, mut wanted: impl FnMut(WordClass) -> bool) -> usize {
    while at > 0 {
        let before = prev(text, at);
        if !wanted(class(text, before)) {
            break;
        }
        at = before;
    }
    at
}

fn between_words(class: WordClass) -> bool {
    matches!(class, WordClass::Blank | WordClass::Punctuation)
}

/// The end of the word at or after an offset. A part is a word.
pub(super) fn word_right(text: &str, at: usize) -> usize {
    let at = skip(text, at, between_words);
    if class(text, at) == WordClass::Part {
        next(text, at)
    } else {
        skip(text, at, |class| class == WordClass::Word)
    }
}

/// The start of the word at or before an offset. A part is a word.
pub(super) fn word_left(text: &str, at: usize) -> usize {
    let at = skip_back(text, at, between_words);
    let before = prev(text, at);
    if class(text, before) == WordClass::Part {
        before
    } else {
        skip_back(text, at, |class| class == WordClass::Word)
    }
}

/// The start of the run without blanks at or before an offset, as shells delete with ctrl+w.
pub(super) fn blank_left(text: &str, at: usize) -> usize {
    let at = skip_back(text, at, |class| class == WordClass::Blank);
    skip_back(text, at, |class| class != WordClass::Blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundaries(text: &str) -> Vec<usize> {
        clusters(text).map(|(offset, _)| offset).chain([text.len()]).collect()
    }

    #[test]
    fn moves_and_clusters_agree() {
        let part = PART_FIRST;
        for text in [
            "",
            "abc",
            "e\u{301}a\n\u{301}b",
            "👩\u{200D}👩\u{200D}👧x",
            "🇩🇪🇫🇷🇪",
            &format!("a{part}\u{301}{part}b"),
            &format!("\u{600}{part}\u{600}x"),
            "\n\n",
            "\u{200D}\u{200D}",
        ] {
            let all = boundaries(text);
            for pair in all.windows(2) {
                assert_eq!((next(text, pair[0]), prev(text, pair[1])), (pair[1], pair[0]), "{text:?}");
            }
            for at in 0..=text.len() {
                assert_eq!(
                    Some(snap(text, at)),
                    all.iter().copied().find(|known| *known >= at),
                    "{text:?} {at}"
                );
            }
        }
    }

    #[test]
    fn a_part_is_a_word() {
        let text = format!("a {PART_FIRST}b");
        assert_eq!(word_right(&text, 1), 6);
        assert_eq!(word_left(&text, 6), 2);
        assert_eq!(word_left(&text, 7), 6);
        assert_eq!(blank_left(&text, 7), 2);
    }
}
