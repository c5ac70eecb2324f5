//! Counting the tokens of text in the newest vocabulary that OpenAI publishes, o200k.
//!
//! The vocabulary is a table in the binary: there is nothing to load, and it costs no memory until text is counted. Models of
//! other vendors publish none, and those that used an older one of OpenAI's have been retired: all are counted with this one,
//! and the usage that a provider reports corrects the count.

mod class;
mod layout;
mod merge;
mod split;
#[cfg(test)]
mod tests;
mod vocabulary;

use vocabulary::Vocabulary;

static O200K: Vocabulary = Vocabulary::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin")));

/// Number of tokens in `text`. Names of special tokens in it count as the text that they are.
pub fn count(text: &str) -> usize {
    let mut rest = text;
    let mut tokens = 0;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(split::piece(rest));
        tokens += merge::count(piece.as_bytes(), &O200K);
        rest = after;
    }
    tokens
}
