//! Model choices of clients: applied immediately, or queued among the session's prompts.

use std::collections::HashSet;
use std::sync::Arc;

use hangar_agent::model::ModelProvider;
use hangar_agent::session::{Command, QueueEdit};
use hangar_protocol::data::ContextTier;

use crate::task::SessionTask;
use hangar_spec::SessionSpec;

/// Model, effort and related settings that a session switches to.
#[derive(Clone)]
pub(crate) struct QueuedModel {
    pub(crate) model: String,
    pub(crate) provider: Arc<dyn ModelProvider>,
    /// Changes to the client's settings that the switch implies.
    pub(crate) change: SessionSpec,
    pub(crate) tier: Option<ContextTier>,
}

impl SessionTask {
    /// Applies a model choice to the session's settings.
    pub(crate) fn take_choice(&mut self, choice: QueuedModel) {
        let QueuedModel { model, provider, change, tier } = choice;
        self.spec.adopt(change);
        // The wider window is asked for with each choice anew.
        self.spec.model.tier = tier;
        self.set_provider(provider, &model);
    }

    /// Stores a choice until its place in the queue is reached.
    pub(crate) fn keep_choice(&mut self, id: String, choice: QueuedModel) {
        // Withdrawn changes are never made.
        let waiting: HashSet<_> = self.session().queued().filter_map(|waiting| waiting.message_id).collect();
        self.models.choices.retain(|(id, _)| waiting.contains(id));
        self.models.choices.push((id, choice));
    }

    /// Keeps a choice that waits under another id, too. Messages are no choices.
    pub(crate) fn copy_choice(&mut self, id: &str, copy: &str) {
        let choice =
            self.models.choices.iter().find(|(known, _)| known == id).map(|(_, choice)| choice.clone());
        if let Some(choice) = choice {
            self.keep_choice(copy.to_owned(), choice);
        }
    }

    /// Takes back the choices that wait and are not allowed any more.
    pub(crate) fn drop_forbidden_choices(&mut self) {
        let Some(allowed) = self.spec.model.allowed.clone() else { return };
        let forbidden = self.models.choices.iter().filter(|(_, choice)| !allowed.contains(&choice.model));
        let forbidden: Vec<String> = forbidden.map(|(id, _)| id.clone()).collect();
        for id in forbidden {
            self.command(Command::EditQueue(QueueEdit::Remove { id }));
        }
    }

    /// Applies the choices whose place in the queue was reached.
    pub(crate) fn settle_choices(&mut self) {
        for made in self.engine.driver_mut().take_switched() {
            if let Some(at) = self.models.choices.iter().position(|(id, _)| *id == made) {
                let (_, choice) = self.models.choices.remove(at);
                self.take_choice(choice);
            }
        }
    }
}
