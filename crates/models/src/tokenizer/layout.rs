//! The layout of the vocabulary. The build script, which writes it, includes this file too.
//!
//! The bytes of the tokens are not stored. An entry has the rank of a token and a fingerprint, and is found in the bucket that the hash
//! of the token chooses: text that is no token is taken for one in three of 10^9 lookups, which miscounts it by a token.

/// Buckets of entries, three entries each on average.
pub(crate) const BUCKETS: usize = 1 << 16;

/// Buckets whose first one has an offset of its own; those behind it are found by the numbers of entries.
pub(crate) const GROUP: usize = 16;

/// Bytes of an entry, little-endian: the rank in its low bits, the fingerprint in the others.
pub(crate) const ENTRY: usize = 6;

/// Bits of an entry that hold the rank.
pub(crate) const RANK_BITS: u32 = 18;

/// FNV-1a, finished so that every bit depends on every byte.
pub(crate) fn hash(token: &[u8]) -> u64 {
    let hash = token.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

pub(crate) fn bucket(hash: u64) -> usize {
    hash as usize % BUCKETS
}

/// Bits of the hash that no bucket is chosen by.
pub(crate) fn fingerprint(hash: u64) -> u64 {
    hash >> (64 - (8 * ENTRY as u32 - RANK_BITS))
}
