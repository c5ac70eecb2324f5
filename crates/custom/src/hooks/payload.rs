//! Payload of a hook, in the two dialects that hooks are written for.
//!
//! An event that is configured by its camelCase name is sent in camelCase; by its PascalCase name, in the snake_case
//! and with the tool names of Claude Code, whose hooks thus work unchanged.

use hangar_agent::hook::{HookKind, HookRequest};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadStyle {
    Camel,
    Pascal,
}

/// Names of events in PascalCase that are not just the capitalised others.
const ALIASES: &[(&str, HookKind)] =
    &[("UserPromptSubmit", HookKind::UserPromptSubmitted), ("Stop", HookKind::AgentStop)];

const TOOLS: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("view", "Read"),
    ("create", "Write"),
    ("edit", "Edit"),
    ("apply_patch", "Edit"),
    ("grep", "Grep"),
    ("glob", "Glob"),
    ("web_fetch", "WebFetch"),
    ("web_search", "WebSearch"),
    ("ask_user", "AskUserQuestion"),
    ("update_todo", "TodoWrite"),
    ("task", "Agent"),
];

/// The event that a name in a file means.
pub(super) fn event(name: &str) -> Option<(HookKind, PayloadStyle)> {
    let camel =
        HookKind::ALL.iter().find(|kind| kind.as_str() == name).map(|kind| (*kind, PayloadStyle::Camel));
    let alias =
        || ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, kind)| (*kind, PayloadStyle::Pascal));
    let pascal = || {
        HookKind::ALL
            .iter()
            .find(|kind| pascal(kind.as_str()) == name)
            .map(|kind| (*kind, PayloadStyle::Pascal))
    };
    camel.or_else(alias).or_else(pascal)
}

fn pascal(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn pascal_name(kind: HookKind) -> String {
    match ALIASES.iter().find(|(_, aliased)| *aliased == kind) {
        Some((alias, _)) => (*alias).to_owned(),
        None => pascal(kind.as_str()),
    }
}

/// Text that a matcher is compared with. `None` where hooks run whatever their matcher is: the reasons for which a
/// session begins, ends and goes on have other names here than in the program that such matchers are written for.
pub(super) fn matched(request: &HookRequest, style: PayloadStyle) -> Option<Vec<String>> {
    let member = match request.kind {
        HookKind::Notification => "notification_type",
        HookKind::SubagentStart | HookKind::SubagentStop => "agentName",
        HookKind::PreCompact => "trigger",
        HookKind::PreToolUse
        | HookKind::PreMcpToolCall
        | HookKind::PostToolUse
        | HookKind::PostToolUseFailure
        | HookKind::PermissionRequest => "toolName",
        HookKind::SessionStart
        | HookKind::SessionEnd
        | HookKind::UserPromptSubmitted
        | HookKind::UserPromptTransformed
        | HookKind::AgentStop
        | HookKind::ErrorOccurred => return None,
    };
    let Some(subject) = request.input[member].as_str() else { return Some(vec![String::new()]) };
    let mut subjects = vec![subject.to_owned()];
    if style == PayloadStyle::Pascal {
        subjects.extend(claude_tool(subject).map(str::to_owned));
    }
    Some(subjects)
}

fn claude_tool(name: &str) -> Option<&'static str> {
    TOOLS.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

pub(super) fn of(request: &HookRequest, style: PayloadStyle) -> Value {
    let Value::Object(input) = &request.input else { return request.input.clone() };
    // Fields for our own clients only.
    let input = input.iter().filter(|(name, _)| !matches!(name.as_str(), "toolCallId" | "stopHookActive"));
    // These two have one form for everybody.
    let uniform = matches!(request.kind, HookKind::PermissionRequest | HookKind::Notification);
    if style == PayloadStyle::Camel || uniform {
        return Value::Object(input.map(|(name, value)| (name.clone(), value.clone())).collect());
    }
    let mut out = Map::new();
    out.insert("hook_event_name".to_owned(), pascal_name(request.kind).into());
    for (name, value) in input {
        let value = match (name.as_str(), value) {
            ("timestamp", value) => iso(value),
            ("toolName", Value::String(tool)) => claude_tool(tool).unwrap_or(tool).into(),
            ("toolResult", Value::Object(result)) => {
                Value::Object(result.iter().map(|(name, value)| (snake(name), value.clone())).collect())
            }
            (_, value) => value.clone(),
        };
        let name = match name.as_str() {
            "toolArgs" => "tool_input".to_owned(),
            "response" => "last_assistant_message".to_owned(),
            name => snake(name),
        };
        out.insert(name, value);
    }
    if request.kind == HookKind::SubagentStart {
        // The reference tells these by their other names alone, so its hooks look for those.
        for name in ["sessionId", "transcriptPath", "agentName", "agentDescription"] {
            out.extend(request.input.get(name).map(|value| (name.to_owned(), value.clone())));
        }
    }
    Value::Object(out)
}

fn iso(milliseconds: &Value) -> Value {
    let time = milliseconds.as_i64().and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    time.map_or(Value::Null, |time| hangar_agent::session::iso(time).into())
}

fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(character.to_ascii_lowercase());
    }
    out
}

/// An answer in our terms. Hooks for Claude Code wrap theirs and call some things differently.
pub(super) fn plain_answer(mut answer: Value) -> Value {
    let Some(members) = answer.as_object_mut() else { return answer };
    if let Some(Value::Object(inner)) = members.remove("hookSpecificOutput") {
        for (name, value) in inner {
            match (name.as_str(), value) {
                ("updatedInput", value) => members.insert("modifiedArgs".to_owned(), value),
                // A decision about a permission is an object there.
                ("decision", Value::Object(decision)) => {
                    members.extend(decision);
                    None
                }
                (_, value) => members.insert(name, value),
            };
        }
    }
    answer
}
