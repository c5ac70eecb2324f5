//! The layout of the vocabulary. The build script, which writes it, includes this file too.

/// Bits of a slot that hold the rank plus one; the rest is a fingerprint. A slot of zero is empty.
pub(crate) const RANK_BITS: u32 = 18;

/// Tokens whose first byte has an offset of its own; those behind it are found by their lengths.
pub(crate) const GROUP: usize = 16;

/// FNV-1a, with the halves folded so that the low bits, which choose the slot, depend on every byte.
pub(crate) fn hash(token: &[u8]) -> u64 {
    let folded = token.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    folded ^ (folded >> 29)
}

/// Tells most other tokens apart from one without looking at their bytes.
pub(crate) fn fingerprint(hash: u64) -> u32 {
    (hash >> (64 - (32 - RANK_BITS))) as u32
}
