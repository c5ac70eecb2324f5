//! A transcript as lines of text, the same that `web/src/session/outline.test.ts` writes.

use std::collections::BTreeSet;
use std::fmt::Write;

use hangar_transcript::{
    AgentInfo, AgentState, AskKind, Block, BlockBody, LaneId, NoticeLevel, ToolBlock, ToolState, Transcript,
    VerdictOutcome, tool_words,
};
use serde_json::Value;

/// Outline of all lanes, and the status of the session.
pub(crate) fn outline(transcript: &Transcript) -> String {
    let mut out = String::new();
    add(transcript, LaneId::MAIN, "", &mut BTreeSet::new(), &mut out);
    let context =
        transcript.context().map_or_else(|| "-".to_owned(), |used| format!("{}/{}", used.tokens, used.limit));
    let (model, effort) = (transcript.model().unwrap_or("-"), transcript.effort().unwrap_or("-"));
    writeln!(out, "model={model} effort={effort} context={context}").unwrap();
    out
}

fn add(transcript: &Transcript, id: LaneId, indent: &str, seen: &mut BTreeSet<LaneId>, out: &mut String) {
    let Some(lane) = transcript.lane(id).filter(|_| seen.insert(id)) else { return };
    for (_, block) in lane.blocks() {
        writeln!(out, "{indent}{}", line(block)).unwrap();
        let agent = block.as_tool().and_then(|tool| tool.agent.as_ref());
        if let Some(id) = agent.and_then(|agent| transcript.agent_lane(&agent.id)) {
            add(transcript, id, &format!("{indent}  "), seen, out);
        }
    }
}

fn line(block: &Block) -> String {
    let ended = block.as_tool().and_then(|tool| tool.ended_at.as_deref()).unwrap_or_default();
    let place = hash(&[&block.key, &block.event_id, &block.at, ended].join(" "));
    let rewound = if block.rewound { "rewound " } else { "" };
    format!("{rewound}{} @{place}", body(&block.body))
}

fn body(body: &BlockBody) -> String {
    match body {
        BlockBody::User(user) => {
            let attached = match user.attachments.as_slice() {
                [] => String::new(),
                names => format!(" with {}", names.join(", ")),
            };
            let from = named("delivery", user.delivery.as_ref()) + &named("source", user.source.as_ref());
            format!("user{from}{attached}: {}", short(&user.text))
        }
        BlockBody::Text(text) => format!("text{}: {}", open(text.open), short(&text.text)),
        BlockBody::Reasoning(text) => format!("reasoning{}: {}", open(text.open), short(&text.text)),
        BlockBody::Tool(block) => tool(block),
        BlockBody::Ask(ask) => {
            let kind = match ask.ask {
                AskKind::Permission => "permission",
                AskKind::Question => "question",
                AskKind::Elicitation => "elicitation",
                AskKind::Plan => "plan",
            };
            let about = named("call", ask.call.as_ref()) + &named("holds", ask.holds.as_ref());
            let detail = text_of("detail", ask.detail.as_deref());
            let outcome = ask.outcome.map_or("open", outcome);
            format!("ask {kind}: {outcome}{about}{detail} data={}", json(&ask.data))
        }
        BlockBody::Notice(notice) => {
            let level = match notice.level {
                NoticeLevel::Info => "info",
                NoticeLevel::Good => "good",
                NoticeLevel::Warning => "warning",
                NoticeLevel::Error => "error",
            };
            format!("{level}: {}{}", short(&notice.text), text_of("detail", notice.detail.as_deref()))
        }
    }
}

fn tool(block: &ToolBlock) -> String {
    let state = match block.state {
        ToolState::Writing => "writing",
        ToolState::Queued => "queued",
        ToolState::Running => "running",
        ToolState::Ok => "ok",
        ToolState::Failed => "failed",
    };
    let asking = if block.asking { " asking" } else { "" };
    let verdict = block.verdict.as_ref().map(|verdict| {
        format!(" [{}{}]", outcome(verdict.outcome), text_of("detail", verdict.detail.as_deref()))
    });
    let words = tool_words(&block.name, &block.args);
    let is_code = if words.is_code { "code" } else { "prose" };
    let pictures = block.pictures.iter().map(|picture| {
        assert_eq!(picture.bytes, picture.base64.trim_end_matches('=').len() * 3 / 4);
        format!(" {} #{}", picture.mime_type, hash(&picture.base64))
    });
    [
        format!("tool {}: {state}{asking}{}", block.name, verdict.unwrap_or_default()),
        named("call", Some(&block.call)),
        text_of("title", block.title.as_deref()),
        named("exit", block.exit_code),
        text_of("progress", block.progress.as_deref()),
        text_of("diff", block.diff.as_deref()),
        pictures.collect(),
        block.agent.as_deref().map(agent).unwrap_or_default(),
        format!(
            " words={} {is_code} {} args={}",
            short(&words.verb),
            short(&words.object),
            json(&block.args)
        ),
        text_of("draft", Some(&block.draft)),
        text_of("error", block.error.as_deref()),
        text_of("output", Some(&block.output)),
    ]
    .concat()
}

fn agent(agent: &AgentInfo) -> String {
    let state = match agent.state {
        AgentState::Running => "running",
        AgentState::Ok => "ok",
        AgentState::Failed => "failed",
    };
    let background = if agent.background { ", background" } else { "" };
    let counts = named("tools", agent.tools) + &named("tokens", agent.tokens) + &named("ms", agent.ms);
    let model = named("model", agent.model.as_ref());
    let error = text_of("error", agent.error.as_deref());
    format!(" agent={} ({state}{background}: {}){model}{counts}{error}", agent.name, agent.description)
}

fn open(is_open: bool) -> &'static str {
    if is_open { " (open)" } else { "" }
}

fn outcome(outcome: VerdictOutcome) -> &'static str {
    match outcome {
        VerdictOutcome::Approved => "approved",
        VerdictOutcome::Denied => "denied",
        VerdictOutcome::Answered => "answered",
        VerdictOutcome::Cancelled => "cancelled",
    }
}

fn named(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map(|value| format!(" {name}={value}")).unwrap_or_default()
}

fn text_of(name: &str, value: Option<&str>) -> String {
    let value = value.filter(|value| !value.is_empty());
    value.map(|value| format!(" {name}={}", short(value))).unwrap_or_default()
}

fn json(value: &Value) -> String {
    if value.is_null() { "null".to_owned() } else { format!("#{}", hash(&value.to_string())) }
}

/// The beginning of a text and the hash of all of it.
fn short(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    let line = text.split('\n').next().unwrap_or_default();
    let shown = match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    };
    format!("\"{shown}\" #{}", hash(text))
}

/// FNV-1a, so that a difference behind the shown beginning is seen too.
fn hash(text: &str) -> String {
    let sum =
        text.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{sum:08x}")
}
