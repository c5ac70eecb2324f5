//! Hooks before a prompt is added to the conversation: they may reword it and add messages.

use hangar_protocol::data::{self, Delivery};
use serde_json::{Value, json};

use super::hooks::said_by_hook;
use super::run::{Ending, Phase, Run};
use super::{Context, Prompt, Session, Step};
use crate::hook::{HookKind, blocked, said_text};

/// A prompt that hooks are running for.
pub(super) struct Preparing {
    prompt: Prompt,
    delivery: Delivery,
    /// Id of the running hook.
    hook: String,
    stage: HookKind,
    /// Context of `sessionStart`, which precedes the prompt.
    opening: Option<String>,
    /// Text for the model.
    text: String,
}

impl Session {
    /// Whether hooks run before the next prompt.
    pub(super) fn asks_about_prompts(&self) -> bool {
        let beginning = match self.agent() {
            None => HookKind::SessionStart,
            Some(_) => HookKind::SubagentStart,
        };
        (!self.greeted && self.asks(beginning))
            || self.asks(HookKind::UserPromptSubmitted)
            || self.asks(HookKind::UserPromptTransformed)
    }

    /// Runs the hooks before a prompt becomes part of the conversation.
    pub(super) fn prepare(
        &mut self,
        prompt: Prompt,
        delivery: Delivery,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let first = !std::mem::replace(&mut self.greeted, true);
        let stage = match (first, self.agent()) {
            (true, None) => HookKind::SessionStart,
            (true, Some(_)) => HookKind::SubagentStart,
            (false, _) => HookKind::UserPromptSubmitted,
        };
        let text = prompt.text.clone();
        let preparing = Preparing { prompt, delivery, hook: String::new(), stage, opening: None, text };
        self.ask_about_prompt(Box::new(preparing), step, context);
    }

    /// Runs the hooks of the current stage, or continues with the next if there are none.
    fn ask_about_prompt(
        &mut self,
        mut preparing: Box<Preparing>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if !self.asks(preparing.stage) {
            return self.prompt_answered(preparing, None, step, context);
        }
        let prompt = &preparing.prompt.text;
        let fields = match preparing.stage {
            HookKind::SubagentStart => self.agent_facts(),
            HookKind::SessionStart => {
                let source = if self.resumed { "resume" } else { "new" };
                json!({ "source": source, "initialPrompt": prompt })
            }
            HookKind::UserPromptSubmitted => json!({ "prompt": prompt }),
            _ => json!({ "prompt": prompt, "transformedPrompt": preparing.text }),
        };
        preparing.hook = self.ask_hooks(preparing.stage, fields, step, context);
        self.set_phase(Phase::Preparing(preparing));
    }

    pub(super) fn prompt_hook_done(
        &mut self,
        id: &str,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(Run { phase, .. }) = &mut self.run else { return };
        match std::mem::replace(phase, Phase::Between) {
            Phase::Preparing(preparing) if preparing.hook == id => {
                self.prompt_answered(preparing, output, step, context);
            }
            other => *phase = other,
        }
    }

    fn prompt_answered(
        &mut self,
        mut preparing: Box<Preparing>,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let output = output.unwrap_or_default();
        let told = |key: &str| said_text(&output, key).map(str::to_owned);
        match preparing.stage {
            HookKind::SessionStart | HookKind::SubagentStart => {
                preparing.opening = told("additionalContext");
                preparing.stage = HookKind::UserPromptSubmitted;
                self.ask_about_prompt(preparing, step, context);
            }
            HookKind::UserPromptSubmitted => {
                if let Some(reason) = blocked(&output) {
                    self.tell_opening(preparing.opening, step);
                    self.emit(step, data::SessionWarning::new("policy_blocked", reason.to_owned()));
                    self.last_run.failure = Some(reason.to_owned());
                    return self.end_run(Ending::Failed, step, context);
                }
                if output["handled"] == true {
                    return self.answered_by_hook(preparing, told("responseContent"), step, context);
                }
                if let Some(modified) = output["modifiedPrompt"].as_str() {
                    modified.clone_into(&mut preparing.text);
                }
                // An agent is told it together with its task.
                if let Some(opening) = preparing.opening.take_if(|_| self.agent().is_some()) {
                    preparing.text = format!("{opening}\n\n{}", preparing.text);
                }
                let is_news = preparing.prompt.origin.is_news();
                // News are passed on unchanged, without the time.
                let mut wording = match is_news {
                    true => preparing.text,
                    false => self.wording(&preparing.text, &preparing.prompt.attachments, context.now),
                };
                if let Some(reminder) = told("additionalContext") {
                    wording.push_str(&format!("\n\n<system_reminder>\n{reminder}\n</system_reminder>"));
                }
                if is_news {
                    self.tell_opening(preparing.opening, step);
                    preparing.prompt.text = wording;
                    self.deliver(preparing.prompt, None, preparing.delivery, step, context);
                    return self.begin_turn(step, context);
                }
                preparing.text = wording;
                preparing.stage = HookKind::UserPromptTransformed;
                self.ask_about_prompt(preparing, step, context);
            }
            _ => {
                let modified = output["modifiedTransformedPrompt"].as_str();
                let wording = modified.map_or(preparing.text, str::to_owned);
                self.tell_opening(preparing.opening, step);
                self.deliver(preparing.prompt, Some(wording), preparing.delivery, step, context);
                self.begin_turn(step, context);
            }
        }
    }

    /// Adds the context of `sessionStart` once, whatever happens to the first prompt.
    fn tell_opening(&mut self, opening: Option<String>, step: &mut Step) {
        if let Some(opening) = opening {
            self.emit(step, said_by_hook(opening, "session-start-hook"));
        }
    }

    /// Ends the run because a hook has answered the prompt itself.
    fn answered_by_hook(
        &mut self,
        preparing: Box<Preparing>,
        content: Option<String>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        self.tell_opening(preparing.opening, step);
        self.deliver(preparing.prompt, Some(preparing.text), preparing.delivery, step, context);
        let Some(run) = &mut self.run else { return };
        let content = content.unwrap_or_default();
        content.clone_into(&mut run.answer);
        let message = data::AssistantMessage {
            message_id: context.entropy.uuid(),
            originating_message_id: Some(run.message_id.clone()),
            model: Some(self.state.model.clone()),
            content,
            interaction_id: Some(run.interaction_id.clone()),
            turn_id: Some(run.turn.to_string()),
            ..Default::default()
        };
        if !message.content.is_empty() {
            self.emit(step, message);
        }
        self.end_run(Ending::Answered, step, context);
    }
}
