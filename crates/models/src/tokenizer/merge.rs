//! Byte-pair encoding of one piece: join the pair of neighbours with the lowest rank until none is a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::Vocabulary;

/// A longer piece is counted in parts of this length, each wrong by a token or two: ten megabytes without whitespace
/// would otherwise take seconds and hundreds of megabytes.
const LONGEST: usize = 16 << 10;

/// Number of tokens that `piece` is encoded into.
pub(super) fn count(piece: &[u8], vocabulary: &Vocabulary) -> usize {
    if piece.len() == 1 || vocabulary.rank(piece).is_some() {
        return 1;
    }
    piece.chunks(LONGEST).map(|stretch| Parts::new(stretch).merge(vocabulary)).sum()
}

/// The piece as a list of parts that are merged. A heap of candidate pairs keeps long pieces (base64, minified code) at
/// n log n.
struct Parts<'a> {
    piece: &'a [u8],
    /// By the start of a part: its end, or 0 for a part that was merged into its left neighbour.
    ends: Vec<usize>,
    /// By the start of a part: the start of its left neighbour.
    lefts: Vec<usize>,
    /// Rank, start and end of the merged pair. Entries whose pair has changed since are skipped.
    candidates: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl<'a> Parts<'a> {
    fn new(piece: &'a [u8]) -> Self {
        Self {
            piece,
            ends: (1..=piece.len()).collect(),
            lefts: (0..piece.len()).map(|start| start.saturating_sub(1)).collect(),
            candidates: BinaryHeap::with_capacity(piece.len()),
        }
    }

    fn merge(mut self, vocabulary: &Vocabulary) -> usize {
        let mut parts = self.piece.len();
        for start in 0..parts - 1 {
            self.offer(start, vocabulary);
        }
        while let Some(Reverse((_, start, end))) = self.candidates.pop() {
            if !self.is_pair(start, end) {
                continue;
            }
            let joined = self.ends[start];
            self.ends[joined] = 0;
            self.ends[start] = end;
            parts -= 1;
            if let Some(left) = self.lefts.get_mut(end) {
                *left = start;
                self.offer(start, vocabulary);
            }
            if start > 0 {
                self.offer(self.lefts[start], vocabulary);
            }
        }
        parts
    }

    /// Whether the part at `start` and its right neighbour still extend from `start` to `end`.
    fn is_pair(&self, start: usize, end: usize) -> bool {
        let middle = self.ends[start];
        middle != 0 && middle < end && self.ends[middle] == end
    }

    /// Makes the part at `start` and its right neighbour a candidate, if together they are a token.
    fn offer(&mut self, start: usize, vocabulary: &Vocabulary) {
        let Some(end) = self.ends.get(self.ends[start]).copied() else { return };
        if let Some(rank) = vocabulary.rank(&self.piece[start..end]) {
            self.candidates.push(Reverse((rank, start, end)));
        }
    }
}
