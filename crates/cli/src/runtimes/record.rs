//! Logs of other agents' sessions in our store, so that they are listed, shown and resumed like our own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hangar_agent::log::SessionLog;
use hangar_agent::session::iso;
use hangar_protocol::data::{CodeChanges, ModelMetric, RequestMetric, SessionShutdown, UsageMetric};
use hangar_protocol::{Body, Event, EventId, EventKind, LogPosition, Totals};
use hangar_runtimes::runtime::Resume;
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{OpenSession, SessionId, SessionMeta, SessionName, Store};

use super::choice::NATIVE;
use crate::workspace::git::Repository;
use crate::workspace::working_directory;

/// Model name in the record of an agent that does not report its model: usage is recorded all the same.
const UNTOLD_MODEL: &str = "unknown";

/// Agent and settings of a session, from its log.
#[derive(Debug)]
pub(crate) struct SessionPast {
    pub(crate) runtime: String,
    /// Named agent that it was opened with.
    pub(crate) agent: Option<String>,
    /// Host by ssh that it was opened on.
    pub(crate) host: Option<String>,
    pub(crate) agent_session: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    /// Last requested model.
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    totals: Totals,
}

impl SessionPast {
    pub(crate) fn read(store: &Store, id: &SessionId, knows: impl Fn(&str) -> bool) -> Result<Self> {
        let mut past = SessionPast {
            runtime: NATIVE.to_owned(),
            agent: None,
            host: None,
            agent_session: None,
            workspace: None,
            model: None,
            effort: None,
            totals: Totals::default(),
        };
        let wanted = |kind: EventKind| {
            Totals::wants(kind)
                || matches!(
                    kind,
                    EventKind::SessionStart
                        | EventKind::SessionResume
                        | EventKind::ContextChanged
                        | EventKind::Handoff
                        | EventKind::AgentAssigned
                )
        };
        for event in store.read_kinds(id, wanted)? {
            let event = event?;
            past.totals.apply(&event);
            match event.body() {
                Body::SessionStart(start) => {
                    past.workspace = start.context.as_ref().map(|context| PathBuf::from(&context.cwd));
                    past.asked_for(start.selected_model.as_ref(), start.reasoning_effort.as_ref());
                    // Our own agent continues sessions whose log another program wrote.
                    if knows(&start.producer) {
                        past.runtime.clone_from(&start.producer);
                    }
                }
                Body::SessionResume(resume) => {
                    past.asked_for(resume.selected_model.as_ref(), resume.reasoning_effort.as_ref());
                }
                Body::AgentAssigned(assigned) => {
                    past.agent = Some(assigned.agent.clone());
                    past.host.clone_from(&assigned.host);
                }
                Body::ContextChanged(changed) => past.workspace = Some(PathBuf::from(&changed.directory.cwd)),
                Body::Handoff(handoff) => {
                    past.agent_session.clone_from(&handoff.remote_session_id);
                    if let Some(runtime) = &handoff.context {
                        past.runtime.clone_from(runtime);
                    }
                }
                _ => {}
            }
        }
        Ok(past)
    }

    /// Usage of the session before it was resumed. The usage of a killed process is unknown, unless it was recorded
    /// call by call.
    fn used(&self) -> AgentUsage {
        match self.totals.models.is_empty() || !self.totals.covers_all() {
            true => AgentUsage::default(),
            false => AgentUsage::from(&self.totals),
        }
    }

    fn asked_for(&mut self, model: Option<&String>, effort: Option<&String>) {
        self.model = model.cloned().or(self.model.take());
        self.effort = effort.cloned().or(self.effort.take());
    }
}

/// The log of one session, while its agent works.
pub(crate) struct SessionRecorder {
    log: OpenSession,
    started: jiff::Timestamp,
    /// Record of the resumed session; absent for a new one.
    past: Option<SessionPast>,
    /// Totals of the whole session, including the time before it was resumed.
    totals: Totals,
}

impl SessionRecorder {
    pub(crate) fn create(
        store: &Store,
        id: &SessionId,
        workspace: &Path,
        name: Option<SessionName>,
        runtime: &str,
    ) -> Result<Self> {
        let context = working_directory(workspace, Repository::find(workspace).as_ref());
        let started = jiff::Timestamp::now();
        let mut meta = SessionMeta::new(context, started);
        meta.name = name;
        meta.client_name = Some(runtime.to_owned());
        Ok(Self { log: store.create(id, meta)?, started, past: None, totals: Totals::default() })
    }

    pub(crate) fn open(store: &Store, id: &SessionId) -> Result<Self> {
        let log = store.open(id)?;
        // The caller knows the agent.
        let past = SessionPast::read(store, id, |_| false)?;
        let totals = past.totals.clone();
        Ok(Self { log, started: jiff::Timestamp::now(), past: Some(past), totals })
    }

    pub(crate) fn resume(&self, agent_session: Option<String>) -> Resume {
        Resume {
            agent_session,
            last_event: self.log.last_event_id().cloned(),
            events: self.log.end().0,
            model: self.past.as_ref().and_then(|past| past.model.clone()),
            effort: self.past.as_ref().and_then(|past| past.effort.clone()),
            used: self.past.as_ref().map(SessionPast::used).unwrap_or_default(),
        }
    }

    /// Appends an event and returns its position in the log. Ephemeral events are not written.
    pub(crate) fn append(&mut self, event: &Event) -> Result<Option<LogPosition>> {
        self.totals.apply(event);
        let end = self.log.end();
        self.log.append(end, std::slice::from_ref(event))?;
        Ok(self.log.appended().last().copied())
    }

    /// Gives a session that has no name one from its first prompt.
    pub(crate) fn name_by(&mut self, prompt: &str) -> Result<()> {
        match SessionName::from_prompt(prompt) {
            Some(name) => Ok(self.log.rename(name)?),
            None => Ok(()),
        }
    }

    pub(crate) fn rename(&mut self, name: String) -> Result<()> {
        Ok(self.log.rename(SessionName::Given(name))?)
    }

    /// Code changes over all runs of the session, including those of this one.
    pub(crate) fn changes(&self, now: CodeChanges) -> CodeChanges {
        let mut changes = self.totals.changes.clone();
        changes.add(&now);
        changes
    }

    /// Writes the closing event and returns it. `usage` and `changes` are of all runs of the session.
    pub(crate) fn close(
        &mut self,
        model: Option<String>,
        usage: &AgentUsage,
        changes: CodeChanges,
        error: Option<String>,
    ) -> Result<Event> {
        let shutdown = SessionShutdown {
            shutdown_type: if error.is_some() { "error" } else { "routine" }.to_owned(),
            error_reason: error,
            total_api_duration_ms: usage.api_ms.count().unwrap_or(0),
            session_start_time: u64::try_from(self.started.as_millisecond()).unwrap_or(0),
            code_changes: changes,
            model_metrics: metrics(model.as_deref(), usage),
            current_model: model,
        };
        let id = EventId(uuid::Uuid::new_v4().to_string());
        let parent = self.log.last_event_id().cloned();
        let mut event = Event::new(id, iso(jiff::Timestamp::now()), parent, None, shutdown.into());
        self.append(&event)?.into_iter().for_each(|position| event.set_position(position));
        self.log.sync()?;
        Ok(event)
    }
}

/// Usage as it is recorded: under the model that was used. Unreported values are left out; a zero would be a claim.
pub(crate) fn metrics(model: Option<&str>, usage: &AgentUsage) -> BTreeMap<String, ModelMetric> {
    let metric = ModelMetric {
        requests: RequestMetric { count: usage.model_calls.count(), cost: usage.cost_usd.value() },
        usage: UsageMetric {
            input_tokens: usage.input_tokens.count().unwrap_or(0),
            output_tokens: usage.output_tokens.count().unwrap_or(0),
            cache_read_tokens: usage.cache_read_tokens.count().unwrap_or(0),
            cache_write_tokens: usage.cache_write_tokens.count().unwrap_or(0),
            reasoning_tokens: usage.reasoning_tokens.count(),
        },
    };
    let told = usage.input_tokens.count().is_some() || usage.output_tokens.count().is_some();
    told.then(|| (model.unwrap_or(UNTOLD_MODEL).to_owned(), metric)).into_iter().collect()
}

/// Name of the program that began the log of a session.
pub(crate) fn producer(store: &Store, id: &SessionId) -> Option<String> {
    let mut started = store.read_kinds(id, |kind| kind == EventKind::SessionStart).ok()?;
    match started.next()?.ok()?.body() {
        Body::SessionStart(start) => Some(start.producer.clone()),
        _ => None,
    }
}
