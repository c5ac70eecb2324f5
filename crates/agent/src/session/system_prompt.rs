//! The system prompt of a conversation. It stays the same when the session is resumed, because models bind their
//! reasoning to it and providers cache it. Instructions that have changed since are sent in a message.

use std::sync::Arc;

use hangar_protocol::data::{self, NotificationKind};

use super::{Session, Step};
use crate::prompt::mcp;

/// Source of the message that tells changed instructions.
const SOURCE: &str = "custom-instructions";

impl Session {
    /// Sets the system prompt, from the next model call on, because the caller asked for the change.
    pub fn set_system(&mut self, system: Arc<str>) {
        self.config.system = system;
        self.system.kept = None;
        self.system.settled = true;
    }

    /// The system prompt: that of the role, or the session's own, and what MCP servers say about their tools.
    pub(super) fn system(&self) -> Arc<str> {
        let prompt = self.base_prompt();
        match self.mcp.instructions.in_system() {
            Some(instructions) => format!("{prompt}\n\n{instructions}").into(),
            None => Arc::clone(prompt),
        }
    }

    fn base_prompt(&self) -> &Arc<str> {
        let own = self.system.kept.as_ref().unwrap_or(&self.config.system);
        self.system.role.as_ref().unwrap_or(own)
    }

    /// Logs the system prompt if it has changed.
    pub(super) fn log_system_prompt(&mut self, step: &mut Step) {
        let prompt = Arc::clone(self.base_prompt());
        self.mcp.instructions.freeze(&prompt, self.state.system.as_deref());
        let system = self.system();
        if self.state.system.as_ref() != Some(&system) {
            let content = system.to_string();
            let changes = self.state.system.is_some();
            let dropped = if changes { self.state.conversation.native_turns(0) } else { 0 };
            self.emit(step, data::SystemMessage { role: "system".to_owned(), content });
            self.tell_dropped_reasoning(dropped, "has another system prompt now", step);
        }
    }

    /// Keeps the system prompt of a resumed conversation, and tells the model the instructions that have changed. This
    /// is decided once, before the first message.
    pub(super) fn keep_system_prompt(&mut self, step: &mut Step) {
        let was_settled = std::mem::replace(&mut self.system.settled, true);
        if !was_settled && self.resumed {
            self.tell_unlogged_reasoning(step);
        }
        if was_settled || !self.resumed || self.system.role.is_some() {
            return;
        }
        let Some(before) = self.state.system.clone().filter(|_| !self.state.conversation.is_empty()) else {
            return;
        };
        let base = before.split(&format!("\n\n{}", mcp::BEGIN)).next().unwrap_or_default();
        // The system prompt of a role or a client is not mistaken for the session's own.
        if first_paragraph(base) != first_paragraph(&self.config.system) {
            return;
        }
        let is_same = base == &*self.config.system;
        self.system.kept = (!is_same).then(|| base.into());
        let instructions = Arc::clone(&self.config.instructions);
        let told = told(&instructions);
        let known = match self.state.conversation.last_instruction(INTRODUCTION) {
            Some(last) => last == told,
            None if is_same => true,
            // Instructions are the end of the prompt: without them, it is the start of the previous one.
            None if instructions.is_empty() => !base.starts_with(&*self.config.system),
            None => base.contains(&*instructions),
        };
        if !known {
            let kind = NotificationKind::InstructionDiscovered {
                source_path: SOURCE.to_owned(),
                trigger_file: String::new(),
                trigger_tool: String::new(),
                description: None,
            };
            self.emit(step, data::SystemNotification { content: told, kind });
        }
    }
}

const INTRODUCTION: &str = "<system_reminder>\nThe custom instructions have changed since the session began.";

fn told(instructions: &str) -> String {
    let now = match instructions.is_empty() {
        true => " There are none any more.".to_owned(),
        false => format!(" These hold from now on, and no others:\n{instructions}"),
    };
    format!("{INTRODUCTION}{now}\n</system_reminder>")
}

fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}
