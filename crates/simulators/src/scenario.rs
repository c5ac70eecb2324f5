//! Scenarios: the answers of a vendor, request by request, in a vendor-neutral format. Each vendor writes them in its
//! own.
//!
//! ```toml
//! [[turn]]
//! say = [
//!     { thinking = "The file must be read first." },
//!     { text = "I look.", phase = "commentary" },
//!     { call = "view", input = { path = "a.txt" } },
//! ]
//! expect = { absent = ["/temperature"], cached = 0.8 }
//!
//! [[turn]]
//! fail = { kind = "rate_limited", retry_after = 0.1 }
//!
//! [[turn]]
//! when = { prompt = "explore" }
//! say = [{ call = "bash", arguments = '{"command": "ls' }]
//! end = "length"
//!
//! [[turn]]
//! refuse = "prompt is too long"
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expectation::Expectation;

/// Number of turns that one simulator keeps. Markers describe longer conversations.
const MAX_TURNS: usize = 10_000;

/// Turns of a vendor, and expectations about the requests.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default, rename = "turn")]
    pub turns: Vec<ScenarioTurn>,
    /// Number of requests that may be answered in all.
    pub calls: Option<usize>,
    /// Least share of input from the cache, over all answers from this one on (`cached_from`, counted from 1).
    pub cached: Option<f64>,
    #[serde(default = "third")]
    pub cached_from: usize,
}

/// The first request writes a cache, the second may extend it: hits are expected from the third on.
fn third() -> usize {
    3
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("the scenario is not valid: {0}")]
    Invalid(#[from] toml::de::Error),
    #[error("the scenario has more than {MAX_TURNS} turns")]
    TooLong,
}

impl Scenario {
    /// Reads a scenario from TOML.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text)?;
        if scenario.turns.len() > MAX_TURNS {
            return Err(ScenarioError::TooLong);
        }
        Ok(scenario)
    }

    /// A scenario of turns without expectations.
    pub fn of(turns: impl IntoIterator<Item = ScenarioTurn>) -> Self {
        Self { turns: turns.into_iter().collect(), cached_from: third(), ..Self::default() }
    }
}

/// One answer, the request that it waits for, and expectations about it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawTurn")]
pub struct ScenarioTurn {
    /// Turns without it answer in order; a turn with it answers the next matching request, before the others.
    pub when: Option<RequestMatch>,
    pub act: Act,
    pub expect: Expectation,
}

/// The request that a turn waits for. All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestMatch {
    /// Part of the newest user message.
    pub prompt: Option<String>,
    pub model: Option<String>,
    /// Whether tools are offered.
    pub tools: Option<bool>,
}

/// Reaction of the vendor to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Say {
        pieces: Vec<AnswerPiece>,
        end: ScenarioEnd,
        faults: Vec<Fault>,
    },
    /// Answers with an error before any output.
    Fail(VendorFailure),
    /// The request must break a rule of the vendor, whose sentence contains this.
    Refuse {
        containing: String,
    },
}

impl ScenarioTurn {
    /// Sends these pieces and ends normally.
    pub fn say(pieces: impl IntoIterator<Item = AnswerPiece>) -> Self {
        Self::ending(pieces, ScenarioEnd::Natural)
    }

    pub fn ending(pieces: impl IntoIterator<Item = AnswerPiece>, end: ScenarioEnd) -> Self {
        let act = Act::Say { pieces: pieces.into_iter().collect(), end, faults: Vec::new() };
        Self { when: None, act, expect: Expectation::default() }
    }

    pub fn fail(kind: FailureKind) -> Self {
        Self { when: None, act: Act::Fail(VendorFailure::new(kind)), expect: Expectation::default() }
    }
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawPiece")]
pub enum AnswerPiece {
    Thinking(String),
    /// Thinking that is never shown, whatever the request asks.
    Redacted(String),
    Text {
        text: String,
        phase: Option<TextPhase>,
    },
    Call {
        tool: String,
        /// JSON, or free text for a custom tool. Cut input is not JSON.
        arguments: String,
    },
    /// A web search that the vendor runs itself. The next text cites its results.
    Search {
        query: String,
        found: Vec<WebPage>,
    },
    /// Silence in the stream.
    Wait(Duration),
    /// A keep-alive event.
    Ping,
}

impl AnswerPiece {
    pub fn thinking(text: &str) -> Self {
        Self::Thinking(text.to_owned())
    }

    pub fn text(text: &str) -> Self {
        Self::Text { text: text.to_owned(), phase: None }
    }

    pub fn call(tool: &str, arguments: &Value) -> Self {
        Self::Call { tool: tool.to_owned(), arguments: arguments.to_string() }
    }
}

/// A web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebPage {
    pub title: String,
    pub url: String,
}

/// Role of a text for the user, where a vendor reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPhase {
    Commentary,
    FinalAnswer,
}

impl TextPhase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Commentary => "commentary",
            Self::FinalAnswer => "final_answer",
        }
    }
}

/// How an answer ends.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioEnd {
    /// Done, or waiting for results if tools were called.
    #[default]
    Natural,
    /// The limit of output, perhaps inside a call.
    Length,
    /// The vendor asks for the same conversation again, to continue.
    Pause,
    Refusal,
    ContentFilter,
    /// The window is full in the middle of the answer.
    ContextWindow,
    /// An error inside the stream.
    Failed(VendorFailure),
    /// The connection breaks.
    Cut,
    /// A reason of the vendor's own.
    Other(String),
}

/// An error that is not the fault of the request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorFailure {
    pub kind: FailureKind,
    /// Seconds that the vendor asks to wait.
    pub retry_after: Option<f64>,
    /// Instead of the vendor's usual status, code and sentence for the kind.
    pub status: Option<u16>,
    pub code: Option<String>,
    pub message: Option<String>,
}

impl VendorFailure {
    pub fn new(kind: FailureKind) -> Self {
        Self { kind, retry_after: None, status: None, code: None, message: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    RateLimited,
    SlowDown,
    /// The account has no credit left. Never worth a retry.
    Quota,
    Overloaded,
    ServerError,
    Unauthorized,
    /// The prompt is longer than the window, whatever the count says.
    ContextLength,
    TooLarge,
    /// A policy forbids the prompt.
    Policy,
    /// An error that `status` and `code` describe.
    Other,
}

/// A stream quirk that was observed at some vendor. A wire that cannot have it ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Lines end in CR LF.
    Crlf,
    NoFinalBlankLine,
    /// Frames of two bytes, which cut characters.
    Crumbs,
    /// The stream is in gzip, whatever the client accepts.
    Gzip,
    /// Arguments of calls come character by character.
    Fragments,
    /// All calls have the index 0.
    IndexZero,
    NoCallId,
    /// All calls have the id of the first.
    SameCallId,
    /// The name of a call is in each of its fragments.
    NameTwice,
    ArgumentsAsObject,
    /// `{}` before the real arguments.
    DoubleArguments,
    NoDone,
    NoUsage,
    /// Usage inside the last choice.
    UsageInChoice,
    /// The id of an item differs in each of its events.
    ChangingItemIds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    when: Option<RequestMatch>,
    say: Option<Vec<AnswerPiece>>,
    end: Option<ScenarioEnd>,
    #[serde(default)]
    faults: Vec<Fault>,
    fail: Option<VendorFailure>,
    refuse: Option<String>,
    #[serde(default)]
    expect: Expectation,
}

impl TryFrom<RawTurn> for ScenarioTurn {
    type Error = String;

    fn try_from(raw: RawTurn) -> Result<Self, String> {
        let RawTurn { when, say, end, faults, fail, refuse, expect } = raw;
        let act = match (say, end, fail, refuse) {
            (None, None, Some(failure), None) => Act::Fail(failure),
            (None, None, None, Some(containing)) => Act::Refuse { containing },
            (None, None, None, None) => return Err("a turn has `say`, `end`, `fail` or `refuse`".to_owned()),
            (say, end, None, None) => {
                Act::Say { pieces: say.unwrap_or_default(), end: end.unwrap_or_default(), faults }
            }
            _ => return Err("a turn has only one of `say` with `end`, `fail` and `refuse`".to_owned()),
        };
        Ok(Self { when, act, expect })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPiece {
    thinking: Option<String>,
    redacted: Option<String>,
    text: Option<String>,
    phase: Option<TextPhase>,
    call: Option<String>,
    input: Option<Value>,
    arguments: Option<String>,
    search: Option<String>,
    #[serde(default)]
    found: Vec<WebPage>,
    wait: Option<f64>,
    ping: Option<bool>,
}

impl TryFrom<RawPiece> for AnswerPiece {
    type Error = String;

    fn try_from(raw: RawPiece) -> Result<Self, String> {
        let RawPiece { thinking, redacted, text, phase, call, input, arguments, search, found, wait, ping } =
            raw;
        match (thinking, redacted, text, call, search, wait, ping) {
            (Some(text), None, None, None, None, None, None) => Ok(Self::Thinking(text)),
            (None, Some(text), None, None, None, None, None) => Ok(Self::Redacted(text)),
            (None, None, Some(text), None, None, None, None) => Ok(Self::Text { text, phase }),
            (None, None, None, None, Some(query), None, None) => Ok(Self::Search { query, found }),
            (None, None, None, Some(tool), None, None, None) => {
                let arguments = arguments.unwrap_or_else(|| match input {
                    None => "{}".to_owned(),
                    Some(Value::String(text)) => text,
                    Some(value) => value.to_string(),
                });
                Ok(Self::Call { tool, arguments })
            }
            (None, None, None, None, None, Some(seconds), None) => Duration::try_from_secs_f64(seconds)
                .map(Self::Wait)
                .map_err(|_| format!("`wait = {seconds}` is no time")),
            (None, None, None, None, None, None, Some(true)) => Ok(Self::Ping),
            _ => Err("a piece is one of `thinking`, `redacted`, `text`, `call`, `search`, `wait` and `ping`"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_read_from_toml() {
        let scenario = Scenario::parse(
            r#"
            calls = 3
            [[turn]]
            say = [{ thinking = "t" }, { text = "a", phase = "commentary" }, { call = "bash", input = { n = 1 } }]
            faults = ["crlf"]
            expect = { absent = ["/temperature"], cached = 0.5 }
            [[turn]]
            when = { prompt = "explore" }
            say = [{ call = "bash", arguments = '{"n"' }]
            end = "length"
            [[turn]]
            end = { failed = { kind = "server_error" } }
            [[turn]]
            fail = { kind = "rate_limited", retry_after = 0.1 }
            [[turn]]
            refuse = "too long"
            "#,
        )
        .unwrap();
        let acts: Vec<_> = scenario.turns.iter().map(|turn| turn.act.clone()).collect();
        let call = AnswerPiece::Call { tool: "bash".into(), arguments: r#"{"n":1}"#.into() };
        let pieces = vec![
            AnswerPiece::thinking("t"),
            AnswerPiece::Text { text: "a".into(), phase: Some(TextPhase::Commentary) },
            call,
        ];
        let half = AnswerPiece::Call { tool: "bash".into(), arguments: r#"{"n""#.into() };
        let limited =
            VendorFailure { retry_after: Some(0.1), ..VendorFailure::new(FailureKind::RateLimited) };
        let failed = ScenarioEnd::Failed(VendorFailure::new(FailureKind::ServerError));
        assert_eq!(
            acts,
            [
                Act::Say { pieces, end: ScenarioEnd::Natural, faults: vec![Fault::Crlf] },
                Act::Say { pieces: vec![half], end: ScenarioEnd::Length, faults: vec![] },
                Act::Say { pieces: vec![], end: failed, faults: vec![] },
                Act::Fail(limited),
                Act::Refuse { containing: "too long".into() },
            ]
        );
        assert_eq!(scenario.turns[1].when.as_ref().unwrap().prompt.as_deref(), Some("explore"));
    }

    #[test]
    fn a_turn_that_means_two_things_is_not_read() {
        for (text, said) in [
            ("[[turn]]", "a turn has `say`"),
            ("[[turn]]\nsay = []\nrefuse = 'x'", "only one of"),
            ("[[turn]]\nsay = [{ text = 'a', thinking = 'b' }]", "a piece is one of"),
            ("[[turn]]\nsay = [{ wait = -1 }]", "is no time"),
            ("[[turn]]\nsya = []", "unknown field `sya`"),
        ] {
            let error = Scenario::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
