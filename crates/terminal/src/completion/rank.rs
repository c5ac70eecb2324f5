//! Fuzzy ranking of candidates.

use std::cmp::Reverse;

use crate::fuzzy::{Matcher, Texts};

/// Number of matches that are kept: nobody scrolls further, and each typed letter leaves fewer.
pub const MATCH_LIMIT: usize = 200;
/// Candidates that are scored exactly. Of more, the best by a rough score, which takes a fraction of the time.
const EXACT_LIMIT: usize = 1000;

/// Text that candidates are compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    Words,
    /// Paths: letters after a slash count more, and the shorter of two equal ones comes first.
    Paths,
}

/// Candidate that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Index in the slice of candidates.
    pub index: usize,
    /// Indices of the grapheme clusters that matched, in ascending order.
    pub matched: Vec<usize>,
}

/// Matches of a query, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranked {
    pub matches: Vec<Match>,
    /// Number of all candidates that match, also of those that are not kept.
    pub total: usize,
}

/// Candidate with its score.
struct Scored {
    score: u32,
    length: usize,
    index: usize,
}

impl Scored {
    /// The best first, of equal ones the shorter, then the earlier.
    fn order(&self) -> (Reverse<u32>, usize, usize) {
        (Reverse(self.score), self.length, self.index)
    }
}

fn keep_best(scored: &mut Vec<Scored>, limit: usize) {
    if scored.len() > limit {
        scored.select_nth_unstable_by_key(limit, Scored::order);
        scored.truncate(limit);
    }
}

/// Ranks candidates by how well the letters of a query occur in them. Without a query all match, in their order.
pub fn rank<T: AsRef<str>>(query: &str, candidates: &[T], ranking: Ranking) -> Ranked {
    let query = query.trim();
    if query.is_empty() {
        let matches =
            (0..candidates.len().min(MATCH_LIMIT)).map(|index| Match { index, matched: Vec::new() });
        return Ranked { matches: matches.collect(), total: candidates.len() };
    }
    let texts = match ranking {
        Ranking::Words => Texts::Words,
        Ranking::Paths => Texts::Paths,
    };
    let mut matcher = Matcher::new(query, texts);
    let text = |index: usize| candidates[index].as_ref();
    let rough = candidates.len() > EXACT_LIMIT;
    let mut scored = Vec::new();
    for index in 0..candidates.len() {
        let text = text(index);
        let score = if rough { matcher.rough(text) } else { matcher.score(text) };
        if let Some(score) = score {
            let length = if ranking == Ranking::Paths { text.len() } else { 0 };
            let exact = text.len() == query.len() && text.eq_ignore_ascii_case(query);
            scored.push(Scored { score: if exact { u32::MAX } else { score }, length, index });
        }
    }
    let total = scored.len();
    if rough {
        keep_best(&mut scored, EXACT_LIMIT);
        for scored in scored.iter_mut().filter(|scored| scored.score < u32::MAX) {
            scored.score = matcher.score(text(scored.index)).unwrap_or(0);
        }
    }
    keep_best(&mut scored, MATCH_LIMIT);
    scored.sort_unstable_by_key(Scored::order);
    let matches =
        scored.into_iter().map(|Scored { index, .. }| Match { index, matched: matcher.matched(text(index)) });
    Ranked { matches: matches.collect(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks paths and shows them with their matched letters in brackets.
    fn check(query: &str, paths: &[&str], expected: &str) {
        let ranked = rank(query, paths, Ranking::Paths);
        let shown: Vec<String> =
            ranked
                .matches
                .iter()
                .map(|found| {
                    let letters = paths[found.index].chars().enumerate();
                    letters
                        .map(|(index, char)| {
                            if found.matched.contains(&index) {
                                format!("[{char}]")
                            } else {
                                char.to_string()
                            }
                        })
                        .collect()
                })
                .collect();
        assert_eq!(shown.join(" ").replace("][", ""), expected, "{query}");
    }

    #[test]
    fn the_best_match_comes_first() {
        check(
            "main",
            &["src/domain.rs", "src/main.rs", "main.rs"],
            "[main].rs src/[main].rs src/do[main].rs",
        );
        check("cm", &["a/comp.rs", "cli/main.rs"], "[c]li/[m]ain.rs a/[c]o[m]p.rs");
        check("", &["b", "a"], "b a");
        check("zz", &["b", "a"], "");
        check("A", &["a", "A"], "[A]");
        check("é", &["é", "e"], "[é]");
        check("e", &["é", "x"], "[é]");
        check("lib", &["lib/b.rs", "lib/a.rs"], "[lib]/b.rs [lib]/a.rs");
        check("lib rs", &["lib/b.rs", "lib/b.js"], "[lib]/b.[rs]");
    }

    #[test]
    fn matches_are_bounded_and_counted() {
        let paths: Vec<String> = (0..5000).map(|number| format!("dir/file{number}.rs")).collect();
        let ranked = rank("file", &paths, Ranking::Paths);
        assert_eq!((ranked.matches.len(), ranked.total), (MATCH_LIMIT, 5000));
        assert_eq!(ranked.matches[0].index, 0);
        let all = rank("", &paths, Ranking::Paths);
        assert_eq!((all.matches.len(), all.total), (MATCH_LIMIT, 5000));
    }

    #[test]
    fn the_best_of_many_is_the_best_of_few() {
        let good = ["crates/terminal/src/main.rs", "main.rs", "src/domain/main.rs", "m/a/i/n.rs"];
        let mut many: Vec<String> = (0..5000).map(|number| format!("docs/remainder{number}.md")).collect();
        let few = rank("main", &good, Ranking::Paths);
        many.splice(2500..2500, good.map(str::to_owned));
        let found = rank("main", &many, Ranking::Paths);
        assert_eq!(found.total, 5004);
        for (few, found) in few.matches.iter().zip(&found.matches).take(3) {
            assert_eq!((good[few.index], &few.matched), (many[found.index].as_str(), &found.matched));
        }
        // Upper case, and two words.
        assert_eq!(rank("MAIN", &many, Ranking::Paths).total, 0);
        assert_eq!(rank("main 4999", &many, Ranking::Paths).total, 1);
    }

    #[test]
    fn equal_words_keep_their_order() {
        let ranked = rank("a", &["ab", "a", "ac"], Ranking::Words);
        let order: Vec<_> = ranked.matches.iter().map(|found| found.index).collect();
        // But for the one that is the query itself: enter on `/model` must not run `/models`.
        assert_eq!(order, [1, 0, 2]);
    }
}
