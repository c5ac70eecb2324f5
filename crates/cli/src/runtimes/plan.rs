//! A session with an agent that is about to be opened: which agent, with what, and where it was left. The same for one
//! prompt of `hangar run` and for a session in the terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hangar_runtimes::host::Host;
use hangar_runtimes::outcome::ErrorKind;
use hangar_runtimes::runtime::{AgentOrder, AgentSession, Runtime};
use hangar_store::{SessionName, Store};

use super::AgentRuntimes;
use super::args::RunWithArgs;
use super::choice::{ResumedAgent, RunChoice};
use super::record::{SessionPast, SessionRecorder};
use super::refused::NamedError;
use super::rehearsal::{self, Rehearsal};
use crate::compose::working_dir;
use crate::selection::SessionSelection;
use crate::settings::Settings;

pub(crate) struct SessionPlan {
    pub(crate) selection: SessionSelection,
    pub(crate) choice: RunChoice,
    pub(crate) runtime: Arc<dyn Runtime>,
    past: Option<SessionPast>,
}

impl SessionPlan {
    pub(crate) fn make(
        runtimes: &AgentRuntimes,
        store: &Store,
        args: &RunWithArgs,
        selection: SessionSelection,
    ) -> Result<Self> {
        let past = match &selection {
            SessionSelection::New { .. } => None,
            SessionSelection::Resume(id) => {
                Some(SessionPast::read(store, id, |name| runtimes.find(name).is_ok())?)
            }
        };
        let before = past.as_ref().map(|past| {
            // An agent that keeps the log of the session knows them from it.
            let forgets = runtimes.find(&past.runtime).is_ok_and(|agent| !agent.card().capabilities.own_log);
            ResumedAgent {
                runtime: &past.runtime,
                agent: past.agent.as_deref(),
                host: past.host.as_deref(),
                model: past.model.as_deref().filter(|_| forgets),
                effort: past.effort.as_deref().filter(|_| forgets),
            }
        });
        let choice = RunChoice::make(args, &runtimes.config, before)?;
        let runtime = runtimes
            .find(choice.name())
            .map_err(|error| NamedError::because(ErrorKind::AgentNotFound, &error))?;
        Ok(Self { selection, runtime: Arc::clone(runtime), choice, past })
    }

    /// Whether the agent writes the log of its sessions itself.
    pub(crate) fn own_log(&self) -> bool {
        self.runtime.card().capabilities.own_log
    }

    /// Takes the log of a session that goes on, before its agent is started. One that begins has none yet.
    pub(crate) fn take_up(&self, store: &Store) -> Result<Option<SessionRecorder>> {
        match &self.selection {
            SessionSelection::Resume(id) if !self.own_log() => Ok(Some(SessionRecorder::open(store, id)?)),
            SessionSelection::Resume(_) | SessionSelection::New { .. } => Ok(None),
        }
    }

    /// Begins the log of a session, which is called by its first prompt unless it has a name.
    pub(crate) fn begin_record(
        &self,
        runtimes: &AgentRuntimes,
        store: &Store,
        workspace: &Path,
        name: Option<&str>,
        prompt: &str,
    ) -> Result<SessionRecorder> {
        let clean = |text: &str| runtimes.redactor.text(text.to_owned());
        let given = name.map(|name| SessionName::Given(clean(name)));
        let name = given.or_else(|| SessionName::from_prompt(&clean(prompt)));
        SessionRecorder::create(store, self.selection.id(), workspace, name, self.runtime.card().base())
    }

    /// Order for the session. `record` is its log, if it goes on and we keep that.
    pub(crate) fn order(
        &self,
        runtimes: &AgentRuntimes,
        store: &Store,
        args: &RunWithArgs,
        record: Option<&SessionRecorder>,
    ) -> Result<AgentOrder> {
        let id = self.selection.id();
        let host = self.choice.host(args, &runtimes.config);
        let card = self.runtime.card();
        let takes_files = card.capabilities.attachments && host == Host::Local;
        if !takes_files && !args.input.attachment.is_empty() {
            let place = if host == Host::Local { "" } else { " on another machine" };
            bail!("{}{place} takes no --attachment; name the files in the prompt instead", card.label);
        }
        let stored = self.past.as_ref().and_then(|past| past.workspace.clone());
        let workspace = match (&host, &args.input.directory, stored) {
            // Only the other machine knows its directories.
            (Host::Ssh(_), Some(directory), _) => directory.clone(),
            (_, None, Some(stored)) => stored,
            (_, directory, _) => working_dir(directory.as_deref())
                .map_err(|error| NamedError::because(ErrorKind::InvalidWorkspace, &error))?,
        };
        let below = |paths: &[PathBuf]| paths.iter().map(|path| workspace.join(path)).collect::<Vec<_>>();
        let (add_dirs, attachments) = (below(&args.tools.add_dir), below(&args.input.attachment));
        let mut order = self.choice.order(&runtimes.config, id.to_string(), workspace, host)?;
        let system = match &args.input.system_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                Some(text.with_context(|| format!("cannot read the instructions in {}", file.display()))?)
            }
            None => args.input.system.clone(),
        };
        order.system = system.or(order.system);
        if let SessionSelection::New { name, .. } = &self.selection {
            order.name.clone_from(name);
        }
        if let Some(past) = &self.past {
            let known = past.agent_session.clone();
            order.resume = Some(record.map(|record| record.resume(known)).unwrap_or_default());
        }
        order.add_dirs = add_dirs;
        order.attachments = attachments;
        order.extra.extend(args.extra.iter().cloned());
        order.secret_variables.clone_from(&args.tools.secret_env_vars);
        order.scratch = Some(store.session_dir(id));
        Ok(order)
    }

    pub(crate) async fn open(&self, order: AgentOrder) -> Result<AgentSession> {
        Ok(self.runtime.open(order).await.map_err(NamedError::from)?)
    }
}

/// Starts what `--rehearse` asks for. It has to live as long as the sessions.
pub(crate) async fn rehearsal(settings: &Settings, args: &RunWithArgs) -> Result<Option<Rehearsal>> {
    let Some(url) = &args.agent.rehearse else { return Ok(None) };
    let home = rehearsal::home_of(&settings.home);
    let rehearsal = match url.as_str() {
        "" => Rehearsal::start(&home).await?,
        url => Rehearsal::with(url, &home)?,
    };
    Ok(Some(rehearsal))
}
