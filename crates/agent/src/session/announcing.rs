//! What hooks are told in passing: that something is about to happen or has, and nothing waits for what they say to it.

use hangar_protocol::data::{self, NotificationKind};
use hangar_protocol::permission::PermissionRequest;
use serde_json::{Value, json};

use super::{Context, Effect, Origin, Prompt, Session, Step, Timing};
use crate::hook::HookKind;

impl Session {
    /// Tells the hooks that the conversation is about to be summed up. The transcript stays, so nothing waits for them.
    pub(super) fn announce_compaction(
        &mut self,
        trigger: Option<data::CompactionTrigger>,
        instructions: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.asks(HookKind::PreCompact) {
            use data::CompactionTrigger::{ContextLimitRetry, MemoryPressure, Threshold};
            // Who asks for it need not say why.
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

    /// Tells the hooks of a failure. Nothing they say changes it.
    pub(super) fn announce_error(&mut self, message: &str, step: &mut Step, context: &mut Context<'_>) {
        if self.asks(HookKind::ErrorOccurred) {
            let fields = json!({
                "error": { "message": message, "name": "Error" },
                "errorContext": "model_call",
                "recoverable": true,
            });
            self.ask_hooks(HookKind::ErrorOccurred, fields, step, context);
        }
    }

    /// Tells the hooks that the session ends. The log is about to close, so this is not on the record.
    pub(super) fn announce_end(&mut self, failed: bool, step: &mut Step, context: &mut Context<'_>) {
        if self.asks(HookKind::SessionEnd) {
            let reason = match failed {
                true => "error",
                false if self.aborted => "abort",
                // A session that clients have ends because they leave it.
                false if self.config.client_hooks => "user_exit",
                false => "complete",
            };
            let request = self.hook_request(HookKind::SessionEnd, json!({ "reason": reason }), context);
            step.effects.push(Effect::Hook(request));
        }
    }

    /// Tells the hooks that someone is needed.
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
        };
        self.notify("permission_prompt", Some("Permission needed"), &message, step, context);
    }

    /// Tells the hooks of news from the background.
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

    /// What a hook says to news joins the run that is under way.
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
