//! Facts from the JSON of an event. Events come from models, other agents and old logs: a field of the wrong type
//! counts as absent, and the rest of the event is still used.

use std::borrow::Cow;

use hangar_protocol::{Body, Event, EventKind};
use serde_json::Value;

use crate::block::{AskKind, NoticeLevel, VerdictOutcome};
use crate::fact::{COMPACTING, CalledTool, Done, Fact, NoticeFact, StartedAgent, tokens};

/// Data of an event as it is on the wire, with fields that its type does not have.
pub(crate) fn data(event: &Event) -> Value {
    let data = match event.body() {
        Body::Unknown { data, .. } => serde_json::from_str(data.get()),
        _ => serde_json::to_value(event).map(|mut event| event["data"].take()),
    };
    // Every event was JSON or can be serialised as such; if not, it has no facts.
    data.unwrap_or_default()
}

/// Whether events of this kind are shown.
pub(crate) fn is_told(kind: EventKind) -> bool {
    use EventKind as K;
    matches!(
        kind,
        K::UserMessage
            | K::TurnStart
            | K::TurnEnd
            | K::MessageDelta
            | K::AssistantMessage
            | K::AnswerCut
            | K::ReasoningDelta
            | K::Reasoning
            | K::ToolCallDelta
            | K::ToolStart
            | K::ToolUserRequested
            | K::ToolPartialResult
            | K::ToolProgress
            | K::ToolComplete
            | K::PermissionRequested
            | K::PermissionCompleted
            | K::UserInputRequested
            | K::UserInputCompleted
            | K::ElicitationRequested
            | K::ElicitationCompleted
            | K::ExitPlanModeRequested
            | K::ExitPlanModeCompleted
            | K::SubagentStarted
            | K::SubagentCompleted
            | K::SubagentFailed
            | K::SessionStart
            | K::ModelChange
            | K::SessionResume
            | K::SessionShutdown
            | K::SessionError
            | K::SessionWarning
            | K::SessionInfo
            | K::Abort
            | K::TurnRetry
            | K::ModeChanged
            | K::TaskComplete
            | K::CompactionStart
            | K::CompactionComplete
            | K::Truncation
            | K::Handoff
            | K::SystemNotification
            | K::SkillInvoked
            | K::HookEnd
            | K::HistoryTruncated
            | K::SnapshotRewind
            | K::UsageInfo
    )
}

/// Fact of an event of a shown kind.
pub(crate) fn read(kind: EventKind, data: &Value) -> Option<Fact<'_>> {
    use EventKind as K;
    let call = text(data, "toolCallId");
    Some(match kind {
        K::UserMessage => Fact::UserSaid {
            text: text(data, "content"),
            delivery: text_or_none(data, "delivery"),
            attachments: list(data, "attachments").iter().map(attachment_name).collect(),
            source: text_or_none(data, "source"),
        },
        K::TurnStart => Fact::TurnStarted,
        K::TurnEnd => Fact::TurnEnded,
        K::MessageDelta => {
            Fact::MessageDelta { message: text(data, "messageId"), piece: text(data, "deltaContent") }
        }
        K::AssistantMessage => Fact::MessageDone {
            message: text(data, "messageId"),
            text: text(data, "content"),
            reasoning: text(data, "reasoningText"),
            requests: list(data, "toolRequests").iter().map(request).collect(),
        },
        K::AnswerCut => Fact::AnswerCut {
            message: text(data, "messageId"),
            text: text(data, "content"),
            reasoning: text(data, "reasoningText"),
            recovered: field(data, "recovered").as_bool() == Some(true),
        },
        K::ReasoningDelta => {
            Fact::ReasoningDelta { reasoning: text(data, "reasoningId"), piece: text(data, "deltaContent") }
        }
        K::Reasoning => {
            Fact::ReasoningDone { reasoning: text(data, "reasoningId"), text: text(data, "content") }
        }
        K::ToolCallDelta => {
            Fact::ToolWriting { call, name: text_or_none(data, "toolName"), piece: text(data, "inputDelta") }
        }
        K::ToolStart | K::ToolUserRequested => Fact::ToolStarted(request(data)),
        K::ToolPartialResult => Fact::ToolOutput { call, text: text(data, "partialOutput") },
        K::ToolProgress => Fact::ToolProgress { call, message: text(data, "progressMessage") },
        K::ToolComplete => Fact::ToolDone(tool_done(data)),
        K::SubagentStarted => Fact::AgentStarted(StartedAgent {
            call,
            name: first_text(data, &["agentDisplayName", "agentName"]).unwrap_or("agent"),
            description: text(data, "agentDescription"),
            background: text(data, "executionMode") == "background",
            model: text_or_none(data, "model"),
        }),
        K::SubagentCompleted | K::SubagentFailed => Fact::AgentEnded {
            call,
            error: (kind == K::SubagentFailed).then(|| text_or_none(data, "error").unwrap_or("failed")),
            tools: count(data, "totalToolCalls"),
            tokens: count(data, "totalTokens"),
            ms: count(data, "durationMs"),
        },
        K::SessionStart | K::ModelChange => Fact::ModelIs {
            model: first_text(data, &["newModel", "selectedModel"])?,
            effort: text_or_none(data, "reasoningEffort"),
            changed: kind == K::ModelChange,
        },
        K::ModeChanged => Fact::ModeIs { mode: text(data, "newMode") },
        K::HistoryTruncated | K::SnapshotRewind => Fact::Rewound { up_to: text(data, "upToEventId") },
        K::UsageInfo => Fact::Context {
            tokens: count(data, "currentTokens").unwrap_or(0),
            limit: count(data, "tokenLimit").unwrap_or(0),
        },
        _ => return question(kind, data).or_else(|| notice(kind, data).map(Fact::Notice)),
    })
}

fn question(kind: EventKind, data: &Value) -> Option<Fact<'_>> {
    use EventKind as K;
    let request = text(data, "requestId");
    let call = text_or_none(data, "toolCallId");
    let asked = |kind, call| Fact::Asked { request, kind, call, data };
    let answered = |outcome, detail| Fact::Answered { request, outcome, detail };
    Some(match kind {
        K::PermissionRequested => {
            asked(AskKind::Permission, text_or_none(field(data, "permissionRequest"), "toolCallId"))
        }
        K::PermissionCompleted => {
            let result = field(data, "result");
            let kind = text(result, "kind");
            let outcome = match kind {
                _ if kind.starts_with("approved") => VerdictOutcome::Approved,
                _ if kind.starts_with("denied") => VerdictOutcome::Denied,
                _ => VerdictOutcome::Cancelled,
            };
            answered(outcome, text_or_none(result, "feedback").or_else(|| denial(kind)))
        }
        K::UserInputRequested => asked(AskKind::Question, call),
        K::UserInputCompleted => {
            let answer = text_or_none(data, "answer");
            answered(
                if answer.is_some() { VerdictOutcome::Answered } else { VerdictOutcome::Cancelled },
                answer,
            )
        }
        K::ElicitationRequested => asked(AskKind::Elicitation, call),
        K::ElicitationCompleted => {
            let outcome = match text(data, "action") {
                "accept" => VerdictOutcome::Answered,
                "decline" => VerdictOutcome::Denied,
                _ => VerdictOutcome::Cancelled,
            };
            answered(outcome, None)
        }
        K::ExitPlanModeRequested => asked(AskKind::Plan, None),
        K::ExitPlanModeCompleted => {
            let outcome =
                if is_true(data, "approved") { VerdictOutcome::Approved } else { VerdictOutcome::Denied };
            answered(outcome, text_or_none(data, "feedback"))
        }
        _ => return None,
    })
}

/// A text for the few outcomes that a person did not choose.
fn denial(kind: &str) -> Option<&'static str> {
    match kind {
        "denied-by-rules" => Some("a rule forbids it"),
        "denied-no-approval-rule-and-could-not-request-from-user" => Some("nobody could be asked"),
        "denied-by-content-exclusion-policy" => Some("a policy excludes this content"),
        _ => None,
    }
}

fn notice(kind: EventKind, data: &Value) -> Option<NoticeFact<'_>> {
    use EventKind as K;
    use NoticeLevel::{Error, Good, Info, Warning};
    let of = |level, words: &'static str, detail: &'static str| {
        NoticeFact::new(level, words).about(text_or_none(data, detail))
    };
    let told = |level| NoticeFact::new(level, text(data, "message"));
    Some(match kind {
        K::SessionResume => NoticeFact::new(Info, "Resumed"),
        K::SessionShutdown if data.get("errorReason").is_none() => NoticeFact::new(Info, "Session closed"),
        K::SessionShutdown => of(Error, "Session closed", "errorReason"),
        K::SessionError => match text_or_none(data, "message") {
            Some(message) => NoticeFact::new(Error, message),
            None => NoticeFact::new(Error, "The session met an error"),
        },
        K::SessionWarning => told(Warning),
        K::SessionInfo => told(Info),
        K::Abort => NoticeFact {
            detail: text_or_none(data, "reason").map(|reason| reason.replace('_', " ").into()),
            ..NoticeFact::new(Warning, "Aborted")
        },
        K::TurnRetry => of(Warning, "Trying the model again", "reason"),
        K::TaskComplete => of(Good, "Task complete", "summary"),
        K::CompactionStart => NoticeFact::new(Info, COMPACTING),
        K::CompactionComplete => NoticeFact { instead: Some(COMPACTING), ..compaction_complete(data) },
        K::Truncation => NoticeFact::new(Info, "Old messages left out of the model's view"),
        K::Handoff => of(Info, "Handed over", "context"),
        K::SystemNotification => NoticeFact::new(Info, text(data, "content")),
        K::SkillInvoked => NoticeFact::new(Info, format!("Skill: {}", text(data, "name"))),
        K::HookEnd if data.get("success") == Some(&Value::Bool(false)) => {
            NoticeFact::new(Warning, format!("Hook {} failed", text(data, "hookType")))
                .about(text_or_none(field(data, "error"), "message"))
        }
        _ => return None,
    })
}

fn compaction_complete(data: &Value) -> NoticeFact<'_> {
    if !is_true(data, "success") {
        return NoticeFact::new(NoticeLevel::Warning, "The conversation could not be compacted")
            .about(text_or_none(data, "error"));
    }
    let number = |name| field(data, name).as_f64();
    let words = match (number("preCompactionTokens"), number("postCompactionTokens")) {
        (Some(before), Some(after)) => {
            format!("Conversation compacted: {} → {} tokens", tokens(before), tokens(after)).into()
        }
        _ => Cow::Borrowed("Conversation compacted"),
    };
    NoticeFact::new(NoticeLevel::Info, words).about(text_or_none(data, "summaryContent"))
}

impl<'a> NoticeFact<'a> {
    pub(crate) fn new(level: NoticeLevel, text: impl Into<Cow<'a, str>>) -> Self {
        Self { level, text: text.into(), detail: None, instead: None }
    }

    fn about(self, detail: Option<&'a str>) -> Self {
        Self { detail: detail.map(Cow::Borrowed), ..self }
    }
}

fn request(data: &Value) -> CalledTool<'_> {
    CalledTool {
        call: text(data, "toolCallId"),
        name: first_text(data, &["name", "toolName"]).unwrap_or("tool"),
        args: field(data, "arguments"),
        title: first_text(data, &["intentionSummary", "toolTitle"]),
    }
}

fn tool_done(data: &Value) -> Done<'_> {
    let result = field(data, "result");
    let mut done = Done {
        call: text(data, "toolCallId"),
        success: is_true(data, "success"),
        output: "",
        diff: None,
        error: text_or_none(field(data, "error"), "message"),
        exit_code: count(field(data, "shellExecution"), "exitCode"),
        pictures: Vec::new(),
    }
    .with_texts(text(result, "content"), text(result, "detailedContent"));
    for binary in list(result, "binaryResultsForLlm") {
        done.add_picture(text(binary, "mimeType"), text(binary, "data"));
    }
    done
}

fn attachment_name(data: &Value) -> &str {
    first_text(data, &["displayName", "path", "filePath", "title"]).unwrap_or("file")
}

fn field<'a>(data: &'a Value, name: &str) -> &'a Value {
    data.get(name).unwrap_or(&Value::Null)
}

pub(crate) fn text<'a>(data: &'a Value, name: &str) -> &'a str {
    field(data, name).as_str().unwrap_or_default()
}

pub(crate) fn text_or_none<'a>(data: &'a Value, name: &str) -> Option<&'a str> {
    Some(text(data, name)).filter(|text| !text.is_empty())
}

fn first_text<'a>(data: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| text_or_none(data, name))
}

fn is_true(data: &Value, name: &str) -> bool {
    field(data, name) == &Value::Bool(true)
}

/// A number without its fraction.
fn count(data: &Value, name: &str) -> Option<i64> {
    let number = field(data, name);
    number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))
}

fn list<'a>(data: &'a Value, name: &str) -> &'a [Value] {
    field(data, name).as_array().map(Vec::as_slice).unwrap_or_default()
}
