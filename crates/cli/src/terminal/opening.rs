//! Opening a session for the view: which one is meant, what it is asked for with, and what came before.

use std::path::{Path, PathBuf};

use anyhow::Result;
use hangar_protocol::Event;
use hangar_store::{SessionId, Store};
use hangar_terminal::input::SessionFacts;
use serde_json::{Value, json};

use super::agents::{Agents, OWN_CLIENT};
use super::hosts::HostKind;
use super::owner::Owner;
use crate::args::RunArgs;
use crate::runtimes::choice;
use crate::selection::{self, SessionSelection};
use crate::settings::Settings;

/// Number of past events that the view gets.
pub(super) const PAST_EVENTS: usize = 400;
/// Events that the pager shows.
pub(super) const PAGER_EVENTS: usize = 20_000;

/// The session that the view opens.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) selection: SessionSelection,
    pub(super) directory: PathBuf,
    /// Process that has the session, once that is known.
    pub(super) owner: Option<Owner>,
    /// Name of its agent, if it is not our own.
    pub(super) agent: Option<String>,
    /// Whether the flags were typed for this session.
    pub(super) typed: bool,
    /// Whether it is the session that is shown, which another process has by now.
    pub(super) follows: bool,
}

/// The session that the flags ask for.
pub(super) enum Start {
    Session(Box<Wanted>),
    /// `--resume` without a name: a person picks one.
    Pick,
}

impl Start {
    pub(super) fn of(store: &Store, agents: &Agents, args: &RunArgs, directory: PathBuf) -> Result<Self> {
        if args.selection.resume.as_deref() == Some("") && args.selection.session_id.is_none() {
            return Ok(Self::Pick);
        }
        let selection = selection::select(store, args)?;
        let agent = match &selection {
            SessionSelection::New { .. } => None,
            SessionSelection::Resume(id) => agents.of_session(store, id)?,
        };
        Ok(Self::Session(Box::new(Wanted {
            selection,
            directory,
            owner: None,
            agent,
            typed: true,
            follows: false,
        })))
    }

    /// Name of the agent of the session, if it is known and not our own.
    pub(super) fn agent(&self) -> Option<&str> {
        match self {
            Self::Session(wanted) => wanted.agent.as_deref(),
            Self::Pick => None,
        }
    }
}

impl Wanted {
    /// A new session with an agent.
    pub(super) fn new_session(directory: PathBuf, agent: Option<String>) -> Result<Self> {
        let id: SessionId = uuid::Uuid::new_v4().to_string().parse()?;
        let selection = SessionSelection::New { id, name: None };
        Ok(Self { selection, directory, owner: None, agent, typed: false, follows: false })
    }

    pub(super) fn resumed(store: &Store, agents: &Agents, text: &str, directory: PathBuf) -> Result<Self> {
        let id = selection::resolve(store, text)?;
        let agent = agents.of_session(store, &id)?;
        Ok(Self {
            selection: SessionSelection::Resume(id),
            directory,
            owner: None,
            agent,
            typed: false,
            follows: false,
        })
    }

    /// Events of the session so far: the last ones, and whether there are more.
    pub(super) fn past(&self, store: &Store) -> Result<(Vec<Event>, u64)> {
        match &self.selection {
            SessionSelection::Resume(id) => past(store, id),
            SessionSelection::New { .. } => Ok((Vec::new(), 0)),
        }
    }

    /// Request that opens the session.
    pub(super) fn request(&self) -> (&'static str, Value) {
        let mut params = json!({
            "sessionId": self.selection.id().as_str(),
            "clientName": OWN_CLIENT,
            "requestPermission": true,
            "requestUserInput": true,
            "requestElicitation": true,
            "requestExitPlanMode": true,
            "includeSubAgentStreamingEvents": true,
            "streaming": true,
        });
        if let Some(agent) = self.agent_here() {
            params["runtime"] = json!(agent);
            params["typed"] = json!(self.typed);
        }
        match &self.selection {
            SessionSelection::New { .. } => {
                params["workingDirectory"] = json!(self.directory);
                ("session.create", params)
            }
            SessionSelection::Resume(_) => {
                // A session that is alive is joined as it is.
                if self.owner.as_ref().is_some_and(|owner| *owner != Owner::Nobody) {
                    params["continuePendingWork"] = json!(true);
                    params["disableResume"] = json!(true);
                }
                ("session.resume", params)
            }
        }
    }

    /// Whether the session runs in another process.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.owner.as_ref().is_some_and(Owner::is_elsewhere)
    }

    /// Server of this process that has the session, or would have it.
    pub(super) fn host_kind(&self) -> HostKind {
        if self.agent.is_some() { HostKind::Agents } else { HostKind::Own }
    }

    /// Name of the other agent that this process runs for the session.
    fn agent_here(&self) -> Option<&str> {
        self.agent.as_deref().filter(|_| !self.is_elsewhere())
    }

    /// Facts of the opened session, from the answer to the request.
    pub(super) fn facts(&self, settings: &Settings, store: &Store, answer: &Value) -> SessionFacts {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let context = store.look(self.selection.id()).and_then(|session| session.meta.context);
        let known = answer["workspacePath"].as_str().filter(|_| self.agent_here().is_some());
        let stored = context.as_ref().map(|context| context.cwd.as_str());
        let directory = known.or(stored).map_or_else(|| self.directory.clone(), PathBuf::from);
        SessionFacts {
            id: self.selection.id().to_string(),
            directory: shown(&directory, settings),
            branch: context.and_then(|context| context.branch),
            model: text(&answer["modelState"]["modelId"]),
            effort: text(&answer["modelState"]["reasoningEffort"]),
            mode: text(&answer["mode"]).unwrap_or_default(),
            agent: text(&answer["agent"]).filter(|agent| agent != choice::NATIVE),
            remote: self.is_elsewhere(),
        }
    }
}

/// A directory as people write it: with `~` for their home.
pub(super) fn shown(directory: &Path, settings: &Settings) -> String {
    let home = settings.var("HOME").map(Path::new);
    match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.display().to_string(),
    }
}

/// The last events of a log, and whether there are more.
pub(super) fn past(store: &Store, id: &SessionId) -> Result<(Vec<Event>, u64)> {
    store.recover(id);
    let events = store.read_back(id, PAST_EVENTS)?;
    let older = u64::from(events.len() == PAST_EVENTS);
    Ok((events, older))
}
