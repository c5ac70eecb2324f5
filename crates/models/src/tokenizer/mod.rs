//! Counting the tokens of text in the vocabularies that OpenAI publishes.
//!
//! The vocabularies are tables in the binary: nothing is loaded, and an unused one takes no memory.

mod class;
mod hash;
mod merge;
mod split;
#[cfg(test)]
mod tests;
mod vocabulary;

use vocabulary::Vocabulary;

static O200K: Vocabulary = Vocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin")));
static CL100K: Vocabulary = Vocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.bin")));

/// A published vocabulary with its splitting rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    O200k,
    Cl100k,
}

impl Encoding {
    /// Models without a published vocabulary are counted with the newest one.
    pub fn of_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let old = name == "gpt-4"
            || ["gpt-4-", "gpt-3.5", "gpt-35-", "text-embedding-"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if old { Self::Cl100k } else { Self::O200k }
    }

    /// Number of tokens that `text` is encoded into. Names of special tokens in it count as ordinary text.
    pub fn count(self, text: &str) -> usize {
        let (split, vocabulary): (fn(&str) -> usize, _) = match self {
            Self::O200k => (split::o200k, &O200K),
            Self::Cl100k => (split::cl100k, &CL100K),
        };
        let mut rest = text;
        let mut tokens = 0;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(split(rest));
            tokens += merge::count(piece.as_bytes(), vocabulary);
            rest = after;
        }
        tokens
    }
}
