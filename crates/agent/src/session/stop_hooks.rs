//! The end of a run, which hooks may prevent a few times.

use hangar_protocol::data::Delivery;
use serde_json::{Value, json};

use super::run::{Ending, Phase, Run};
use super::{Context, Origin, Prompt, Session, Step};
use crate::hook::HookKind;

/// How often in a row hooks may continue a run that was about to end.
const MAX_BLOCKED_STOPS: u32 = 8;

impl Session {
    /// Runs `agentStop` before a run ends. It may continue the run.
    pub(super) fn run_stop_hooks(&mut self, ending: Ending, step: &mut Step, context: &mut Context<'_>) {
        self.ask_about_stop(HookKind::AgentStop, ending, step, context);
    }

    /// Runs the hooks of one kind: `agentStop` for every session, then `subagentStop` for sub-agents.
    fn ask_about_stop(&mut self, kind: HookKind, ending: Ending, step: &mut Step, context: &mut Context<'_>) {
        let blocked = self.run.as_ref().map_or(0, |run| run.blocked_stops);
        if blocked >= MAX_BLOCKED_STOPS {
            return self.end_run(ending, step, context);
        }
        if !self.asks(kind) {
            return self.stop_allowed(kind, ending, step, context);
        }
        let transcript = self.config.session_dir.join("events.jsonl");
        let fields = json!({
            "transcriptPath": transcript.display().to_string(),
            "stopReason": "end_turn",
            "stop_hook_active": blocked > 0,
            "stopHookActive": blocked > 0,
        });
        let fields = match kind {
            HookKind::SubagentStop => {
                let mut facts = self.agent_facts();
                facts["response"] = json!(self.run.as_ref().map(|run| run.answer.as_str()));
                if let (Value::Object(facts), Value::Object(fields)) = (&mut facts, fields) {
                    facts.extend(fields);
                }
                facts
            }
            _ => fields,
        };
        let hook = self.ask_hooks(kind, fields, step, context);
        self.set_phase(Phase::Stopping { hook, ending });
    }

    /// Ends the run, because no hook of this kind continues it.
    fn stop_allowed(&mut self, by: HookKind, ending: Ending, step: &mut Step, context: &mut Context<'_>) {
        if by == HookKind::AgentStop && self.agent().is_some() {
            return self.ask_about_stop(HookKind::SubagentStop, ending, step, context);
        }
        self.end_run(ending, step, context);
    }

    pub(super) fn stop_decided(
        &mut self,
        id: &str,
        kind: HookKind,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let ending = match &self.run {
            Some(Run { phase: Phase::Stopping { hook, ending }, .. }) if hook == id => *ending,
            _ => return,
        };
        let output = output.unwrap_or_default();
        let reason = output["reason"].as_str().unwrap_or_default();
        // Whether a sub-agent continues is up to the hooks for sub-agents alone.
        let decides = (kind == HookKind::SubagentStop) == self.agent().is_some();
        if !decides || output["decision"] != "block" || reason.is_empty() {
            if let (Some(run), Some(text)) = (&mut self.run, output["modifiedResponse"].as_str()) {
                text.clone_into(&mut run.answer);
            }
            return self.stop_allowed(kind, ending, step, context);
        }
        let blocked = self.run.as_ref().map_or(0, |run| run.blocked_stops) + 1;
        let source = if kind == HookKind::SubagentStop { "subagent-stop-hook" } else { "agent-stop-hook" };
        let prompt = Prompt {
            origin: Origin::Hook(source),
            message_id: Some(context.entropy.uuid()),
            call_options: self.run.as_ref().map(|run| run.call_options.clone()).unwrap_or_default(),
            ..Prompt::user(reason)
        };
        if self.agent().is_some() {
            if let Some(run) = &mut self.run {
                run.blocked_stops = blocked;
                run.completed = false;
                run.phase = Phase::Between;
            }
            self.deliver(prompt, None, Delivery::Steering, step, context);
            return self.begin_turn(step, context);
        }
        // Work that hooks request is a run of its own. Its answers still go to the sender of the original prompt.
        let asked_by = self.run.take().map(|run| run.message_id);
        self.start_run(prompt, Delivery::Queued, step, context);
        if let Some(run) = &mut self.run {
            run.blocked_stops = blocked;
            run.message_id = asked_by.unwrap_or_else(|| run.message_id.clone());
        }
    }
}
