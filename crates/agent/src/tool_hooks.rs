//! Hooks around tool calls: their input, and the meaning of their answers.

use hangar_protocol::permission::PermissionRequest;
use serde_json::{Value, json};

use crate::hook::{HookAnswer, HookFailure, HookKind, blocked, changed_arguments, said_text};
use crate::tool::{ToolOutcome, ToolStatus};

/// Bytes that a hook may add to a tool's result.
const MAX_GUIDANCE: usize = 10 << 10;

/// Input of `preToolUse`.
pub fn before(tool: &str, arguments: &Value) -> Value {
    json!({ "toolName": tool, "toolArgs": arguments })
}

/// Answer of `preToolUse`.
#[derive(Debug, PartialEq)]
pub struct PreToolUseAnswer {
    pub decision: HookDecision,
    /// Modified arguments.
    pub arguments: Option<Value>,
    /// Additional context for the model.
    pub context: Option<String>,
}

#[derive(Debug, PartialEq)]
pub enum HookDecision {
    /// Allow, whatever the rules say.
    Open,
    Allow,
    /// Ask the user.
    Ask {
        reason: Option<String>,
    },
    Deny(Box<ToolOutcome>),
}

impl PreToolUseAnswer {
    /// A hook that failed might have said no.
    pub fn read(answer: HookAnswer) -> Self {
        let said = match answer {
            Ok(said) => said.unwrap_or_default(),
            Err(failure) => {
                let decision =
                    HookDecision::Deny(Box::new(ToolOutcome::of(ToolStatus::Denied, errored(&failure))));
                return Self { decision, arguments: None, context: None };
            }
        };
        let reason = match &said["permissionDecisionReason"] {
            Value::Null => None,
            Value::String(reason) => Some(reason.clone()),
            other => Some(other.to_string()),
        };
        let decision = match said["permissionDecision"].as_str() {
            Some("deny") => HookDecision::Deny(Box::new(denied("", reason.as_deref()))),
            Some("ask") => HookDecision::Ask { reason },
            Some("allow") => HookDecision::Allow,
            _ => HookDecision::Open,
        };
        Self {
            decision,
            arguments: changed_arguments(&said["modifiedArgs"]),
            context: said_text(&said, "additionalContext").map(str::to_owned),
        }
    }
}

/// Result of a call that the user should have confirmed, if nobody can be asked.
pub fn unconfirmed(reason: Option<&str>) -> ToolOutcome {
    denied(" (unable to ask user for confirmation)", reason)
}

fn denied(why: &str, reason: Option<&str>) -> ToolOutcome {
    let reason = reason.unwrap_or("No reason provided");
    ToolOutcome::of(ToolStatus::Denied, format!("Denied by preToolUse hook{why}: {reason}"))
}

fn errored(failure: &HookFailure) -> String {
    match &failure.file {
        Some(file) => format!("Denied by preToolUse hook from \"{file}\" (hook errored)"),
        None => format!("Denied by preToolUse hook (hook errored): {}", failure.message),
    }
}

/// Input of `permissionRequest`: the kind of operation, rather than the tool. `None` for kinds without such a hook,
/// such as reading.
pub fn permission(request: &PermissionRequest) -> Option<Value> {
    let (tool, input) = match request {
        PermissionRequest::Read { .. }
        | PermissionRequest::Hook { .. }
        | PermissionRequest::ExtensionPermissionAccess { .. }
        | PermissionRequest::ExtensionEnvAccess { .. } => return None,
        PermissionRequest::Shell(shell) => ("bash".to_owned(), json!({ "command": shell.full_command_text })),
        PermissionRequest::Write { file_name, diff, .. } => {
            ("edit".to_owned(), json!({ "file_path": file_name, "diff": diff }))
        }
        PermissionRequest::Url { url, .. } => ("web_fetch".to_owned(), json!({ "url": url })),
        PermissionRequest::Mcp { server_name, tool_name, args, .. } => {
            (format!("{server_name}/{tool_name}"), args.clone().unwrap_or_else(|| json!({})))
        }
        PermissionRequest::Memory { fact, .. } => ("store_memory".to_owned(), json!({ "fact": fact })),
        PermissionRequest::CustomTool { tool_name, args, .. } => {
            (tool_name.clone(), args.clone().unwrap_or_else(|| json!({})))
        }
        PermissionRequest::ExtensionManagement { operation, extension_name, .. } => {
            ("extensions_manage".to_owned(), json!({ "operation": operation, "name": extension_name }))
        }
    };
    Some(json!({
        "hookName": "permissionRequest",
        "toolName": tool,
        "toolInput": input,
        "permissionSuggestions": [],
    }))
}

/// Answer of `permissionRequest`.
pub enum PermissionHookAnswer {
    Open,
    Allow,
    Deny { message: String, interrupt: Option<bool> },
}

impl PermissionHookAnswer {
    /// A hook that failed might have said no.
    pub fn read(answer: HookAnswer) -> Self {
        let Ok(said) = answer else {
            return Self::Deny { message: "Permission request hook failed".to_owned(), interrupt: None };
        };
        let said = said.unwrap_or_default();
        match said["behavior"].as_str() {
            Some("allow") => Self::Allow,
            Some("deny") => Self::Deny {
                message: said["message"].as_str().unwrap_or("Permission denied by hook.").to_owned(),
                interrupt: said["interrupt"].as_bool(),
            },
            _ => Self::Open,
        }
    }
}

/// Kind of the hook that sees a result before the model does. Calls that did not complete have none.
pub fn after_kind(outcome: &ToolOutcome) -> Option<HookKind> {
    match outcome.status {
        ToolStatus::Success => Some(HookKind::PostToolUse),
        ToolStatus::Failure => Some(HookKind::PostToolUseFailure),
        ToolStatus::Denied | ToolStatus::Rejected | ToolStatus::Interrupted | ToolStatus::Timeout => None,
    }
}

/// Input of that hook.
pub fn after(kind: HookKind, tool: &str, arguments: &Value, outcome: &ToolOutcome) -> Value {
    let mut fields = json!({ "toolName": tool, "toolArgs": arguments });
    if kind == HookKind::PostToolUseFailure {
        fields["error"] = json!(outcome.error.as_ref().unwrap_or(&outcome.text));
    } else {
        fields["toolResult"] = json!({ "textResultForLlm": outcome.text, "resultType": "success" });
    }
    fields
}

/// Applies the hook's answer to a result. Returns a separate message for the model, if there is one.
pub fn amend(outcome: &mut ToolOutcome, tool: &str, kind: HookKind, said: Option<Value>) -> Option<String> {
    let said = said.unwrap_or_default();
    // People see the tool's output; the model sees what hooks made of it.
    outcome.detailed.get_or_insert_with(|| outcome.text.clone());
    let failed = kind == HookKind::PostToolUseFailure;
    if !failed && let Some(reason) = blocked(&said) {
        let withheld = ToolOutcome::of(ToolStatus::Denied, format!("Tool result blocked: {reason}"));
        // The effects of the call stay, and are logged.
        *outcome = ToolOutcome { changes: std::mem::take(&mut outcome.changes), ..withheld };
        return None;
    }
    let modified = &said["modifiedResult"];
    if let Some(text) = modified["textResultForLlm"].as_str() {
        outcome.text = text.to_owned();
    }
    if !failed && modified["resultType"] == "failure" {
        outcome.status = ToolStatus::Failure;
    }
    let guidance = said_text(&said, "additionalContext")?;
    let guidance = &guidance[..guidance.floor_char_boundary(MAX_GUIDANCE)];
    let verb = if failed { "failed" } else { "succeeded" };
    let hooks = kind.as_str();
    let text = format!("Tool \"{tool}\" {verb}. Additional guidance from {hooks} hooks:\n{guidance}");
    if failed {
        return Some(text);
    }
    outcome.text.push_str(&format!("\n\n{text}"));
    None
}
