//! When hooks run, and what their answers change.
//!
//! The session decides when to run a hook and what its answer means; the driver runs it. A missing or invalid answer
//! changes nothing, except where a call may be refused: a hook that failed there might have said no.

use hangar_protocol::data;
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde_json::{Value, json};

use super::run::Phase;
use super::tools::CallStage;
use super::{Context, Inspection, Session, SessionEffect, SessionInput, Step};
use crate::hook::{HookAnswer, HookKind, HookRequest};
use crate::tool::{AccessRequest, ToolOutcome};
use crate::tool_hooks::{self, HookDecision, PermissionHookAnswer, PreToolUseAnswer};

impl Session {
    /// Whether there are hooks of this kind.
    pub(crate) fn asks(&self, kind: HookKind) -> bool {
        (self.config.clients.hooks && kind.is_for_clients()) || self.config.hooks.contains(kind)
    }

    /// Runs hooks and logs their start.
    pub(super) fn ask_hooks(
        &mut self,
        kind: HookKind,
        fields: Value,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> String {
        let request = self.hook_request(kind, fields, context);
        self.emit(step, started(&request));
        let id = request.id.clone();
        self.open_hooks.push((id.clone(), kind));
        step.effects.push(SessionEffect::Hook(request));
        id
    }

    pub(crate) fn hook_request(
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
        self.emit(step, ended(id, kind, &output));
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
            HookKind::ErrorOccurred => self.error_answered(id, output.ok().flatten(), step, context),
            HookKind::PreMcpToolCall | HookKind::PreCompact | HookKind::SessionEnd => {}
        }
    }

    /// Runs `preToolUse`, before permissions are checked.
    pub(super) fn before_tool(
        &mut self,
        id: &str,
        inspection: Option<Inspection>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let mut fields = tool_hooks::before(running.name(), running.arguments());
        // The log uses this to know which call of the conversation has new arguments.
        fields["toolCallId"] = json!(id);
        let hook = self.ask_hooks(HookKind::PreToolUse, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = CallStage::BeforeHooks { hook, inspection: inspection.map(Box::new) };
        }
    }

    fn before_tool_done(
        &mut self,
        hook: &str,
        output: HookAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked =
            |stage: &CallStage| matches!(stage, CallStage::BeforeHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let CallStage::BeforeHooks { inspection, .. } =
            std::mem::replace(&mut running.stage, CallStage::Checking)
        else {
            return;
        };
        let PreToolUseAnswer { decision, arguments, context: added } = PreToolUseAnswer::read(output);
        if let Some(added) = added {
            let text = format!("Additional context from preToolUse hook:\n{added}");
            self.after_tools(said_by_hook(text, "pre-tool-use-hook").into());
        }
        match decision {
            HookDecision::Deny(refused) => self.complete(&id, *refused, step),
            HookDecision::Ask { reason } if self.config.clients.permissions => {
                self.confirm(&id, inspection, reason, step, context);
            }
            HookDecision::Ask { reason } => {
                self.complete(&id, tool_hooks::unconfirmed(reason.as_deref()), step);
            }
            HookDecision::Allow | HookDecision::Open => {
                if let Some(running) = self.running(&id) {
                    running.allowed |= decision == HookDecision::Allow;
                }
                match arguments {
                    Some(arguments) => self.rewrite_arguments(&id, arguments, step, context),
                    None => self.admit(&id, inspection.map(|inspection| *inspection), step, context),
                }
            }
        }
        self.finish_tools(step, context);
    }

    /// Asks the user about a call, because a hook decided so.
    fn confirm(
        &mut self,
        id: &str,
        inspection: Option<Box<Inspection>>,
        reason: Option<String>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let request = PermissionRequest::Hook {
            tool_call_id: Some(id.to_owned()),
            tool_name: running.name().to_owned(),
            tool_args: Some(running.arguments().clone()),
            hook_message: reason,
        };
        let request_id = context.entropy.uuid();
        running.stage = CallStage::AskingConfirmation {
            request_id: request_id.clone(),
            request: Box::new(request.clone()),
            inspection,
        };
        self.ask_permission(request_id, request, step);
    }

    /// Input of `permissionRequest`, if there are such hooks. They run before rules and users decide.
    pub fn about_permission(&self, request: &PermissionRequest) -> Option<Value> {
        self.asks(HookKind::PermissionRequest).then(|| tool_hooks::permission(request)).flatten()
    }

    pub(super) fn ask_permission_hooks(
        &mut self,
        id: &str,
        access: AccessRequest,
        fields: Value,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let hook = self.ask_hooks(HookKind::PermissionRequest, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = CallStage::PermissionHooks { hook, access: Box::new(access) };
        }
    }

    fn permission_hook_done(
        &mut self,
        hook: &str,
        output: HookAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked =
            |stage: &CallStage| matches!(stage, CallStage::PermissionHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let CallStage::PermissionHooks { access, .. } =
            std::mem::replace(&mut running.stage, CallStage::Checking)
        else {
            return;
        };
        match PermissionHookAnswer::read(output) {
            PermissionHookAnswer::Allow => self.allow_access(&id, *access, step),
            PermissionHookAnswer::Deny { message, interrupt } => {
                let message = Some(message);
                let outcome = PermissionOutcome::DeniedByPermissionRequestHook { message, interrupt };
                self.refuse_access(&id, outcome, step);
            }
            PermissionHookAnswer::Open => self.decide_by_policy(&id, *access, step, context),
        }
        self.finish_tools(step, context);
    }

    /// Runs the hooks about a result. Returns the result if there are none.
    pub(super) fn after_tool(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> Option<ToolOutcome> {
        let kind = tool_hooks::after_kind(&outcome).filter(|kind| self.asks(*kind));
        let (Some(kind), Some(running)) = (kind, self.running(id)) else { return Some(outcome) };
        let fields = tool_hooks::after(kind, running.name(), running.arguments(), &outcome);
        let hook = self.ask_hooks(kind, fields, step, context);
        if let Some(running) = self.running(id) {
            running.stage = CallStage::AfterHooks { hook, outcome: Box::new(outcome) };
        }
        None
    }

    fn after_tool_done(
        &mut self,
        hook: &str,
        kind: HookKind,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &CallStage| matches!(stage, CallStage::AfterHooks { hook: id, .. } if id == hook);
        let Some(id) = self.waiting_call(asked) else { return };
        let Some(running) = self.running(&id) else { return };
        let name = running.name().to_owned();
        let CallStage::AfterHooks { outcome, .. } = std::mem::replace(&mut running.stage, CallStage::Running)
        else {
            return;
        };
        let mut outcome = *outcome;
        if let Some(message) = tool_hooks::amend(&mut outcome, &name, kind, output) {
            self.after_tools(said_by_hook(message, "post-tool-use-failure-hook").into());
        }
        self.complete(&id, outcome, step);
        self.finish_tools(step, context);
    }

    /// Replaces the arguments of a call, which has to be inspected again.
    fn rewrite_arguments(&mut self, id: &str, arguments: Value, step: &mut Step, context: &mut Context<'_>) {
        let Some(running) = self.running(id) else { return };
        running.set_arguments(arguments);
        let (name, input) = (running.name().to_owned(), running.input());
        if super::own_tools::OwnTool::named(&name).is_some() {
            return self.admit(id, None, step, context);
        }
        step.effects.push(SessionEffect::Inspect(vec![(name, input)]));
    }
}

impl HookRequest {
    /// Answer of a hook as an input of the session.
    pub fn done(&self, output: HookAnswer) -> SessionInput {
        SessionInput::HookDone { id: self.id.clone(), output }
    }
}

/// Event of the start of a hook.
pub(crate) fn started(request: &HookRequest) -> data::HookStart {
    data::HookStart {
        hook_invocation_id: request.id.clone(),
        hook_type: request.kind.as_str().to_owned(),
        input: Some(request.input.clone()),
    }
}

pub(crate) fn ended(id: &str, kind: HookKind, answer: &HookAnswer) -> data::HookEnd {
    data::HookEnd {
        hook_invocation_id: id.to_owned(),
        hook_type: kind.as_str().to_owned(),
        output: answer.as_ref().ok().cloned().flatten(),
        success: answer.is_ok(),
        error: answer.as_ref().err().map(|failure| data::HookError { message: failure.message.clone() }),
    }
}

/// A message to the model from a hook.
pub(super) fn said_by_hook(text: String, source: &str) -> data::UserMessage {
    data::UserMessage {
        content: String::new(),
        transformed_content: Some(text),
        source: Some(source.to_owned()),
        ..Default::default()
    }
}
