//! Cache of token counts. Every model call repeats the content of earlier calls, most of which is the same in all
//! sessions; counting a text takes a hundred times as long as looking it up.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::tokenizer::Encoding;

/// Shortest text that is cached; shorter ones are counted as quickly as they are looked up.
const SHORTEST: usize = 128;
/// Capacity. When it is exceeded, the cache is cleared: the entries that matter are back with the next call.
const MOST: usize = 8192;

#[derive(Default)]
struct Memo {
    hasher: RandomState,
    counts: Mutex<HashMap<(Encoding, u64), u64>>,
}

static MEMO: LazyLock<Memo> = LazyLock::new(Memo::default);

/// The tokens of a text.
pub(super) fn count(encoding: Encoding, text: &str) -> u64 {
    if text.len() < SHORTEST {
        return encoding.count(text) as u64;
    }
    // Two texts with the same hash would share a count: once in some billions of texts a number is wrong.
    let key = (encoding, MEMO.hasher.hash_one(text));
    let lock = || MEMO.counts.lock();
    if let Some(count) = lock().get(&key) {
        return *count;
    }
    let count = encoding.count(text) as u64;
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
        for model in ["gpt-4o", "gpt-4"] {
            let encoding = Encoding::of_model(model);
            let plain = encoding.count(&text) as u64;
            assert_eq!([count(encoding, &text), count(encoding, &text)], [plain, plain]);
        }
    }
}
