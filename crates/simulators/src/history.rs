//! Earlier answers of a vendor, as far as later requests are compared with them.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// Number of facts that are kept. The oldest are dropped first: what they describe is then accepted as if another
/// server had said it.
const MAX_FACTS: usize = 20_000;

/// Facts by a key of the vendor's choice: the id of a call, the hash of a text.
#[derive(Debug, Default)]
pub struct AnswerHistory {
    facts: HashMap<String, Value>,
    order: VecDeque<String>,
}

impl AnswerHistory {
    pub fn remember(&mut self, key: impl Into<String>, fact: Value) {
        let key = key.into();
        if self.facts.insert(key.clone(), fact).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_FACTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.facts.remove(&oldest);
        }
    }

    pub fn recall(&self, key: &str) -> Option<&Value> {
        self.facts.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_oldest_facts_are_forgotten_first() {
        let mut history = AnswerHistory::default();
        for number in 0..=MAX_FACTS {
            history.remember(format!("k{number}"), json!(number));
        }
        assert_eq!(history.recall("k0"), None);
        assert_eq!(history.recall("k1"), Some(&json!(1)));
        history.remember("k1", json!("new"));
        assert_eq!(history.recall("k1"), Some(&json!("new")));
    }
}
