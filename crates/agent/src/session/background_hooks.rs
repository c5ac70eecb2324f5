//! Hooks that run beside the work: nothing waits for their answers.

use hangar_protocol::data::{self, NotificationKind};
use hangar_protocol::permission::PermissionRequest;
use serde_json::{Value, json};

use super::{Context, Origin, Prompt, Session, SessionEffect, Step, Timing};
use crate::hook::HookKind;

impl Session {
    /// Runs `preCompact`. The transcript stays, so nothing waits for it.
    pub(super) fn announce_compaction(
        &mut self,
        trigger: Option<data::CompactionTrigger>,
        instructions: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.asks(HookKind::PreCompact) {
            use data::CompactionTrigger::{ContextLimitRetry, MemoryPressure, Threshold};
            // A request for compaction need not give a reason.
            let manual = !matches!(trigger, Some(Threshold | ContextLimitRetry | MemoryPressure));
            let transcript = self.config.session_dir.join("events.jsonl");
            let fields = json!({
                "transcriptPath": transcript.display().to_string(),
                "trigger": if manual { "manual" } else { "auto" },
                "customInstructions": instructions.unwrap_or_default(),
            });
            self.ask_hooks(HookKind::PreCompact, fields, step, context);
        }
    }

    /// Runs `errorOccurred`, which may decide what happens next. Returns its id, if there is such a hook.
    pub(super) fn announce_error(
        &mut self,
        message: &str,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> Option<String> {
        self.asks(HookKind::ErrorOccurred).then(|| {
            let fields = json!({
                "error": { "message": message, "name": "Error" },
                "errorContext": "model_call",
                "recoverable": true,
            });
            self.ask_hooks(HookKind::ErrorOccurred, fields, step, context)
        })
    }

    /// Runs `sessionEnd`. The log is about to close, so this is not logged.
    pub(super) fn announce_end(&mut self, error: Option<&str>, step: &mut Step, context: &mut Context<'_>) {
        if self.asks(HookKind::SessionEnd) {
            let reason = match error {
                Some(_) => "error",
                None if self.last_run.aborted => "abort",
                // A session of clients ends because they leave it.
                None if self.config.clients.hooks => "user_exit",
                None => "complete",
            };
            let mut fields = json!({ "reason": reason });
            if let Some(error) = error {
                fields["error"] = json!(error);
            }
            let request = self.hook_request(HookKind::SessionEnd, fields, context);
            step.effects.push(SessionEffect::Hook(request));
        }
    }

    /// Runs `notification` because the user is asked something.
    pub(super) fn notify_of_question(
        &mut self,
        request: &PermissionRequest,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let message = match request {
            PermissionRequest::Shell(shell) => format!("Run command: {}", shell.full_command_text),
            PermissionRequest::Write { file_name, .. } => format!("Edit file: {file_name}"),
            PermissionRequest::Read { path, .. } => format!("Read: {path}"),
            PermissionRequest::Url { url, .. } => format!("Fetch URL: {url}"),
            PermissionRequest::Mcp { server_name, tool_name, .. } => {
                format!("Use MCP tool: {server_name}/{tool_name}")
            }
            PermissionRequest::Memory { fact, .. } => format!("Remember: {fact}"),
            PermissionRequest::CustomTool { tool_name, .. } | PermissionRequest::Hook { tool_name, .. } => {
                format!("Use tool: {tool_name}")
            }
            PermissionRequest::ExtensionManagement { operation, extension_name, .. } => {
                match extension_name {
                    Some(name) => format!("Manage extensions: {operation} {name}"),
                    None => format!("Manage extensions: {operation}"),
                }
            }
            PermissionRequest::ExtensionPermissionAccess { extension_name, capabilities, .. } => {
                format!("Let the extension {extension_name} {}", capabilities.join(", "))
            }
            PermissionRequest::ExtensionEnvAccess { extension_name, environment_variables, .. } => {
                format!("Give the extension {extension_name} {}", environment_variables.join(", "))
            }
        };
        self.notify("permission_prompt", Some("Permission needed"), &message, step, context);
    }

    /// Runs `notification` because of news from the background.
    pub(super) fn notify_of_news(
        &mut self,
        kind: &NotificationKind,
        text: &str,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let agent =
            |name: &Option<String>, how: &str| name.as_ref().map(|name| format!("Agent {name} {how}"));
        let (kind, title) = match kind {
            NotificationKind::AgentCompleted { display_name, status, .. } => {
                ("agent_completed", agent(display_name, status))
            }
            NotificationKind::AgentIdle { display_name, .. } => ("agent_idle", agent(display_name, "idle")),
            NotificationKind::ShellCompleted { description, .. } => ("shell_completed", description.clone()),
            NotificationKind::ShellDetachedCompleted { description, .. } => {
                ("shell_detached_completed", description.clone())
            }
            NotificationKind::InstructionDiscovered { .. } | NotificationKind::Unclassified {} => return,
        };
        self.notify(kind, title.as_deref(), text, step, context);
    }

    fn notify(
        &mut self,
        kind: &str,
        title: Option<&str>,
        message: &str,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if !self.asks(HookKind::Notification) {
            return;
        }
        let mut fields = json!({
            "message": message,
            "hook_event_name": "Notification",
            "notification_type": kind,
        });
        if let Some(title) = title {
            fields["title"] = title.into();
        }
        self.ask_hooks(HookKind::Notification, fields, step, context);
    }

    /// Adds the answer of `notification` to the current run.
    pub(super) fn notification_answered(
        &mut self,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(text) = output.as_ref().and_then(|output| output["additionalContext"].as_str()) else {
            return;
        };
        if self.run.is_some() {
            let prompt =
                Prompt { timing: Timing::Steer, origin: Origin::Hook("system"), ..Prompt::user(text) };
            self.send(prompt, step, context);
        }
    }
}
