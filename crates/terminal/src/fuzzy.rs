//! Fuzzy matching: the letters of a query in their order, anywhere in a text.
//!
//! Blanks separate terms, which all must match. A term in lower case matches any case, and letters without accents match those with
//! one. Letters at the start of a word and letters in a row score more, gaps cost. [`Matcher::score`] finds the best of all places;
//! [`Matcher::rough`] takes the first place there is, in a fraction of the time.

use unicode_segmentation::UnicodeSegmentation as _;

/// Bytes of a query and of a text that are compared.
const QUERY_LIMIT: usize = 256;
const TEXT_LIMIT: usize = 2048;

const LETTER: i32 = 16;
const GAP_START: i32 = -3;
const GAP_GOES_ON: i32 = -1;
/// Least bonus of a letter right after the one before.
const IN_A_ROW: i32 = 4;
/// Bonus of a letter after a mark, such as `_`.
const AFTER_MARK: i32 = 8;
const AFTER_SLASH: i32 = 9;
const AFTER_BLANK: i32 = 10;
/// Bonus of a capital after a small letter, and of a digit after none.
const HUMP: i32 = 7;
/// The bonus of the first letter of a term counts so often.
const FIRST: i32 = 2;
/// A score that no match has.
const NONE: i32 = i32::MIN / 2;

/// Kind of the texts that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    Words,
    /// Paths: the start of each name counts as much as the start of the text.
    Paths,
}

/// Word of a query.
#[derive(Debug)]
struct Term {
    letters: Vec<char>,
    /// The letters, if all are ASCII.
    ascii: Option<Vec<u8>>,
    has_case: bool,
}

/// Query with buffers that are used for one text after the other.
#[derive(Debug)]
pub struct Matcher {
    texts: Texts,
    terms: Vec<Term>,
    /// First letters of the clusters of a text, and the bonus of each.
    letters: Vec<char>,
    bonus: Vec<i32>,
    best: Best,
}

impl Matcher {
    pub fn new(query: &str, texts: Texts) -> Self {
        let query = &query[..query.floor_char_boundary(QUERY_LIMIT)];
        let terms = query.split_whitespace().map(|word| Term {
            letters: word.graphemes(true).filter_map(|cluster| cluster.chars().next()).collect(),
            ascii: word.is_ascii().then(|| word.as_bytes().to_vec()),
            has_case: word.contains(char::is_uppercase),
        });
        Self { texts, terms: terms.collect(), letters: Vec::new(), bonus: Vec::new(), best: Best::default() }
    }

    /// Score of the best match of each term; nothing if one does not match.
    pub fn score(&mut self, text: &str) -> Option<u32> {
        let text = clipped(text);
        if !self.may_match(text) {
            return None;
        }
        self.read(text);
        let mut score = 0;
        for term in &self.terms {
            score += self.best.find(term, &self.letters, &self.bonus)?;
        }
        Some(u32::try_from(score).unwrap_or(0))
    }

    /// Score of the first match of each term, which is at most that of the best one.
    pub fn rough(&mut self, text: &str) -> Option<u32> {
        let text = clipped(text);
        if !text.is_ascii() || self.terms.iter().any(|term| term.ascii.is_none()) {
            return self.score(text);
        }
        let mut score = 0;
        for term in &self.terms {
            let letters = term.ascii.as_deref().unwrap_or_default();
            score += rough(letters, term.has_case, text.as_bytes(), self.texts)?;
        }
        Some(u32::try_from(score).unwrap_or(0))
    }

    /// Indices of the grapheme clusters that match, in ascending order; none if the text does not match.
    pub fn matched(&mut self, text: &str) -> Vec<usize> {
        let text = clipped(text);
        let mut matched = Vec::new();
        if !self.may_match(text) {
            return matched;
        }
        self.read(text);
        for term in &self.terms {
            if self.best.find(term, &self.letters, &self.bonus).is_none() {
                return Vec::new();
            }
            self.best.places(term.letters.len(), self.letters.len(), &mut matched);
        }
        matched.sort_unstable();
        matched.dedup();
        matched
    }

    /// Whether the letters occur in their order, where that can be told from bytes.
    fn may_match(&self, text: &str) -> bool {
        !text.is_ascii()
            || self.terms.iter().all(|term| {
                term.ascii
                    .as_deref()
                    .is_some_and(|letters| end(letters, term.has_case, text.as_bytes()).is_some())
            })
    }

    fn read(&mut self, text: &str) {
        self.letters.clear();
        self.bonus.clear();
        if text.is_ascii() && !text.contains('\r') {
            self.letters.extend(text.bytes().map(char::from));
        } else {
            self.letters.extend(text.graphemes(true).filter_map(|cluster| cluster.chars().next()));
        }
        let mut before = None;
        for letter in &self.letters {
            self.bonus.push(bonus(before, *letter, self.texts));
            before = Some(*letter);
        }
    }
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_LIMIT)]
}

/// Bonus of a letter by the one before it.
fn bonus(before: Option<char>, letter: char, texts: Texts) -> i32 {
    if !letter.is_alphanumeric() {
        return if before.is_none() { AFTER_BLANK } else { 0 };
    }
    match before {
        None => AFTER_BLANK + if texts == Texts::Words { FIRST } else { 0 },
        Some('/' | '\\') => {
            if texts == Texts::Paths {
                AFTER_BLANK
            } else {
                AFTER_SLASH
            }
        }
        Some(before) if before.is_whitespace() => {
            if texts == Texts::Paths {
                AFTER_MARK
            } else {
                AFTER_BLANK
            }
        }
        Some(before) if !before.is_alphanumeric() => AFTER_MARK,
        Some(before) if before.is_lowercase() && letter.is_uppercase() => HUMP,
        Some(before) if !before.is_numeric() && letter.is_numeric() => HUMP,
        Some(_) => 0,
    }
}

/// Whether a letter of a text is that of a query.
fn is_same(wanted: char, letter: char, has_case: bool) -> bool {
    if wanted == letter {
        return true;
    }
    if letter.is_ascii() {
        return !has_case && wanted == letter.to_ascii_lowercase();
    }
    let small = |letter: char| if has_case { letter } else { letter.to_lowercase().next().unwrap_or(letter) };
    let letter = small(letter);
    wanted == letter || wanted.is_ascii() && wanted == small(unaccented(letter))
}

/// A Latin letter without its accent.
fn unaccented(letter: char) -> char {
    /// Base letters from U+00C0 on; `.` stands for letters that have none.
    const BASES: &[u8] = b"AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.y\
        AaAaAaCcCcCcCcDd..EeEeEeEeEeGgGgGgGgHh..IiIiIiIiIi..JjKk.LlLlLl....NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUuUuUuWwYyYZzZzZz";
    let index = (letter as usize).checked_sub(0xC0);
    match index.and_then(|index| BASES.get(index)) {
        None | Some(b'.') => letter,
        Some(base) => char::from(*base),
    }
}

fn is_same_byte(wanted: u8, byte: u8, has_case: bool) -> bool {
    wanted == byte || !has_case && wanted == byte.to_ascii_lowercase()
}

/// End of the first place that has all letters in their order.
fn end(letters: &[u8], has_case: bool, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for wanted in letters {
        at += 1 + text.get(at..)?.iter().position(|byte| is_same_byte(*wanted, *byte, has_case))?;
    }
    Some(at)
}

/// Score of the first place that has all letters in their order, made as short as its end allows.
fn rough(letters: &[u8], has_case: bool, text: &[u8], texts: Texts) -> Option<i32> {
    let mut at = end(letters, has_case, text)?;
    let mut score = 0;
    let mut after: Option<usize> = None;
    let mut run_bonus = 0;
    for (index, wanted) in letters.iter().enumerate().rev() {
        at = text[..at].iter().rposition(|byte| is_same_byte(*wanted, *byte, has_case))?;
        let before = at.checked_sub(1).map(|before| char::from(text[before]));
        let here = bonus(before, char::from(text[at]), texts);
        score += LETTER + if index == 0 { here * FIRST } else { here };
        match after {
            Some(after) if after == at + 1 => score += IN_A_ROW.max(here).saturating_sub(run_bonus).max(0),
            Some(after) => score += GAP_START + GAP_GOES_ON * i32::try_from(after - at - 2).unwrap_or(0),
            None => {}
        }
        run_bonus = here;
        after = Some(at);
    }
    Some(score)
}

/// Best places of the letters of a term, by dynamic programming over the letters of the text.
#[derive(Debug, Default)]
struct Best {
    /// Scores of matches that end at each letter of the text, for the last letter of the term that was read and the one before.
    now: Vec<i32>,
    before: Vec<i32>,
    /// Bonus of the row of letters in which each of these ends.
    run: Vec<i32>,
    run_before: Vec<i32>,
    /// Place of the letter before, for each letter of the term and of the text.
    from: Vec<u16>,
    /// Place of the last letter of the best match.
    last: usize,
}

impl Best {
    fn find(&mut self, term: &Term, text: &[char], bonus: &[i32]) -> Option<i32> {
        let width = text.len();
        self.from.clear();
        self.from.resize(width * term.letters.len(), 0);
        for row in [&mut self.now, &mut self.run] {
            row.clear();
            row.resize(width, NONE);
        }
        self.before.resize(width, NONE);
        self.run_before.resize(width, 0);
        for (index, wanted) in term.letters.iter().enumerate() {
            std::mem::swap(&mut self.now, &mut self.before);
            std::mem::swap(&mut self.run, &mut self.run_before);
            let from = &mut self.from[index * width..(index + 1) * width];
            // The best match of the letters before that ends before the last letter of the text, less its gap.
            let (mut gap, mut gap_from) = (NONE, 0);
            for at in 0..width {
                self.now[at] = NONE;
                self.run[at] = 0;
                if at >= 2 && index > 0 {
                    let fresh = self.before[at - 2] + GAP_START;
                    gap += GAP_GOES_ON;
                    if fresh >= gap {
                        (gap, gap_from) = (fresh, at - 2);
                    }
                }
                if !is_same(*wanted, text[at], term.has_case) {
                    continue;
                }
                if index == 0 {
                    self.now[at] = LETTER + bonus[at] * FIRST;
                    self.run[at] = bonus[at];
                    continue;
                }
                let adjoins = at > 0 && self.before[at - 1] > NONE / 2;
                let run = if adjoins { self.run_before[at - 1].max(bonus[at]).max(IN_A_ROW) } else { 0 };
                let in_run = if adjoins { self.before[at - 1] + LETTER + run } else { NONE };
                let after_gap = if gap > NONE / 2 { gap + LETTER + bonus[at] } else { NONE };
                if in_run.max(after_gap) <= NONE / 2 {
                    continue;
                }
                let (score, run, place) = if in_run >= after_gap {
                    (in_run, run, at - 1)
                } else {
                    (after_gap, bonus[at], gap_from)
                };
                self.now[at] = score;
                self.run[at] = run;
                from[at] = u16::try_from(place).unwrap_or(u16::MAX);
            }
        }
        // Of equal ones the first.
        let best = self.now.iter().enumerate().rev().max_by_key(|(_, score)| **score)?;
        self.last = best.0;
        Some(*best.1).filter(|score| *score > NONE / 2)
    }

    /// Adds the places of the match that was found.
    fn places(&self, letters: usize, width: usize, places: &mut Vec<usize>) {
        let mut at = self.last;
        for index in (0..letters).rev() {
            places.push(at);
            at = self.from.get(index * width + at).map_or(0, |from| usize::from(*from));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shows a text with its matched letters in brackets.
    fn check(query: &str, text: &str, texts: Texts, expected: &str) {
        let mut matcher = Matcher::new(query, texts);
        assert_eq!(matcher.score(text).is_some(), !expected.is_empty(), "{query} in {text}");
        assert_eq!(matcher.rough(text).is_some(), !expected.is_empty(), "{query} in {text}, roughly");
        if expected.is_empty() {
            assert!(matcher.matched(text).is_empty());
            return;
        }
        let matched = matcher.matched(text);
        let shown: String = text
            .graphemes(true)
            .enumerate()
            .map(
                |(index, letter)| {
                    if matched.contains(&index) { format!("[{letter}]") } else { letter.to_owned() }
                },
            )
            .collect();
        assert_eq!(shown.replace("][", ""), expected, "{query}");
    }

    #[test]
    fn letters_match_in_their_order_at_the_best_place() {
        for (query, text, expected) in [
            ("main", "src/domain/main.rs", "src/domain/[main].rs"),
            ("fb", "foo_bar", "[f]oo_[b]ar"),
            ("fb", "affab fooBar", "affab [f]oo[B]ar"),
            ("ab", "xa_b ab", "xa_b [ab]"),
            ("rs lib", "lib/b.rs", "[lib]/b.[rs]"),
            ("FB", "fooBar", ""),
            ("B", "fooBar", "foo[B]ar"),
            ("ba", "ab", ""),
            ("lib js", "lib/b.rs", ""),
            ("e", "é", "[é]"),
            ("é", "e", ""),
            ("E", "É", "[É]"),
            ("z", "Ž", "[Ž]"),
            ("漢", "a漢", "a[漢]"),
            ("x", "e\u{301}x", "e\u{301}[x]"),
            ("x", "", ""),
            ("v10", "version10", "[v]ersion[10]"),
        ] {
            check(query, text, Texts::Paths, expected);
        }
    }

    /// Checks that texts are in the order of their scores, the best first.
    fn check_order(query: &str, texts: Texts, ordered: &[&str]) {
        let mut matcher = Matcher::new(query, texts);
        let scores: Vec<_> = ordered.iter().map(|text| matcher.score(text).unwrap()).collect();
        assert!(scores.windows(2).all(|pair| pair[0] > pair[1]), "{query}: {ordered:?} have {scores:?}");
    }

    #[test]
    fn starts_of_words_and_letters_in_a_row_score_more() {
        check_order("mod", Texts::Words, &["model", "a model", "m-o-d-e", "a_model", "remodel", "amxoxd"]);
        check_order("ab", Texts::Paths, &["x/ab", "x_ab", "xab", "xaxxb"]);
        check_order("gc", Texts::Words, &["getCount", "magicc", "agxxxc"]);
    }

    proptest! {
        #[test]
        fn a_match_is_the_query_and_the_rough_score_is_not_better(
            query in "[abA é]{0,5}", text in "[abAé/_ 1漢]{0,14}"
        ) {
            let mut matcher = Matcher::new(&query, Texts::Paths);
            let (score, matched) = (matcher.score(&text), matcher.matched(&text));
            prop_assert_eq!(score.is_some(), matcher.rough(&text).is_some());
            prop_assert!(matched.windows(2).all(|pair| pair[0] < pair[1]));
            if let [term] = &matcher.terms[..] {
                let letters: Vec<_> = text.chars().collect();
                let found = matched.iter().map(|at| letters[*at]);
                let same = found.zip(&term.letters).all(|(letter, wanted)| is_same(*wanted, letter, term.has_case));
                let length = if score.is_some() { term.letters.len() } else { 0 };
                prop_assert!(same && matched.len() == length);
                prop_assert!(matcher.rough(&text) <= score, "{:?} {:?}", matcher.rough(&text), score);
            }
        }
    }
}
