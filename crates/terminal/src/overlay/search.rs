//! Search of a picker: the items that fit a query, the likeliest first.
//!
//! Every word of the query has to fit. An item that is called so goes before one whose name begins so, then one with a word that begins
//! so, then one that has it anywhere; descriptions come after names. Letters in their order alone fit a name only if they are the
//! beginnings of its words or stand together: otherwise almost every name would fit a short query.

use super::PickItem;
use crate::fuzzy::{Matcher, Texts};

/// Letters of a word for each letter that may stand alone in the middle of a name.
const LETTERS_PER_GAP: usize = 4;

/// How a word of a query fits an item, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Name,
    NameBegins,
    WordBegins,
    NameHas,
    DescriptionWord,
    DescriptionHas,
    Letters,
}

/// Indexes of the items that fit the query, the likeliest first. Equal ones keep their order.
pub(super) fn search(query: &str, items: &[PickItem]) -> Vec<usize> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<(Fit, usize)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let whole = item.label.trim().to_lowercase() == query.trim().to_lowercase();
        let (label, detail) = (item.label.to_lowercase(), item.detail.to_lowercase());
        let fits = words.iter().map(|word| fit(word, &label, &detail));
        // The worst word says how well the whole fits.
        let worst = fits.collect::<Option<Vec<Fit>>>().and_then(|fits| fits.into_iter().max());
        if let Some(worst) = worst {
            found.push((if whole { Fit::Name } else { worst }, at));
        }
    }
    found.sort();
    found.into_iter().map(|(_, at)| at).collect()
}

fn fit(word: &str, label: &str, detail: &str) -> Option<Fit> {
    let label = label.trim();
    if label == word {
        return Some(Fit::Name);
    }
    if label.starts_with(word) {
        return Some(Fit::NameBegins);
    }
    if begins_word(word, label) {
        return Some(Fit::WordBegins);
    }
    if label.contains(word) {
        return Some(Fit::NameHas);
    }
    if begins_word(word, detail) {
        return Some(Fit::DescriptionWord);
    }
    if detail.contains(word) {
        return Some(Fit::DescriptionHas);
    }
    has_letters(word, label).then_some(Fit::Letters)
}

/// Whether a word of the text begins with the wanted one.
fn begins_word(wanted: &str, text: &str) -> bool {
    text.match_indices(wanted)
        .any(|(at, _)| text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
}

/// Whether the letters of a word are the beginnings of words of the name, or stand together but for a few.
fn has_letters(word: &str, label: &str) -> bool {
    let matched = Matcher::new(word, Texts::Words).matched(label);
    let letters: Vec<char> = label.chars().collect();
    let is_alone = |(index, at): (usize, &usize)| {
        let follows = index > 0 && matched[index - 1] + 1 == *at;
        let begins = at.checked_sub(1).and_then(|before| letters.get(before));
        !follows && begins.is_some_and(|before| before.is_alphanumeric())
    };
    let alone = matched.iter().enumerate().filter(|place| is_alone(*place)).count();
    !matched.is_empty() && alone * LETTERS_PER_GAP <= matched.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &str) {
        let item = |(label, detail): (&str, &str)| PickItem {
            label: label.to_owned(),
            detail: detail.to_owned(),
            ..PickItem::default()
        };
        let items: Vec<PickItem> = [
            ("gpt-5-mini", "Small · 128k context"),
            ("claude-sonnet-4.5", "Sonnet 4.5 · 200k context"),
            ("gpt-5", "200k context · $1.25/$10.00 per million tokens"),
            ("mini", "a model of your own"),
            ("claude-opus-4.1", "Opus"),
            ("Fix the login", "2 days ago · gemini"),
        ]
        .map(item)
        .into();
        let found: Vec<&str> = search(query, &items).into_iter().map(|at| items[at].label.as_str()).collect();
        assert_eq!(found.join(" | "), expected, "{query}");
    }

    #[test]
    fn names_go_before_descriptions_and_whole_words_before_letters() {
        check("gpt-5", "gpt-5 | gpt-5-mini");
        check("mini", "mini | gpt-5-mini | Fix the login");
        check("opus", "claude-opus-4.1");
        check("200k", "claude-sonnet-4.5 | gpt-5");
        check("fix the login", "Fix the login");
        check("login fix", "Fix the login");
        check("claude 4.5", "claude-sonnet-4.5");
    }

    #[test]
    fn letters_fit_a_name_by_the_beginnings_of_its_words() {
        check("ftl", "Fix the login");
        check("cs45", "claude-sonnet-4.5");
        check("gpt5", "gpt-5-mini | gpt-5");
        check("sonet", "claude-sonnet-4.5");
        // They are in some name or description in their order, and mean none.
        check("snt", "");
        check("xyz", "");
        check("eo", "");
    }
}
