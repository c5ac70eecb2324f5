//! Statistics of a session for lists: a fold over its log that can be resumed at any position.

use hangar_protocol::event::type_at_start;
use hangar_protocol::{Body, Event, EventKind, LogPosition, Totals};
use hangar_runtimes::capabilities::Capabilities;
use hangar_store::Follow;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::resource::{RunLink, SessionPolicy};

/// Lines between two remembered positions, so that a distant page is found without reading all lines before it.
const MARK_EVERY: u64 = 2048;

/// Usage of a session. Unknown values are absent, never zero.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Usage")]
pub struct Used {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Calls whose cost is not known, if there are any; `costUsd` is a lower bound then.
    pub unpriced_calls: Option<u64>,
    pub premium_requests: Option<u64>,
    /// Number of prompts.
    pub turns: Option<u64>,
}

impl Used {
    /// Sum of both; a value that only one of them has is kept.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn sum<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            }
        }
        Self {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cost_usd: sum(self.cost_usd, other.cost_usd),
            unpriced_calls: sum(self.unpriced_calls, other.unpriced_calls),
            premium_requests: sum(self.premium_requests, other.premium_requests),
            turns: sum(self.turns, other.turns),
        }
    }
}

impl From<&hangar_runtimes::usage::AgentUsage> for Used {
    fn from(usage: &hangar_runtimes::usage::AgentUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens.count(),
            output_tokens: usage.output_tokens.count(),
            cost_usd: usage.cost_usd.value(),
            unpriced_calls: None,
            premium_requests: usage.premium_requests.count(),
            turns: None,
        }
    }
}

/// Fill level of the model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContextUsage {
    pub tokens: u64,
    pub limit: u64,
}

#[derive(Debug, Clone, Default)]
pub struct SessionStats {
    /// Position in the log up to which it was folded.
    pub at: LogPosition,
    /// Places on the way there, `MARK_EVERY` lines apart or more.
    marks: Vec<LogPosition>,
    /// Program that created the session.
    pub producer: Option<String>,
    /// Agent that the session was handed to.
    pub agent: Option<String>,
    /// Configured agent that it was opened with.
    pub named_agent: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: Option<String>,
    /// Run of a job that it works for.
    pub run: Option<RunLink>,
    /// Permission policy of its agent, if one was set.
    policy: Option<SessionPolicy>,
    /// Tokens of the last model request, and the limit of the model.
    tokens: Option<u64>,
    limit: Option<u64>,
    /// Error of the last turn, if it failed.
    pub error: Option<String>,
    totals: Totals,
}

impl SessionStats {
    /// Whether the fold uses events of this kind. Of those that totals count, tool calls are left out: they are the
    /// longest lines of a log, and lists show nothing of them.
    fn wants(kind: EventKind) -> bool {
        let of_tools = matches!(kind, EventKind::ToolStart | EventKind::ToolComplete);
        (Totals::wants(kind) && !of_tools)
            || matches!(
                kind,
                EventKind::SessionStart
                    | EventKind::SessionResume
                    | EventKind::Handoff
                    | EventKind::ModelChange
                    | EventKind::PermissionsChanged
                    | EventKind::CompactionComplete
                    | EventKind::Truncation
                    | EventKind::RunAssigned
                    | EventKind::AgentAssigned
                    | EventKind::ContextChanged
            )
    }

    /// Folds the complete lines after the current position.
    pub fn catch_up(&mut self, follow: &mut Follow) -> std::io::Result<()> {
        while let Some((_, line)) = follow.next_line()? {
            // Where the type does not come first, the whole line tells.
            let wanted = |name| EventKind::of_type(name).is_some_and(Self::wants);
            if type_at_start(line).is_none_or(wanted)
                && let Ok(text) = std::str::from_utf8(line)
                && let Ok(event) = Event::parse(text)
            {
                self.apply(&event);
            }
            self.passed(follow.position());
        }
        Ok(())
    }

    /// Notes that the log has been taken in up to there.
    pub fn passed(&mut self, at: LogPosition) {
        self.at = at;
        let last = self.marks.last().map_or(0, |mark| mark.seq);
        if at.seq - last >= MARK_EVERY {
            self.marks.push(at);
        }
    }

    /// The last place at or before a line from where to look for it.
    pub fn mark_before(&self, seq: u64) -> LogPosition {
        let after = self.marks.partition_point(|mark| mark.seq < seq);
        after.checked_sub(1).map_or_else(LogPosition::default, |index| self.marks[index])
    }

    pub fn apply(&mut self, event: &Event) {
        self.totals.apply(event);
        self.error.clone_from(&self.totals.error);
        let main = event.agent_id().is_none();
        match event.body() {
            Body::SessionStart(start) => {
                self.producer = Some(start.producer.clone());
                self.chosen(start.selected_model.as_ref(), start.reasoning_effort.as_ref());
                self.workspace = start.context.as_ref().map(|context| context.cwd.clone());
            }
            Body::SessionResume(resume) => {
                self.chosen(resume.selected_model.as_ref(), resume.reasoning_effort.as_ref());
                if let Some(context) = &resume.context {
                    self.workspace = Some(context.cwd.clone());
                }
            }
            Body::ContextChanged(context) => self.workspace = Some(context.directory.cwd.clone()),
            Body::Handoff(handoff) if handoff.context.is_some() => self.agent.clone_from(&handoff.context),
            Body::ModelChange(change) => self.chosen(Some(&change.new_model), None),
            Body::PermissionsChanged(change) => self.policy = Some(change.mode.into()),
            Body::AgentAssigned(assigned) => self.named_agent = Some(assigned.agent.clone()),
            Body::RunAssigned(assigned) => self.run = Some(assigned.into()),
            Body::UsageRecord(record) => {
                let usage = &record.usage;
                if main && usage.parent_tool_call_id.is_none() && usage.input_tokens.is_some() {
                    self.tokens = usage.input_tokens;
                }
            }
            Body::UsageInfo(info) if main => {
                (self.tokens, self.limit) = (Some(info.current_tokens), Some(info.token_limit));
            }
            Body::CompactionComplete(done) if main && done.success => {
                self.tokens = done.post_compaction_tokens.or(self.tokens);
                self.limit = done.token_limit.or(self.limit);
            }
            Body::Truncation(cut) if main => self.limit = Some(cut.token_limit),
            Body::AssistantMessage(message) if main && message.model.is_some() => {
                self.model.clone_from(&message.model);
            }
            _ => {}
        }
    }

    fn chosen(&mut self, model: Option<&String>, effort: Option<&String>) {
        if model.is_some() && self.model.as_ref() != model {
            self.model = model.cloned();
            // Another model takes more, or less.
            self.limit = None;
        }
        if effort.is_some() {
            self.effort = effort.cloned();
        }
    }

    /// Permission policy when it is opened again: the earlier one, or the one that its agent supports.
    pub fn policy(&self, capabilities: &Capabilities) -> SessionPolicy {
        match capabilities.permission_callbacks {
            true => self.policy.unwrap_or(SessionPolicy::Ask),
            false => SessionPolicy::AllowAll,
        }
    }

    /// Fill level of the model's context. `limit` returns the limit of a model where the log does not have it.
    pub fn context(&self, limit: impl FnOnce(&str) -> Option<u64>) -> Option<ContextUsage> {
        let tokens = self.tokens?;
        let limit = self.limit.or_else(|| limit(self.model.as_deref()?))?;
        Some(ContextUsage { tokens, limit })
    }

    /// Usage of the session according to its log.
    pub fn used(&self) -> Used {
        Used {
            input_tokens: self.totals.input_tokens,
            output_tokens: self.totals.output_tokens,
            cost_usd: self.totals.cost,
            unpriced_calls: Some(self.totals.unpriced)
                .filter(|calls| *calls > 0 && self.totals.cost.is_some()),
            premium_requests: None,
            turns: Some(self.totals.prompts),
        }
    }

    /// Whether model calls are recorded one by one.
    pub fn counts_calls(&self) -> bool {
        self.totals.counts_calls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(lines: &[&str]) -> SessionStats {
        let home = tempfile::tempdir().unwrap();
        let store = hangar_store::Store::new(home.path());
        let id: hangar_store::SessionId = "s".parse().unwrap();
        std::fs::create_dir_all(store.session_dir(&id)).unwrap();
        let event = |line: &&str| {
            let (kind, data) = line.split_once(' ').unwrap();
            format!(
                "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"i\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"parentId\":null}}\n"
            )
        };
        let text: String = lines.iter().map(event).collect();
        std::fs::write(store.session_dir(&id).join("events.jsonl"), text).unwrap();
        let mut stats = SessionStats::default();
        stats.catch_up(&mut store.follow(&id, LogPosition::default()).unwrap()).unwrap();
        stats
    }

    const FAILED: &str = r#"session.error {"errorType":"x","message":"no model"}"#;
    const PROMPT: &str = r#"user.message {"content":"hi"}"#;

    #[test]
    fn a_failure_stays_until_the_next_prompt() {
        assert_eq!(stats(&[PROMPT, FAILED]).error.as_deref(), Some("no model"));
        assert_eq!(stats(&[PROMPT, FAILED, PROMPT]).error, None);
    }

    #[test]
    fn calls_on_record_are_summed_and_closings_not_counted_twice() {
        let call = r#"session.usage_record {"usage":{"model":"m","inputTokens":10,"outputTokens":2}}"#;
        let closing = r#"session.shutdown {"shutdownType":"routine","totalApiDurationMs":1,"sessionStartTime":1,"codeChanges":{"linesAdded":0,"linesRemoved":0,"filesModified":[]},"modelMetrics":{"m":{"requests":{},"usage":{"inputTokens":20,"outputTokens":4,"cacheReadTokens":0,"cacheWriteTokens":0}}}}"#;
        let expected =
            Used { input_tokens: Some(20), output_tokens: Some(4), turns: Some(1), ..Used::default() };
        assert_eq!(stats(&[PROMPT, call, call, closing]).used(), expected);
        assert_eq!(stats(&[PROMPT, closing]).used(), expected);
        let twice = Used { turns: Some(2), ..expected };
        assert_eq!(stats(&[PROMPT, closing, PROMPT, closing]).used(), twice);
    }

    /// One event of each kind.
    const SAMPLES: &str = include_str!("../../protocol/tests/samples.txt");

    #[test]
    fn the_kinds_that_are_wanted_are_those_that_change_the_digest() {
        let event = |line: &str| {
            let (kind, data) = line.split_once(' ').unwrap();
            let text =
                format!(r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"t","parentId":null}}"#);
            Event::parse(&text).unwrap()
        };
        let mut before = SessionStats::default();
        before.apply(&event(FAILED));
        for line in SAMPLES.lines() {
            let event = event(line);
            let kind = event.event_kind().unwrap();
            let mut after = before.clone();
            after.apply(&event);
            // Tool calls are left out on purpose, and how full the context is is in no log.
            let apart = [EventKind::ToolStart, EventKind::ToolComplete, EventKind::UsageInfo].contains(&kind);
            let changes = format!("{before:?}") != format!("{after:?}");
            assert_eq!(SessionStats::wants(kind), changes && !apart, "{kind}");
        }
    }

    #[track_caller]
    fn check_context(lines: &[&str], expected: Option<(u64, u64)>) {
        let context = stats(lines).context(|model| (model == "m").then_some(1000));
        assert_eq!(context.map(|context| (context.tokens, context.limit)), expected);
    }

    #[test]
    fn how_full_a_model_is_is_what_it_was_shown_last() {
        let start = r#"session.start {"sessionId":"s","version":1,"producer":"p","copilotVersion":"1","startTime":"t","selectedModel":"m"}"#;
        let call = |tokens: u64| {
            format!(r#"session.usage_record {{"usage":{{"model":"m","inputTokens":{tokens}}}}}"#)
        };
        let of_agent =
            r#"session.usage_record {"usage":{"model":"m","inputTokens":7,"parentToolCallId":"c"}}"#;
        check_context(&[start, PROMPT], None);
        check_context(&[start, &call(10), &call(20), of_agent], Some((20, 1000)));
        let cut = r#"session.compaction_complete {"success":true,"postCompactionTokens":5,"tokenLimit":500}"#;
        check_context(&[start, &call(10), cut], Some((5, 500)));
        let failed = r#"session.compaction_complete {"success":false,"tokenLimit":500}"#;
        check_context(&[start, &call(10), failed], Some((10, 1000)));
        let other = r#"session.model_change {"newModel":"n"}"#;
        check_context(&[start, &call(10), cut, other], None);
        check_context(&[&call(10)], None);
    }

    #[test]
    fn who_decides_is_who_was_said_to_last_and_can() {
        let mode = |mode: &str| format!(r#"session.permissions_changed {{"mode":"{mode}"}}"#);
        let check = |lines: &[&str], asks: bool, expected: SessionPolicy| {
            let capabilities = Capabilities { permission_callbacks: asks, ..Capabilities::in_a_process() };
            assert_eq!(stats(lines).policy(&capabilities), expected, "{lines:?}");
        };
        check(&[], true, SessionPolicy::Ask);
        check(&[&mode("allow-all")], true, SessionPolicy::AllowAll);
        check(&[&mode("allow-all"), &mode("manual")], true, SessionPolicy::Ask);
        check(&[&mode("allow-all"), &mode("of another day")], true, SessionPolicy::AllowAll);
        check(&[&mode("manual")], false, SessionPolicy::AllowAll);
    }

    #[test]
    fn a_page_far_behind_is_found_from_a_mark() {
        let lines = vec![PROMPT; 5000];
        let stats = stats(&lines);
        assert_eq!(stats.at.seq, 5000);
        assert_eq!(stats.mark_before(5000).seq, 2 * MARK_EVERY);
        assert_eq!(stats.mark_before(MARK_EVERY).seq, 0);
        assert_eq!(stats.mark_before(MARK_EVERY + 1).seq, MARK_EVERY);
    }
}
