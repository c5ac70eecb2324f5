//! Token counts of requests. Counting is expensive, so each message is counted once.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{Message, ModelRequest, TokenCount, TokenMeter};
use crate::tool::ToolSpec;

/// Cache of the counts of the last request.
#[derive(Default)]
pub(crate) struct TokenCounts(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    system: Option<(Arc<str>, u64)>,
    tools: Option<(Arc<[Arc<ToolSpec>]>, u64)>,
    /// Counts by address. Holding the messages keeps their addresses from being reused.
    messages: HashMap<usize, (Arc<Message>, u64)>,
}

impl TokenCounts {
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
        let mut conversation = 0;
        for message in &request.messages {
            let address = Arc::as_ptr(message).addr();
            let count = match counted.messages.get(&address) {
                Some((_, count)) => *count,
                None => meter.message(message),
            };
            conversation += count;
            messages.insert(address, (Arc::clone(message), count));
        }
        counted.messages = messages;
        TokenCount { system, conversation, tools }
    }
}
