//! Permission requests of tool calls and their outcomes.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A request for permission. The kinds are the wire's.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum PermissionRequest {
    Shell(ShellRequest),
    Write {
        tool_call_id: Option<String>,
        intention: String,
        file_name: String,
        diff: String,
        new_file_contents: Option<String>,
        can_offer_session_approval: bool,
    },
    Read {
        tool_call_id: Option<String>,
        intention: String,
        path: String,
    },
    Url {
        tool_call_id: Option<String>,
        intention: String,
        url: String,
    },
    Mcp {
        tool_call_id: Option<String>,
        server_name: String,
        tool_name: String,
        tool_title: String,
        args: Option<serde_json::Value>,
        read_only: bool,
    },
    Memory {
        tool_call_id: Option<String>,
        fact: String,
    },
    CustomTool {
        tool_call_id: Option<String>,
        tool_name: String,
        tool_description: String,
        args: Option<serde_json::Value>,
    },
    Hook {
        tool_call_id: Option<String>,
        tool_name: String,
        tool_args: Option<serde_json::Value>,
        hook_message: Option<String>,
    },
    /// The model wants to create or reload extensions.
    ExtensionManagement {
        tool_call_id: Option<String>,
        operation: String,
        extension_name: Option<String>,
    },
    /// An extension wants to take part in decisions of the session.
    ExtensionPermissionAccess {
        tool_call_id: Option<String>,
        extension_name: String,
        capabilities: Vec<String>,
    },
    /// An extension wants variables that hold secrets. Their values are never part of a request.
    ExtensionEnvAccess {
        tool_call_id: Option<String>,
        extension_name: String,
        environment_variables: Vec<String>,
    },
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellRequest {
    pub tool_call_id: Option<String>,
    pub full_command_text: String,
    pub intention: String,
    pub commands: Vec<ShellCommand>,
    pub possible_paths: Vec<String>,
    pub possible_urls: Vec<PossibleUrl>,
    pub has_write_file_redirection: bool,
    pub can_offer_session_approval: bool,
    pub warning: Option<String>,
    /// Whether the lists above may be incomplete, because some part could not be analysed (a computed program name,
    /// broken syntax). Not on the wire, which has no member for it.
    #[serde(skip)]
    pub opaque: bool,
    /// Whether something runs code that is not analysed: a script, the input of a shell, another language. Not on the
    /// wire either.
    #[serde(skip)]
    pub runs_unread: bool,
}

/// One simple command of a script: `git push`, `ls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellCommand {
    pub identifier: String,
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PossibleUrl {
    pub url: String,
}

impl PermissionRequest {
    /// Id of the call that needs the permission.
    pub fn tool_call_id(&self) -> Option<&str> {
        match self {
            PermissionRequest::Shell(shell) => shell.tool_call_id.as_deref(),
            PermissionRequest::Write { tool_call_id, .. }
            | PermissionRequest::Read { tool_call_id, .. }
            | PermissionRequest::Url { tool_call_id, .. }
            | PermissionRequest::Mcp { tool_call_id, .. }
            | PermissionRequest::Memory { tool_call_id, .. }
            | PermissionRequest::CustomTool { tool_call_id, .. }
            | PermissionRequest::Hook { tool_call_id, .. }
            | PermissionRequest::ExtensionManagement { tool_call_id, .. }
            | PermissionRequest::ExtensionPermissionAccess { tool_call_id, .. }
            | PermissionRequest::ExtensionEnvAccess { tool_call_id, .. } => tool_call_id.as_deref(),
        }
    }

    /// The request as a person is shown it.
    pub fn prompt(&self) -> PermissionPrompt {
        match self.clone() {
            PermissionRequest::Shell(shell) => PermissionPrompt::Commands {
                tool_call_id: shell.tool_call_id,
                full_command_text: shell.full_command_text,
                intention: shell.intention,
                command_identifiers: shell.commands.into_iter().map(|command| command.identifier).collect(),
                can_offer_session_approval: shell.can_offer_session_approval,
                warning: shell.warning,
            },
            PermissionRequest::Mcp { tool_call_id, server_name, tool_name, tool_title, args, .. } => {
                PermissionPrompt::Mcp { tool_call_id, server_name, tool_name, tool_title, args }
            }
            same => PermissionPrompt::Same(same),
        }
    }

    /// The wire's name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            PermissionRequest::Shell(_) => "shell",
            PermissionRequest::Write { .. } => "write",
            PermissionRequest::Read { .. } => "read",
            PermissionRequest::Url { .. } => "url",
            PermissionRequest::Mcp { .. } => "mcp",
            PermissionRequest::Memory { .. } => "memory",
            PermissionRequest::CustomTool { .. } => "custom-tool",
            PermissionRequest::Hook { .. } => "hook",
            PermissionRequest::ExtensionManagement { .. } => "extension-management",
            PermissionRequest::ExtensionPermissionAccess { .. } => "extension-permission-access",
            PermissionRequest::ExtensionEnvAccess { .. } => "extension-env-access",
        }
    }
}

/// A request as a person is shown it. Commands and MCP tools are shown otherwise than they are asked for.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum PermissionPrompt {
    Commands {
        tool_call_id: Option<String>,
        full_command_text: String,
        intention: String,
        command_identifiers: Vec<String>,
        can_offer_session_approval: bool,
        warning: Option<String>,
    },
    Mcp {
        tool_call_id: Option<String>,
        server_name: String,
        tool_name: String,
        tool_title: String,
        args: Option<serde_json::Value>,
    },
    /// Any other kind, which has its own tag.
    #[serde(untagged)]
    Same(PermissionRequest),
}

/// Outcome of a permission request.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum PermissionOutcome {
    Approved {},
    ApprovedForSession { approval: serde_json::Value },
    ApprovedForLocation { approval: serde_json::Value, location_key: String },
    Cancelled { reason: Option<String> },
    DeniedByRules { rules: Vec<DenyingRule> },
    DeniedNoApprovalRuleAndCouldNotRequestFromUser {},
    DeniedInteractivelyByUser { feedback: Option<String>, force_reject: Option<bool> },
    DeniedByContentExclusionPolicy { path: String, message: String },
    DeniedByPermissionRequestHook { message: Option<String>, interrupt: Option<bool> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyingRule {
    pub kind: String,
    pub argument: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The part of a request that a person is shown; it is read back unchanged.
    fn check(request: Value, shown: Value) {
        let request: PermissionRequest = serde_json::from_value(request).unwrap();
        let prompt = json!(request.prompt());
        assert_eq!(prompt, shown);
        let again: PermissionPrompt = serde_json::from_value(prompt).unwrap();
        assert_eq!(json!(again), shown);
    }

    #[test]
    fn a_person_is_shown_what_a_request_is_about() {
        let shell = json!({
            "kind": "shell", "toolCallId": "c", "fullCommandText": "ls", "intention": "i", "possiblePaths": [],
            "possibleUrls": [], "commands": [{ "identifier": "ls", "readOnly": true }],
            "hasWriteFileRedirection": false, "canOfferSessionApproval": true,
        });
        let commands = json!({
            "kind": "commands", "toolCallId": "c", "fullCommandText": "ls", "intention": "i",
            "commandIdentifiers": ["ls"], "canOfferSessionApproval": true,
        });
        check(shell, commands);
        let shown = json!({ "kind": "mcp", "serverName": "s", "toolName": "t", "toolTitle": "T", "args": { "a": 1 } });
        let mut asked = shown.clone();
        asked["readOnly"] = json!(true);
        check(asked, shown);
        for same in [
            json!({ "kind": "read", "intention": "i", "path": "/p" }),
            json!({ "kind": "url", "intention": "i", "url": "u", "toolCallId": "c" }),
            json!({ "kind": "memory", "fact": "f" }),
            json!({ "kind": "custom-tool", "toolName": "t", "toolDescription": "d", "args": {} }),
            json!({ "kind": "hook", "toolName": "t", "hookMessage": "m" }),
        ] {
            check(same.clone(), same);
        }
    }
}
