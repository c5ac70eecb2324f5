//! Permissions: what the client is asked, and what its answer means.

use hangar_agent::permissions::SessionApproval;
use hangar_peer::PeerError;
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde::Serialize;
use serde_json::{Value, json};

use crate::schema::{FileLocation, PermissionAnswer, PermissionDecision, ToolCall, ToolCallStatus, ToolKind};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionQuestion {
    session_id: String,
    tool_call: ToolCall,
    options: Value,
}

pub(crate) fn question(session_id: &str, request: &PermissionRequest) -> PermissionQuestion {
    let options = json!([
        { "optionId": ALLOW_ONCE, "kind": ALLOW_ONCE, "name": "Allow once" },
        { "optionId": ALLOW_ALWAYS, "kind": ALLOW_ALWAYS, "name": "Always allow" },
        { "optionId": REJECT_ONCE, "kind": REJECT_ONCE, "name": "Deny" },
    ]);
    PermissionQuestion { session_id: session_id.to_owned(), tool_call: subject(request), options }
}

/// Tool call that the question is about.
fn subject(request: &PermissionRequest) -> ToolCall {
    let (call_id, title, kind, raw_input, path) = match request {
        PermissionRequest::Shell(shell) => (
            &shell.tool_call_id,
            // There is no other place for what a person should know.
            match &shell.warning {
                Some(warning) => format!("{} ({warning})", shell.intention),
                None => shell.intention.clone(),
            },
            ToolKind::Execute,
            Some(json!({ "command": shell.full_command_text, "commands": [shell.full_command_text] })),
            None,
        ),
        PermissionRequest::Write { tool_call_id, intention, file_name, diff, .. } => (
            tool_call_id,
            intention.clone(),
            ToolKind::Edit,
            Some(json!({ "fileName": file_name, "diff": diff })),
            Some(file_name.clone()),
        ),
        PermissionRequest::Read { tool_call_id, intention, path } => (
            tool_call_id,
            intention.clone(),
            ToolKind::Read,
            Some(json!({ "path": path })),
            Some(path.clone()),
        ),
        PermissionRequest::Url { tool_call_id, intention, url } => {
            (tool_call_id, intention.clone(), ToolKind::Fetch, Some(json!({ "url": url })), None)
        }
        PermissionRequest::Mcp { tool_call_id, tool_title, args, .. } => {
            (tool_call_id, tool_title.clone(), ToolKind::Other, args.clone(), None)
        }
        PermissionRequest::Memory { tool_call_id, fact } => {
            (tool_call_id, "Remember".to_owned(), ToolKind::Other, Some(json!({ "fact": fact })), None)
        }
        PermissionRequest::CustomTool { tool_call_id, tool_name, args, .. } => {
            (tool_call_id, tool_name.clone(), ToolKind::Other, args.clone(), None)
        }
        PermissionRequest::Hook { tool_call_id, tool_name, tool_args, hook_message } => {
            let title = hook_message.clone().unwrap_or_else(|| tool_name.clone());
            (tool_call_id, title, ToolKind::Other, tool_args.clone(), None)
        }
        PermissionRequest::ExtensionManagement { tool_call_id, operation, extension_name } => {
            let title = format!("Extensions: {operation}");
            (tool_call_id, title, ToolKind::Other, Some(json!({ "name": extension_name })), None)
        }
        PermissionRequest::ExtensionPermissionAccess { tool_call_id, extension_name, capabilities } => {
            let title = format!("Let the extension {extension_name} {}", capabilities.join(", "));
            (tool_call_id, title, ToolKind::Other, None, None)
        }
        PermissionRequest::ExtensionEnvAccess { tool_call_id, extension_name, environment_variables } => {
            let title = format!("Give the extension {extension_name} {}", environment_variables.join(", "));
            (tool_call_id, title, ToolKind::Other, None, None)
        }
    };
    ToolCall {
        tool_call_id: call_id.clone().unwrap_or_default(),
        title,
        kind,
        status: ToolCallStatus::Pending,
        raw_input,
        locations: path.into_iter().map(|path| FileLocation { path }).collect(),
        content: Vec::new(),
    }
}

/// Outcome of the request. Anything but a clear yes is a no.
pub(crate) fn outcome(
    answer: Result<PermissionAnswer, PeerError>,
    request: &PermissionRequest,
) -> PermissionOutcome {
    let refused = PermissionOutcome::DeniedInteractivelyByUser { feedback: None, force_reject: Some(true) };
    match answer {
        Ok(PermissionAnswer { outcome: PermissionDecision::Selected { option_id } }) => {
            match option_id.as_str() {
                ALLOW_ONCE => PermissionOutcome::Approved {},
                ALLOW_ALWAYS => {
                    PermissionOutcome::ApprovedForSession { approval: SessionApproval::covering(request) }
                }
                _ => refused,
            }
        }
        Ok(PermissionAnswer { outcome: PermissionDecision::Cancelled }) => refused,
        Err(error) => {
            tracing::warn!(%error, "a permission was not answered");
            PermissionOutcome::DeniedNoApprovalRuleAndCouldNotRequestFromUser {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn shell() -> PermissionRequest {
        serde_json::from_value(json!({
            "kind": "shell", "toolCallId": "c", "fullCommandText": "touch z", "intention": "touch",
            "commands": [{"identifier": "touch", "readOnly": false}], "possiblePaths": [], "possibleUrls": [],
            "hasWriteFileRedirection": false, "canOfferSessionApproval": true,
        }))
        .unwrap()
    }

    fn check(answer: Value, expect: Expect) {
        let answer = serde_json::from_value(answer).map_err(PeerError::Unexpected);
        expect.assert_eq(&serde_json::to_string(&outcome(answer, &shell())).unwrap());
    }

    #[test]
    fn only_a_clear_yes_allows() {
        let selected = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        check(selected("allow_once"), expect![[r#"{"kind":"approved"}"#]]);
        check(
            selected("allow_always"),
            expect![[
                r#"{"kind":"approved-for-session","approval":{"kind":"commands","commandIdentifiers":["touch"]}}"#
            ]],
        );
        let noes = [
            selected("reject_once"),
            selected("whatever"),
            json!({"outcome": {"outcome": "cancelled"}}),
            json!({"outcome": {"outcome": "later"}}),
        ];
        for no in noes {
            check(no, expect![[r#"{"kind":"denied-interactively-by-user","forceReject":true}"#]]);
        }
        check(
            json!({"yes": true}),
            expect![[r#"{"kind":"denied-no-approval-rule-and-could-not-request-from-user"}"#]],
        );
    }

    #[test]
    fn the_question_names_the_call_and_the_command() {
        let question = serde_json::to_value(question("s", &shell())).unwrap();
        expect![[r#"{"toolCallId":"c","title":"touch","kind":"execute","status":"pending","rawInput":{"command":"touch z","commands":["touch z"]}}"#]]
            .assert_eq(&question["toolCall"].to_string());
    }
}
