//! One model turn of a script: the prompt of a request, whether it fails, and the timing of its output.
//!
//! The provider in process and the dialects on the wire play the same turns; they differ in the format.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use hangar_agent::model::Finish;
use hyper::header::HeaderValue;
use tokio::time::Instant;

use super::script::{Script, ScriptPosition, ScriptStep, ScriptedFailure, ToolOffer, plan};

/// Number of `FAIL` steps whose use is remembered. A forgotten failure happens again.
const MAX_BUDGETS: usize = 4096;

/// Prompt and results of a request, collected message by message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    prompts: usize,
    /// The last message may turn out not to be a prompt.
    doubtful: bool,
    prompt: String,
    results: usize,
    last_result: String,
    offer: ToolOffer,
}

impl Asked {
    pub fn new(offer: ToolOffer) -> Self {
        Self {
            prompts: 0,
            doubtful: false,
            prompt: String::new(),
            results: 0,
            last_result: String::new(),
            offer,
        }
    }

    pub fn user(&mut self, text: String) {
        // Some clients send facts about the machine in a message of its own, before the user's.
        if !self.doubtful {
            self.prompts += 1;
        }
        self.doubtful = is_block(&text);
        self.prompt = text;
        self.results = 0;
        self.last_result.clear();
    }

    pub fn assistant(&mut self) {
        self.doubtful = false;
    }

    pub fn result(&mut self, text: String) {
        self.results += 1;
        self.last_result = text;
    }
}

/// One element `<name>…</name>` and nothing else.
fn is_block(text: &str) -> bool {
    let text = text.trim();
    let name = text.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
    name.is_some_and(|name| text.ends_with(&format!("</{name}>")))
}

/// A script in progress, with counts of the failures that have happened.
#[derive(Debug)]
pub struct Playbook {
    script: Script,
    spent: Mutex<HashMap<u64, u32>>,
    hasher: RandomState,
}

impl Playbook {
    pub fn new(script: Script) -> Self {
        Self { script, spent: Mutex::default(), hasher: RandomState::new() }
    }

    pub fn turn(&self, asked: &Asked) -> ScriptedTurn {
        let script = self.script.steps(&asked.prompt, asked.prompts);
        let position =
            ScriptPosition { results: asked.results, last_result: &asked.last_result, offer: asked.offer };
        let steps = plan(&script, position, self.script.default_answer());
        let failure = steps.iter().find_map(|step| match step {
            ScriptStep::Fail(failure) if self.fails_now(&asked.prompt, failure) => Some(failure.clone()),
            _ => None,
        });
        ScriptedTurn { steps, failure }
    }

    fn fails_now(&self, prompt: &str, failure: &ScriptedFailure) -> bool {
        let Some(times) = failure.times else { return true };
        let mut spent = self.spent.lock();
        if spent.len() >= MAX_BUDGETS {
            spent.clear();
        }
        let used = spent.entry(self.hasher.hash_one((prompt, failure))).or_insert(0);
        *used = used.saturating_add(1);
        *used <= times
    }

    /// Makes every failure happen again.
    pub(super) fn reset(&self) {
        self.spent.lock().clear();
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedTurn {
    pub steps: Vec<ScriptStep>,
    /// Set when the request fails instead. It fails before any output, wherever the step is in the turn.
    pub failure: Option<ScriptedFailure>,
}

impl ScriptedTurn {
    pub(super) fn finish(&self) -> Finish {
        let stop = self.steps.iter().rev().find_map(|step| match step {
            ScriptStep::Stop(finish) => Some(finish.clone()),
            _ => None,
        });
        stop.unwrap_or_else(|| {
            let calls = self
                .steps
                .iter()
                .any(|s| matches!(s, ScriptStep::Call { .. } | ScriptStep::ParallelCall { .. }));
            if calls { Finish::ToolCalls } else { Finish::Stop }
        })
    }

    /// The turn moment by moment. `id` makes the ids of its calls; it must be new for each request.
    pub(super) fn beats(self, id: &str) -> Beats {
        Beats { id: id.to_owned(), calls: 0, steps: self.steps.into_iter(), stream: None }
    }
}

/// One moment of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Beat {
    Wait(Duration),
    Say(TurnPiece),
    /// The answer breaks off; nothing follows.
    Cut,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TurnPiece {
    Text(String),
    Thinking(String),
    Call(ScriptedCall),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: String,
}

impl ScriptedCall {
    /// The input of a custom tool is free text. In a script, where a marker is one line, it may be a JSON string.
    pub(super) fn free_text(&self) -> String {
        serde_json::from_str(&self.input).unwrap_or_else(|_| self.input.clone())
    }
}

impl TurnPiece {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.len(),
            Self::Call(call) => call.input.len(),
        }
    }
}

/// Token count of so many bytes, as the scripted model reports it; at least one.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64 / 4).max(1)
}

/// Delay that later waits may make up for. Timers have millisecond resolution and wake late, and a stream of small
/// waits would otherwise run at half its speed; a reader that is slow for longer slows the script down.
const LATENESS: Duration = Duration::from_millis(10);

/// Clock of a turn: each wait is counted from when the last one should have ended, not from when it did.
#[derive(Debug)]
pub(super) struct Pace {
    due: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { due: Instant::now() }
    }

    pub(super) async fn wait(&mut self, delay: Duration) {
        let now = Instant::now();
        self.due = self.due.max(now.checked_sub(LATENESS).unwrap_or(now)) + delay;
        tokio::time::sleep_until(self.due).await;
    }
}

/// Expands a turn as it is played: `STREAM` may mean a million pieces.
#[derive(Debug)]
pub(super) struct Beats {
    id: String,
    calls: usize,
    steps: std::vec::IntoIter<ScriptStep>,
    stream: Option<Pieces>,
}

#[derive(Debug)]
struct Pieces {
    next: u32,
    count: u32,
    every: Duration,
    waited: bool,
}

impl Pieces {
    fn beat(&mut self) -> Option<Beat> {
        if self.next == self.count {
            return None;
        }
        if self.next > 0 && !self.every.is_zero() && !self.waited {
            self.waited = true;
            return Some(Beat::Wait(self.every));
        }
        self.waited = false;
        self.next += 1;
        Some(Beat::Say(TurnPiece::Text(format!("tok{} ", self.next - 1))))
    }
}

impl Iterator for Beats {
    type Item = Beat;

    fn next(&mut self) -> Option<Beat> {
        loop {
            if let Some(beat) = self.stream.as_mut().and_then(Pieces::beat) {
                return Some(beat);
            }
            self.stream = None;
            match self.steps.next()? {
                ScriptStep::Say(text) => return Some(Beat::Say(TurnPiece::Text(text))),
                ScriptStep::Think(text) => return Some(Beat::Say(TurnPiece::Thinking(text))),
                ScriptStep::Stream { pieces, every } => {
                    self.stream = Some(Pieces { next: 0, count: pieces, every, waited: false });
                }
                ScriptStep::Call { tool, input } | ScriptStep::ParallelCall { tool, input } => {
                    let id = format!("call_{}_{}", self.id, self.calls);
                    self.calls += 1;
                    return Some(Beat::Say(TurnPiece::Call(ScriptedCall { id, tool, input })));
                }
                ScriptStep::Delay(delay) => return Some(Beat::Wait(delay)),
                ScriptStep::Drop => return Some(Beat::Cut),
                // A used-up failure, and a stop reason, which was read before the turn began.
                ScriptStep::Fail(_) | ScriptStep::Stop(_) => {}
            }
        }
    }
}

/// Message of the error body for an HTTP status, in providers' words.
impl ScriptedFailure {
    pub(super) fn message(&self) -> String {
        format!("mock failure {}", self.status)
    }

    /// The value of the `Retry-After` header.
    pub(super) fn retry_after(&self) -> Option<HeaderValue> {
        self.retry_after.and_then(|after| after.as_secs_f64().to_string().parse().ok())
    }

    pub(super) fn error_type(&self) -> &'static str {
        match self.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        }
    }

    pub(super) fn code(&self) -> Option<&'static str> {
        match self.status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(messages: &[(&str, &str)]) -> Asked {
        let mut asked = Asked::new(ToolOffer::Tools);
        for (role, text) in messages {
            match *role {
                "user" => asked.user((*text).to_owned()),
                "assistant" => asked.assistant(),
                _ => asked.result((*text).to_owned()),
            }
        }
        asked
    }

    fn played(playbook: &Playbook, messages: &[(&str, &str)]) -> String {
        let turn = playbook.turn(&asked(messages));
        if let Some(failure) = turn.failure {
            return failure.message();
        }
        let steps: Vec<_> = turn.steps.iter().map(ToString::to_string).collect();
        steps.join(" ")
    }

    #[test]
    fn a_script_file_answers_each_prompt_with_its_own_turn() {
        let playbook = Playbook::new(Script::parse("SAY:one\n---\nTOOL:t:{}\n---\n").unwrap());
        assert_eq!(played(&playbook, &[("user", "a")]), "SAY:one");
        assert_eq!(played(&playbook, &[("user", "a"), ("user", "b")]), "TOOL:t:{}");
        assert_eq!(played(&playbook, &[("user", "a"), ("user", "b"), ("tool", "r")]), "SAY:done: r");
        assert_eq!(played(&playbook, &[("user", "a"), ("user", "b"), ("user", "c")]), "SAY:pong");
        assert_eq!(played(&playbook, &[("user", "a"); 4]), "SAY:pong");
    }

    #[test]
    fn markers_in_a_prompt_go_before_the_file() {
        let playbook = Playbook::new(Script::parse("SAY:from the file").unwrap());
        assert_eq!(played(&playbook, &[("user", "SAY:from the prompt")]), "SAY:from the prompt");
    }

    #[test]
    fn a_description_of_the_machine_before_a_prompt_is_not_counted() {
        let playbook = Playbook::new(Script::parse("SAY:one\n---\nSAY:two").unwrap());
        let about = ("user", "<environment>\n<cwd>/x</cwd>\n</environment>\n");
        let answered = ("assistant", "");
        assert_eq!(played(&playbook, &[about, ("user", "a")]), "SAY:one");
        assert_eq!(played(&playbook, &[about, ("user", "a"), answered, about, ("user", "b")]), "SAY:two");
        assert_eq!(played(&playbook, &[("user", "<b>half"), ("user", "a")]), "SAY:two");
    }

    #[test]
    fn a_notice_that_is_answered_is_a_prompt() {
        let playbook = Playbook::new(Script::parse("SAY:one\n---\nSAY:two\n---\nSAY:three").unwrap());
        let (notice, answered) = (("user", "<notice>ready</notice>"), ("assistant", ""));
        assert_eq!(played(&playbook, &[("user", "a"), answered, notice]), "SAY:two");
        assert_eq!(
            played(&playbook, &[("user", "a"), answered, notice, answered, ("user", "b")]),
            "SAY:three"
        );
    }

    #[test]
    fn a_failure_happens_as_often_as_it_says_for_each_prompt() {
        let playbook = Playbook::new(Script::default());
        let prompt = [("user", "FAIL:500:2\nSAY:ok")];
        let answers: Vec<_> = (0..3).map(|_| played(&playbook, &prompt)).collect();
        assert_eq!(answers, ["mock failure 500", "mock failure 500", "FAIL:500:2 SAY:ok"]);
        assert_eq!(played(&playbook, &[("user", "FAIL:500:2\nSAY:other")]), "mock failure 500");
        playbook.reset();
        assert_eq!(played(&playbook, &prompt), "mock failure 500");
    }

    #[test]
    fn a_failure_without_a_number_happens_always() {
        let playbook = Playbook::new(Script::default());
        for _ in 0..3 {
            assert_eq!(played(&playbook, &[("user", "SAY:never said\nFAIL:401")]), "mock failure 401");
        }
    }

    /// End times of waits of so many milliseconds, each after the reader has been busy for so long.
    async fn ends(waits: &[(u64, u64)]) -> Vec<u64> {
        let begun = Instant::now();
        let mut pace = Pace::new();
        let mut ends = Vec::new();
        for (busy, wait) in waits {
            tokio::time::advance(Duration::from_millis(*busy)).await;
            pace.wait(Duration::from_millis(*wait)).await;
            ends.push(begun.elapsed().as_millis() as u64);
        }
        ends
    }

    #[tokio::test(start_paused = true)]
    async fn a_little_lateness_is_made_up_for_and_much_is_not() {
        assert_eq!(ends(&[(0, 5), (2, 5), (0, 5)]).await, [5, 10, 15]);
        assert_eq!(ends(&[(0, 5), (100, 50), (0, 5)]).await, [5, 145, 150]);
    }

    #[test]
    fn pieces_are_parted_by_waits_and_calls_are_numbered() {
        let prompt = "STREAM:2:5\nPTOOL:a:1\nSTREAM:0\nDELAY:7\nTOOL:b:2";
        let turn = Playbook::new(Script::default()).turn(&asked(&[("user", prompt)]));
        assert_eq!(turn.finish(), Finish::ToolCalls);
        let call = |id: &str, tool: &str, input: &str| {
            Beat::Say(TurnPiece::Call(ScriptedCall { id: id.into(), tool: tool.into(), input: input.into() }))
        };
        let beats: Vec<_> = turn.beats("x").collect();
        assert_eq!(
            beats,
            [
                Beat::Say(TurnPiece::Text("tok0 ".into())),
                Beat::Wait(Duration::from_millis(5)),
                Beat::Say(TurnPiece::Text("tok1 ".into())),
                call("call_x_0", "a", "1"),
                Beat::Wait(Duration::from_millis(7)),
                call("call_x_1", "b", "2"),
            ]
        );
    }
}
