//! Questions that only some clients can answer: approval of a plan, and switching the model at a rate limit.

use hangar_protocol::data::{self, Mode, PlanAction, PlanDecision, SwitchAnswer};

use super::run::{Phase, Run};
use super::tools::CallStage;
use super::{Context, Session, SessionEffect, Step};
use crate::model::{ModelError, ModelErrorKind};
use crate::prompt::notices;
use crate::tool::{ToolOutcome, ToolStatus};

/// Name of the model that selects an available one.
const AUTO: &str = "auto";
const AUTO_SWITCH: &str = "rate_limit_auto_switch";

/// Which questions the clients can answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerableQuestions {
    pub plans: bool,
    pub switches: bool,
}

/// A failed call that waits for the answer whether another model may be used.
pub(super) struct Switching {
    request_id: String,
    /// Error of the run, if the answer is no.
    error: data::SessionError,
}

impl Session {
    /// Sets which questions the connected clients can answer.
    pub fn set_answerable_questions(&mut self, answerable: AnswerableQuestions) {
        self.answerable = answerable;
    }

    /// Whether a question about a plan with this id is open.
    pub fn awaits_review(&self, request_id: &str) -> bool {
        self.waiting_call(|stage| reviews(stage, request_id)).is_some()
    }

    /// Whether a question about a model switch with this id is open.
    pub fn awaits_switch(&self, request_id: &str) -> bool {
        matches!(&self.run, Some(Run { phase: Phase::AskingToSwitch(asked), .. }) if asked.request_id == request_id)
    }

    /// Starts `exit_plan_mode` by reading the plan, which is beside the log.
    pub(super) fn hand_in_plan(&mut self, id: &str, arguments: &serde_json::Value, step: &mut Step) {
        if !arguments["summary"].is_string() {
            return self.complete(id, ToolOutcome::failure("\"summary\": Required"), step);
        }
        if let Some(running) = self.running(id) {
            running.stage = CallStage::ReviewingPlan { request_id: None };
        }
        step.effects.push(SessionEffect::ReadPlan(id.to_owned()));
    }

    pub(super) fn plan_read(
        &mut self,
        id: &str,
        plan_content: String,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let request_id = context.entropy.uuid();
        let Some(running) = self.running(id) else { return };
        running.stage = CallStage::ReviewingPlan { request_id: Some(request_id.clone()) };
        let arguments = running.arguments();
        let summary = arguments["summary"].as_str().unwrap_or_default().to_owned();
        // Invalid values are left out; missing ones get their defaults.
        let action = |value: &serde_json::Value| serde_json::from_value::<PlanAction>(value.clone()).ok();
        let mut actions: Vec<PlanAction> =
            arguments["actions"].as_array().into_iter().flatten().filter_map(action).collect();
        if actions.is_empty() {
            actions = vec![PlanAction::Autopilot, PlanAction::Interactive, PlanAction::ExitOnly];
        }
        let recommended_action = action(&arguments["recommendedAction"])
            .filter(|recommended| actions.contains(recommended))
            .unwrap_or(actions[0]);
        let requested =
            data::ExitPlanModeRequested { request_id, summary, plan_content, actions, recommended_action };
        self.emit(step, requested);
    }

    pub(super) fn plan_reviewed(
        &mut self,
        request_id: &str,
        decision: PlanDecision,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(id) = self.waiting_call(|stage| reviews(stage, request_id)) else { return };
        let completed =
            data::ExitPlanModeCompleted { request_id: request_id.to_owned(), decision: decision.clone() };
        self.emit(step, completed);
        let action = decision.selected_action.unwrap_or(PlanAction::Interactive);
        if decision.approved {
            let mode = match action {
                PlanAction::Autopilot | PlanAction::AutopilotFleet => Mode::Autopilot,
                PlanAction::Interactive | PlanAction::ExitOnly => Mode::Interactive,
            };
            self.set_mode(mode, step);
            // The result of the call tells the model about the new mode.
            self.emit(step, data::ModeNoticeDelivered { mode });
            self.complete(&id, ToolOutcome::success(notices::plan_approved(action)), step);
        } else {
            let text = notices::plan_refused(decision.feedback.as_deref());
            self.complete(&id, ToolOutcome::of(ToolStatus::Denied, text), step);
        }
        self.finish_tools(step, context);
    }

    pub(super) fn may_switch(&self, error: &ModelError) -> bool {
        error.kind == ModelErrorKind::RateLimit
            && self.answerable.switches
            && self.state.model != AUTO
            && !self.config.provider.is_byok
    }

    /// Asks whether another model may be used. The turn stays open until the answer.
    pub(super) fn ask_to_switch(
        &mut self,
        error: &ModelError,
        reported: data::SessionError,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let request_id = context.entropy.uuid();
        if let Some(run) = &mut self.run {
            run.phase = Phase::AskingToSwitch(Box::new(Switching {
                request_id: request_id.clone(),
                error: reported,
            }));
        }
        let requested = data::AutoModeSwitchRequested {
            request_id,
            error_code: error.code.clone(),
            retry_after_seconds: error.retry_after.map(|wait| wait.as_secs()),
        };
        self.emit(step, requested);
    }

    pub(super) fn switch_answered(
        &mut self,
        request_id: &str,
        answer: SwitchAnswer,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if !self.awaits_switch(request_id) {
            return;
        }
        let Some(run) = &mut self.run else { return };
        let Phase::AskingToSwitch(asked) = std::mem::replace(&mut run.phase, Phase::Between) else { return };
        let completed = data::AutoModeSwitchCompleted { request_id: request_id.to_owned(), response: answer };
        self.emit(step, completed);
        match answer {
            SwitchAnswer::Yes | SwitchAnswer::YesAlways => {
                let change = data::ModelChange {
                    previous_model: Some(self.state.model.clone()),
                    new_model: AUTO.to_owned(),
                    previous_reasoning_effort: self.state.effort.clone(),
                    reasoning_effort: self.state.effort.clone(),
                    cause: Some(AUTO_SWITCH.to_owned()),
                    ..Default::default()
                };
                self.emit(step, change);
                // Only the provider knows which model answers now, and at what price.
                self.config.provider.price = None;
                self.call_model(0, step, context);
            }
            SwitchAnswer::No => {
                self.end_turn(step);
                self.fail_run(asked.error, step, context);
            }
        }
    }
}

fn reviews(stage: &CallStage, request_id: &str) -> bool {
    matches!(stage, CallStage::ReviewingPlan { request_id: Some(id) } if id == request_id)
}
