//! The agents of a session, and the one whose role it plays.

use anyhow::{Result, bail};
use hangar_agent::agents::config::{AgentConfig, AgentSettings, Models};
use hangar_agent::agents::{AgentDefinition, AgentFile, AgentOwner, AgentSource, builtin};
use hangar_agent::prompt::PromptEnvironment;
use hangar_custom::skills::Skills;
use hangar_models::facts;
use hangar_spec::AgentOptions;

use super::HostSettings;
use super::tuning::Tuning;
use crate::custom::ConfigSources;
use crate::mcp;
use crate::providers::SelectedModel;
use crate::runtimes::named;

pub(crate) struct SessionAgents {
    /// Agents of files and of the client. Later ones replace earlier ones of the same name.
    custom: Vec<AgentDefinition>,
    /// Built-in agents that are not wanted.
    excluded: Vec<String>,
    /// The agent whose role the session plays.
    pub(super) active_role: Option<AgentDefinition>,
    /// Problems in agent files.
    pub(super) warnings: Vec<String>,
}

impl SessionAgents {
    /// Agents of files, and those of the client, which take precedence.
    pub(super) fn find(
        sources: &ConfigSources<'_>,
        host: &HostSettings,
        options: &AgentOptions,
    ) -> Result<Self> {
        let (mut found, mut warnings) = sources.agents();
        let project = sources.project();
        let trusted = mcp::may_configure(sources.settings, host.extensions.server_trust, project);
        for agent in found.iter_mut().filter(|agent| !agent.mcp_servers.is_empty()) {
            let theirs = matches!(
                &agent.source,
                AgentSource::File(AgentFile { path, owner })
                    if *owner == AgentOwner::Project || path.starts_with(project)
            );
            if theirs && !trusted {
                agent.mcp_servers.clear();
                warnings.push(format!(
                    "The MCP servers of the agent `{}` are not started: the project is not trusted.",
                    agent.name
                ));
            }
        }
        // Of two agents with one name the first found takes precedence, which is the last here.
        found.reverse();
        found.extend(options.definitions());
        // A named agent of config.toml is no sub-agent, so it is there only where it is selected. Files of that name win, as in
        // Copilot CLI.
        if let Some(name) = &options.selected
            && !found.iter().any(|agent| agent.name.eq_ignore_ascii_case(name))
        {
            found.extend(named::definition(sources.settings, name)?);
        }
        let excluded = options.excluded.clone().unwrap_or_default();
        let mut agents = Self { custom: found, excluded, active_role: None, warnings };
        agents.active_role = options.selected.as_deref().map(|name| agents.by_name(name)).transpose()?;
        Ok(agents)
    }

    pub(super) fn definitions(&self) -> Vec<AgentDefinition> {
        let builtin = builtin::definitions().into_iter().filter(|agent| !self.excluded.contains(&agent.name));
        builtin.chain(self.custom.iter().cloned()).collect()
    }

    fn by_name(&self, name: &str) -> Result<AgentDefinition> {
        let definitions = self.definitions();
        let called =
            |agent: &AgentDefinition| [&agent.name, &agent.id].iter().any(|it| it.eq_ignore_ascii_case(name));
        // An agent of a plugin may be called without the plugin's name, if no other one has the rest as its own.
        let called_short = |agent: &AgentDefinition| {
            agent.name.split_once(':').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(name))
        };
        let find = |called: &dyn Fn(&AgentDefinition) -> bool| {
            definitions.iter().rev().find(|agent| agent.user_invocable && called(agent))
        };
        match find(&called).or_else(|| find(&called_short)) {
            Some(agent) => Ok(agent.clone()),
            None => {
                let names: Vec<&str> = definitions.iter().map(|agent| agent.name.as_str()).collect();
                bail!("there is no agent `{name}`; there are {}", names.join(", "))
            }
        }
    }

    /// Whether some agent has MCP servers of its own.
    pub(crate) fn have_servers(&self) -> bool {
        self.custom.iter().any(|agent| !agent.mcp_servers.is_empty())
    }

    /// The agent whose role the session plays.
    pub(crate) fn active_role(&self) -> Option<&AgentDefinition> {
        self.active_role.as_ref()
    }

    /// The model that this agent prefers, if it exists; else the session's.
    pub(super) fn preferred_model(&self, models: &dyn Models, chosen: SelectedModel) -> SelectedModel {
        let wanted = self.active_role.iter().flat_map(|agent| &agent.models);
        match wanted.into_iter().find_map(|name| models.find(name)) {
            Some(found) => SelectedModel {
                provider: found.provider,
                facts: facts::of(&found.model),
                model: found.model,
                max_prompt_tokens: found.max_prompt_tokens,
                ..chosen
            },
            None => chosen,
        }
    }

    pub(super) fn config(
        &self,
        skills: &Skills,
        tuning: &Tuning,
        small_model: Option<String>,
        host: &HostSettings,
        environment: &PromptEnvironment,
        instructions: &str,
    ) -> AgentConfig {
        let mut definitions = self.definitions();
        definitions.iter_mut().for_each(|agent| skills.brief(agent));
        AgentConfig {
            definitions,
            limits: tuning.agents,
            settings: tuning.agent_settings.clone(),
            client_settings: AgentSettings::default(),
            small_model: tuning.small_model.clone().or(small_model),
            reporting: host.conduct.reporting,
            environment: environment.clone(),
            instructions: instructions.to_owned(),
        }
    }
}
