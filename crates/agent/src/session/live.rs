//! What those who drive a living session may see of it and change in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_protocol::data::AgentMode;
use hangar_protocol::permission::PermissionRequest;
use hangar_protocol::{Body, data};

use super::run::{Phase, Run};
use super::tools::Stage;
use super::{Context, Origin, Prompt, Session, SessionConfig, Step, Unqueue, Wishes};
use crate::model::{Initiator, Message, ModelRequest, Part, TokenCount, ToolChoice};
use crate::permissions::Policy;
use crate::tool::ToolSpec;

/// A question about a permission that nobody has answered yet.
#[derive(Debug, Clone)]
pub struct PendingPermission {
    pub request_id: String,
    pub request: PermissionRequest,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPrompt {
    pub message_id: Option<String>,
    pub shown: String,
    /// The mode that it was sent in, if it said.
    pub mode: Option<AgentMode>,
    /// Whether it is another model rather than a message.
    pub is_switch: bool,
    /// Messages that were sent with it and go before it.
    pub before: Vec<(Option<String>, String)>,
}

/// What a living session may be told to do otherwise; absent what stays as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Habits {
    /// Whether answers are published in pieces.
    pub streaming: Option<bool>,
    /// Whether the model may ask people.
    pub asks: Option<bool>,
    /// Whether instructions about a part of the project are looked for.
    pub discovers: Option<bool>,
}

/// Tools that came and went since the model was last told.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolsChanged {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

impl ToolsChanged {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Only what went away needs a word: the model has seen it and may try it again. New tools are in the request.
    pub(super) fn notice(&self) -> Option<String> {
        if self.removed.is_empty() {
            return None;
        }
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut text =
            format!("<tools_changed_notice>\nTools no longer available: {}\n", names(&self.removed));
        if !self.added.is_empty() {
            text.push_str(&format!("Tools now available: {}\n", names(&self.added)));
        }
        text.push_str(
            "\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that \
             they're available again.\n</tools_changed_notice>\n\n",
        );
        Some(text)
    }
}

impl Session {
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Rules and approvals may change while the session lives; they hold from the next call on.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.config.policy
    }

    /// Who can be asked depends on who is connected.
    pub fn set_reachable(&mut self, permissions: bool, questions: bool, hooks: bool) {
        self.config.user_reachable = permissions;
        self.config.questions_answered = questions;
        self.config.client_hooks = hooks;
    }

    /// An agent of a session that only plans changes as little as that does.
    pub(crate) fn set_only_plans(&mut self, only_plans: bool) {
        self.only_plans = only_plans;
    }

    /// Which of the session's own tools may be shown, from the next model call on.
    pub fn set_own_tools(&mut self, filter: crate::tool::ToolFilter) {
        self.config.own_tools = filter;
    }

    /// How the MCP servers are, as the next run says it.
    pub fn set_mcp_servers(&mut self, servers: Vec<serde_json::Value>) {
        self.mcp_servers = servers;
    }

    /// Whether the model is shown images, from the next model call on.
    pub fn set_vision(&mut self, vision: bool) {
        self.config.vision = vision;
    }

    /// Other habits, from the next model call on.
    pub fn set_habits(&mut self, habits: Habits) {
        let config = &mut self.config;
        config.streaming = habits.streaming.unwrap_or(config.streaming);
        config.may_ask = habits.asks.unwrap_or(config.may_ask);
        config.discovers_instructions = habits.discovers.unwrap_or(config.discovers_instructions);
    }

    /// Another system prompt, from the next model call on.
    pub fn set_system(&mut self, system: Arc<str>) {
        self.config.system = system;
    }

    /// What the next request would cost, where someone counts.
    pub fn measure(&self) -> Option<TokenCount> {
        let request = self.next_request(Wishes::default());
        self.config.meter.as_ref().map(|meter| self.tally.measure(&**meter, &request))
    }

    /// What the model would be asked now.
    pub fn request(&self) -> ModelRequest {
        self.next_request(Wishes::default())
    }

    /// A question beside the conversation: the model sees all of it, calls nothing, and nothing of it stays.
    pub fn aside(&self, question: String) -> ModelRequest {
        let mut request = self.next_request(Wishes::default());
        request.messages.push(Arc::new(Message::User(vec![Part::Text(question)])));
        request.initiator = Initiator::Aside;
        request.tool_choice = ToolChoice::None;
        request.stream = false;
        request
    }

    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        let Some(Run { phase: Phase::Tools { calls, .. }, .. }) = &self.run else { return Vec::new() };
        calls
            .iter()
            .filter_map(|running| match &running.stage {
                Stage::AskingPermission { request_id, request }
                | Stage::AskingConfirmation { request_id, request, .. } => {
                    Some(PendingPermission { request_id: request_id.clone(), request: (**request).clone() })
                }
                _ => None,
            })
            .collect()
    }

    /// Whether a question with this id waits for an answer.
    pub fn awaits_answer(&self, request_id: &str) -> bool {
        self.waiting_call(|stage| match stage {
            Stage::AskingUser { request_id: id } => id == request_id,
            _ => false,
        })
        .is_some()
    }

    /// What people sent that waits, in the order in which it will be taken.
    pub fn queued(&self) -> impl Iterator<Item = QueuedPrompt> {
        self.queue.iter().filter(|prompt| prompt.origin.is_shown()).map(queued)
    }

    /// What people sent that waits to join the run under way.
    pub fn steering(&self) -> impl Iterator<Item = QueuedPrompt> {
        self.steering.iter().filter(|prompt| prompt.origin.is_shown()).map(queued)
    }

    pub(super) fn set_tools_offered(&mut self, tools: Arc<[Arc<ToolSpec>]>) {
        let before: BTreeSet<&str> = self.config.tools.iter().map(|tool| tool.name.as_str()).collect();
        let after: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        // Before the first message there is nothing that the model could be confused about.
        if !self.state.conversation.is_empty() {
            for gone in before.difference(&after) {
                // One that came and went unseen is no news.
                if !self.tools_changed.added.remove(*gone) {
                    self.tools_changed.removed.insert((*gone).to_owned());
                }
            }
            for new in after.difference(&before) {
                self.tools_changed.removed.remove(*new);
                self.tools_changed.added.insert((*new).to_owned());
            }
        }
        self.config.tools = tools;
    }

    pub(super) fn unqueue(&mut self, which: Unqueue, step: &mut Step) {
        let is_shown = |prompt: &Prompt| prompt.origin.is_shown();
        let changed = match which {
            Unqueue::Last => match self.steering.iter().rposition(is_shown) {
                Some(last) => {
                    self.steering.remove(last);
                    true
                }
                None => {
                    let last = self.queue.iter().rposition(is_shown);
                    last.and_then(|last| self.queue.remove(last)).is_some()
                }
            },
            Unqueue::All => {
                let any = !self.queue.is_empty() || !self.steering.is_empty();
                self.drop_prompts();
                any
            }
        };
        if changed {
            self.emit(step, data::PendingMessagesModified {});
        }
    }

    pub(super) fn rejoined(&mut self, continue_pending: bool, step: &mut Step, context: &mut Context<'_>) {
        let resume = data::SessionResume {
            resume_time: super::iso(context.now),
            event_count: self.state.end.0,
            events_file_size_bytes: None,
            selected_model: (!self.state.model.is_empty()).then(|| self.state.model.clone()),
            reasoning_effort: self.state.effort.clone(),
            context: None,
            session_was_active: Some(true),
            continue_pending_work: Some(continue_pending),
        };
        self.emit(step, resume);
    }
}

fn queued(prompt: &Prompt) -> QueuedPrompt {
    let message = |body: &Body| match body {
        Body::UserMessage(message) => Some((message.message_id.clone(), message.content.clone())),
        _ => None,
    };
    QueuedPrompt {
        message_id: prompt.message_id.clone(),
        shown: prompt.as_shown().to_owned(),
        mode: prompt.agent_mode,
        is_switch: matches!(prompt.origin, Origin::Switch(_)),
        before: prompt.preface.iter().filter_map(message).collect(),
    }
}
