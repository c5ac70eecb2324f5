//! A vocabulary, read in place from the binary. `build.rs` writes it and describes the layout.

use super::layout::{self, GROUP, RANK_BITS};

const WORD: usize = 4;
/// Words before the slots: how many slots, how many tokens.
const HEAD: usize = 2;

#[derive(Clone, Copy)]
pub(super) struct Vocabulary {
    words: &'static [u8],
    slots: usize,
    tokens: usize,
}

impl Vocabulary {
    pub(super) const fn new(words: &'static [u8]) -> Self {
        Self { words, slots: word(words, 0) as usize, tokens: word(words, 1) as usize }
    }

    /// The rank of `token`, if it is one.
    pub(super) fn rank(&self, token: &[u8]) -> Option<u32> {
        let hash = layout::hash(token);
        let fingerprint = layout::fingerprint(hash);
        let mut at = hash as usize & (self.slots - 1);
        loop {
            let slot = word(self.words, HEAD + at);
            if slot == 0 {
                return None;
            }
            if slot >> RANK_BITS == fingerprint {
                let rank = (slot & ((1 << RANK_BITS) - 1)) - 1;
                if self.bytes(rank as usize) == token {
                    return Some(rank);
                }
            }
            at = (at + 1) & (self.slots - 1);
        }
    }

    fn bytes(&self, rank: usize) -> &'static [u8] {
        let starts = HEAD + self.slots;
        let lengths = (starts + self.tokens.div_ceil(GROUP)) * WORD;
        let length = |rank: usize| usize::from(self.words[lengths + rank]);
        let group = rank / GROUP;
        let before: usize = (group * GROUP..rank).map(length).sum();
        let start = lengths + self.tokens + word(self.words, starts + group) as usize + before;
        &self.words[start..start + length(rank)]
    }
}

const fn word(words: &[u8], at: usize) -> u32 {
    let at = at * WORD;
    u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
}
