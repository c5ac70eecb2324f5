//! Hashing of tokens for the table lookup. The build script, which writes the tables, includes this file too.

/// Bits of a slot that hold the rank plus one; the rest is a fingerprint. A slot of zero is empty.
pub(crate) const RANK_BITS: u32 = 18;

/// FNV-1a, with the halves folded so that the low bits, which choose the slot, depend on every byte.
pub(crate) fn hash(token: &[u8]) -> u64 {
    let folded = token.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    folded ^ (folded >> 29)
}

/// Fingerprint that distinguishes most tokens without comparing their bytes.
pub(crate) fn fingerprint(hash: u64) -> u32 {
    (hash >> (64 - (32 - RANK_BITS))) as u32
}
