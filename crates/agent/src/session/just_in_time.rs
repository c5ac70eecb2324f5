//! Just-in-time instructions: messages that the model is sent once, when a budget runs low or the work has changed
//! nothing yet.

use std::time::Duration;

use hangar_protocol::data::{self, Delivery};
use jiff::Timestamp;

use super::run::{Phase, millis_between};
use super::{Context, Session, SessionEffect, Step};

/// `source` of such messages.
pub const SOURCE: &str = "jit-instruction";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JustInTime {
    pub text: String,
    pub due: Due,
    /// Only if the working tree is unchanged since the session began.
    pub only_unchanged: bool,
}

/// When an instruction is due, counted from the opening of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    After(Duration),
    AfterTurns(u32),
}

/// State of the just-in-time instructions.
#[derive(Debug, Default)]
pub(super) struct JustInTimeState {
    pub(super) opened: Option<Timestamp>,
    turns: u32,
    /// Answer of the host whether the working tree is unchanged, until it is used.
    unchanged: Option<bool>,
    /// Instructions that were dropped because the working tree had changed.
    moot: Vec<usize>,
}

impl Session {
    /// Sends the instructions that are due. True if the host has to be asked first; the turn continues with its answer.
    pub(super) fn remind(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        if self.config.just_in_time.is_empty() {
            return false;
        }
        let instructions = std::sync::Arc::clone(&self.config.just_in_time);
        for (index, instruction) in instructions.iter().enumerate() {
            let settled =
                self.just_in_time.moot.contains(&index) || self.state.reminded.contains(&instruction.text);
            if settled || !self.is_due(instruction.due, context.now) {
                continue;
            }
            if instruction.only_unchanged {
                match self.just_in_time.unchanged {
                    None => {
                        if let Some(run) = &mut self.run {
                            run.phase = Phase::AskingChanges;
                        }
                        step.effects.push(SessionEffect::AskUnchanged);
                        return true;
                    }
                    Some(false) => {
                        self.just_in_time.moot.push(index);
                        continue;
                    }
                    Some(true) => {}
                }
            }
            self.tell(&instruction.text, step, context);
        }
        self.just_in_time.unchanged = None;
        self.just_in_time.turns += 1;
        false
    }

    fn is_due(&self, due: Due, now: Timestamp) -> bool {
        match due {
            Due::AfterTurns(turns) => self.just_in_time.turns >= turns,
            Due::After(time) => self
                .just_in_time
                .opened
                .is_some_and(|opened| u128::from(millis_between(opened, now)) >= time.as_millis()),
        }
    }

    fn tell(&mut self, text: &str, step: &mut Step, context: &mut Context<'_>) {
        let Some(run) = &self.run else { return };
        let message = data::UserMessage {
            content: text.to_owned(),
            transformed_content: Some(format!("<system_reminder>\n{text}\n</system_reminder>")),
            message_id: Some(context.entropy.uuid()),
            source: Some(SOURCE.to_owned()),
            delivery: Some(Delivery::Steering),
            interaction_id: Some(run.interaction_id.clone()),
            turn_id: Some(run.turn.to_string()),
            parent_agent_task_id: Some(run.task_id.clone()),
            ..Default::default()
        };
        self.emit(step, message);
    }

    /// Takes the host's answer whether the working tree is unchanged.
    pub(super) fn changes_known(&mut self, unchanged: bool, step: &mut Step, context: &mut Context<'_>) {
        if matches!(&self.run, Some(run) if matches!(run.phase, Phase::AskingChanges)) {
            self.just_in_time.unchanged = Some(unchanged);
            self.begin_turn(step, context);
        }
    }
}
