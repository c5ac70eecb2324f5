//! Finding the text that a model meant, where it did not copy it exactly. Pure.
//!
//! The forms are tried from the tightest to the loosest. Each finds what the ones before it would have found, so a form
//! that finds several places ends the search: no later one could tell them apart.

use std::ops::Range;

use super::indentation::{Indentation, is_as_in_file};

/// Share of the words between two anchors that must be the same, in percent.
const LIKENESS: usize = 80;

/// Lines between anchors that are compared.
const ANCHORED_LINES: usize = 400;

/// Blocks that are compared by their words before a file is given up.
const ANCHORED_BLOCKS: usize = 100;

/// How a text differs from what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Exact,
    LineEnds,
    Indentation,
    LineTrimmed,
    Whitespace,
    LineNumbers,
    Escapes,
    Boundaries,
    Anchors,
}

impl Form {
    /// The difference, as the model is told it.
    pub(crate) fn difference(self) -> &'static str {
        match self {
            Self::Exact => "in nothing",
            Self::LineEnds => "in whitespace at the ends of lines",
            Self::Indentation | Self::LineTrimmed => "in its indentation",
            Self::Whitespace => "in its whitespace",
            Self::LineNumbers => "in line numbers, which are not part of the file",
            Self::Escapes => "in escaped characters",
            Self::Boundaries => "in whitespace at its beginning and end",
            Self::Anchors => "in some words between its first and last line",
        }
    }
}

/// A place in a text, and what to put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NearMatch {
    pub(crate) form: Form,
    pub(crate) place: Range<usize>,
    /// Absent if the indentation of the lines is ambiguous.
    pub(crate) new: Option<String>,
}

/// Finds the places of the first form that has any. Lines end in `\n`.
pub(crate) fn find(text: &str, old: &str, new: &str) -> Vec<NearMatch> {
    let lines = Lines::of(text);
    let forms: [&dyn Fn() -> Vec<NearMatch>; 8] = [
        &|| lines.alike(Form::LineEnds, old, new, |line| line.trim_end().to_owned()),
        &|| lines.alike_but_for_indentation(old, new),
        &|| lines.alike(Form::LineTrimmed, old, new, |line| line.trim().to_owned()),
        &|| lines.alike_in_words(old, new),
        &|| without_line_numbers(text, old, new),
        &|| without_escapes(text, old, new),
        &|| without_boundaries(text, old, new),
        &|| lines.anchored(old, new),
    ];
    forms.into_iter().map(|form| form()).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The lines of a text, and where they begin.
struct Lines<'a> {
    text: &'a str,
    lines: Vec<(usize, &'a str)>,
}

/// The lines of a piece, and whether its last line ends in it.
struct Piece<'a> {
    lines: Vec<&'a str>,
    ends_line: bool,
}

impl<'a> Piece<'a> {
    fn of(text: &'a str) -> Self {
        let ends_line = text.ends_with('\n');
        Self { lines: text.strip_suffix('\n').unwrap_or(text).split('\n').collect(), ends_line }
    }

    /// Whether there is anything to find it by.
    fn is_blank(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        // A byte order mark is not part of the first line.
        let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let lines = text[start..]
            .split('\n')
            .map(|line| {
                let at = start;
                start += line.len() + 1;
                (at, line)
            })
            .collect();
        Self { text, lines }
    }

    /// Runs of whole lines that are those of `old` once both are normalised.
    fn alike(&self, form: Form, old: &str, new: &str, normal: impl Fn(&str) -> String) -> Vec<NearMatch> {
        let piece = Piece::of(old);
        if piece.is_blank() {
            return Vec::new();
        }
        let wanted: Vec<String> = piece.lines.iter().map(|line| normal(line)).collect();
        let own: Vec<String> = self.lines.iter().map(|(_, line)| normal(line)).collect();
        let places = own.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted);
        places.map(|(first, _)| self.found(form, first, &piece, new)).collect()
    }

    /// Runs of lines that are those of `old`, all of them more or less indented by the same.
    fn alike_but_for_indentation(&self, old: &str, new: &str) -> Vec<NearMatch> {
        let piece = Piece::of(old);
        if piece.is_blank() {
            return Vec::new();
        }
        let wanted = without_common_indent(&piece.lines);
        let places = self.lines.windows(wanted.len()).enumerate().filter(|(_, window)| {
            // Most windows are ruled out by their first line.
            window[0].1.trim() == wanted[0].trim()
                && without_common_indent(&window.iter().map(|(_, line)| *line).collect::<Vec<_>>()) == wanted
        });
        places.map(|(first, _)| self.found(Form::Indentation, first, &piece, new)).collect()
    }

    /// Runs of lines with the same words, or a part of one line with them.
    fn alike_in_words(&self, old: &str, new: &str) -> Vec<NearMatch> {
        let found = self.alike(Form::Whitespace, old, new, |line| words(line).join(" "));
        if !found.is_empty() || old.trim().contains('\n') {
            return found;
        }
        let wanted = words(old);
        let Some(first) = wanted.first() else { return Vec::new() };
        let mut found = Vec::new();
        for (start, line) in &self.lines {
            for (at, _) in line.match_indices(first) {
                if let Some(length) = begins_with_words(&line[at..], &wanted) {
                    let place = start + at..start + at + length;
                    let new = Some(new.trim().to_owned());
                    found.push(NearMatch { form: Form::Whitespace, place, new });
                }
            }
        }
        found
    }

    /// Blocks that begin and end with the first and last line of `old`, and are much the same in between.
    fn anchored(&self, old: &str, new: &str) -> Vec<NearMatch> {
        let piece = Piece::of(old);
        let count = piece.lines.len();
        let (Some(first), Some(last)) = (piece.lines.first(), piece.lines.last()) else { return Vec::new() };
        let (first, last) = (first.trim(), last.trim());
        if !(3..=ANCHORED_LINES).contains(&count) || first.is_empty() || last.is_empty() {
            return Vec::new();
        }
        let slack = (count / 4).max(1);
        let wanted = words_of(&piece.lines[1..count - 1]);
        let mut blocks = 0;
        let mut found = Vec::new();
        for (begin, _) in self.lines.iter().enumerate().filter(|(_, (_, line))| line.trim() == first) {
            let ends = begin + (count - slack).max(3)..=begin + count + slack;
            for end in ends.filter(|end| *end <= self.lines.len() && self.lines[*end - 1].1.trim() == last) {
                blocks += 1;
                if blocks > ANCHORED_BLOCKS {
                    return Vec::new();
                }
                let inner: Vec<&str> = self.lines[begin + 1..end - 1].iter().map(|(_, line)| *line).collect();
                if are_alike(&wanted, &words_of(&inner)) {
                    let pairs = [
                        (piece.lines[0], self.lines[begin].1),
                        (piece.lines[count - 1], self.lines[end - 1].1),
                    ];
                    found.push(self.found_by(Form::Anchors, begin..end, pairs, piece.ends_line, new));
                }
            }
        }
        found
    }

    fn found(&self, form: Form, first: usize, piece: &Piece<'_>, new: &str) -> NearMatch {
        let lines = first..first + piece.lines.len();
        let own = self.lines[lines.clone()].iter().map(|(_, line)| *line);
        self.found_by(form, lines, piece.lines.iter().copied().zip(own), piece.ends_line, new)
    }

    /// A run of lines, with the replacement indented as they are.
    fn found_by<'b>(
        &self,
        form: Form,
        lines: Range<usize>,
        pairs: impl IntoIterator<Item = (&'b str, &'b str)>,
        ends_line: bool,
        new: &str,
    ) -> NearMatch {
        let (last, text) = self.lines[lines.end - 1];
        let mut end = last + text.len();
        if ends_line && self.text[end..].starts_with('\n') {
            end += 1;
        }
        let place = self.lines[lines.start].0..end;
        let pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
        let new = match is_as_in_file(&pairs, new) {
            true => Some(new.to_owned()),
            false => Indentation::compare(pairs).map(|indentation| indentation.apply(new)),
        };
        NearMatch { form, place, new }
    }
}

fn without_common_indent<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indents =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| super::indentation::indent(line));
    let common = indents.reduce(|common, indent| {
        let same = common.bytes().zip(indent.bytes()).take_while(|(a, b)| a == b).count();
        &common[..same]
    });
    let common = common.map_or(0, str::len);
    lines.iter().map(|line| line.get(common..).unwrap_or("").trim_end()).collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn words_of<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().flat_map(|line| line.split_whitespace()).collect()
}

/// Length of the text at the beginning of a line that has these words, with whitespace in between.
fn begins_with_words(line: &str, words: &[&str]) -> Option<usize> {
    let mut rest = line;
    for (index, word) in words.iter().enumerate() {
        let trimmed = rest.trim_start();
        if index > 0 && trimmed.len() == rest.len() {
            return None;
        }
        rest = trimmed.strip_prefix(word)?;
    }
    Some(line.len() - rest.len())
}

fn are_alike(wanted: &[&str], own: &[&str]) -> bool {
    let operations = hangar_diff::operations(wanted, own, None);
    let equal: usize = operations
        .iter()
        .map(|operation| match operation {
            hangar_diff::DiffOp::Equal { len, .. } => *len,
            _ => 0,
        })
        .sum();
    2 * equal * 100 >= LIKENESS * (wanted.len() + own.len())
}

/// Places of a text that may overlap, each with the same replacement.
fn places(form: Form, text: &str, old: &str, new: &str) -> Vec<NearMatch> {
    if old.is_empty() {
        return Vec::new();
    }
    let finder = memchr::memmem::Finder::new(old.as_bytes());
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = finder.find(&text.as_bytes()[from..]) {
        let start = from + offset;
        found.push(NearMatch { form, place: start..start + old.len(), new: Some(new.to_owned()) });
        from = start + 1;
        if found.len() > super::replacement::PLACES_LISTED {
            break;
        }
    }
    found
}

/// The text without the numbers that `view` puts before lines.
fn without_line_numbers(text: &str, old: &str, new: &str) -> Vec<NearMatch> {
    let Some(old) = strip_line_numbers(old) else { return Vec::new() };
    let new = strip_line_numbers(new).unwrap_or_else(|| new.to_owned());
    places(Form::LineNumbers, text, &old, &new)
}

/// `None` unless every line has a number. The last may be empty.
fn strip_line_numbers(text: &str) -> Option<String> {
    let ends_line = text.ends_with('\n');
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n').map(|line| {
        let (number, rest) = line.split_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| rest.strip_prefix(' ').unwrap_or(rest))
    });
    let stripped = lines.collect::<Option<Vec<&str>>>()?.join("\n");
    Some(if ends_line { stripped + "\n" } else { stripped })
}

/// The text with `\n`, `\t`, `\"` and the like as the characters that they stand for.
fn without_escapes(text: &str, old: &str, new: &str) -> Vec<NearMatch> {
    let plain = unescape(old);
    if plain == old {
        return Vec::new();
    }
    places(Form::Escapes, text, &plain, &unescape(new))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = match c {
            '\\' => chars.clone().next().and_then(|next| match next {
                'n' => Some('\n'),
                't' => Some('\t'),
                'r' => Some('\r'),
                '"' | '\'' | '`' | '\\' | '$' => Some(next),
                _ => None,
            }),
            _ => None,
        };
        match escaped {
            Some(escaped) => {
                out.push(escaped);
                chars.next();
            }
            None => out.push(c),
        }
    }
    out
}

/// The text without whitespace around it.
fn without_boundaries(text: &str, old: &str, new: &str) -> Vec<NearMatch> {
    let trimmed = old.trim();
    if trimmed == old {
        return Vec::new();
    }
    places(Form::Boundaries, text, trimmed, new.trim())
}

#[cfg(test)]
#[path = "forgiving/tests.rs"]
mod tests;
