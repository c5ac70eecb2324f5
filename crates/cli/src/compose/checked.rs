//! The first step: [`check`] validates everything that a session needs and creates nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hangar_agent::agents::config::Models;
use hangar_agent::budget::{Budget, BudgetLedger, Spending, no_price};
use hangar_agent::driver::{EventSink, Hooks};
use hangar_protocol::data::Attachment;
use hangar_spec::SessionSpec;
use hangar_store::Store;
use hangar_store::client_session::ClientSession;

use super::agents::SessionAgents;
use super::confinement::SessionSandboxes;
use super::tuning::Tuning;
use super::{HostSettings, SessionPaths, attachments, instructions, model, paths};
use crate::custom::{ConfigSources, Configured};
use crate::home::Past;
use crate::mcp::{self, ConfiguredServers, ServerSources};
use crate::providers::SelectedModel;
use crate::redact::{self, Redactor};
use crate::selection::SessionSelection;
use crate::settings::Settings;
use crate::workspace::instructions::Instructions;

/// A request for a session, new or resumed.
pub(crate) struct SessionRequest {
    pub(crate) selection: SessionSelection,
    pub(crate) spec: SessionSpec,
    pub(crate) host: HostSettings,
    /// The text that a new session may be named after.
    pub(crate) prompt: Option<String>,
    /// Files that go with the prompt.
    pub(crate) attachments: Vec<PathBuf>,
    /// Files that the caller writes when the session has ended.
    pub(crate) outputs: Vec<OutputFile>,
    pub(crate) sink: Box<dyn EventSink>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    /// The session with its client, if that keeps its files.
    pub(crate) client_session: Option<ClientSession>,
}

/// A file that a flag asks for. A path that is not absolute is below the directory that the session works in.
#[derive(Debug, Clone)]
pub(crate) struct OutputFile {
    pub(crate) flag: &'static str,
    pub(crate) path: PathBuf,
}

impl OutputFile {
    /// Refuses a file that could not be written later: the run would be over, and paid for.
    fn check(&self, cwd: &Path) -> Result<()> {
        let flag = self.flag;
        hangar_disk::check_writable(&cwd.join(&self.path))
            .with_context(|| format!("{flag}: no file can be written"))
    }
}

/// A validated request, ready to be opened.
pub(crate) struct Checked<'a> {
    pub(super) settings: &'a Settings,
    pub(super) store: Store,
    pub(super) request: SessionRequest,
    /// The state of a resumed session.
    pub(super) past: Option<Past>,
    pub(super) paths: SessionPaths,
    pub(super) tuning: Tuning,
    pub(super) attachments: Vec<Attachment>,
    pub(super) configured: Configured,
    pub(super) instructions: Option<Instructions>,
    pub(super) agents: SessionAgents,
    pub(super) servers: ConfiguredServers,
    pub(super) confinement: SessionSandboxes,
    pub(super) models: Arc<dyn Models>,
    pub(super) model: SelectedModel,
    pub(super) budget: Budget,
    /// The account of the budget.
    pub(super) ledger: BudgetLedger,
    pub(super) redactor: Redactor,
}

/// Validates a request. An error is one sentence that names the wrong setting, and nothing has been created.
pub(crate) fn check(settings: &Settings, request: SessionRequest) -> Result<Checked<'_>> {
    let SessionRequest { selection, spec, host, client_session, .. } = &request;
    let client = client_session.as_ref();
    let mode = host.conduct.mode;
    if let Some(feature) = mode.and_then(|mode| host.features.absent_mode(mode)) {
        bail!("the feature `{feature}` is off; HANGAR_FEATURES enables it");
    }
    let store = settings.store();
    let temp_dir = host.permissions.temp_dir;
    let paths = SessionPaths::find(&store, selection, client, &spec.workspace, temp_dir)?;
    let past = match selection {
        SessionSelection::New { .. } => None,
        SessionSelection::Resume(id) => Some(Past::look(&store, client, id)?),
    };
    let attachments = attachments::read(&paths.cwd, &request.attachments)?;
    request.outputs.iter().try_for_each(|output| output.check(&paths.cwd))?;
    let tuning = Tuning::read(settings)?;
    for dir in &host.extensions.plugin_dirs {
        paths::readable_dir("--plugin-dir", &paths.cwd.join(dir))?;
    }
    let sources = config_sources(settings, host, spec, &paths);
    let configured = Configured::load(&sources);
    let agents = SessionAgents::find(&sources, host, &spec.agents)?;
    let servers = configured_servers(settings, host, spec, &agents, &paths)?;
    let instructions = instructions::of_session(settings, host, &spec.instructions, &paths);
    let confinement = SessionSandboxes::check(settings, &host.permissions.sandbox(&spec.workspace), &paths)?;
    let models = model::for_agents(settings, &host.models, &spec.model);
    if past.is_none() {
        // A model that its provider does not list is refused before a session exists.
        model::check_listed(settings, &spec.model)?;
    }
    // Last, because `--record` creates its file.
    let before = past.as_ref().filter(|past| !past.state.model.is_empty()).map(|past| model::Before {
        model: past.state.model.clone(),
        provider: store.look(&paths.id).and_then(|listed| listed.meta.model_provider),
    });
    let mut model = model::choose(settings, &host.models, &spec.model, before.as_ref())?;
    if spec.model.name.is_none() && !host.models.is_fixed {
        model = agents.preferred_model(&*models, model);
    }
    let budget = budget(host, &model)?;
    model::check_effort(&model, spec.model.effort.as_deref())?;
    Ok(Checked {
        budget,
        ledger: BudgetLedger::new(budget, Spending::default()),
        redactor: redactor(settings, host, &model),
        settings,
        store,
        past,
        paths,
        tuning,
        attachments,
        configured,
        instructions,
        agents,
        servers,
        confinement,
        models,
        model,
        request,
    })
}

/// Caps of the session. A cap on cost is refused if the price of the model is unknown.
fn budget(host: &HostSettings, model: &SelectedModel) -> Result<Budget> {
    let budget = host.conduct.budget;
    if model.scripted {
        // It costs nothing.
        return Ok(Budget { max_cost: None, ..budget });
    }
    if budget.max_cost.is_some() && model.provider.facts().price.is_none() {
        bail!("{}", no_price(&model.model));
    }
    Ok(budget)
}

impl Checked<'_> {
    /// Whether the model that answers follows a script.
    pub(crate) fn is_scripted(&self) -> bool {
        self.model.scripted
    }
}

/// Places that are searched for the configuration of the session.
pub(super) fn config_sources<'a>(
    settings: &'a Settings,
    host: &'a HostSettings,
    spec: &'a SessionSpec,
    paths: &'a SessionPaths,
) -> ConfigSources<'a> {
    ConfigSources {
        settings,
        extensions: &host.extensions,
        options: &spec.customization,
        cwd: &paths.cwd,
        repository: paths.repository.as_ref(),
    }
}

/// The MCP servers of the session and of the agent whose role it plays.
pub(super) fn configured_servers(
    settings: &Settings,
    host: &HostSettings,
    spec: &SessionSpec,
    agents: &SessionAgents,
    paths: &SessionPaths,
) -> Result<ConfiguredServers> {
    let sources = ServerSources::of(&host.extensions, spec, agents.active_role());
    mcp::configured(settings, &sources, &paths.cwd)
}

/// A redactor that knows the secrets of the session.
pub(super) fn redactor(settings: &Settings, host: &HostSettings, model: &SelectedModel) -> Redactor {
    redact::of_session(settings, &host.permissions.secrets, &host.permissions.hidden, model)
}
