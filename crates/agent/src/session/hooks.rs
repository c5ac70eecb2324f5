//! Hooks: someone else's code that is asked at fixed points of a session and may change what happens next.
//!
//! The session decides when to ask and what an answer means; the driver asks. An answer that does not come, or that
//! makes no sense, changes nothing, except before a tool: a hook that failed there might have said no.

use hangar_protocol::data::{self, Delivery};
use serde_json::{Value, json};

use super::run::{Ending, Phase, Run};
use super::tools::Stage;
use super::{Context, Effect, Input, Inspection, Origin, Prompt, Session, Step, Timing};
use crate::tool::{ToolOutcome, ToolStatus};

/// How often in a row hooks may send a run on that was about to end.
const MAX_BLOCKED_STOPS: u32 = 8;
/// The most that a hook may add to a tool's result.
const MAX_GUIDANCE: usize = 10 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    SessionStart,
    UserPromptSubmitted,
    UserPromptTransformed,
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    AgentStop,
    PreCompact,
    SubagentStart,
    SubagentStop,
    ErrorOccurred,
    SessionEnd,
}

impl HookKind {
    pub fn as_str(self) -> &'static str {
        match self {
            HookKind::SessionStart => "sessionStart",
            HookKind::UserPromptSubmitted => "userPromptSubmitted",
            HookKind::UserPromptTransformed => "userPromptTransformed",
            HookKind::PreToolUse => "preToolUse",
            HookKind::PostToolUse => "postToolUse",
            HookKind::PostToolUseFailure => "postToolUseFailure",
            HookKind::AgentStop => "agentStop",
            HookKind::PreCompact => "preCompact",
            HookKind::SubagentStart => "subagentStart",
            HookKind::SubagentStop => "subagentStop",
            HookKind::ErrorOccurred => "errorOccurred",
            HookKind::SessionEnd => "sessionEnd",
        }
    }
}

/// One question to the hooks.
#[derive(Debug, Clone)]
pub struct HookRequest {
    pub id: String,
    pub kind: HookKind,
    pub input: Value,
}

/// A prompt on its way through the hooks.
pub(super) struct Preparing {
    prompt: Prompt,
    delivery: Delivery,
    hook: String,
    stage: HookKind,
    /// Said by the hooks of the session's start, before the prompt.
    opening: Option<String>,
    /// What stands for the prompt before the model.
    text: String,
    reminders: Vec<String>,
}

impl Session {
    /// Asks the hooks something, on the record.
    fn ask_hooks(
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

    fn hook_request(&self, kind: HookKind, fields: Value, context: &mut Context<'_>) -> HookRequest {
        let mut input = json!({
            "sessionId": self.state.session_id,
            "timestamp": context.now.as_millisecond(),
            "cwd": self.state.cwd,
        });
        if let (Value::Object(input), Value::Object(fields)) = (&mut input, fields) {
            input.extend(fields);
        }
        HookRequest { id: context.entropy.uuid(), kind, input }
    }

    /// Takes a prompt through the hooks before it becomes part of the conversation.
    pub(super) fn prepare(
        &mut self,
        prompt: Prompt,
        delivery: Delivery,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let text = prompt.text.clone();
        let first = !std::mem::replace(&mut self.greeted, true);
        let (stage, fields) = if self.agent().is_some() {
            (HookKind::SubagentStart, self.agent_facts())
        } else if first {
            let source = if self.resumed { "resume" } else { "new" };
            (HookKind::SessionStart, json!({ "source": source, "initialPrompt": text }))
        } else {
            (HookKind::UserPromptSubmitted, json!({ "prompt": text }))
        };
        let hook = self.ask_hooks(stage, fields, step, context);
        let preparing =
            Preparing { prompt, delivery, hook, stage, opening: None, text, reminders: Vec::new() };
        self.set_phase(Phase::Preparing(Box::new(preparing)));
    }

    fn set_phase(&mut self, phase: Phase) {
        if let Some(run) = &mut self.run {
            run.phase = phase;
        }
    }

    pub(super) fn hook_done(
        &mut self,
        id: &str,
        output: Result<Option<Value>, String>,
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
            error: output.as_ref().err().map(|message| data::HookError { message: message.clone() }),
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
            HookKind::PostToolUse | HookKind::PostToolUseFailure => {
                self.after_tool_done(id, kind, output.ok().flatten(), step, context);
            }
            HookKind::AgentStop | HookKind::SubagentStop => {
                self.stop_decided(id, output.ok().flatten(), step, context);
            }
            HookKind::PreCompact | HookKind::ErrorOccurred | HookKind::SessionEnd => {}
        }
    }

    fn prompt_hook_done(
        &mut self,
        id: &str,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(Run { phase, .. }) = &mut self.run else { return };
        let mut preparing = match std::mem::replace(phase, Phase::Between) {
            Phase::Preparing(preparing) if preparing.hook == id => preparing,
            other => {
                *phase = other;
                return;
            }
        };
        let said = |key: &str| output.as_ref().and_then(|output| output[key].as_str()).map(str::to_owned);
        match preparing.stage {
            HookKind::SubagentStart => {
                let text = match said("additionalContext") {
                    Some(told) => format!("{told}\n\n{}", preparing.text),
                    None => preparing.text,
                };
                let wording = self.wording(&text, &preparing.prompt.attachments, context.now);
                self.deliver(preparing.prompt, Some(wording), preparing.delivery, step, context);
                self.begin_turn(step, context);
            }
            HookKind::SessionStart => {
                preparing.opening = said("additionalContext");
                let fields = json!({ "prompt": preparing.prompt.text });
                preparing.stage = HookKind::UserPromptSubmitted;
                preparing.hook = self.ask_hooks(preparing.stage, fields, step, context);
                self.set_phase(Phase::Preparing(preparing));
            }
            HookKind::UserPromptSubmitted => {
                if let Some(modified) = said("modifiedPrompt") {
                    preparing.text = modified;
                }
                preparing.reminders.extend(said("additionalContext"));
                let mut wording = self.wording(&preparing.text, &preparing.prompt.attachments, context.now);
                for reminder in &preparing.reminders {
                    wording.push_str(&format!("\n\n<system_reminder>\n{reminder}\n</system_reminder>"));
                }
                let fields = json!({ "prompt": preparing.prompt.text, "transformedPrompt": wording });
                preparing.text = wording;
                preparing.stage = HookKind::UserPromptTransformed;
                preparing.hook = self.ask_hooks(preparing.stage, fields, step, context);
                self.set_phase(Phase::Preparing(preparing));
            }
            _ => {
                let wording = said("modifiedTransformedPrompt").unwrap_or(preparing.text);
                if let Some(opening) = preparing.opening {
                    let message = data::UserMessage {
                        content: String::new(),
                        transformed_content: Some(opening),
                        source: Some("session-start-hook".to_owned()),
                        ..Default::default()
                    };
                    self.emit(step, message);
                }
                self.deliver(preparing.prompt, Some(wording), preparing.delivery, step, context);
                self.begin_turn(step, context);
            }
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
        output: Result<Option<Value>, String>,
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
            Err(message) => {
                let text = format!("Denied by preToolUse hook (hook errored): {message}");
                self.complete(&id, ToolOutcome::of(ToolStatus::Denied, text), step);
                return self.finish_tools(step, context);
            }
        };
        if output["permissionDecision"] == "deny" {
            let reason = output["permissionDecisionReason"].as_str().unwrap_or("No reason provided");
            let text = format!("Denied by preToolUse hook: {reason}");
            self.complete(&id, ToolOutcome::of(ToolStatus::Denied, text), step);
        } else if output["modifiedArgs"].is_object() {
            self.rewrite_arguments(&id, output["modifiedArgs"].clone(), step, context);
        } else {
            self.admit(&id, inspection.map(|inspection| *inspection), step, context);
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
            _ => (
                HookKind::PostToolUseFailure,
                json!({ "toolName": tool, "toolArgs": arguments, "error": outcome.text }),
            ),
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
        if let Some(text) = output["modifiedResult"]["textResultForLlm"].as_str() {
            outcome.text = text.to_owned();
            outcome.detailed = None;
        }
        if let Some(guidance) = output["additionalContext"].as_str() {
            let guidance = &guidance[..guidance.floor_char_boundary(MAX_GUIDANCE)];
            let lead = match kind {
                HookKind::PostToolUseFailure => format!("Tool \"{name}\" failed. "),
                _ => String::new(),
            };
            outcome.text.push_str(&format!(
                "\n\n{lead}Additional guidance from {} hooks:\n{guidance}",
                kind.as_str()
            ));
        }
        self.complete(&id, outcome, step);
        self.finish_tools(step, context);
    }

    /// The model has had its last word; hooks may send it on.
    pub(super) fn about_to_stop(&mut self, step: &mut Step, context: &mut Context<'_>) {
        let blocked = self.run.as_ref().map_or(0, |run| run.blocked_stops);
        let of_interest = self.agent().is_none_or(|role| role.has_role);
        if !self.config.hooks || !of_interest || blocked >= MAX_BLOCKED_STOPS {
            return self.end_run(Ending::Answered, step, context);
        }
        let transcript = self.config.session_dir.join("events.jsonl");
        let fields = json!({
            "transcriptPath": transcript.display().to_string(),
            "stopReason": "end_turn",
            "stop_hook_active": blocked > 0,
            "stopHookActive": blocked > 0,
        });
        let hook = match self.agent() {
            None => self.ask_hooks(HookKind::AgentStop, fields, step, context),
            Some(_) => {
                let mut facts = self.agent_facts();
                facts["response"] = json!(self.run.as_ref().map(|run| run.answer.as_str()));
                if let (Value::Object(facts), Value::Object(fields)) = (&mut facts, fields) {
                    facts.extend(fields);
                }
                self.ask_hooks(HookKind::SubagentStop, facts, step, context)
            }
        };
        self.set_phase(Phase::Stopping { hook });
    }

    fn stop_decided(&mut self, id: &str, output: Option<Value>, step: &mut Step, context: &mut Context<'_>) {
        if !matches!(&self.run, Some(Run { phase: Phase::Stopping { hook }, .. }) if hook == id) {
            return;
        }
        let output = output.unwrap_or_default();
        let reason = output["reason"].as_str().unwrap_or_default();
        if output["decision"] != "block" || reason.is_empty() {
            if let (Some(run), Some(text)) = (&mut self.run, output["modifiedResponse"].as_str()) {
                text.clone_into(&mut run.answer);
            }
            return self.end_run(Ending::Answered, step, context);
        }
        if let Some(run) = &mut self.run {
            run.blocked_stops += 1;
            run.phase = Phase::Between;
        }
        let prompt = Prompt {
            text: reason.to_owned(),
            attachments: Vec::new(),
            timing: Timing::Queue,
            origin: Origin::Source(
                if self.agent().is_some() { "subagent-stop-hook" } else { "agent-stop-hook" }.to_owned(),
            ),
            message_id: Some(context.entropy.uuid()),
            headers: self.run.as_ref().map(|run| run.headers.clone()).unwrap_or_default(),
        };
        self.deliver(prompt, None, Delivery::Steering, step, context);
        self.begin_turn(step, context);
    }

    /// Tells the hooks that the conversation is about to be summed up. The transcript stays, so nothing waits for them.
    pub(super) fn announce_compaction(
        &mut self,
        trigger: data::CompactionTrigger,
        instructions: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.config.hooks {
            let manual = trigger == data::CompactionTrigger::Manual;
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
        if self.config.hooks {
            let fields = json!({
                "error": { "message": message, "name": "Error" },
                "errorContext": "model_call",
                "recoverable": false,
            });
            self.ask_hooks(HookKind::ErrorOccurred, fields, step, context);
        }
    }

    /// Tells the hooks that the session ends. The log is about to close, so this is not on the record.
    pub(super) fn announce_end(&mut self, failed: bool, step: &mut Step, context: &mut Context<'_>) {
        if self.config.hooks {
            let reason = if failed { "error" } else { "complete" };
            let request = self.hook_request(HookKind::SessionEnd, json!({ "reason": reason }), context);
            step.effects.push(Effect::Hook(request));
        }
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
    pub fn done(&self, output: Result<Option<Value>, String>) -> Input {
        Input::HookDone { id: self.id.clone(), output }
    }
}
