//! A vendor with a scenario, a cache and a record: everything but the socket.

use std::fs::File;

use hangar_models::scripted::Script;
use hangar_models::scripted::markers::Playbook;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::PromptCache;
use crate::history::AnswerHistory;
use crate::markers;
use crate::record::{Exchange, ExchangeRecord, Failures, RequestOutcome, UsageTotals};
use crate::refusal::Refusal;
use crate::request::{Request, Strictness};
use crate::scenario::{Act, AnswerPiece, Fault, RequestMatch, Scenario, ScenarioEnd, ScenarioTurn};
use crate::signature::digest;
use crate::stream::VendorResponse;
use crate::tokens::TokenCounter;
use crate::usage::Usage;
use crate::vendor::{Accepted, PlannedAnswer, Vendor};

/// Creation time of the first answer. The real clock is not used, so that the same requests get the same answers.
const EPOCH: u64 = 1_790_000_000;
/// Characters of an id.
const ID: usize = 18;

/// A simulated vendor.
pub struct Simulator {
    name: String,
    vendor: Box<dyn Vendor>,
    strictness: Strictness,
    playbook: Playbook,
    state: Mutex<State>,
}

struct State {
    play: Play,
    history: AnswerHistory,
    cache: PromptCache,
    record: ExchangeRecord,
}

impl Simulator {
    /// A strict simulator that answers as the markers in prompts say.
    pub fn new(name: &str, vendor: Box<dyn Vendor>) -> Self {
        let state = State {
            play: Play::new(Scenario::default()),
            history: AnswerHistory::default(),
            cache: PromptCache::default(),
            record: ExchangeRecord::default(),
        };
        Self {
            name: name.to_owned(),
            vendor,
            strictness: Strictness::Strict,
            playbook: Playbook::new(Script::default()),
            state: Mutex::new(state),
        }
    }

    /// Plays a scenario. After its turns, markers apply again.
    #[must_use]
    pub fn with_scenario(self, scenario: Scenario) -> Self {
        self.state.lock().play = Play::new(scenario);
        self
    }

    /// Uses a script for requests that neither a scenario nor a marker answers.
    #[must_use]
    pub fn with_script(mut self, script: Script) -> Self {
        self.playbook = Playbook::new(script);
        self
    }

    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Appends each exchange to a file, as a line of JSON.
    #[must_use]
    pub fn with_log(self, file: File) -> Self {
        self.state.lock().record.log_to(file);
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn strictness(&self) -> Strictness {
        self.strictness
    }

    /// Replaces the rest of the scenario, between two parts of a test.
    pub fn play(&self, scenario: Scenario) {
        self.state.lock().play = Play::new(scenario);
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request) -> VendorResponse {
        if let Some(aside) = self.vendor.aside(request) {
            return aside;
        }
        let mut state = self.state.lock();
        match self.vendor.check(request, &state.history) {
            Ok(accepted) => self.accept(&mut state, request, &accepted),
            Err(refusal) => {
                let expected = state.play.expects(&refusal);
                state.record.push(request, RequestOutcome::Refused { refusal: refusal.clone(), expected });
                refusal.into()
            }
        }
    }

    fn accept(&self, state: &mut State, request: &Request, accepted: &Accepted) -> VendorResponse {
        let number = state.record.totals.requests + 1;
        while let Some(containing) = state.play.take_missed_refusal(accepted) {
            state.record.problem(format!("request {number} should have been refused with `{containing}`"));
        }
        for violation in &accepted.violations {
            state.record.problem(format!("request {number}: {violation}"));
        }
        let turn = state.play.next(accepted);
        let (act, expect) = match turn {
            Some(ScenarioTurn { act, expect, .. }) => (act, expect),
            None => (markers::act(self.playbook.turn(&accepted.asked)), Default::default()),
        };
        let (usage, answer) = match act {
            Act::Say { mut pieces, end, faults } => {
                let is_thought = |piece: &AnswerPiece| {
                    matches!(piece, AnswerPiece::Thinking(_) | AnswerPiece::Redacted(_))
                };
                pieces.retain(|piece| accepted.thinks || !is_thought(piece));
                let is_search = |piece: &AnswerPiece| matches!(piece, AnswerPiece::Search { .. });
                if !accepted.searches && pieces.iter().any(is_search) {
                    let problem = format!("request {number} does not offer the search that its turn makes");
                    state.record.problem(problem);
                    pieces.retain(|piece| !is_search(piece));
                }
                let (usage, answer) = self.say(state, request, accepted, pieces, end, faults);
                (Some(usage), answer)
            }
            Act::Fail(failure) => {
                let refusal = self.vendor.fail(accepted, &failure);
                state.record.push(request, RequestOutcome::Failed { status: refusal.status });
                (None, refusal.into())
            }
            // Taken before.
            Act::Refuse { .. } => unreachable!("turns that refuse are taken before others"),
        };
        if !expect.drops && !accepted.dropped.is_empty() {
            let places = accepted.dropped.join(", ");
            state.record.problem(format!("request {number}: thinking of this turn was dropped: {places}"));
        }
        for unmet in expect.unmet(&request.body, usage.as_ref()) {
            state.record.problem(format!("request {number}: {unmet}"));
        }
        answer
    }

    fn say(
        &self,
        state: &mut State,
        request: &Request,
        accepted: &Accepted,
        pieces: Vec<AnswerPiece>,
        end: ScenarioEnd,
        faults: Vec<Fault>,
    ) -> (Usage, VendorResponse) {
        let scope = format!("{}/{}", accepted.account, accepted.model);
        let hit = state.cache.apply(&scope, &accepted.prompt, accepted.caching);
        let (output, reasoning) = count(accepted, &pieces);
        let is_search = |piece: &&AnswerPiece| matches!(piece, AnswerPiece::Search { .. });
        let usage = Usage {
            searches: pieces.iter().filter(is_search).count() as u64,
            input: accepted.prompt.tokens(),
            cache_read: hit.read,
            cache_write: hit.written,
            cache_write_hour: hit.written_hour,
            output,
            reasoning,
        };
        let cost = accepted.price.of(&usage);
        let number = state.record.totals.requests;
        let seed = digest(&[&self.name, &scope, &accepted.prompt.hash(), &number.to_string()]);
        let reply = PlannedAnswer {
            id: seed[..ID].to_owned(),
            created: EPOCH + number as u64,
            pieces,
            end,
            faults,
            usage,
            cost,
        };
        let answer = self.vendor.encode(accepted, &reply, &mut state.history).with_faults(&reply.faults);
        let (model, foreign) = (accepted.model.clone(), accepted.foreign.clone());
        state.record.push(request, RequestOutcome::Answered { model, usage, cost, foreign });
        (usage, answer)
    }

    /// The requests for answers so far, oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().record.exchanges()
    }

    /// Refusals that the scenario did not expect.
    pub fn refusals(&self) -> Vec<Refusal> {
        let exchanges = self.exchanges().into_iter();
        let refused = exchanges.filter_map(|exchange| match exchange.outcome {
            RequestOutcome::Refused { refusal, expected: false } => Some(refusal),
            RequestOutcome::Refused { .. }
            | RequestOutcome::Answered { .. }
            | RequestOutcome::Failed { .. } => None,
        });
        refused.collect()
    }

    pub fn totals(&self) -> UsageTotals {
        self.state.lock().record.totals
    }

    /// Totals and exchanges without bodies, as JSON.
    pub fn stats(&self) -> Value {
        let state = self.state.lock();
        let mut stats = state.record.stats();
        stats["vendor"] = json!(self.name);
        stats
    }

    /// Fails with all unexpected refusals, failed expectations and unused turns.
    pub fn finish(&self) -> Result<UsageTotals, Failures> {
        let state = self.state.lock();
        let mut problems = state.record.problems().to_vec();
        problems.extend(state.play.open_turns());
        let Scenario { calls, cached, cached_from, .. } = &state.play.scenario;
        let answers = state.record.totals.answers;
        if let Some(calls) = calls.filter(|calls| answers > *calls) {
            problems.push(format!("{answers} requests were answered, more than {calls}"));
        }
        let usage = state.record.usage_from(*cached_from);
        if let Some(least) = cached.filter(|least| usage.hit_ratio() < *least) {
            let (read, input) = (usage.cache_read, usage.input);
            problems.push(format!(
                "{read} of {input} tokens came from the cache from answer {cached_from} on, less than {least}"
            ));
        }
        if problems.is_empty() { Ok(state.record.totals) } else { Err(Failures(problems)) }
    }
}

/// Tokens of an answer, and of its reasoning alone.
fn count(accepted: &Accepted, pieces: &[AnswerPiece]) -> (u64, u64) {
    let counter = TokenCounter::new(accepted.token_percent);
    let (mut output, mut reasoning) = (0, 0);
    for piece in pieces {
        match piece {
            AnswerPiece::Thinking(text) | AnswerPiece::Redacted(text) => reasoning += counter.text(text),
            AnswerPiece::Text { text, .. } => output += counter.text(text),
            AnswerPiece::Call { tool, arguments } => {
                output += counter.text(tool) + counter.text(arguments) + counter.message();
            }
            AnswerPiece::Search { query, .. } => output += counter.text(query) + counter.message(),
            AnswerPiece::Wait(_) | AnswerPiece::Ping => {}
        }
    }
    (output + reasoning, reasoning)
}

/// A scenario being played.
struct Play {
    scenario: Scenario,
    played: Vec<bool>,
}

impl Play {
    fn new(scenario: Scenario) -> Self {
        let played = vec![false; scenario.turns.len()];
        Self { scenario, played }
    }

    fn open(&self) -> impl Iterator<Item = (usize, &ScenarioTurn)> {
        self.scenario.turns.iter().enumerate().filter(|(index, _)| !self.played[*index])
    }

    /// A turn that waits for this request goes before those that wait for any.
    fn place(&self, accepted: &Accepted) -> Option<usize> {
        let fits = |turn: &ScenarioTurn| turn.when.as_ref().is_some_and(|when| when.fits(accepted));
        let waiting = self.open().find(|(_, turn)| fits(turn));
        waiting.or_else(|| self.open().find(|(_, turn)| turn.when.is_none())).map(|(index, _)| index)
    }

    fn next(&mut self, accepted: &Accepted) -> Option<ScenarioTurn> {
        let index = self.place(accepted)?;
        self.played[index] = true;
        self.scenario.turns.get(index).cloned()
    }

    /// Takes the next turn if it expects this refusal.
    fn expects(&mut self, refusal: &Refusal) -> bool {
        let next = self.open().find_map(|(index, turn)| match &turn.act {
            Act::Refuse { containing } if refusal.message.contains(containing) => Some(Some(index)),
            _ if turn.when.is_none() => Some(None),
            _ => None,
        });
        let Some(index) = next.flatten() else { return false };
        self.played[index] = true;
        true
    }

    /// Takes the next turn if it expects a refusal, which this request did not get.
    fn take_missed_refusal(&mut self, accepted: &Accepted) -> Option<String> {
        let index = self.place(accepted)?;
        let Act::Refuse { containing } = &self.scenario.turns[index].act else { return None };
        let containing = containing.clone();
        self.played[index] = true;
        Some(containing)
    }

    fn open_turns(&self) -> impl Iterator<Item = String> {
        self.open().map(|(index, _)| format!("no request came for turn {} of the scenario", index + 1))
    }
}

impl RequestMatch {
    fn fits(&self, accepted: &Accepted) -> bool {
        let prompt = self.prompt.as_ref().is_none_or(|part| accepted.prompt_text.contains(part));
        let model = self.model.as_ref().is_none_or(|model| *model == accepted.model);
        let tools = self.tools.is_none_or(|offered| offered != accepted.tools.is_empty());
        prompt && model && tools
    }
}

#[cfg(test)]
mod tests;
