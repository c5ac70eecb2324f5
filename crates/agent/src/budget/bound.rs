//! Upper bounds of the input tokens of calls.
//!
//! No tokenizer makes more tokens of a text than it has bytes, so the bytes of a request are a bound for every model.
//! It is several times the count of most calls. Once the provider has reported the tokens of a request, requests that
//! extend it are bounded by that report plus the bytes that are new.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{Message, ModelRequest, Part, TokenMeter};
use crate::token_counts::{Sent, TokenCounts};
use crate::tool::ToolSpec;

/// Tokens that a vendor puts around a message: roles, ids, separators.
const MESSAGE_FRAME: usize = 32;
/// Tokens that a vendor puts around each call of an answer and its result.
const CALL_FRAME: usize = 64;
/// Tokens with which a vendor explains tools to a model, in addition to their definitions. Anthropic uses the most,
/// some 800.
const TOOLS_FRAME: usize = 1024;
/// Most tokens of an image, which do not depend on its bytes. Vendors scale images down; the largest that Hangar sends have
/// some 5,000.
const IMAGE_TOKENS: usize = 8192;
/// Conversations whose last report is remembered: those of the session, its agents and their summaries.
const REPORTS: usize = 32;
/// A report of less than this part of the counted tokens is taken to mean something else, such as uncached input only.
const CREDIBLE: f64 = 0.5;

/// Upper bounds of the input of one provider's calls.
pub(super) struct InputBounds {
    meter: Arc<dyn TokenMeter>,
    counts: TokenCounts,
    learned: Mutex<Learned>,
}

struct Learned {
    /// Newest last.
    reports: VecDeque<Report>,
    /// Highest ratio of reported tokens to the bound so far. Above one only for a provider that counts more tokens than
    /// there are bytes.
    ratio: f64,
}

/// Input tokens of a call, as the provider reported them.
struct Report {
    sent: SentRequest,
    tokens: u64,
}

/// Input of a call.
#[derive(Clone)]
pub(super) struct SentRequest {
    model: String,
    system: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    messages: Sent,
    bytes: u64,
    /// The bound that was returned for it.
    bound: u64,
    /// Whether a report is plausible, given the tokens that were counted.
    counted: u64,
}

impl InputBounds {
    pub(super) fn new(meter: Arc<dyn TokenMeter>) -> Self {
        let learned = Learned { reports: VecDeque::new(), ratio: 1.0 };
        Self { meter, counts: TokenCounts::default(), learned: Mutex::new(learned) }
    }

    /// Upper bound of the input tokens of a request.
    pub(super) fn of(&self, request: &ModelRequest) -> u64 {
        let bytes = bytes(request);
        let learned = self.learned.lock();
        let extended = learned.reports.iter().filter(|report| report.sent.is_start_of(request));
        let known =
            extended.map(|report| report.tokens.saturating_add(bytes.saturating_sub(report.sent.bytes)));
        let bound = known.fold(bytes, u64::min);
        (bound as f64 * learned.ratio).ceil() as u64
    }

    /// Notes a request, so that the report of its answer can be used. Counts its tokens, which takes time.
    pub(super) fn note(&self, request: &ModelRequest, bound: u64) -> Option<SentRequest> {
        Some(SentRequest {
            model: request.model.clone(),
            system: Arc::clone(&request.system),
            tools: Arc::clone(&request.tools),
            messages: Sent::of(request)?,
            bytes: bytes(request),
            bound,
            counted: self.counts.measure(&*self.meter, request).total(),
        })
    }

    /// Learns from the report of an answer. The ratio only grows; reports of a provider that has exceeded a bound are
    /// not used any more.
    pub(super) fn learn(&self, sent: SentRequest, tokens: u64) {
        let mut learned = self.learned.lock();
        if tokens > sent.bound {
            learned.ratio *= tokens as f64 / sent.bound.max(1) as f64;
            learned.reports.clear();
            return;
        }
        if learned.ratio > 1.0 || (tokens as f64) < sent.counted as f64 * CREDIBLE {
            return;
        }
        learned.reports.retain(|report| !report.sent.begins(&sent));
        if learned.reports.len() == REPORTS {
            learned.reports.pop_front();
        }
        learned.reports.push_back(Report { sent, tokens });
    }
}

impl SentRequest {
    /// Whether a request starts with the whole input of this one.
    fn is_start_of(&self, request: &ModelRequest) -> bool {
        self.model == request.model
            && self.system == request.system
            && self.tools == request.tools
            && self.messages.is_start_of(&request.messages)
    }

    /// Whether another request continues this one, so that it replaces it.
    fn begins(&self, other: &Self) -> bool {
        self.messages.has_same_start(&other.messages) && self.bytes <= other.bytes
    }
}

/// Bytes of a request, plus tokens for content whose bytes do not matter.
fn bytes(request: &ModelRequest) -> u64 {
    let tools: usize = request.tools.iter().map(|tool| tool.size() + MESSAGE_FRAME).sum();
    let frame = if request.tools.is_empty() { MESSAGE_FRAME } else { TOOLS_FRAME };
    let answer = request.answer.as_ref().map_or(0, |answer| {
        let described = answer.description.as_ref().map_or(0, String::len);
        MESSAGE_FRAME + answer.name.len() + described + answer.schema.to_string().len()
    });
    let messages: usize = request.messages.iter().map(|message| bytes_of(message)).sum();
    (request.system.len() + tools + frame + answer + messages) as u64
}

fn bytes_of(message: &Message) -> usize {
    let parts = |parts: &[Part]| -> usize {
        let of = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Image { .. } => IMAGE_TOKENS,
            // Its pages are read as text and as images.
            Part::Document { title, data, .. } => title.len() + data.len() + IMAGE_TOKENS,
        };
        parts.iter().map(of).sum()
    };
    let content = match message {
        Message::User(content) => parts(content),
        Message::Tool { call_id, parts: content, .. } => CALL_FRAME + call_id.len() + parts(content),
        Message::Assistant(turn) => {
            let calls = turn.tool_calls.iter();
            let calls: usize =
                calls.map(|call| CALL_FRAME + call.id.len() + call.name.len() + call.input.len()).sum();
            let items = turn.native.as_ref().map_or(0, |native| native.items.len());
            let reasoning = turn.reasoning.as_ref().map_or(0, |reasoning| {
                let hidden = [&reasoning.opaque, &reasoning.encrypted].into_iter().flatten();
                reasoning.text.len() + hidden.map(String::len).sum::<usize>()
            });
            turn.text.len() + calls + items + reasoning
        }
    };
    MESSAGE_FRAME + content
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Bytes;
    use crate::model::{Initiator, ToolChoice};

    fn text(text: &str) -> Arc<Message> {
        Arc::new(Message::User(vec![Part::Text(text.to_owned())]))
    }

    fn request(messages: &[Arc<Message>]) -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: "s".repeat(1000).into(),
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

    /// Makes a call whose input is reported as so many tokens; the bound that it had.
    fn call(bounds: &InputBounds, request: &ModelRequest, reported: u64) -> u64 {
        let bound = bounds.of(request);
        bounds.learn(bounds.note(request, bound).unwrap(), reported);
        bound
    }

    fn bounds() -> InputBounds {
        InputBounds::new(Arc::new(Bytes))
    }

    #[test]
    fn the_first_call_has_at_most_as_many_tokens_as_bytes() {
        assert_eq!(bounds().of(&request(&[text("abc")])), 1000 + 3 + 2 * MESSAGE_FRAME as u64);
        let image =
            Message::User(vec![Part::Image { mime_type: "image/png".to_owned(), data: "aa".to_owned() }]);
        assert!(
            bounds().of(&request(&[Arc::new(image)])) > IMAGE_TOKENS as u64,
            "a small file may be a large image"
        );
    }

    #[test]
    fn a_call_that_goes_on_has_what_was_reported_and_the_bytes_of_what_is_new() {
        let bounds = bounds();
        let (first, second, third) = (text("first"), text("second"), text("third"));
        call(&bounds, &request(&[Arc::clone(&first)]), 600);
        let longer = request(&[Arc::clone(&first), Arc::clone(&second)]);
        assert_eq!(bounds.of(&longer), 600 + 6 + MESSAGE_FRAME as u64);
        call(&bounds, &longer, 620);
        assert_eq!(bounds.of(&request(&[first, second, third])), 620 + 5 + MESSAGE_FRAME as u64);
    }

    #[test]
    fn another_beginning_is_bounded_by_its_bytes_again() {
        let bounds = bounds();
        let first = text("first");
        call(&bounds, &request(&[Arc::clone(&first)]), 600);
        let whole = bounds.of(&request(&[text("other")]));
        assert_eq!(whole, bounds.of(&request(&[text("third")])));
        let another = ModelRequest { model: "n".to_owned(), ..request(&[Arc::clone(&first)]) };
        let instructed = ModelRequest { system: "t".repeat(1000).into(), ..request(&[first]) };
        assert_eq!([bounds.of(&another), bounds.of(&instructed)], [whole; 2]);
    }

    #[test]
    fn a_report_of_a_part_of_the_input_is_not_relied_on() {
        let bounds = bounds();
        let first = text("first");
        let bound = call(&bounds, &request(&[Arc::clone(&first)]), 10);
        assert_eq!(bounds.of(&request(&[first])), bound);
    }

    #[test]
    fn a_provider_that_passes_a_bound_raises_all_that_follow() {
        let bounds = bounds();
        let first = text("first");
        let bound = call(&bounds, &request(&[Arc::clone(&first)]), 600);
        let sent = request(&[Arc::clone(&first)]);
        assert_eq!(bounds.of(&sent), 600);
        // The same request is reported as three times what it was.
        assert_eq!(call(&bounds, &sent, 1800), 600);
        assert_eq!(bounds.of(&sent), bound * 3);
        call(&bounds, &sent, 600);
        assert_eq!(bounds.of(&sent), bound * 3, "neither the ratio falls nor is a report relied on again");
    }

    #[test]
    fn conversations_beside_each_other_have_reports_of_their_own_and_only_so_many() {
        let bounds = bounds();
        let begins: Vec<Arc<Message>> = (0..=REPORTS).map(|number| text(&format!("{number:05}"))).collect();
        let whole = bounds.of(&request(&begins[..1]));
        for begin in &begins {
            call(&bounds, &request(&[Arc::clone(begin)]), 600);
            call(&bounds, &request(&[Arc::clone(begin)]), 600);
        }
        let bound_of = |at: usize| bounds.of(&request(&[Arc::clone(&begins[at])]));
        assert_eq!((bound_of(0), bound_of(1), bound_of(REPORTS)), (whole, 600, 600));
    }
}
