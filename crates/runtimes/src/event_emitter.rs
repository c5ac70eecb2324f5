//! The voice of a session: gives events their place in it and hands them on.

use std::sync::Arc;

use hangar_protocol::data::{self, Handoff, HandoffSource, WorkingDirectory};
use hangar_protocol::{AgentId, Body, Event, EventId};
use tokio::sync::mpsc;

use crate::environment::RuntimeEnvironment;
use crate::host::Host;
use crate::outcome::{ErrorKind, TurnFailure};
use crate::runtime::{AgentCard, AgentOrder, SessionNews, TurnEnded};
use crate::translate::TranslatedEvent;
use crate::usage::Figure;

/// Model name in the record of an agent that does not report its model.
const UNTOLD_MODEL: &str = "unknown";

pub(crate) struct EventEmitter {
    outbox: mpsc::Sender<SessionNews>,
    parent: Option<EventId>,
    runtime_env: Arc<RuntimeEnvironment>,
    runtime: String,
    source: HandoffSource,
    /// Name of the session in the agent, once it is known.
    agent_session: Option<String>,
    /// Name that the agent was told to use.
    given: Option<String>,
}

impl EventEmitter {
    pub(crate) fn new(
        outbox: mpsc::Sender<SessionNews>,
        runtime_env: Arc<RuntimeEnvironment>,
        card: &AgentCard,
        order: &AgentOrder,
    ) -> Self {
        let resume = order.resume.as_ref();
        Self {
            outbox,
            parent: resume.and_then(|resume| resume.last_event.clone()),
            runtime_env,
            runtime: card.name.clone().into_owned(),
            source: match order.host {
                Host::Local => HandoffSource::Local,
                Host::Ssh(_) => HandoffSource::Remote,
            },
            agent_session: resume.and_then(|resume| resume.agent_session.clone()),
            given: None,
        }
    }

    pub(crate) fn agent_session(&self) -> Option<&str> {
        self.agent_session.as_deref()
    }

    /// Sets the name that the agent was told to use for the session, and uses once it writes output.
    pub(crate) fn expect(&mut self, given: Option<String>) {
        self.given = given;
    }

    fn now(&self) -> String {
        format!("{:.3}", (self.runtime_env.now)())
    }

    /// Emits the start or the resumption of the session.
    pub(crate) async fn begin(&mut self, order: &AgentOrder) {
        let context = WorkingDirectory {
            cwd: order.workspace.display().to_string(),
            git_root: None,
            repository: None,
            branch: None,
        };
        let body: Body = match &order.resume {
            None => data::SessionStart {
                session_id: order.session_id.clone(),
                version: 1,
                producer: self.runtime.clone(),
                copilot_version: env!("CARGO_PKG_VERSION").to_owned(),
                start_time: self.now(),
                selected_model: order.model.clone(),
                reasoning_effort: order.effort.clone(),
                context: Some(context),
                remote_steerable: None,
                already_in_use: None,
            }
            .into(),
            Some(resume) => data::SessionResume {
                resume_time: self.now(),
                event_count: resume.events,
                events_file_size_bytes: None,
                selected_model: order.model.clone(),
                reasoning_effort: order.effort.clone(),
                context: Some(context),
                session_was_active: None,
                continue_pending_work: None,
            }
            .into(),
        };
        self.tell(None, body).await;
        for body in &order.opening {
            self.tell(None, body.clone()).await;
        }
    }

    /// Records the agent's name of the session as soon as it is known: without it the session could not be resumed
    /// after a crash.
    pub(crate) async fn named(&mut self, agent_session: &str) {
        if self.agent_session.as_deref() == Some(agent_session) {
            return;
        }
        self.agent_session = Some(agent_session.to_owned());
        let handoff = Handoff {
            handoff_time: self.now(),
            source_type: self.source,
            remote_session_id: Some(agent_session.to_owned()),
            context: Some(self.runtime.clone()),
        };
        self.tell(None, handoff.into()).await;
    }

    /// Emits warnings for the user, one sentence each.
    pub(crate) async fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            self.tell(None, data::SessionWarning::new("agent", warning).into()).await;
        }
    }

    pub(crate) async fn prompted(&mut self, prompt: &str) {
        let message = data::UserMessage {
            content: prompt.to_owned(),
            message_id: Some(uuid::Uuid::new_v4().to_string()),
            ..Default::default()
        };
        self.tell(None, message.into()).await;
    }

    pub(crate) async fn tell(&mut self, agent: Option<AgentId>, body: Body) {
        let id = EventId(uuid::Uuid::new_v4().to_string());
        let event = Event::new(id, self.now(), self.parent.clone(), agent, body);
        self.send(event).await;
    }

    async fn send(&mut self, event: Event) {
        if !event.is_ephemeral() {
            self.parent = Some(event.id().clone());
        }
        // The listener is gone: the session is about to be stopped.
        let _ = self.outbox.send(SessionNews::Event(Box::new(event))).await;
    }

    pub(crate) async fn hear(&mut self, spoken: Vec<TranslatedEvent>) {
        // An agent that speaks has taken the name that it was given.
        if let (None, Some(given)) = (&self.agent_session, self.given.take()) {
            self.named(&given).await;
        }
        for spoken in spoken {
            match spoken {
                TranslatedEvent::Body { agent, body } => self.tell(agent, body).await,
                // Its own chain leads to events that were never told.
                TranslatedEvent::Whole(event) => {
                    let parent = self.parent.clone();
                    self.send(event.under(parent)).await;
                }
            }
        }
    }

    /// Records a failure that the agent itself did not record.
    pub(crate) async fn report(&mut self, failure: &TurnFailure, said: AgentRecord) {
        match (failure.kind, said) {
            (ErrorKind::TurnCancelled, AgentRecord { aborted: true, .. }) => {}
            (ErrorKind::TurnCancelled, _) => {
                let abort = data::Abort { reason: "user_initiated".to_owned() };
                self.tell(None, abort.into()).await;
            }
            (_, AgentRecord { complained: true, .. }) => {}
            _ => {
                let error = data::SessionError {
                    error_type: failure.kind.as_str().to_owned(),
                    message: failure.message.clone(),
                    status_code: failure.evidence.status_code,
                    error_code: failure.evidence.code.clone(),
                    ..data::SessionError::default()
                };
                self.tell(None, error.into()).await;
            }
        }
    }

    pub(crate) async fn ended(&mut self, ended: TurnEnded) {
        if !ended.unknown.is_empty() {
            (self.runtime_env.drift.0)(&self.runtime, &ended.unknown);
        }
        if let Some(record) = usage_record(&ended) {
            self.tell(None, record.into()).await;
        }
        self.tell(None, data::AssistantIdle::default().into()).await;
        let _ = self.outbox.send(SessionNews::TurnEnded(Box::new(ended))).await;
    }
}

/// The usage of a turn for the log, so that it survives a process that is killed before it closes the session. `None` if the
/// agent reported nothing.
fn usage_record(ended: &TurnEnded) -> Option<data::UsageRecord> {
    let usage = &ended.outcome.usage;
    let tokens = |figure: Figure| figure.count();
    let known = [usage.input_tokens, usage.output_tokens, usage.cost_usd];
    known.iter().any(|figure| figure.value().is_some()).then(|| data::UsageRecord {
        usage: data::AssistantUsage {
            model: ended.model.clone().unwrap_or_else(|| UNTOLD_MODEL.to_owned()),
            input_tokens: tokens(usage.input_tokens),
            output_tokens: tokens(usage.output_tokens),
            cache_read_tokens: tokens(usage.cache_read_tokens),
            cache_write_tokens: tokens(usage.cache_write_tokens),
            reasoning_tokens: tokens(usage.reasoning_tokens),
            cost: usage.cost_usd.value(),
            duration: tokens(usage.api_ms),
            ..Default::default()
        },
        calls: Some(tokens(usage.model_calls).unwrap_or(0)),
        computed: None,
    })
}

/// Parts of a turn that the agent has recorded itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentRecord {
    pub(crate) complained: bool,
    pub(crate) aborted: bool,
}
