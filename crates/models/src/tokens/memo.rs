//! Counts that are known already. Every call to the model says again what the calls before it said, and most of it is the
//! same in all sessions; counting a text takes a hundred times as long as recognising it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::tokenizer;

/// Texts that are worth it; shorter ones are counted as quickly as they are looked up.
const SHORTEST: usize = 128;
/// Counts that are kept. When there are more, all are forgotten: those that matter are back with the next call.
const MOST: usize = 8192;

#[derive(Default)]
struct Memo {
    hasher: RandomState,
    counts: Mutex<HashMap<u64, u64>>,
}

static MEMO: LazyLock<Memo> = LazyLock::new(Memo::default);

/// The tokens of a text.
pub(super) fn count(text: &str) -> u64 {
    if text.len() < SHORTEST {
        return tokenizer::count(text) as u64;
    }
    // Two texts with one hash would share a count: once in some billions of texts a figure is off.
    let key = MEMO.hasher.hash_one(text);
    let lock = || MEMO.counts.lock();
    if let Some(count) = lock().get(&key) {
        return *count;
    }
    let count = tokenizer::count(text) as u64;
    let mut counts = lock();
    if counts.len() >= MOST {
        counts.clear();
    }
    counts.insert(key, count);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_same_the_first_time_and_later() {
        let text = "some words that are counted ".repeat(20);
        let plain = tokenizer::count(&text) as u64;
        assert_eq!([count(&text), count(&text)], [plain, plain]);
    }
}
