//! Totals of a session: what it was asked, what its model calls used, what its tools changed, and how it failed.
//!
//! The one fold for everybody who counts: the agent's state, results and usage files of runs, exports, lists, and the
//! records of other agents. An event that tells of one call or one change is added up. A closing event tells the sums of
//! the whole session; it is taken where nothing was told one by one, as by agents that report no calls.

use std::collections::BTreeMap;

use crate::data::{AssistantUsage, CodeChanges, ModelMetric, Reservation, SessionShutdown, UsageRecord};
use crate::event::AgentId;
use crate::{Body, Event, EventKind};

#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Number of prompts, without messages that the session sent to itself.
    pub prompts: u64,
    /// Number of model calls, and of those among them that answer a user's message.
    pub requests: u64,
    pub user_requests: u64,
    pub api_ms: u64,
    /// Sums of the calls that tell; absent if none does.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Known cost in US dollars: of all calls, if none is unpriced.
    pub cost: Option<f64>,
    /// Calls whose cost is not known.
    pub unpriced: u64,
    /// Calls that do not tell their input, and their output.
    pub untold: (u64, u64),
    pub models: BTreeMap<String, ModelMetric>,
    /// Calls that were reserved and have no end, with what they can use at most. They are in none of the sums.
    pub reserved: BTreeMap<u64, AssistantUsage>,
    /// Input and output of the last call.
    pub last: (Option<u64>, Option<u64>),
    /// Tool calls that were started.
    pub tool_calls: u64,
    pub changes: CodeChanges,
    pub errors: u64,
    /// Error of the last turn, if it failed.
    pub error: Option<String>,
    /// Whether calls of the model are on record one by one.
    counts_calls: bool,
    /// Turns that are on record as a whole.
    counted_turns: u64,
    /// Whether changes are on record one by one.
    counts_changes: bool,
    /// Prompts before the last closing event that told what was used.
    closed_after: Option<u64>,
}

impl Totals {
    /// Whether events of this kind are counted. Readers may pass over all others.
    pub fn wants(kind: EventKind) -> bool {
        matches!(
            kind,
            EventKind::UserMessage
                | EventKind::AssistantMessage
                | EventKind::UsageRecord
                | EventKind::Reservation
                | EventKind::Forked
                | EventKind::ToolStart
                | EventKind::ToolComplete
                | EventKind::SessionError
                | EventKind::SessionShutdown
                | EventKind::Abort
        )
    }

    /// Takes the next event of a session. Ephemeral events do not count: totals are a fold over the log.
    pub fn apply(&mut self, event: &Event) {
        if !event.is_ephemeral() {
            self.apply_body(event.agent_id(), event.body());
        }
    }

    /// Takes the content of the next event, which is one of `agent` or of the session itself.
    pub fn apply_body(&mut self, agent: Option<&AgentId>, body: &Body) {
        let main = agent.is_none();
        match body {
            Body::UserMessage(message) if main => {
                self.prompts += u64::from(message.source.is_none());
                self.error = None;
            }
            Body::AssistantMessage(message)
                if main && !(message.content.is_empty() && message.tool_requests.is_empty()) =>
            {
                self.error = None;
            }
            Body::UsageRecord(record) => self.add_record(record),
            Body::Reservation(Reservation { call, bound: Some(bound) }) => {
                self.reserved.insert(*call, bound.clone());
            }
            Body::Reservation(Reservation { call, bound: None }) => {
                self.reserved.remove(call);
            }
            Body::ToolStart(_) => self.tool_calls += 1,
            Body::ToolComplete(complete) => {
                if let Some(changes) = complete.code_changes() {
                    self.counts_changes = true;
                    self.changes.add(&changes);
                }
            }
            Body::SessionError(error) if !error.is_ephemeral() => {
                self.errors += 1;
                // An agent's failure is its caller's to handle.
                if main {
                    self.error = Some(error.message.clone());
                }
            }
            Body::SessionShutdown(shutdown) => self.close(shutdown),
            Body::Forked(_) => self.fork(),
            Body::Abort(_) if main => self.error = None,
            _ => {}
        }
    }

    /// Whether calls of the model are on record one by one.
    pub fn counts_calls(&self) -> bool {
        self.counts_calls
    }

    /// Whether the figures cover every prompt. An agent that tells sums at the end leaves out what it used since, if it
    /// was killed.
    pub fn covers_all(&self) -> bool {
        match self.counts_calls {
            true => {
                let told = self.counted_turns + self.closed_after.unwrap_or(0);
                self.counted_turns == 0 || told >= self.prompts
            }
            false => self.closed_after.unwrap_or(0) == self.prompts,
        }
    }

    /// Leaves the conversation, which a fork continues; usage and changes are those of the session that it came from.
    fn fork(&mut self) {
        *self = Self { prompts: self.prompts, error: self.error.take(), last: self.last, ..Self::default() };
    }

    fn add_record(&mut self, record: &UsageRecord) {
        let (usage, calls) = (&record.usage, record.calls.unwrap_or(1));
        self.counted_turns += u64::from(record.calls.is_some());
        // Records of whole turns go on where a closing event has left off: an agent writes both.
        if !std::mem::replace(&mut self.counts_calls, true) && record.calls.is_none() {
            // A closing event stood in for calls; from here on they are counted.
            self.models.clear();
            (self.api_ms, self.requests) = (0, 0);
            (self.input_tokens, self.output_tokens, self.cost, self.unpriced) = (None, None, None, 0);
        }
        self.requests += calls;
        self.user_requests += u64::from(usage.initiator.as_deref() == Some("user"));
        self.last = (usage.input_tokens, usage.output_tokens);
        self.untold.0 += u64::from(usage.input_tokens.is_none());
        self.untold.1 += u64::from(usage.output_tokens.is_none());
        self.api_ms += usage.duration.unwrap_or(0);
        add(&mut self.input_tokens, usage.input_tokens);
        add(&mut self.output_tokens, usage.output_tokens);
        add(&mut self.cost, usage.cost);
        if usage.cost.is_none() {
            self.unpriced += calls.max(1);
        }
        let metric = self.models.entry(usage.model.clone()).or_default();
        add(&mut metric.requests.count, Some(calls).filter(|calls| *calls > 0));
        add(&mut metric.requests.cost, usage.cost);
        metric.usage.input_tokens += usage.input_tokens.unwrap_or(0);
        metric.usage.output_tokens += usage.output_tokens.unwrap_or(0);
        metric.usage.cache_read_tokens += usage.cache_read_tokens.unwrap_or(0);
        metric.usage.cache_write_tokens += usage.cache_write_tokens.unwrap_or(0);
        add(&mut metric.usage.reasoning_tokens, usage.reasoning_tokens);
    }

    /// Takes the figures of a closing event. They are of the whole session, not of the process that closes it.
    fn close(&mut self, shutdown: &SessionShutdown) {
        if shutdown.error_reason.is_some() {
            self.error.clone_from(&shutdown.error_reason);
        }
        if !self.counts_changes && shutdown.code_changes != CodeChanges::default() {
            self.changes = shutdown.code_changes.clone();
        }
        if self.counts_calls || shutdown.model_metrics.is_empty() {
            return;
        }
        let metrics = || shutdown.model_metrics.values();
        // The event has a zero where no number was reported; no turn has zero tokens.
        let told = |of: fn(&ModelMetric) -> u64| Some(metrics().map(of).sum()).filter(|tokens| *tokens > 0);
        self.input_tokens = told(|metric| metric.usage.input_tokens);
        self.output_tokens = told(|metric| metric.usage.output_tokens);
        self.cost = metrics().filter_map(|metric| metric.requests.cost).reduce(|a, b| a + b);
        let unpriced = metrics().filter(|metric| metric.requests.cost.is_none());
        self.unpriced = unpriced.map(|metric| metric.requests.count.unwrap_or(1)).sum();
        self.requests = metrics().filter_map(|metric| metric.requests.count).sum();
        self.models = shutdown.model_metrics.clone();
        self.api_ms = shutdown.total_api_duration_ms;
        self.closed_after = Some(self.prompts);
    }
}

/// Unknown plus unknown is unknown; a known part makes a known (lower) bound.
fn add<T: std::ops::Add<Output = T> + Copy>(total: &mut Option<T>, part: Option<T>) {
    *total = match (*total, part) {
        (Some(total), Some(part)) => Some(total + part),
        (total, part) => total.or(part),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The totals of a log of lines `type data`, those of an agent after `@`.
    fn totals(lines: &[&str]) -> Totals {
        let mut totals = Totals::default();
        for line in lines {
            let (agent, line) = match line.strip_prefix('@') {
                Some(line) => (r#""agentId":"a","#, line),
                None => ("", *line),
            };
            let (kind, data) = line.split_once(' ').unwrap();
            let line = format!(
                r#"{{"type":"{kind}","data":{data},{agent}"id":"i","timestamp":"t","parentId":null}}"#
            );
            let event = Event::parse(&line).unwrap();
            assert!(!matches!(event.body(), Body::Unknown { .. }), "{line}");
            totals.apply(&event);
        }
        totals
    }

    const PROMPT: &str = r#"user.message {"content":"hi"}"#;
    const CALL: &str = r#"session.usage_record {"usage":{"model":"m","inputTokens":10,"duration":3}}"#;
    const FAILED: &str = r#"session.error {"errorType":"x","message":"no model"}"#;

    fn closing(input: u64, added: u64) -> String {
        format!(
            r#"session.shutdown {{"shutdownType":"routine","totalApiDurationMs":7,"sessionStartTime":1,"codeChanges":{{"linesAdded":{added},"linesRemoved":0,"filesModified":["f"]}},"modelMetrics":{{"m":{{"requests":{{"count":2}},"usage":{{"inputTokens":{input},"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0}}}}}}}}"#
        )
    }

    fn changed(file: &str, added: u64) -> String {
        format!(
            r#"tool.execution_complete {{"toolCallId":"t","success":true,"toolTelemetry":{{"properties":{{}},"restrictedProperties":{{"filePaths":"[\"{file}\"]"}},"metrics":{{"linesAdded":{added},"linesRemoved":1}}}}}}"#
        )
    }

    #[test]
    fn a_fork_has_the_prompts_of_its_parent_and_its_own_usage() {
        let forked = r#"hangar.forked {"fromSessionId":"s"}"#;
        let closed = closing(20, 4);
        let reserved = r#"hangar.reservation {"call":1,"bound":{"model":"m","inputTokens":10}}"#;
        let of_parent = [PROMPT, CALL, &changed("f", 1), &closed, reserved, forked];
        let at_start = totals(&of_parent);
        assert_eq!((at_start.prompts, at_start.requests, at_start.api_ms), (1, 0, 0));
        assert_eq!((at_start.input_tokens, at_start.tool_calls), (None, 0));
        assert_eq!(at_start.changes, CodeChanges::default());
        assert!(at_start.models.is_empty() && at_start.reserved.is_empty());
        let later = totals(&[&of_parent[..], &[PROMPT, CALL]].concat());
        assert_eq!((later.prompts, later.requests, later.input_tokens), (2, 1, Some(10)));
    }

    #[test]
    fn calls_are_added_up_and_a_closing_event_does_not_count_them_again() {
        let totals = totals(&[PROMPT, CALL, CALL, &closing(20, 0), PROMPT, CALL]);
        assert_eq!((totals.prompts, totals.requests, totals.api_ms), (2, 3, 9));
        assert_eq!((totals.input_tokens, totals.output_tokens), (Some(30), None));
        assert_eq!(totals.untold, (0, 3));
        assert!(totals.covers_all());
    }

    #[test]
    fn turns_that_are_recorded_as_a_whole_are_added_to_what_a_closing_event_told_before() {
        let turn = r#"session.usage_record {"usage":{"model":"m","inputTokens":5,"cost":0.5},"calls":2}"#;
        let untold = r#"session.usage_record {"usage":{"model":"m","inputTokens":5},"calls":0}"#;
        let two = totals(&[PROMPT, turn, PROMPT, untold, &closing(10, 0)]);
        assert_eq!((two.input_tokens, two.requests, two.cost, two.unpriced), (Some(10), 2, Some(0.5), 1));
        assert!(two.covers_all());
        assert!(!totals(&[PROMPT, turn, PROMPT]).covers_all(), "the second turn was killed");
        let older = totals(&[PROMPT, &closing(20, 0), PROMPT, turn, &closing(25, 0)]);
        assert_eq!((older.input_tokens, older.covers_all()), (Some(25), true));
    }

    #[test]
    fn a_closing_event_tells_what_nobody_told_one_by_one() {
        let closed = [PROMPT, &closing(20, 4)];
        assert_eq!((totals(&closed).input_tokens, totals(&closed).output_tokens), (Some(20), None));
        assert_eq!(totals(&closed).changes.lines_added, 4);
        assert!(totals(&closed).covers_all());
        let again = totals(&[PROMPT, &closing(20, 4), PROMPT, &closing(50, 6)]);
        assert_eq!((again.input_tokens, again.requests, again.changes.lines_added), (Some(50), 2, 6));
        assert!(!totals(&[PROMPT, &closing(20, 4), PROMPT]).covers_all());
    }

    #[test]
    fn a_known_cost_is_kept_apart_from_calls_without_one() {
        let priced = r#"session.usage_record {"usage":{"model":"m","cost":0.25}}"#;
        let sums = |lines: &[&str]| (totals(lines).cost, totals(lines).unpriced);
        assert_eq!(sums(&[CALL]), (None, 1));
        assert_eq!(sums(&[priced, CALL, priced]), (Some(0.5), 1));
        assert_eq!(sums(&[priced, &closing(20, 0)]), (Some(0.25), 0));
        assert_eq!(sums(&[&closing(20, 0)]), (None, 2));
        assert_eq!(sums(&[&closing(20, 0), priced]), (Some(0.25), 0));
    }

    #[test]
    fn changes_of_all_agents_are_added_up_and_each_file_is_named_once() {
        let of_agent = format!("@{}", changed("g", 1));
        let totals = totals(&[&changed("f", 2), &of_agent, &closing(1, 9), &changed("f", 3)]);
        let files = ["f".to_owned(), "g".to_owned()].to_vec();
        assert_eq!(totals.changes, CodeChanges { lines_added: 6, lines_removed: 3, files_modified: files });
    }

    #[test]
    fn messages_that_a_session_sends_itself_are_no_prompts() {
        let own = r#"user.message {"content":"go on","source":"autopilot"}"#;
        let of_agent = format!("@{PROMPT}");
        assert_eq!(totals(&[PROMPT, own, &of_agent]).prompts, 1);
    }

    #[test]
    fn an_error_stays_until_something_else_happens() {
        let answer = r#"assistant.message {"messageId":"m","content":"yes"}"#;
        let nothing = r#"assistant.message {"messageId":"m","content":""}"#;
        let abort = r#"abort {"reason":"user_initiated"}"#;
        let of_agent = format!("@{FAILED}");
        let error = |lines: &[&str]| totals(lines).error.is_some();
        assert!(error(&[PROMPT, FAILED]) && error(&[PROMPT, FAILED, nothing]));
        assert!(!error(&[FAILED, PROMPT]) && !error(&[FAILED, answer]) && !error(&[FAILED, abort]));
        assert!(!error(&[&of_agent]));
        assert_eq!(totals(&[FAILED, &of_agent]).errors, 2);
    }
}
