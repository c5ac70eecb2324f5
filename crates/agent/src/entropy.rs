//! Randomness that is handed in, so that a step given the same seed decides the same.

use std::time::Duration;

/// xoroshiro128+: fast, seedable, good enough for ids within a session and for jitter. Not for secrets.
#[derive(Debug, Clone)]
pub struct Entropy([u64; 2]);

impl Entropy {
    pub fn seeded(seed: u128) -> Self {
        // The generator has one invalid state: all zeros.
        Self([seed as u64 | 1, (seed >> 64) as u64])
    }

    fn next(&mut self) -> u64 {
        let [s0, mut s1] = self.0;
        let out = s0.wrapping_add(s1);
        s1 ^= s0;
        self.0 = [s0.rotate_left(24) ^ s1 ^ (s1 << 16), s1.rotate_left(37)];
        out
    }

    /// A UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }

    /// `base` extended by up to `share` of itself.
    pub fn jitter(&mut self, base: Duration, share: f64) -> Duration {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        base.mul_f64(1.0 + share * unit)
    }
}
