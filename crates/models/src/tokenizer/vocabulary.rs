//! A vocabulary, read in place from the binary. `build.rs` writes it and describes the layout.

use super::layout::{self, BUCKETS, ENTRY, GROUP, RANK_BITS};

const WORD: usize = 4;

#[derive(Clone, Copy)]
pub(super) struct Vocabulary {
    /// Number of entries before each group of buckets.
    starts: &'static [u8],
    /// Number of entries in each bucket.
    counts: &'static [u8],
    entries: &'static [u8],
}

impl Vocabulary {
    pub(super) const fn new(table: &'static [u8]) -> Self {
        let (starts, rest) = table.split_at(BUCKETS / GROUP * WORD);
        let (counts, entries) = rest.split_at(BUCKETS);
        Self { starts, counts, entries }
    }

    /// The rank of `token`, if it is one.
    pub(super) fn rank(&self, token: &[u8]) -> Option<u32> {
        let hash = layout::hash(token);
        let (bucket, fingerprint) = (layout::bucket(hash), layout::fingerprint(hash));
        let count = |bucket: usize| usize::from(self.counts[bucket]);
        let group = bucket / GROUP;
        let start = self.start(group) + (group * GROUP..bucket).map(count).sum::<usize>();
        let entries = &self.entries[start * ENTRY..(start + count(bucket)) * ENTRY];
        let found = entries.chunks_exact(ENTRY).map(value).find(|entry| entry >> RANK_BITS == fingerprint)?;
        Some((found & ((1 << RANK_BITS) - 1)) as u32)
    }

    fn start(&self, group: usize) -> usize {
        value(&self.starts[group * WORD..][..WORD]) as usize
    }
}

fn value(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
