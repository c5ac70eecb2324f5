//! Recomposition of parts of a live session: its provider, its instructions, its MCP servers.

use std::sync::Arc;

use anyhow::Result;
use hangar_agent::budget::BudgetLedger;
use hangar_agent::driver::Hooks;
use hangar_agent::model::ModelProvider;
use hangar_mcp::{McpHost, News};
use hangar_spec::SessionSpec;
use tokio::sync::mpsc;

use super::agents::SessionAgents;
use super::checked::{config_sources, configured_servers, redactor};
use super::confinement::SessionSandboxes;
use super::spill::{SpillDir, threshold};
use super::{HostSettings, SessionPaths, instructions, model};
use crate::mcp::{self, ServerContext};
use crate::settings::Settings;
use crate::workspace::git::Repository;

/// The properties of a session that stay the same while it is live.
#[derive(Clone)]
pub(crate) struct LiveSession {
    pub(super) paths: SessionPaths,
    pub(super) spill: SpillDir,
    pub(super) hooks: Option<Arc<dyn Hooks>>,
    /// The account of the budget, which calls of MCP servers pass, too.
    pub(super) ledger: BudgetLedger,
}

/// The parts to recompose.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecomposedParts {
    pub(crate) model: bool,
    pub(crate) instructions: bool,
    pub(crate) servers: bool,
}

#[derive(Default)]
pub(crate) struct Recomposed {
    pub(crate) provider: Option<Arc<dyn ModelProvider>>,
    /// Notice to people if the model gets another effort than they asked for.
    pub(crate) effort_notice: Option<String>,
    pub(crate) instructions: Option<String>,
    /// `Some(None)` where there are no servers now.
    pub(crate) servers: Option<Option<(McpHost, mpsc::Receiver<News>)>>,
}

impl LiveSession {
    pub(crate) fn paths(&self) -> &SessionPaths {
        &self.paths
    }

    /// Recomposes parts for a specification. It has to name the model, current or new.
    pub(crate) fn recompose(
        &self,
        settings: &Settings,
        host: &HostSettings,
        spec: &SessionSpec,
        scope: RecomposedParts,
    ) -> Result<Recomposed> {
        // Another branch may be checked out by now.
        let repository = Repository::find(&self.paths.cwd);
        let paths = SessionPaths { repository, shows_git: spec.workspace.shows_git(), ..self.paths.clone() };
        let mut recomposed = Recomposed::default();
        if scope.instructions {
            let loaded = instructions::of_session(settings, host, &spec.instructions, &paths);
            recomposed.instructions = Some(instructions::render(loaded.as_ref(), &spec.instructions));
        }
        if !scope.model && !scope.servers {
            return Ok(recomposed);
        }
        if scope.model {
            model::check_switch(settings, &spec.model)?;
        }
        let chosen = model::choose(settings, &host.models, &spec.model, None)?;
        if scope.model {
            model::check_effort(&chosen, spec.model.effort.as_deref())?;
            recomposed.effort_notice = model::effort_warning(&chosen, spec.model.effort.as_deref());
        }
        let redactor = redactor(settings, host, &chosen);
        let provider = redactor.provider(chosen.provider);
        if scope.servers {
            let agents =
                SessionAgents::find(&config_sources(settings, host, spec, &paths), host, &spec.agents)?;
            let servers = configured_servers(settings, host, spec, &agents, &paths)?;
            let sandbox = host.permissions.sandbox(&spec.workspace);
            let context = ServerContext {
                session_id: paths.id.to_string(),
                cwd: &paths.cwd,
                provider: self.ledger.unattended(Arc::clone(&provider)),
                model: chosen.model,
                secrets: &host.permissions.secrets,
                spill: self.spill.spill(threshold(settings)?, spec.tools.large_output.as_ref(), &redactor),
                redactor,
                sandboxes: SessionSandboxes::check(settings, &sandbox, &paths)?.servers,
                hooks: self.hooks.clone(),
                retry_scale: settings.retry_scale()?,
            };
            let wanted = !servers.configs.is_empty() || agents.have_servers();
            recomposed.servers = Some(wanted.then(|| mcp::host(settings, servers, context)));
        }
        recomposed.provider = Some(provider).filter(|_| scope.model);
        Ok(recomposed)
    }
}
