//! Audience of a session: its clients. Each is sent every event, and is asked only the questions that it can answer.

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::{EventSink, Hooks};
use hangar_agent::hook::{HookAnswer, HookRequest, MergedAnswers};
use hangar_agent::log::LogError;
use hangar_agent::session::Command;
use hangar_agent::tool::Tool;
use hangar_protocol::data::{
    AssistantIntent, AutoModeSwitchRequested, CanvasDeclaration, ClientCommand, CommandExecute,
    ExitPlanModeRequested, PlanDecision, SessionError, SessionIdle, StreamingDelta, SwitchAnswer,
};
use hangar_protocol::{Body, Event, EventId, EventKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, ClientId};
use crate::github_telemetry;
use crate::hub::{Lifecycle, ServedSession, ServerHub};
use crate::idle_debounce::{GRACE, IdleDebounce, Publish};
use crate::peer::notification;
use hangar_spec::{ExtensionInfo, SessionSpec};

/// Timeout of a client's hook. A later answer is ignored.
const HOOK_PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct ClientTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) overrides_builtin: bool,
}

/// One client of a session and what it brought.
pub(crate) struct Member {
    pub(crate) client: Arc<Client>,
    pub(crate) permissions: bool,
    pub(crate) questions: bool,
    pub(crate) elicitations: bool,
    pub(crate) plans: bool,
    pub(crate) switches: bool,
    pub(crate) hooks: bool,
    /// Whether the client receives the deltas of sub-agents.
    pub(crate) agent_pieces: bool,
    pub(crate) tools: Vec<ClientTool>,
    pub(crate) commands: Vec<ClientCommand>,
    pub(crate) canvases: Vec<CanvasDeclaration>,
    /// Id and name of the client as a provider of canvases, if it has them.
    pub(crate) provider: Option<String>,
    pub(crate) provider_name: Option<String>,
}

impl Member {
    pub(crate) fn new(client: Arc<Client>, spec: &SessionSpec, tools: Vec<ClientTool>) -> Self {
        let (provider, provider_name) = match (&client.extension, &spec.client.canvas_provider) {
            (Some(extension), _) => (Some(extension.id.clone()), Some(extension.name.clone())),
            (None, Some(provider)) => (Some(provider.id.clone()), provider.name.clone()),
            (None, None) => {
                let info = spec.client.extension_info.as_ref();
                (info.map(ExtensionInfo::id), info.map(|info| info.name.clone()))
            }
        };
        Self {
            client,
            permissions: spec.client.permissions.unwrap_or(false),
            questions: spec.client.questions.unwrap_or(false),
            elicitations: spec.client.elicitations.unwrap_or(false),
            plans: spec.client.plans.unwrap_or(false),
            switches: spec.client.switches.unwrap_or(false),
            hooks: spec.client.hooks.unwrap_or(false),
            agent_pieces: spec.client.agent_pieces.unwrap_or(true),
            commands: spec.client.commands.clone().unwrap_or_default(),
            canvases: spec.client.canvases.clone().unwrap_or_default(),
            provider,
            provider_name,
            tools,
        }
    }
}

/// Tool by which models say what they are about to do. It need not exist.
const REPORT_INTENT: &str = "report_intent";
/// Bytes of an answer after which clients are told how many there are.
const STREAMED_STEP: u64 = 1 << 10;

/// Bytes of the current answer, and how many of them clients know of.
#[derive(Default)]
struct Streamed {
    total: u64,
    told: u64,
}

impl Streamed {
    fn add(&mut self, bytes: usize) -> Option<StreamingDelta> {
        self.total += bytes as u64;
        let is_due = self.told == 0 || self.total >= self.told + STREAMED_STEP;
        is_due.then(|| {
            self.told = self.total;
            StreamingDelta { total_response_size_bytes: self.total }
        })
    }
}

pub(crate) struct Audience {
    pub(crate) session_id: String,
    members: Mutex<Vec<Member>>,
    /// Handles of clients that answer questions about other models by themselves, with whose they are.
    direct_switches: Mutex<HashMap<String, ClientId>>,
    live: OnceLock<Weak<ServedSession>>,
    /// When the session began, once that is known.
    began: OnceLock<String>,
    idle_debounce: Mutex<IdleDebounce>,
    streamed: Mutex<Streamed>,
    /// Whether this program drives the session itself, and not for a client.
    is_hosted: bool,
    hub: Weak<ServerHub>,
}

impl Audience {
    pub(crate) fn new(session_id: &str, hub: &Arc<ServerHub>) -> Self {
        Self {
            session_id: session_id.to_owned(),
            members: Mutex::default(),
            direct_switches: Mutex::default(),
            live: OnceLock::new(),
            began: OnceLock::new(),
            idle_debounce: Mutex::default(),
            streamed: Mutex::default(),
            is_hosted: false,
            hub: Arc::downgrade(hub),
        }
    }

    /// The same for a session that this program drives itself.
    pub(crate) fn hosted(session_id: &str, hub: &Arc<ServerHub>) -> Self {
        Self { is_hosted: true, ..Self::new(session_id, hub) }
    }

    /// The session that is watched, once it lives.
    pub(crate) fn watch(&self, live: &Arc<ServedSession>) {
        // Set once, right after the session is made.
        let _ = self.live.set(Arc::downgrade(live));
    }

    /// Wakes the callers that wait for the session.
    pub(crate) fn wake(&self) {
        if let Some(live) = self.live.get().and_then(Weak::upgrade) {
            live.news.send_modify(|_| {});
        }
    }

    /// A session that was opened again knows when it began.
    pub(crate) fn set_began(&self, time: &str) {
        if !time.is_empty() {
            // It began once.
            let _ = self.began.set(time.to_owned());
        }
    }

    /// When the session began, once that is known.
    pub(crate) fn began(&self) -> Option<&str> {
        self.began.get().map(String::as_str)
    }

    fn idle_debounce(&self) -> MutexGuard<'_, IdleDebounce> {
        self.idle_debounce.lock()
    }

    /// Sends an event to the clients and adds it to the history.
    fn tell(&self, event: &Event) {
        self.publish(event);
        if let Some(live) = self.live.get().and_then(Weak::upgrade)
            && is_for_clients(event.event_kind())
        {
            live.saw(event);
        }
    }

    /// A client that joins again replaces what it brought before.
    pub(crate) fn join(&self, member: Member) {
        let mut members = self.members();
        members.retain(|known| known.client.id != member.client.id);
        members.push(member);
    }

    /// Removes a client; true if it was a member.
    pub(crate) fn leave(&self, client: ClientId) -> bool {
        self.direct_switches().retain(|_, owner| *owner != client);
        let mut members = self.members();
        let before = members.len();
        members.retain(|member| member.client.id != client);
        members.len() < before
    }

    /// Sets whether a member answers permission questions.
    pub(crate) fn ask_for_permissions(&self, client: ClientId, answers: bool) {
        for member in self.members().iter_mut().filter(|member| member.client.id == client) {
            member.permissions = answers;
        }
    }

    /// Gives a member other tools than it brought.
    pub(crate) fn set_tools(&self, client: ClientId, tools: Vec<ClientTool>) {
        let mut members = self.members();
        if let Some(member) = members.iter_mut().find(|member| member.client.id == client) {
            member.tools = tools;
        }
    }

    /// Names of the tools that a member brought.
    pub(crate) fn tools_of(&self, client: ClientId) -> Vec<String> {
        let members = self.members();
        let own = members.iter().filter(|member| member.client.id == client);
        own.flat_map(|member| &member.tools).map(|tool| tool.tool.spec().name.clone()).collect()
    }

    /// A client that is still a member.
    pub(crate) fn member(&self, id: ClientId) -> Option<Arc<Client>> {
        let members = self.members();
        members.iter().find(|member| member.client.id == id).map(|member| Arc::clone(&member.client))
    }

    /// The client that makes the session's requests to the model, if one does.
    pub(crate) fn request_proxy(&self) -> Option<Arc<Client>> {
        let members = self.members();
        members
            .iter()
            .find(|member| member.client.is_request_proxy())
            .map(|member| Arc::clone(&member.client))
    }

    /// Closes the connections of guests: portals that were let in.
    pub(crate) fn dismiss_guests(&self) {
        for member in self.members().iter().filter(|member| member.client.is_guest) {
            member.client.peer.close();
        }
    }

    pub(crate) fn direct_switches(&self) -> MutexGuard<'_, HashMap<String, ClientId>> {
        self.direct_switches.lock()
    }

    /// Whether a client handles model-switch questions itself, without a prompt to the user.
    pub(crate) fn switches_directly(&self) -> bool {
        !self.direct_switches().is_empty()
    }

    /// Whether nobody uses the session. Extensions belong to the session, so they do not count.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_hosted && self.members().iter().all(|member| member.client.extension.is_some())
    }

    pub(crate) fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock()
    }

    pub(crate) fn publish(&self, event: &Event) {
        if !is_for_clients(event.event_kind()) {
            return;
        }
        let frame = notification("session.event", &json!({ "sessionId": self.session_id, "event": event }));
        let piece = is_piece_of_agent(event);
        for member in self.members().iter().filter(|member| member.agent_pieces || !piece) {
            member.client.peer.send(Arc::clone(&frame));
        }
    }

    /// The event that clients receive after this one: how much of an answer has arrived, or what the model is about to do.
    fn derived(&self, event: &Event) -> Option<Event> {
        if event.agent_id().is_some() {
            return None;
        }
        let mut streamed = self.streamed.lock();
        let body: Body = match event.body() {
            Body::TurnStart(_) => {
                *streamed = Streamed::default();
                return None;
            }
            Body::MessageDelta(piece) => streamed.add(piece.delta_content.len())?.into(),
            Body::ReasoningDelta(piece) => streamed.add(piece.delta_content.len())?.into(),
            Body::ToolCallDelta(piece) => streamed.add(piece.input_delta.len())?.into(),
            Body::AssistantMessage(message) => {
                let reported = message.tool_requests.iter().find(|call| call.name == REPORT_INTENT)?;
                AssistantIntent { intent: reported.arguments["intent"].as_str()?.to_owned() }.into()
            }
            _ => return None,
        };
        let id = EventId(uuid::Uuid::new_v4().to_string());
        let parent = event.parent_id().cloned();
        Some(Event::new(id, event.timestamp().to_owned(), parent, None, body))
    }

    /// Sends facts about the session to the clients that asked for them.
    fn forward_telemetry(&self, event: &Event) {
        let members = self.members();
        if !members.iter().any(|member| member.client.wants_telemetry()) {
            return;
        }
        let Some(facts) = github_telemetry::of_event(&self.session_id, event) else { return };
        let frame = notification("gitHubTelemetry.event", &facts);
        for member in members.iter().filter(|member| member.client.wants_telemetry()) {
            member.client.peer.send(Arc::clone(&frame));
        }
    }

    /// Has the client that brought a command carry it out. False if none did.
    pub(crate) fn dispatch(&self, execute: CommandExecute) -> bool {
        let Some(hub) = self.hub.upgrade() else { return false };
        let name = execute.command_name.clone();
        let now = hangar_agent::session::iso((hub.config().now)());
        let id = EventId(uuid::Uuid::new_v4().to_string());
        let event = Event::new(id, now, None, None, execute.into());
        let frame = notification("session.event", &json!({ "sessionId": self.session_id, "event": event }));
        let members = self.members();
        let owner = members.iter().find(|member| member.commands.iter().any(|known| known.name == name));
        owner.is_some_and(|owner| {
            owner.client.peer.send(frame);
            true
        })
    }

    /// Sends the members the error that ends the session when its log cannot be written.
    pub(crate) fn farewell(&self, error: &LogError) {
        let message = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        let error = SessionError {
            error_type: "session".to_owned(),
            message,
            transient: true,
            ..SessionError::default()
        };
        let Some(hub) = self.hub.upgrade() else { return };
        let now = hangar_agent::session::iso((hub.config().now)());
        for body in [Body::from(error), Body::from(SessionIdle::default())] {
            let id = EventId(uuid::Uuid::new_v4().to_string());
            self.publish(&Event::new(id, now.clone(), None, None, body));
        }
    }

    /// Asks the first client that answers questions, and passes its answer on.
    fn ask(&self, question: &hangar_protocol::data::UserInputRequested) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ClientAnswer {
            answer: String,
            #[serde(default)]
            was_freeform: bool,
        }
        let asked =
            self.members().iter().find(|member| member.questions).map(|member| Arc::clone(&member.client));
        let (Some(client), Some(live)) = (asked, self.live.get().and_then(Weak::upgrade)) else { return };
        let mut params = json!({
            "sessionId": self.session_id,
            "question": question.question,
            "allowFreeform": question.allow_freeform.unwrap_or(true),
        });
        if let Some(choices) = &question.choices {
            params["choices"] = json!(choices);
        }
        let request_id = question.request_id.clone();
        tokio::spawn(FutureExt::boxed(async move {
            let answer = match client.peer.request::<ClientAnswer>("userInput.request", &params).await {
                Ok(answer) => answer,
                // A client that is gone may come back and answer; one that failed has answered.
                Err(_) if client.peer.is_closed() => return,
                Err(error) => {
                    ClientAnswer { answer: format!("The question failed: {error}"), was_freeform: true }
                }
            };
            let command = Command::AnswerQuestion {
                request_id,
                answer: answer.answer,
                was_freeform: answer.was_freeform,
            };
            // The session may have ended meanwhile.
            let _ = live.command(command).await;
        }));
    }
}

impl Audience {
    /// First client that answers such questions, with the id of the session.
    fn asked(&self, answers: impl Fn(&Member) -> bool) -> Option<(Arc<Client>, Arc<ServedSession>)> {
        let client =
            self.members().iter().find(|member| answers(member)).map(|member| Arc::clone(&member.client));
        Some((client?, self.live.get().and_then(Weak::upgrade)?))
    }

    /// Shows a plan to the first client that reviews plans.
    fn show_plan(&self, requested: &ExitPlanModeRequested) {
        let Some((client, live)) = self.asked(|member| member.plans) else { return };
        let mut params = json!(requested);
        params["sessionId"] = json!(self.session_id);
        let request_id = requested.request_id.clone();
        tokio::spawn(FutureExt::boxed(async move {
            let decision = match client.peer.request("exitPlanMode.request", &params).await {
                Ok(decision) => decision,
                // A client that is gone may come back and answer; one that failed has not approved.
                Err(_) if client.peer.is_closed() => return,
                Err(error) => PlanDecision {
                    feedback: Some(format!("The review failed: {error}")),
                    ..PlanDecision::default()
                },
            };
            // The session may have ended meanwhile.
            let _ = live.command(Command::ReviewPlan { request_id, decision }).await;
        }));
    }

    /// Asks the first client that decides about model switches, unless one handles them itself.
    fn ask_to_switch(&self, requested: &AutoModeSwitchRequested) {
        #[derive(Deserialize)]
        struct ClientAnswer {
            response: SwitchAnswer,
        }
        if self.switches_directly() {
            return;
        }
        let Some((client, live)) = self.asked(|member| member.switches) else { return };
        let mut params = json!(requested);
        params["sessionId"] = json!(self.session_id);
        let request_id = requested.request_id.clone();
        tokio::spawn(FutureExt::boxed(async move {
            let answer = match client.peer.request::<ClientAnswer>("autoModeSwitch.request", &params).await {
                Ok(answer) => answer.response,
                Err(_) if client.peer.is_closed() => return,
                Err(_) => SwitchAnswer::No,
            };
            let _ = live.command(Command::AnswerSwitch { request_id, answer }).await;
        }));
    }
}

/// Whether an event is a delta of a sub-agent. The full text comes with an event of its own.
fn is_piece_of_agent(event: &Event) -> bool {
    use EventKind::{MessageDelta, ReasoningDelta, ToolCallDelta};
    let is_piece = matches!(event.event_kind(), Some(MessageDelta | ReasoningDelta | ToolCallDelta));
    event.agent_id().is_some() && is_piece
}

/// Whether clients receive events of this kind. The log keeps the usage of each model call; clients receive it as
/// `assistant.usage`, and the SDKs know no other event for it.
pub(crate) fn is_for_clients(kind: Option<EventKind>) -> bool {
    !kind.is_some_and(EventKind::is_internal)
}

/// Publishes a session's events.
pub(crate) struct Broadcast(pub(crate) Arc<Audience>);

impl EventSink for Broadcast {
    fn publish(&mut self, event: &Event) {
        // Held while they are told, so that nothing comes between an event and the one that was held before it.
        let mut idle_debounce = self.0.idle_debounce();
        match idle_debounce.pass(event) {
            Publish::Now(before) => {
                if let Some(before) = before {
                    self.0.tell(&before);
                }
                self.0.tell(event);
            }
            Publish::Later(number) => {
                let audience = Arc::clone(&self.0);
                tokio::spawn(FutureExt::boxed(async move {
                    tokio::time::sleep(GRACE).await;
                    let mut idle_debounce = audience.idle_debounce();
                    if let Some(event) = idle_debounce.due(number) {
                        audience.tell(&event);
                    }
                }));
            }
        }
        drop(idle_debounce);
        self.0.forward_telemetry(event);
        if let Some(derived) = self.0.derived(event) {
            self.0.tell(&derived);
        }
        match event.body() {
            Body::SessionStart(start) => self.0.set_began(&start.start_time),
            Body::UserInputRequested(question) => self.0.ask(question),
            Body::ExitPlanModeRequested(requested) => self.0.show_plan(requested),
            Body::AutoModeSwitchRequested(requested) => self.0.ask_to_switch(requested),
            _ => {}
        }
        if !event.is_ephemeral()
            && let Some(hub) = self.0.hub.upgrade()
        {
            hub.announce(Lifecycle::Updated, &self.0.session_id, self.0.began());
        }
    }
}

/// Asks the hooks of a session's clients.
pub(crate) struct ClientHooks(pub(crate) Arc<Audience>);

impl Hooks for ClientHooks {
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        #[derive(Default, Deserialize)]
        struct ClientAnswer {
            output: Option<Value>,
        }
        let clients: Vec<Arc<Client>> = self
            .0
            .members()
            .iter()
            .filter(|member| member.hooks && request.kind.is_for_clients())
            .map(|member| Arc::clone(&member.client))
            .collect();
        let params = json!({
            "sessionId": self.0.session_id,
            "hookType": request.kind.as_str(),
            "input": request.input,
        });
        let kind = request.kind;
        Box::pin(async move {
            let mut answers = MergedAnswers::default();
            for client in clients {
                if answers.settled(kind) {
                    break;
                }
                let asking = client.peer.request::<Option<ClientAnswer>>("hooks.invoke", &params);
                let answer = match tokio::time::timeout(HOOK_PATIENCE, asking).await {
                    // A hook that takes too long has no opinion.
                    Err(_) => continue,
                    Ok(Err(_)) if client.peer.is_closed() => continue,
                    Ok(Err(error)) => Err(error.to_string().into()),
                    Ok(Ok(answer)) => Ok(answer.unwrap_or_default().output),
                };
                answers.add(answer);
            }
            answers.into_answer(kind)
        })
    }
}
