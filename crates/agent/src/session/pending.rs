//! Calls that waited for a client when the last process of a session ended. They can be continued.
//!
//! Only calls that waited for an answer can: a permission request, or a call that a client makes. A call that was
//! running here ended with the process.

use hangar_protocol::data::{self, Mode};
use hangar_protocol::permission::PermissionRequest;

use super::call::parse_arguments;
use super::run::{Phase, Run};
use super::tools::{CallStage, RunningCall};
use super::{Context, Session, Step};
use crate::model::{Message, ToolCall};
use crate::tool::ToolOutcome;

/// The answer that a call waits for, according to the log.
#[derive(Debug, Clone)]
pub enum PendingAnswer {
    Permission { request_id: String, request: Box<PermissionRequest> },
    Client { request_id: String },
}

/// The turn of the open calls, according to the log.
#[derive(Debug, Clone, Default)]
pub struct OpenTurn {
    pub interaction_id: Option<String>,
    pub message_id: Option<String>,
    pub task_id: Option<String>,
    pub turn: u32,
    /// Mode of its prompt, if it had one that still holds.
    pub mode: Option<Mode>,
}

/// A tool call that a client was asked to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    pub tool: String,
    pub arguments: serde_json::Value,
}

impl Session {
    /// Continues the calls that wait for an answer and returns their ids.
    pub(super) fn take_up_pending(&mut self, context: &mut Context<'_>) -> Vec<String> {
        let open: Vec<String> = self.state.conversation.open_calls().map(|(id, _)| id.to_owned()).collect();
        let calls: Vec<RunningCall> = open
            .iter()
            .filter_map(|id| Some(RunningCall::waiting(self.open_call(id)?, self.stage_of(id)?)))
            .collect();
        if calls.is_empty() {
            return Vec::new();
        }
        let kept = calls.iter().map(|running| running.id().to_owned()).collect();
        let turn = self.state.open_turn.clone();
        let mut run = Run::new(
            turn.interaction_id.unwrap_or_else(|| context.entropy.uuid()),
            turn.message_id.unwrap_or_else(|| context.entropy.uuid()),
            turn.task_id.unwrap_or_else(|| context.entropy.uuid()),
        );
        run.turn = turn.turn;
        run.mode = turn.mode;
        run.phase = Phase::Tools { calls, since: context.now };
        self.run = Some(run);
        kept
    }

    fn open_call(&self, id: &str) -> Option<ToolCall> {
        let messages = self.state.conversation.messages().collect::<Vec<_>>();
        messages.into_iter().rev().find_map(|message| match &**message {
            Message::Assistant(turn) => turn.tool_calls.iter().find(|call| call.id == id).cloned(),
            Message::User(_) | Message::Tool { .. } => None,
        })
    }

    fn stage_of(&self, id: &str) -> Option<CallStage> {
        Some(match self.state.pending.get(id)? {
            PendingAnswer::Permission { request_id, request } => {
                CallStage::AskingPermission { request_id: request_id.clone(), request: request.clone() }
            }
            PendingAnswer::Client { request_id } => {
                CallStage::AwaitingClient { request_id: request_id.clone() }
            }
        })
    }

    /// Call that waits for this request since before the session was resumed.
    pub fn awaits_client(&self, request_id: &str) -> Option<ClientCall> {
        let Some(Run { phase: Phase::Tools { calls, .. }, .. }) = &self.run else { return None };
        let asked = |stage: &CallStage| matches!(stage, CallStage::AwaitingClient { request_id: id } if id == request_id);
        let running = calls.iter().find(|running| asked(&running.stage))?;
        Some(ClientCall { tool: running.name().to_owned(), arguments: running.arguments().clone() })
    }

    pub(super) fn client_answered(
        &mut self,
        request_id: &str,
        outcome: ToolOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &CallStage| matches!(stage, CallStage::AwaitingClient { request_id: id } if id == request_id);
        let Some(id) = self.waiting_call(asked) else { return };
        self.emit(step, data::ExternalToolCompleted { request_id: request_id.to_owned() });
        self.tool_done(&id, outcome, step, context);
    }
}

impl RunningCall {
    fn waiting(call: ToolCall, stage: CallStage) -> Self {
        Self::resumed(parse_arguments(&call), call, stage)
    }
}
