//! What the commands and MCP servers of a session are kept from.

use anyhow::{Context, Result};
use hangar_agent::permissions;
use hangar_mcp::Sandboxes;
use hangar_sandbox::{Network, Sandbox, SandboxConfig};
use hangar_tools::shell;

use super::SessionPaths;
use crate::sandbox::{self, Ready};
use crate::settings::Settings;

/// Sandboxes that were tried.
pub(super) struct Confinement {
    /// What all commands run in, if they are to have a sandbox.
    commands: Option<Ready>,
    /// What commands with limits run in; `None` where this kernel cannot confine them.
    pub(super) limited: Option<shell::Confinement>,
    pub(super) servers: Sandboxes,
}

impl Confinement {
    /// It is better to say now than at the first command that no sandbox can be had. Nothing is made.
    pub(super) fn check(settings: &Settings, config: &SandboxConfig, paths: &SessionPaths) -> Result<Self> {
        let commands = config.enabled.then(|| sandbox::ready(settings, config, paths)).transpose()?;
        let of_commands = commands.as_ref().map(|ready| ready.sandbox.clone());
        Ok(Self {
            limited: sandbox::limited(settings, config, paths),
            servers: Sandboxes {
                all: of_commands.filter(|_| config.confines_mcp_servers()),
                of_projects: sandbox::of_project_servers(settings, config, paths)?,
            },
            commands,
        })
    }

    /// Makes the directory that confined programs write to.
    pub(super) fn make_scratch(&self, paths: &SessionPaths) -> Result<()> {
        let confined = self.commands.is_some() || self.servers.of_projects.is_some();
        if !confined || !paths.is_local {
            return Ok(());
        }
        let scratch = paths.scratch();
        hangar_disk::ensure_dir(&scratch)
            .with_context(|| format!("cannot make {}, where commands write", scratch.display()))
    }

    /// The sandbox of all commands.
    pub(super) fn sandbox(&self) -> Option<&Sandbox> {
        self.commands.as_ref().map(|ready| &ready.sandbox)
    }

    /// Whether commands have no network.
    pub(super) fn closes_network(&self) -> bool {
        self.commands.as_ref().is_some_and(|ready| ready.policy.network == Network::Closed)
    }

    /// What questions about permissions have to know of it.
    pub(super) fn rules(&self, paths: &SessionPaths) -> Option<permissions::Confinement> {
        let policy = &self.commands.as_ref()?.policy;
        // What commands must leave alone is still the session's own.
        let writable = policy.writable.iter().cloned().chain(paths.own_dir());
        Some(permissions::Confinement { writable: writable.collect(), denied: policy.denied.clone() })
    }
}
