//! A vocabulary, read in place from the binary. `build.rs` writes it and describes the layout.

use super::hash::{self, RANK_BITS};

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
        let hash = hash::hash(token);
        let fingerprint = hash::fingerprint(hash);
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
        let ends = HEAD + self.slots;
        let start = if rank == 0 { 0 } else { word(self.words, ends + rank - 1) as usize };
        let end = word(self.words, ends + rank) as usize;
        let base = (ends + self.tokens) * WORD;
        &self.words[base + start..base + end]
    }
}

const fn word(words: &[u8], at: usize) -> u32 {
    let at = at * WORD;
    u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
}
