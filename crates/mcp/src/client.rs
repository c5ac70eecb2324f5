//! Our side of a connection: what servers may ask of us and tell us.
#![expect(deprecated, reason = "sampling leaves the protocol some day; the servers of today ask for it")]

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hangar_agent::permissions::Verdict;
use hangar_agent::tool::ToolContext;
use hangar_protocol::data::{
    ElicitationAction as Action, ElicitationCompleted, ElicitationRequested, McpPromptsListChanged,
    McpResourcesListChanged, SamplingCompleted, SamplingRequested, ToolProgress,
};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::pending::{ElicitationAnswer, Interest};
use crate::server::ManagedServer;

/// Requests of one server to people and to the model that may be pending at a time. More are refused.
const MAX_QUESTIONS: usize = 16;

/// Running calls that receive progress. The lock is held while a call is sent, so that no progress comes before its
/// listener is known.
pub(crate) type Listeners = Arc<Mutex<HashMap<ProgressToken, Listener>>>;

pub(crate) struct Listener {
    pub(crate) call_id: String,
    pub(crate) context: ToolContext,
}

pub(crate) struct McpClient {
    server: Weak<ManagedServer>,
    listeners: Listeners,
    questions: Semaphore,
}

impl McpClient {
    pub(crate) fn new(server: &Arc<ManagedServer>, listeners: Listeners) -> Self {
        Self { server: Arc::downgrade(server), listeners, questions: Semaphore::new(MAX_QUESTIONS) }
    }

    /// Room for one more question, until it is answered.
    fn room(&self) -> Result<SemaphorePermit<'_>, ErrorData> {
        let full =
            |_| refusal(format!("{MAX_QUESTIONS} questions of this server wait for an answer already"));
        self.questions.try_acquire().map_err(full)
    }

    fn server(&self) -> Result<Arc<ManagedServer>, ErrorData> {
        self.server.upgrade().ok_or_else(|| refusal("the session is over"))
    }
}

fn refusal(message: impl Into<String>) -> ErrorData {
    ErrorData::new(ErrorCode(-1), message.into(), None)
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::new();
        elicitation.form = Some(FormElicitationCapability::new());
        elicitation.url = Some(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        capabilities.sampling = Some(SamplingCapability::default());
        let us = Implementation::new("hangar", env!("CARGO_PKG_VERSION"));
        // The newest version that begins with `initialize`, which every server of today understands.
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let listeners = self.listeners.lock().await;
        if let Some(Listener { call_id, context }) = listeners.get(&params.progress_token) {
            let progress =
                ToolProgress { tool_call_id: call_id.clone(), progress_message: progress_message(&params) };
            // Progress is dropped if the queue is full.
            let _ = context.progress.try_send(Box::new(progress.into()));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Ok(server) = self.server() {
            server.tools_changed();
        }
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Ok(server) = self.server() {
            server.common().hint(McpResourcesListChanged { server_name: server.name().to_owned() });
        }
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Ok(server) = self.server() {
            server.common().hint(McpPromptsListChanged { server_name: server.name().to_owned() });
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let server = self.server()?;
        let _room = self.room()?;
        let common = server.common();
        if !common.pending.is_answered(Interest::Elicitation) {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        let request_id = common.fresh_id();
        let question = common.pending.elicitations.open(&request_id);
        common.tell(elicitation(server.name(), &request_id, &request)).await;
        // A server that takes its question back, or is gone, hears nothing; the person is told that it is settled.
        let answer = context.ct.run_until_cancelled(question.answer()).await.flatten();
        let answer = answer.unwrap_or(ElicitationAnswer { action: Action::Cancel, content: None });
        let content = answer.content.filter(|_| answer.action == Action::Accept);
        common
            .tell(ElicitationCompleted { request_id, action: Some(answer.action), content: content.clone() })
            .await;
        let mut result = ElicitResult::new(match answer.action {
            Action::Accept => ElicitationAction::Accept,
            Action::Decline => ElicitationAction::Decline,
            Action::Cancel => ElicitationAction::Cancel,
        });
        result.content = content;
        Ok(result)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let server = self.server()?;
        let _room = self.room()?;
        let common = server.common();
        let request = serde_json::to_value(&params).map_err(|error| refusal(error.to_string()))?;
        let verdict = common.may_sample(server.name()).await.ok_or_else(|| refusal("the session is over"))?;
        let answer = match verdict {
            Verdict::Deny { .. } => return Err(refusal("asking the model is not permitted")),
            // A client that handles these requests is asked, whatever the rules allow.
            Verdict::Allow if !common.pending.is_answered(Interest::Sampling) => {
                let answer = context.ct.run_until_cancelled(common.sample(request)).await;
                answer.unwrap_or_else(|| Err("the request was taken back".to_owned())).map_err(refusal)?
            }
            Verdict::Ask { .. } if !common.pending.is_answered(Interest::Sampling) => {
                return Err(refusal("asking the model needs a permission that nobody is there to give"));
            }
            Verdict::Allow | Verdict::Ask { .. } => {
                let request_id = common.fresh_id();
                let question = common.pending.samplings.open(&request_id);
                let mcp_request_id = serde_json::to_value(&context.id).unwrap_or_default();
                common
                    .tell(SamplingRequested {
                        request_id: request_id.clone(),
                        server_name: server.name().to_owned(),
                        mcp_request_id,
                        request: Some(request),
                    })
                    .await;
                let answer = context.ct.run_until_cancelled(question.answer()).await.flatten().flatten();
                common.tell(SamplingCompleted { request_id }).await;
                answer.ok_or_else(|| refusal("the user does not want the model to be asked"))?
            }
        };
        serde_json::from_value(answer).map_err(|error| refusal(format!("the answer makes no sense: {error}")))
    }
}

fn elicitation(server: &str, request_id: &str, request: &ElicitRequestParams) -> ElicitationRequested {
    let wire = serde_json::to_value(request).unwrap_or_default();
    let text = |key: &str| wire[key].as_str().map(str::to_owned);
    ElicitationRequested {
        request_id: request_id.to_owned(),
        tool_call_id: None,
        elicitation_source: Some(server.to_owned()),
        message: text("message").unwrap_or_default(),
        mode: text("mode").or(Some("form".to_owned())),
        requested_schema: wire.get("requestedSchema").filter(|schema| !schema.is_null()).cloned(),
        url: text("url"),
    }
}

/// `1.0/4.0 (25%): quarter`, as far as it is known.
fn progress_message(params: &ProgressNotificationParam) -> String {
    let mut text = match params.total {
        Some(total) if total > 0.0 => {
            let percent = (params.progress / total * 100.0).round();
            format!("{:?}/{total:?} ({percent}%)", params.progress)
        }
        _ => format!("{:?}", params.progress),
    };
    if let Some(message) = params.message.as_deref().filter(|message| !message.is_empty()) {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

/// The request of a sampling, which has to have messages.
pub(crate) fn check_sampling(request: &Value) -> Result<(), String> {
    serde_json::from_value::<CreateMessageRequestParams>(request.clone())
        .map(drop)
        .map_err(|error| format!("the sampling request makes no sense: {error}"))
}
