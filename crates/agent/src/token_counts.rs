//! Token counts of requests. Counting is expensive, so each message is counted once; the provider's report of the last
//! request takes precedence over our count.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{Message, ModelRequest, TokenCount, TokenMeter};
use crate::tool::ToolSpec;

/// Largest relative difference between a reported and our own count of the same tokens. Scripted models and some
/// gateways report numbers that mean something else.
const BELIEVED: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Cache of the counts of the last request.
#[derive(Default)]
pub(crate) struct TokenCounts(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    system: Option<(Arc<str>, u64)>,
    tools: Option<(Arc<[Arc<ToolSpec>]>, u64)>,
    /// Counts by address. Holding the messages keeps their addresses from being reused.
    messages: HashMap<usize, (Arc<Message>, u64)>,
    reported: Option<Reported>,
}

/// Messages that were sent, identified by their first and last one.
#[derive(Clone)]
pub(crate) struct Sent {
    first: Arc<Message>,
    last: Arc<Message>,
    messages: usize,
}

/// Input tokens of a request, as the provider counted them.
struct Reported {
    sent: Sent,
    tokens: u64,
}

impl Sent {
    pub(crate) fn of(request: &ModelRequest) -> Option<Self> {
        let (first, last) = (request.messages.first()?, request.messages.last()?);
        Some(Self { first: Arc::clone(first), last: Arc::clone(last), messages: request.messages.len() })
    }

    pub(crate) fn is_start_of(&self, messages: &[Arc<Message>]) -> bool {
        let same = |at: usize, known: &Arc<Message>| {
            messages.get(at).is_some_and(|message| Arc::ptr_eq(message, known))
        };
        same(0, &self.first) && same(self.messages - 1, &self.last)
    }

    /// Whether another part begins with the same message.
    pub(crate) fn has_same_start(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.first, &other.first)
    }
}

impl TokenCounts {
    /// Remembers the input tokens that a request had.
    pub(crate) fn report(&self, sent: Sent, tokens: u64) {
        self.0.lock().reported = Some(Reported { sent, tokens });
    }

    pub(crate) fn measure(&self, meter: &dyn TokenMeter, request: &ModelRequest) -> TokenCount {
        let mut counted = self.0.lock();
        let system = match &counted.system {
            Some((known, count)) if *known == request.system => *count,
            _ => meter.system(&request.system),
        };
        counted.system = Some((Arc::clone(&request.system), system));
        let tools = match &counted.tools {
            Some((known, count)) if *known == request.tools => *count,
            _ => meter.tools(&request.tools),
        };
        counted.tools = Some((Arc::clone(&request.tools), tools));
        let mut messages = HashMap::with_capacity(request.messages.len());
        let mut counts = Vec::with_capacity(request.messages.len());
        for message in &request.messages {
            let address = Arc::as_ptr(message).addr();
            let count = match counted.messages.get(&address) {
                Some((_, count)) => *count,
                None => meter.message(message),
            };
            counts.push(count);
            messages.insert(address, (Arc::clone(message), count));
        }
        counted.messages = messages;
        let conversation = counts.iter().sum();
        let count = TokenCount { system, conversation, tools };
        match &counted.reported {
            Some(reported) if reported.sent.is_start_of(&request.messages) => {
                reported.correct(count, &counts)
            }
            _ => count,
        }
    }
}

impl Reported {
    /// The count, with the provider's count for the part that was sent.
    fn correct(&self, count: TokenCount, messages: &[u64]) -> TokenCount {
        let (sent, new) = messages.split_at(self.sent.messages);
        let fixed = count.system + count.tools;
        let counted = fixed + sent.iter().sum::<u64>();
        let ratio = self.tokens as f64 / counted.max(1) as f64;
        if !BELIEVED.contains(&ratio) {
            return count;
        }
        let scaled = |tokens: u64| (tokens as f64 * ratio).round() as u64;
        let (system, tools) = (scaled(count.system), scaled(count.tools));
        let conversation = self.tokens.saturating_sub(system + tools) + scaled(new.iter().sum());
        TokenCount { system, tools, conversation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Initiator, Part, ToolChoice};

    /// Counts a token for each byte.
    struct Bytes;

    impl TokenMeter for Bytes {
        fn system(&self, text: &str) -> u64 {
            text.len() as u64
        }

        fn message(&self, message: &Message) -> u64 {
            match message {
                Message::User(parts) => {
                    parts.iter().map(|part| matches!(part, Part::Text(text) if !text.is_empty())).count()
                        as u64
                        * 10
                }
                _ => 0,
            }
        }

        fn tools(&self, _tools: &[Arc<ToolSpec>]) -> u64 {
            0
        }
    }

    fn request(messages: &[Arc<Message>]) -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: "0123456789".into(),
            messages: messages.to_vec(),
            tools: [].into(),
            late_tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            effort: None,
            stream: false,
            initiator: Initiator::User,
            session_id: String::new(),
            headers: Vec::new(),
            answer: None,
            max_output_tokens: None,
        }
    }

    /// Two messages are sent and reported as `tokens`; then `next` is measured.
    fn check(tokens: u64, next: impl Fn(&[Arc<Message>; 3]) -> Vec<Arc<Message>>, total: u64) {
        let message = || Arc::new(Message::User(vec![Part::Text("x".to_owned())]));
        let all = [message(), message(), message()];
        let counts = TokenCounts::default();
        let sent = request(&all[..2]);
        assert_eq!(counts.measure(&Bytes, &sent).total(), 30);
        counts.report(Sent::of(&sent).unwrap(), tokens);
        assert_eq!(counts.measure(&Bytes, &request(&next(&all))).total(), total);
    }

    #[test]
    fn a_reported_count_replaces_the_counted_one_and_scales_what_is_new() {
        check(30, |all| all.to_vec(), 40);
        check(45, |all| all.to_vec(), 60);
        check(45, |all| all[..2].to_vec(), 45);
    }

    #[test]
    fn a_conversation_that_was_rewritten_is_counted_again() {
        check(45, |all| all[1..].to_vec(), 30);
        check(45, |all| vec![Arc::clone(&all[0]), Arc::clone(&all[2])], 30);
    }

    #[test]
    fn a_report_that_cannot_be_right_is_not_believed() {
        check(3, |all| all.to_vec(), 40);
        check(3000, |all| all.to_vec(), 40);
    }
}
