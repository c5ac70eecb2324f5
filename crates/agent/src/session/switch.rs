//! Switching the model, at once or when the prompts before it are done.

use std::fmt;
use std::sync::Arc;

use hangar_protocol::data::ModelChange;

use super::{Session, SessionEffect, Step};
use crate::model::ModelProvider;

#[derive(Clone)]
pub struct ModelSwitch {
    /// The event. The session adds the previous model.
    pub change: ModelChange,
    /// Whether the effort stays as it is at the time of the switch.
    pub keeps_effort: bool,
    pub provider: Arc<dyn ModelProvider>,
    /// Whether the new model is shown images.
    pub vision: bool,
}

impl fmt::Debug for ModelSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelSwitch").field(&self.change.new_model).finish()
    }
}

impl Session {
    /// Switches the model. `id` is its id in the queue, if it was queued.
    pub(super) fn switch_model(&mut self, switch: ModelSwitch, id: Option<String>, step: &mut Step) {
        let effort = self.state.effort.clone();
        let change = ModelChange {
            previous_model: Some(self.state.model.clone()),
            previous_reasoning_effort: effort.clone(),
            reasoning_effort: if switch.keeps_effort {
                effort
            } else {
                switch.change.reasoning_effort.clone()
            },
            ..switch.change.clone()
        };
        self.set_vision(switch.vision);
        self.emit(step, change);
        step.effects.push(SessionEffect::UseModel(Box::new(switch), id));
    }
}
