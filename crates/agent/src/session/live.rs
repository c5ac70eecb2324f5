//! Queries and settings of a live session for its owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_protocol::data::AgentMode;
use hangar_protocol::permission::PermissionRequest;
use hangar_protocol::{Body, data};

use super::run::{Phase, Run};
use super::tools::CallStage;
use super::{CallOptions, ClientAbilities, Context, Origin, Prompt, Session, SessionConfig, Step, Unqueue};
use crate::model::{Initiator, Message, ModelRequest, Part, ProviderFacts, Reply, TokenCount, ToolChoice};
use crate::permissions::Policy;
use crate::prompt::mcp::server_instructions;
use crate::tool::ToolSpec;

/// An open permission request.
#[derive(Debug, Clone)]
pub struct PendingPermission {
    pub request_id: String,
    pub request: PermissionRequest,
}

/// A prompt in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPrompt {
    pub message_id: Option<String>,
    pub shown: String,
    /// Mode that it was sent in, if it says so.
    pub mode: Option<AgentMode>,
    /// Whether it is a model switch rather than a message.
    pub is_switch: bool,
    /// Messages that were sent with it and precede it: id and text.
    pub before: Vec<(Option<String>, String)>,
}

/// Settings that may change while a session runs; absent ones stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveSettings {
    /// Whether answers are streamed.
    pub streaming: Option<bool>,
    /// Whether the model may ask the user.
    pub asks: Option<bool>,
    /// Whether instructions about parts of the project are discovered.
    pub discovers: Option<bool>,
}

/// Tools that were added and removed since the model was last told.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolsChanged {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

impl ToolsChanged {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notice about removed tools, which the model has seen and may call again. Added ones are in the request.
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

    /// Policy of the session. Changes hold from the next call on.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.config.policy
    }

    /// Sets what the connected clients can answer.
    pub fn set_clients(&mut self, clients: ClientAbilities) {
        self.config.clients = clients;
    }

    /// Sets whether the session may change nothing, because its parent is in plan mode.
    pub(crate) fn set_only_plans(&mut self, only_plans: bool) {
        self.only_plans = only_plans;
    }

    /// Sets the filter of the session's own tools, from the next model call on.
    pub fn set_own_tools(&mut self, filter: crate::tool::ToolFilter) {
        self.config.own_tools = filter;
    }

    /// Sets the MCP servers that the next run reports, and the instructions about their tools: they go into the system
    /// prompt if the model has not been told any yet, else into the next message.
    pub fn set_mcp_servers(&mut self, servers: Vec<serde_json::Value>) {
        self.mcp.instructions.set(server_instructions(&servers));
        self.mcp.servers = servers;
    }

    /// Sets the facts about the provider, which has changed.
    pub(crate) fn set_provider_facts(&mut self, facts: ProviderFacts) {
        self.config.provider = facts;
    }

    /// Sets whether the model is shown images, from the next model call on.
    pub fn set_vision(&mut self, vision: bool) {
        self.config.vision = vision;
    }

    /// Changes settings, from the next model call on.
    pub fn change_settings(&mut self, settings: LiveSettings) {
        let config = &mut self.config;
        config.streaming = settings.streaming.unwrap_or(config.streaming);
        config.may_ask = settings.asks.unwrap_or(config.may_ask);
        config.discovers_instructions = settings.discovers.unwrap_or(config.discovers_instructions);
    }

    /// Tokens of the next request, if there is a tokenizer.
    pub fn measure(&self) -> Option<TokenCount> {
        let request = self.next_request(CallOptions::default());
        self.config.metering.meter.as_ref().map(|meter| self.token_counts.measure(&**meter, &request))
    }

    /// The next request.
    pub fn request(&self) -> ModelRequest {
        self.next_request(CallOptions::default())
    }

    /// A request beside the conversation: the model sees all of it and calls no tools, and neither question nor answer
    /// is kept.
    pub fn aside(&self, question: String) -> ModelRequest {
        let mut request = self.next_request(CallOptions::default());
        request.messages.push(Arc::new(Message::User(vec![Part::Text(question)])));
        request.initiator = Initiator::Aside;
        request.tool_choice = ToolChoice::None;
        request.stream = false;
        request
    }

    /// Usage of an answer beside the conversation, for the log.
    pub fn aside_usage(&self, reply: &Reply) -> data::UsageRecord {
        self.usage_record(reply, self.usage_of(reply, "agent"))
    }

    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        let Some(Run { phase: Phase::Tools { calls, .. }, .. }) = &self.run else { return Vec::new() };
        calls
            .iter()
            .filter_map(|running| match &running.stage {
                CallStage::AskingPermission { request_id, request }
                | CallStage::AskingConfirmation { request_id, request, .. } => {
                    Some(PendingPermission { request_id: request_id.clone(), request: (**request).clone() })
                }
                _ => None,
            })
            .collect()
    }

    /// Whether a question with this id is open.
    pub fn awaits_answer(&self, request_id: &str) -> bool {
        self.waiting_call(|stage| match stage {
            CallStage::AskingUser { request_id: id } => id == request_id,
            _ => false,
        })
        .is_some()
    }

    /// Prompts in the queue, in order.
    pub fn queued(&self) -> impl Iterator<Item = QueuedPrompt> {
        self.queue.iter().filter(|prompt| prompt.origin.is_shown()).map(queued)
    }

    /// Prompts that will join the current run.
    pub fn steering(&self) -> impl Iterator<Item = QueuedPrompt> {
        self.steering.iter().filter(|prompt| prompt.origin.is_shown()).map(queued)
    }

    pub(super) fn set_tools_offered(&mut self, tools: Arc<[Arc<ToolSpec>]>) {
        let before: BTreeSet<&str> = self.config.tools.iter().map(|tool| tool.name.as_str()).collect();
        let after: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        // Before the first message there is nothing to tell the model.
        if !self.state.conversation.is_empty() {
            for gone in before.difference(&after) {
                // A tool that was added and removed unseen is not reported.
                if !self.shown.changes.added.remove(*gone) {
                    self.shown.changes.removed.insert((*gone).to_owned());
                }
            }
            let gone =
                |tool: &&Arc<ToolSpec>| !after.contains(tool.name.as_str()) && self.was_shown(&tool.name);
            let withdrawn: Vec<Arc<ToolSpec>> = self.config.tools.iter().filter(gone).cloned().collect();
            self.shown.withdrawn.retain(|tool| !after.contains(tool.name.as_str()));
            self.shown.withdrawn.extend(withdrawn);
            for new in after.difference(&before) {
                self.shown.changes.removed.remove(*new);
                self.shown.changes.added.insert((*new).to_owned());
            }
        }
        self.config.tools = tools;
    }

    /// Leaves the definitions of removed tools out of the requests from now on, because the tools were replaced on
    /// purpose. That invalidates the provider's prefix cache and reasoning that is bound to the tools.
    pub fn forget_withdrawn_tools(&mut self) {
        self.shown.withdrawn.clear();
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
        if continue_pending {
            self.ask_again(step);
        }
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
