//! Status of a session: facts about its main agent that no block holds.

use hangar_protocol::EventKind;

use crate::fact::Fact;

/// Fill level of the model's context, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextUse {
    pub tokens: u64,
    pub limit: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SessionStatus {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) context: Option<ContextUse>,
    pub(crate) mode: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) is_working: bool,
    /// Whether the message of the current turn called tools: their results go to the model in another turn.
    continues: bool,
    is_changed: bool,
}

impl SessionStatus {
    /// Whether something changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Applies a fact about the main agent.
    pub(crate) fn take(&mut self, fact: &Fact<'_>) {
        let changed = &mut self.is_changed;
        match fact {
            Fact::ModelIs { model, effort, .. } => {
                set(&mut self.model, Some((*model).to_owned()), changed);
                set(&mut self.effort, effort.map(str::to_owned), changed);
            }
            Fact::ModeIs { mode } => set(&mut self.mode, Some((*mode).to_owned()), changed),
            Fact::Context { tokens, limit } if *limit > 0 => {
                let [tokens, limit] = [tokens, limit].map(|count| u64::try_from(*count).unwrap_or(0));
                set(&mut self.context, Some(ContextUse { tokens, limit }), changed);
            }
            Fact::MessageDone { requests, .. } => self.continues = !requests.is_empty(),
            _ => {}
        }
    }

    pub(crate) fn set_title(&mut self, title: Option<&str>) {
        set(&mut self.title, title.map(str::to_owned), &mut self.is_changed);
    }

    /// Notes whether the session is working. Logs have no idle event, so a turn without tool calls ends the work.
    pub(crate) fn follow_work(&mut self, kind: EventKind) {
        let is_working = match kind {
            EventKind::TurnStart => {
                self.continues = false;
                true
            }
            EventKind::TurnEnd => self.continues,
            EventKind::SessionIdle
            | EventKind::AssistantIdle
            | EventKind::Abort
            | EventKind::SessionResume
            | EventKind::SessionShutdown => {
                self.continues = false;
                false
            }
            _ => return,
        };
        set(&mut self.is_working, is_working, &mut self.is_changed);
    }
}

fn set<T: PartialEq>(slot: &mut T, value: T, changed: &mut bool) {
    if *slot != value {
        *slot = value;
        *changed = true;
    }
}
