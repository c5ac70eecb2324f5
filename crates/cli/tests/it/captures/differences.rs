//! Where Hangar means to differ from the recordings. `docs/compat.md` gives the same list to readers.

use super::case::{Captures, Case, Line};

/// Fields that the reference sends and Hangar does not. Each must be absent everywhere: one that appears leaves this
/// list.
pub(crate) const FIELDS_NOT_SENT: &[(&str, &str, &str)] = &[
    ("*", "rte", "a flag of the vendor's service"),
    ("agent.interrupted", "apiEndpoint", "the call's own events say it"),
    ("agent.interrupted", "outputTtftMs", "a measurement for the vendor's statistics"),
    ("agent.interrupted", "safeToolNames", "names cleared for the vendor's statistics"),
    ("agent.interrupted", "transport", "always http"),
    ("assistant.message", "reasoningBlocks", "`reasoningText` and `reasoningOpaque` carry the same"),
    ("assistant.message", "serverTools", "tools that ran at the vendor's"),
    ("model.call_failure", "badRequestKind", "a class of the vendor's statistics"),
    ("model.call_failure", "interactionType", "a header of the vendor's service"),
    ("model.call_failure", "isAuto", "the vendor's choice of models"),
    ("model.call_failure", "isByok", "`model.call_final_result` says it"),
    ("model.call_failure", "maxPromptTokens", "a property of the model, not of the failure"),
    ("model.call_failure", "requestFingerprint", "a measurement for the vendor's statistics"),
    ("model.call_failure", "transport", "always http"),
    ("session.autopilot_stopped", "requestId", "an id of the vendor's service"),
    ("session.resume", "alreadyInUse", "a second writer is refused, so it is never true"),
    ("session.resume", "contextTier", "the vendor's prices"),
    ("session.resume", "remoteSteerable", "the vendor's service"),
    ("session.resume", "sessionLimits", "the vendor's credits"),
    ("session.shutdown", "agentMetrics", "sums of `session.usage_record`"),
    ("session.shutdown", "conversationTokens", "`session.usage_info` says it"),
    ("session.shutdown", "currentTokens", "`session.usage_info` says it"),
    ("session.shutdown", "eventsFileSizeBytes", "the file knows its size"),
    ("session.shutdown", "systemTokens", "`session.usage_info` says it"),
    ("session.shutdown", "toolDefinitionsTokens", "`session.usage_info` says it"),
    ("session.shutdown", "totalNanoAiu", "the vendor's credits"),
    ("session.shutdown", "totalPremiumRequests", "the vendor's credits"),
    ("session.start", "alreadyInUse", "a second writer is refused, so it is never true"),
    ("session.start", "contextTier", "the vendor's prices"),
    ("session.start", "remoteSteerable", "the vendor's service"),
    ("system.message", "interactionId", "the message is the session's, not an exchange's"),
    ("system.message", "metadata", "names of the vendor's prompt sections"),
    ("user.message", "supportedNativeDocumentMimeTypes", "a property of the model, not of the message"),
];

/// Cases that record the npm loader dying and its program living on. Hangar is one process: the same signal does what
/// it does to the reference's own process.
const WITHOUT_LOADER: &[(&str, &str)] =
    &[("s-int-group", "s-int-native"), ("s-int-loader", "s-int-native"), ("s-term-loader", "s-term-native")];

/// Cases that wait for a feature. A case that passes may not stay here.
pub(crate) const PENDING: &[(&str, &str)] = &[];

/// Expected result of a case.
pub(crate) struct Expectation {
    pub(crate) exit: i32,
    /// Absent in text mode.
    pub(crate) events: Option<Vec<Line>>,
}

/// Hangar's expected result of a case: the recorded one, less the differences above.
pub(crate) fn expected_of_hangar(captures: &Captures, case: &Case) -> Expectation {
    let source = without_loader(captures, case);
    let mut events = captures.events(source);
    // Readers of the stream can rely on the last line, also after a signal and when nothing could be started. Only a
    // process that was killed cannot print it.
    if let Some(events) = &mut events
        && source.exit >= 0
        && events.last().is_none_or(|last| last.kind != "result")
    {
        let result = serde_json::json!({ "type": "result", "timestamp": "", "sessionId": "", "exitCode": source.exit,
            "usage": { "codeChanges": { "linesAdded": 0, "linesRemoved": 0 } } });
        events.push(captures.line(&result));
    }
    Expectation { exit: source.exit, events: events.map(without_withheld) }
}

/// The case that records what the same signal does to a single process.
pub(crate) fn without_loader<'a>(captures: &'a Captures, case: &'a Case) -> &'a Case {
    let twin = WITHOUT_LOADER.iter().find(|(name, _)| *name == case.name);
    twin.map_or(case, |(_, twin)| captures.case(twin))
}

/// Expected log on disk after the recorded chain.
pub(crate) fn expected_log(captures: &Captures) -> Vec<Line> {
    without_withheld(captures.log_events())
}

pub(crate) fn is_withheld(kind: &str, field: &str) -> bool {
    FIELDS_NOT_SENT.iter().any(|(of, name, _)| (*of == "*" || *of == kind) && *name == field)
}

fn without_withheld(mut lines: Vec<Line>) -> Vec<Line> {
    for line in &mut lines {
        line.fields.retain(|field| !is_withheld(&line.kind, field));
    }
    lines
}
