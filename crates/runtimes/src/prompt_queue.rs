//! Queue of prompts that wait for the current turn to end.

use std::collections::VecDeque;

/// More than a person writes while an agent works.
const LIMIT: usize = 64;

#[derive(Debug, Default)]
pub struct PromptQueue {
    prompts: VecDeque<String>,
}

/// Rejected prompt, as a message for its sender.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{LIMIT} messages are waiting already; this one was refused: {0:?}")]
pub struct PromptQueueFull(String);

/// Length of the excerpt in a warning about a lost prompt.
const REMINDER: usize = 80;

impl PromptQueue {
    pub fn push(&mut self, prompt: String) -> Result<(), PromptQueueFull> {
        if self.prompts.len() == LIMIT {
            return Err(PromptQueueFull(prompt.chars().take(REMINDER).collect()));
        }
        self.prompts.push_back(prompt);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<String> {
        self.prompts.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_come_in_order_and_one_too_many_is_named() {
        let mut waiting = PromptQueue::default();
        for number in 0..LIMIT {
            waiting.push(number.to_string()).unwrap();
        }
        let refused = waiting.push("x".repeat(1_000)).unwrap_err().to_string();
        let reminder = "x".repeat(REMINDER);
        assert_eq!(refused, format!("64 messages are waiting already; this one was refused: \"{reminder}\""));
        let all: Vec<String> = std::iter::from_fn(|| waiting.pop()).collect();
        assert_eq!(all, (0..LIMIT).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(waiting.push("again".to_owned()), Ok(()));
    }
}
