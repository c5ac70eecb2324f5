//! The simulated prompt cache: which part of a prompt was seen before, by the rules of each vendor.
//!
//! Entries do not expire: the duration of a test says nothing about its requests.

use std::collections::HashSet;

use serde_json::Value;

use crate::signature::digest;

/// Capacity for all accounts. When it is exceeded, the cache is cleared.
const MAX_ENTRIES: usize = 500_000;
/// Characters of a piece of a long text, in caches that match any prefix.
const PIECE: usize = 1500;

/// A part of a prompt that is cached as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub hash: String,
    pub tokens: u64,
    pub mark: Option<CacheMark>,
}

/// A place up to which the client asks to cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheMark {
    FiveMinutes,
    OneHour,
}

/// Input of a model, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInput {
    pub segments: Vec<Segment>,
    /// Separates caches of one account and model, where a vendor lets clients do that.
    pub key: String,
}

impl ModelInput {
    pub fn push(&mut self, content: &Value, tokens: u64, mark: Option<CacheMark>) {
        self.segments.push(Segment { hash: digest(&[&content.to_string()]), tokens, mark });
    }

    /// A long text in pieces, the first of which may be cached although the last are new. Only for vendors that match
    /// any prefix.
    pub fn push_text(&mut self, text: &str, count: impl Fn(&str) -> u64) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            self.segments.push(Segment { hash: digest(&[piece]), tokens: count(piece), mark: None });
            rest = after;
        }
    }

    pub fn tokens(&self) -> u64 {
        self.segments.iter().map(|segment| segment.tokens).sum()
    }

    /// Hash of everything.
    pub fn hash(&self) -> String {
        self.prefixes("").pop().map(|prefix| prefix.hash).unwrap_or_default()
    }

    fn prefixes(&self, scope: &str) -> Vec<Prefix> {
        let mut tokens = 0;
        let mut hash = digest(&[scope, &self.key]);
        let prefix = |segment: &Segment| {
            hash = digest(&[&hash, &segment.hash]);
            tokens += segment.tokens;
            Prefix { hash: hash.clone(), tokens }
        };
        self.segments.iter().map(prefix).collect()
    }
}

struct Prefix {
    hash: String,
    tokens: u64,
}

/// Caching rule of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    Never,
    /// Up to marks, which are found again within so many segments before a mark. Prompts below the minimum are not
    /// cached.
    Marked {
        minimum: u64,
        look_back: usize,
    },
    /// Any prefix, in steps of so many tokens. Some vendors charge for writes.
    Automatic {
        minimum: u64,
        step: u64,
        charges_writes: bool,
    },
}

/// Tokens that a prompt read from the cache and wrote to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hit {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// The part of `written` that is kept for an hour.
    pub(crate) written_hour: u64,
}

/// The caches of one vendor, for all accounts and models.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    entries: HashSet<String>,
}

impl PromptCache {
    /// Looks a prompt up and writes it. `scope` names account and model.
    pub(crate) fn apply(&mut self, scope: &str, prompt: &ModelInput, caching: Caching) -> Hit {
        if self.entries.len() > MAX_ENTRIES {
            self.entries.clear();
        }
        let prefixes = prompt.prefixes(scope);
        match caching {
            Caching::Never => Hit::default(),
            Caching::Marked { minimum, look_back } => self.marked(prompt, &prefixes, minimum, look_back),
            Caching::Automatic { minimum, step, charges_writes } => {
                let hit = self.automatic(&prefixes, minimum, step);
                if charges_writes { hit } else { Hit { written: 0, ..hit } }
            }
        }
    }

    fn marked(&mut self, prompt: &ModelInput, prefixes: &[Prefix], minimum: u64, look_back: usize) -> Hit {
        let marks = prompt.segments.iter().enumerate().filter(|(_, segment)| segment.mark.is_some());
        let marks: Vec<usize> = marks.map(|(at, _)| at).collect();
        let near = |mark: &usize| (mark.saturating_sub(look_back)..=*mark).rev();
        let known = |at: &usize| self.entries.contains(&prefixes[*at].hash);
        let read = marks.iter().filter_map(|mark| near(mark).find(known)).max();
        let read = read.map_or(0, |at| prefixes[at].tokens);
        let worth = || marks.iter().filter(|at| prefixes[**at].tokens >= minimum);
        let written = worth().map(|at| prefixes[*at].tokens).max().unwrap_or(0).saturating_sub(read);
        let for_hour = |at: &&usize| prompt.segments[**at].mark == Some(CacheMark::OneHour);
        let hour = worth().filter(for_hour).map(|at| prefixes[*at].tokens).max().unwrap_or(0);
        let written_hour = hour.saturating_sub(read);
        let new: Vec<_> = worth().map(|at| prefixes[*at].hash.clone()).collect();
        self.entries.extend(new);
        Hit { read, written, written_hour }
    }

    fn automatic(&mut self, prefixes: &[Prefix], minimum: u64, step: u64) -> Hit {
        let known = prefixes.iter().rev().find(|prefix| self.entries.contains(&prefix.hash));
        let read = known.map_or(0, |prefix| prefix.tokens / step * step);
        let read = if read >= minimum { read } else { 0 };
        let total = prefixes.last().map_or(0, |prefix| prefix.tokens);
        if total < minimum {
            return Hit { read, ..Hit::default() };
        }
        self.entries.extend(prefixes.iter().map(|prefix| prefix.hash.clone()));
        Hit { read, written: (total / step * step).saturating_sub(read), written_hour: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A prompt of segments like `tools:100` and `system:100*`, where the star is a mark.
    fn prompt(text: &str) -> ModelInput {
        let mut prompt = ModelInput::default();
        for word in text.split_whitespace() {
            let (name, tokens) = word.split_once(':').unwrap();
            let mark = tokens.ends_with('*').then_some(CacheMark::FiveMinutes);
            prompt.push(&json!(name), tokens.trim_end_matches('*').parse().unwrap(), mark);
        }
        prompt
    }

    fn check(caching: Caching, prompts: &[(&str, u64, u64)]) {
        let mut cache = PromptCache::default();
        for (text, read, written) in prompts {
            let hit = cache.apply("account/model", &prompt(text), caching);
            assert_eq!((hit.read, hit.written), (*read, *written), "{text}");
        }
        assert_eq!(cache.apply("account/other", &prompt(prompts[0].0), caching).read, 0);
    }

    #[test]
    fn marks_are_written_and_found_again_behind_what_was_appended() {
        check(
            Caching::Marked { minimum: 150, look_back: 20 },
            &[
                ("tools:100* system:100* a:10*", 0, 210),
                ("tools:100* system:100* a:10 b:10*", 210, 10),
                ("tools:100* system:100* x:10 b:10*", 200, 20),
                ("tools:100* other:100* a:10 b:10*", 0, 220),
            ],
        );
    }

    #[test]
    fn writes_for_an_hour_are_told_apart() {
        let mut cache = PromptCache::default();
        let mut marked = prompt("system:500* a:10*");
        marked.segments[0].mark = Some(CacheMark::OneHour);
        let hit = cache.apply("s", &marked, Caching::Marked { minimum: 1, look_back: 20 });
        assert_eq!((hit.written, hit.written_hour), (510, 500));
    }

    #[test]
    fn too_short_and_unmarked_prompts_are_not_cached() {
        let caching = Caching::Marked { minimum: 150, look_back: 20 };
        check(caching, &[("tools:100* a:10*", 0, 0), ("tools:100* a:10*", 0, 0)]);
        check(caching, &[("tools:1000 a:10", 0, 0), ("tools:1000 a:10", 0, 0)]);
    }

    #[test]
    fn a_mark_does_not_look_back_further_than_it_may() {
        let far = |between: usize| format!("system:500 {} end:10*", "x:1 ".repeat(between));
        for (between, read) in [(18, 500), (20, 0)] {
            let mut cache = PromptCache::default();
            let caching = Caching::Marked { minimum: 1, look_back: 20 };
            cache.apply("s", &prompt("system:500*"), caching);
            assert_eq!(cache.apply("s", &prompt(&far(between)), caching).read, read, "{between}");
        }
    }

    #[test]
    fn any_prefix_is_found_in_steps_from_the_minimum_on() {
        check(
            Caching::Automatic { minimum: 1024, step: 128, charges_writes: true },
            &[
                ("a:1000 b:100", 0, 1024),
                ("a:1000 b:100 c:1000", 1024, 1024),
                ("a:1000 b:100 c:1000 d:5", 2048, 0),
                ("a:1000 x:1000", 0, 1920),
            ],
        );
        check(
            Caching::Automatic { minimum: 1024, step: 128, charges_writes: false },
            &[("a:2000", 0, 0), ("a:2000", 1920, 0)],
        );
    }

    #[test]
    fn the_key_of_a_prompt_separates_caches() {
        let caching = Caching::Automatic { minimum: 1, step: 1, charges_writes: false };
        let mut cache = PromptCache::default();
        cache.apply("s", &prompt("a:10"), caching);
        let other = ModelInput { key: "k".into(), ..prompt("a:10") };
        assert_eq!(cache.apply("s", &other, caching).read, 0);
    }

    #[test]
    fn the_beginning_of_a_long_text_is_cached_though_its_end_changed() {
        let caching = Caching::Automatic { minimum: 1, step: 1, charges_writes: false };
        let mut cache = PromptCache::default();
        let long = |end: &str| {
            let mut prompt = ModelInput::default();
            prompt.push_text(&("x".repeat(PIECE) + end), |piece| piece.len() as u64);
            prompt
        };
        cache.apply("s", &long("monday"), caching);
        assert_eq!(cache.apply("s", &long("tuesday"), caching).read, PIECE as u64);
    }
}
