//! The sandboxes of a session's commands and MCP servers.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use hangar_agent::permissions;
use hangar_mcp::Sandboxes;
use hangar_sandbox::{Network, Sandbox, SandboxConfig};
use hangar_server::{ProgramSandbox, SandboxedProgram};
use hangar_tools::shell;

use super::SessionPaths;
use crate::sandbox::{self, Ready};
use crate::settings::Settings;

/// Sandboxes that work on this machine.
pub(super) struct SessionSandboxes {
    /// Sandbox of all commands, if it is on.
    commands: Option<Ready>,
    /// Limits of commands that nobody approved; `None` where this kernel cannot confine them.
    pub(super) limited: Option<shell::Confinement>,
    pub(super) servers: Sandboxes,
}

impl SessionSandboxes {
    /// Creates the sandboxes and tries them, so that a missing one is reported now and not at the first command. No file
    /// is created.
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

    /// Makes sandboxes for programs that join the session. The rules are those for MCP servers.
    pub(super) fn of_programs(
        settings: &Settings,
        config: &SandboxConfig,
        paths: &SessionPaths,
    ) -> ProgramSandbox {
        let (settings, config, paths) = (settings.clone(), config.clone(), paths.clone());
        Arc::new(move |program, needed| {
            let all = config.confines_mcp_servers().then(|| config.clone());
            let wanted = match program {
                SandboxedProgram::OfProject => config.for_project_servers().or(all),
                SandboxedProgram::OfUser => all,
            };
            let Some(wanted) = wanted else { return Ok(None) };
            let ready = sandbox::ready(&settings, &wanted, &paths).map_err(|error| format!("{error:#}"))?;
            let hidden = |path: &&PathBuf| ready.policy.denied.iter().any(|denied| path.starts_with(denied));
            match needed.iter().find(hidden) {
                Some(path) => Err(format!(
                    "the sandbox hides {}; name the folder in `readonlyPaths` of the sandbox, or move the extension",
                    path.display()
                )),
                None => Ok(Some(ready.sandbox)),
            }
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

    /// The sandbox as permission rules see it.
    pub(super) fn rules(&self, paths: &SessionPaths) -> Option<permissions::SandboxBounds> {
        let policy = &self.commands.as_ref()?.policy;
        // Commands must not write to the session's directory, but the session itself may.
        let writable = policy.writable.iter().cloned().chain(paths.own_dir());
        Some(permissions::SandboxBounds { writable: writable.collect(), denied: policy.denied.clone() })
    }
}
