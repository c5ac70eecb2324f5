//! When hooks are asked, and what their answers change.
//!
//! The session decides when to ask and what an answer means; the driver asks. An answer that does not come, or that
//! makes no sense, changes nothing, except where a call may be refused: a hook that failed there might have said no.

use hangar_protocol::data;
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde_json::{Value, json};

use super::run::Phase;
use super::tools::Stage;
use super::{Context, Effect, Input, Inspection, Session, Step};
use crate::hook::{HookAnswer, HookFailure, HookKind, HookRequest, blocked, changed_arguments};
use crate::tool::{AccessRequest, ToolOutcome, ToolStatus};

/// The most that a hook may add to a tool's result.
const MAX_GUIDANCE: usize = 10 << 10;

impl Session {
    /// Whether there is someone to ask.
    pub(super) fn asks(&self, kind: HookKind) -> bool {
        (self.config.client_hooks && kind.is_for_clients()) || self.config.hooks.contains(kind)
    }

    /// Asks the hooks something, on the record.
    pub(super) fn ask_hooks(
        &mut self,
        kind: HookKind,
        fields: Value,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> String {
        let request = self.hook_request(kind, fields, context);
        let start = data::HookStart {
            hook_invocation_id: request.id.clone(),
            hook_type: kind.as_str().to_owned(),
            input: Some(request.input.clone()),
        };
        self.emit(step, start);
        let id = request.id.clone();
        self.open_hooks.push((id.clone(), kind));
        step.effects.push(Effect::Hook(request));
        id
    }

    pub(super) fn hook_request(
        &self,
        kind: HookKind,
        fields: Value,
        context: &mut Context<'_>,
    ) -> HookRequest {
        let mut input = json!({
            "sessionId": self.state.session_id,
            "timestamp": context.now.as_millisecond(),
            "cwd": self.state.cwd,
        });
        if let (Value::Object(input), Value::Object(fields)) = (&mut input, fields) {
            input.extend(fields);
        }
        if let Some(role) = self.agent() {
            input["agentId"] = json!(role.id);
            input["agentType"] = json!(role.agent_type);
            input["parentAgentId"] = json!(role.parent);
        }
        HookRequest { id: context.entropy.uuid(), kind, input }
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        if let Some(run) = &mut self.run {
            run.phase = phase;
        }
    }

    pub(super) fn hook_done(
        &mut self,
        id: &str,
        output: HookAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(index) = self.open_hooks.iter().position(|(open, _)| open == id) else { return };
        let (_, kind) = self.open_hooks.swap_remove(index);
        let end = data::HookEnd {
            hook_invocation_id: id.to_owned(),
            hook_type: kind.as_str().to_owned(),
            output: output.as_ref().ok().cloned().flatten(),
            success: output.is_ok(),
            error: output.as_ref().err().map(|failure| data::HookError { message: failure.message.clone() }),
        };
        self.emit(step, end);
        match kind {
            HookKind::SessionStart
            | HookKind::SubagentStart
            | HookKind::UserPromptSubmitted
            | HookKind::UserPromptTransformed => {
                self.prompt_hook_done(id, output.ok().flatten(), step, context);
            }
            HookKind::PreToolUse => self.before_tool_done(id, output, step, context),
            HookKind::PermissionRequest => {
                self.permission_hook_done(id, output, step, context);
            }
            HookKind::PostToolUse | HookKind::PostToolUseFailure => {
                self.after_tool_done(id, kind, output.ok().flatten(), step, context);
            }
            HookKind::AgentStop | HookKind::SubagentStop => {
                self.stop_decided(id, kind, output.ok().flatten(), step, context);
            }
            HookKind::Notification => self.notification_answered(output.ok().flatten(), step, context),
            HookKind::PreMcpToolCall
            | HookKind::PreCompact
            | HookKind::ErrorOccurred
            | HookKind::SessionEnd => {}
        }
    }

    /// Asks whether and how a call may run, before permissions are looked at.
    pub(super) fn before_tool(
        &mut self,
        id: &str,
        inspection: Option<Inspection>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let fields = json!({
            "toolName": running.name(),
            "toolArgs": running.arguments(),
            "toolCallId": id,
        });
        let hook = self.ask_hooks(HookKind::PreToolUse, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = Stage::BeforeHooks { hook, inspection: inspection.map(Box::new) };
        }
    }

    fn before_tool_done(
        &mut self,
        hook: &str,
        output: HookAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &Stage| matches!(stage, Stage::BeforeHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let Stage::BeforeHooks { inspection, .. } = std::mem::replace(&mut running.stage, Stage::Checking)
        else {
            return;
        };
        let output = match output {
            Ok(output) => output.unwrap_or_default(),
            Err(failure) => {
                self.complete(&id, ToolOutcome::of(ToolStatus::Denied, hook_errored(&failure)), step);
                return self.finish_tools(step, context);
            }
        };
        if let Some(added) = said(&output, "additionalContext") {
            let text = format!("Additional context from preToolUse hook:\n{added}");
            self.after_tools(said_by_hook(text, "pre-tool-use-hook").into());
        }
        let reason = match &output["permissionDecisionReason"] {
            Value::Null => None,
            Value::String(reason) => Some(reason.clone()),
            other => Some(other.to_string()),
        };
        let reason = reason.as_deref();
        let changed = changed_arguments(&output["modifiedArgs"]);
        let decision = output["permissionDecision"].as_str();
        if decision == Some("allow")
            && let Some(running) = self.running(&id)
        {
            running.allowed = true;
        }
        match decision {
            Some("deny") => {
                let text = format!("Denied by preToolUse hook: {}", reason.unwrap_or("No reason provided"));
                self.complete(&id, ToolOutcome::of(ToolStatus::Denied, text), step);
            }
            Some("ask") if self.config.user_reachable => self.confirm(&id, inspection, reason, step, context),
            Some("ask") => {
                let text = format!(
                    "Denied by preToolUse hook (unable to ask user for confirmation): {}",
                    reason.unwrap_or("No reason provided")
                );
                self.complete(&id, ToolOutcome::of(ToolStatus::Denied, text), step);
            }
            _ => match changed {
                Some(arguments) => self.rewrite_arguments(&id, arguments, step, context),
                None => self.admit(&id, inspection.map(|inspection| *inspection), step, context),
            },
        }
        self.finish_tools(step, context);
    }

    /// Asks a person about a call, because a hook wants that.
    fn confirm(
        &mut self,
        id: &str,
        inspection: Option<Box<Inspection>>,
        reason: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let request = PermissionRequest::Hook {
            tool_call_id: Some(id.to_owned()),
            tool_name: running.name().to_owned(),
            tool_args: Some(running.arguments().clone()),
            hook_message: reason.map(str::to_owned),
        };
        let request_id = context.entropy.uuid();
        running.stage = Stage::AskingConfirmation {
            request_id: request_id.clone(),
            request: Box::new(request.clone()),
            inspection,
        };
        self.ask_permission(request_id, request, step);
    }

    /// Asks whether a call may have what it needs, before rules and people are. Reading is never worth it.
    pub(super) fn asks_about(&self, request: &PermissionRequest) -> bool {
        self.asks(HookKind::PermissionRequest)
            && !matches!(request, PermissionRequest::Read { .. } | PermissionRequest::Hook { .. })
    }

    pub(super) fn ask_permission_hooks(
        &mut self,
        id: &str,
        access: AccessRequest,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let (tool, input) = family(&access.request);
        let fields = json!({
            "hookName": "permissionRequest",
            "toolName": tool,
            "toolInput": input,
            "permissionSuggestions": [],
        });
        let hook = self.ask_hooks(HookKind::PermissionRequest, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = Stage::PermissionHooks { hook, access: Box::new(access) };
        }
    }

    fn permission_hook_done(
        &mut self,
        hook: &str,
        output: HookAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &Stage| matches!(stage, Stage::PermissionHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let Stage::PermissionHooks { access, .. } = std::mem::replace(&mut running.stage, Stage::Checking)
        else {
            return;
        };
        let failed = |_| Some(json!({ "behavior": "deny", "message": "Permission request hook failed" }));
        let output = output.unwrap_or_else(failed).unwrap_or_default();
        match output["behavior"].as_str() {
            Some("allow") => self.allow_access(&id, *access, step),
            Some("deny") => {
                let message = output["message"].as_str().unwrap_or("Permission denied by hook.").to_owned();
                let interrupt = output["interrupt"].as_bool();
                let outcome =
                    PermissionOutcome::DeniedByPermissionRequestHook { message: Some(message), interrupt };
                self.refuse_access(&id, outcome, step);
            }
            _ => self.decide_by_policy(&id, *access, step, context),
        }
        self.finish_tools(step, context);
    }

    /// Asks about a result before the model is shown it.
    pub(super) fn after_tool(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let (tool, arguments) = (running.name().to_owned(), running.arguments().clone());
        let (kind, fields) = match outcome.status {
            ToolStatus::Success => (
                HookKind::PostToolUse,
                json!({
                    "toolName": tool,
                    "toolArgs": arguments,
                    "toolResult": { "textResultForLlm": outcome.text, "resultType": "success" },
                }),
            ),
            _ => {
                let error = outcome.error.as_ref().unwrap_or(&outcome.text);
                (
                    HookKind::PostToolUseFailure,
                    json!({ "toolName": tool, "toolArgs": arguments, "error": error }),
                )
            }
        };
        let hook = self.ask_hooks(kind, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = Stage::AfterHooks { hook, outcome: Box::new(outcome) };
        }
    }

    fn after_tool_done(
        &mut self,
        hook: &str,
        kind: HookKind,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &Stage| matches!(stage, Stage::AfterHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let name = running.name().to_owned();
        let Stage::AfterHooks { outcome, .. } = std::mem::replace(&mut running.stage, Stage::Running) else {
            return;
        };
        let mut outcome = *outcome;
        let output = output.unwrap_or_default();
        // People see what the tool said; the model sees what hooks made of it.
        outcome.detailed.get_or_insert_with(|| outcome.text.clone());
        if kind == HookKind::PostToolUse
            && let Some(reason) = blocked(&output)
        {
            let text = format!("Tool result blocked: {reason}");
            let withheld = ToolOutcome::of(ToolStatus::Denied, text);
            // What the call did stays done, and on record.
            self.complete(&id, ToolOutcome { changes: outcome.changes, ..withheld }, step);
            return self.finish_tools(step, context);
        }
        let modified = &output["modifiedResult"];
        if let Some(text) = modified["textResultForLlm"].as_str() {
            outcome.text = text.to_owned();
        }
        if kind == HookKind::PostToolUse && modified["resultType"] == "failure" {
            outcome.status = ToolStatus::Failure;
        }
        if let Some(guidance) = said(&output, "additionalContext") {
            let guidance = &guidance[..guidance.floor_char_boundary(MAX_GUIDANCE)];
            let (verb, hooks) = match kind {
                HookKind::PostToolUseFailure => ("failed", kind.as_str()),
                _ => ("succeeded", HookKind::PostToolUse.as_str()),
            };
            let text = format!("Tool \"{name}\" {verb}. Additional guidance from {hooks} hooks:\n{guidance}");
            match kind {
                // After a failure it is a message of its own.
                HookKind::PostToolUseFailure => {
                    self.after_tools(said_by_hook(text, "post-tool-use-failure-hook").into());
                }
                _ => outcome.text.push_str(&format!("\n\n{text}")),
            }
        }
        self.complete(&id, outcome, step);
        self.finish_tools(step, context);
    }

    /// Lets a call run with other arguments: what it would touch has to be asked again.
    fn rewrite_arguments(&mut self, id: &str, arguments: Value, step: &mut Step, context: &mut Context<'_>) {
        let Some(running) = self.running(id) else { return };
        running.set_arguments(arguments);
        let (name, input) = (running.name().to_owned(), running.input());
        if super::own_tools::OwnTool::named(&name).is_some() {
            return self.admit(id, None, step, context);
        }
        step.effects.push(Effect::Inspect(vec![(name, input)]));
    }
}

impl HookRequest {
    /// The answer of a hook as the session takes it.
    pub fn done(&self, output: HookAnswer) -> Input {
        Input::HookDone { id: self.id.clone(), output }
    }
}

/// What a hook says, if it says something.
pub(super) fn said<'a>(output: &'a Value, key: &str) -> Option<&'a str> {
    output[key].as_str().filter(|text| !text.is_empty())
}

/// A message to the model that no person sent.
pub(super) fn said_by_hook(text: String, source: &str) -> data::UserMessage {
    data::UserMessage {
        content: String::new(),
        transformed_content: Some(text),
        source: Some(source.to_owned()),
        ..Default::default()
    }
}

fn hook_errored(failure: &HookFailure) -> String {
    match &failure.file {
        Some(file) => format!("Denied by preToolUse hook from \"{file}\" (hook errored)"),
        None => format!("Denied by preToolUse hook (hook errored): {}", failure.message),
    }
}

/// What hooks about permissions are told: the kind of thing that is done, rather than the tool that would do it.
fn family(request: &PermissionRequest) -> (String, Value) {
    match request {
        PermissionRequest::Shell(shell) => ("bash".to_owned(), json!({ "command": shell.full_command_text })),
        PermissionRequest::Write { file_name, diff, .. } => {
            ("edit".to_owned(), json!({ "file_path": file_name, "diff": diff }))
        }
        PermissionRequest::Read { path, .. } => ("view".to_owned(), json!({ "file_path": path })),
        PermissionRequest::Url { url, .. } => ("web_fetch".to_owned(), json!({ "url": url })),
        PermissionRequest::Mcp { server_name, tool_name, args, .. } => {
            (format!("{server_name}/{tool_name}"), args.clone().unwrap_or_else(|| json!({})))
        }
        PermissionRequest::Memory { fact, .. } => ("store_memory".to_owned(), json!({ "fact": fact })),
        PermissionRequest::CustomTool { tool_name, args, .. } => {
            (tool_name.clone(), args.clone().unwrap_or_else(|| json!({})))
        }
        PermissionRequest::Hook { tool_name, tool_args, .. } => {
            (tool_name.clone(), tool_args.clone().unwrap_or_else(|| json!({})))
        }
    }
}
