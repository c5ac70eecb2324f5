//! Command-line flags as settings of a session and of the process.

use anyhow::{Result, anyhow};
use hangar_agent::agents::config::Reporting;
use hangar_agent::permissions::{Policy, Rule};
use hangar_protocol::data::Mode;
use hangar_spec::{
    AgentOptions, ConversationOptions, CustomizationOptions, InstructionOptions, ModelOptions, SessionSpec,
    ToolOptions, WorkspaceOptions,
};

use crate::args::{ModeArg, RunArgs, Switch};
use crate::budget;
use crate::compose::{Conduct, Extensions, HostSettings, ModelSource, Permissions};
use crate::mcp::GitHubServer;
use crate::sandbox;
use crate::settings::Settings;
use crate::workspace::trust::Trust;

/// Settings of the session.
pub(crate) fn spec(args: &RunArgs) -> SessionSpec {
    SessionSpec {
        model: ModelOptions {
            name: args.models.model.clone(),
            effort: args.models.reasoning_effort.as_deref().map(str::to_ascii_lowercase),
            ..ModelOptions::default()
        },
        tools: ToolOptions {
            available: args.permissions.available_tools.as_deref().map(names),
            excluded: Some(names(&args.permissions.excluded_tools)),
            tracks_files: Some(true),
            ..ToolOptions::default()
        },
        workspace: WorkspaceOptions {
            directory: args.input.directory.clone(),
            additional: Some(args.permissions.add_dir.clone()),
            ..WorkspaceOptions::default()
        },
        instructions: InstructionOptions {
            skip: Some(args.input.no_custom_instructions),
            ..InstructionOptions::default()
        },
        agents: AgentOptions { selected: args.agents.agent.clone(), ..AgentOptions::default() },
        customization: CustomizationOptions { discovery: Some(true), ..CustomizationOptions::default() },
        conversation: ConversationOptions {
            streaming: Some(args.output.stream == Switch::On),
            ..ConversationOptions::default()
        },
        ..SessionSpec::default()
    }
}

/// Names in lists that are separated by commas.
fn names(values: &[String]) -> Vec<String> {
    values.iter().flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect()
}

/// Settings of the process. Invalid flags are refused.
pub(crate) fn host(settings: &Settings, args: &RunArgs) -> Result<HostSettings> {
    Ok(HostSettings {
        permissions: Permissions {
            policy: policy(args, settings)?,
            temp_dir: !args.permissions.disallow_temp_dir,
            sandbox: sandbox::wanted(settings, args)?,
            requires_sandbox: args.confinement.sandbox,
            secrets: args.permissions.secret_env_vars.clone(),
            hidden: Vec::new(),
        },
        extensions: extensions(args),
        conduct: Conduct {
            mode: Some(mode(args)),
            autopilot_cap: args.conduct.max_autopilot_continues.0,
            may_ask: !args.conduct.no_ask_user,
            // Only a reader of all events sees the count, and the tokenizer is not free.
            metered: args.output.all_events,
            // No client shows the report of an agent, so the model gets it with the notification.
            reporting: Reporting::Delivered,
            names_client: false,
            budget: budget::load(settings, &args.budget)?,
        },
        models: ModelSource {
            record: args.models.record.clone(),
            replay: args.models.replay.clone(),
            is_fixed: settings.var("COPILOT_MODEL").is_some(),
            checks_list: true,
            ..ModelSource::default()
        },
        features: settings.features()?,
        reads_instructions: !args.input.no_custom_instructions,
    })
}

/// Plugins and MCP servers of flags.
pub(crate) fn extensions(args: &RunArgs) -> Extensions {
    let flags = &args.extensions;
    let trust = if flags.trust_folder { Trust::Given } else { Trust::AsDecided };
    let github = GitHubServer {
        enable_all_tools: flags.enable_all_github_mcp_tools,
        additional_toolsets: flags.add_github_mcp_toolset.clone(),
        additional_tools: flags.add_github_mcp_tool.clone(),
        enable_insiders_mode: false,
    };
    let wants_github = github.enable_all_tools
        || !github.additional_toolsets.is_empty()
        || !github.additional_tools.is_empty();
    Extensions {
        trust,
        server_trust: trust,
        plugin_dirs: flags.plugin_dir.clone(),
        servers: flags.additional_mcp_config.clone(),
        disabled_servers: flags.disable_mcp_server.clone(),
        enabled_servers: flags.enable_mcp_server.clone(),
        github: Some(github).filter(|_| wants_github && !flags.disable_builtin_mcps),
    }
}

fn mode(args: &RunArgs) -> Mode {
    match args.conduct.mode {
        _ if args.conduct.plan => Mode::Plan,
        _ if args.conduct.autopilot => Mode::Autopilot,
        Some(ModeArg::Plan) => Mode::Plan,
        Some(ModeArg::Autopilot) => Mode::Autopilot,
        Some(ModeArg::Interactive) | None => Mode::Interactive,
    }
}

pub(crate) fn policy(args: &RunArgs, settings: &Settings) -> Result<Policy> {
    let rules = |flag: &str, values: &[String]| -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        for value in values {
            let parsed = Rule::parse_list(value).map_err(|error| anyhow!("invalid {flag} value: {error}"))?;
            rules.extend(parsed);
        }
        Ok(rules)
    };
    let urls = |flag: &str, values: &[String]| -> Result<Vec<Rule>> {
        values
            .iter()
            .flat_map(|value| value.split(','))
            .map(|url| {
                Rule::parse(&format!("url({url})")).map_err(|_| anyhow!("invalid {flag} value: {url}"))
            })
            .collect()
    };
    let mut allow = rules("--allow-tool", &args.permissions.allow_tool)?;
    allow.extend(urls("--allow-url", &args.permissions.allow_url)?);
    let mut deny = rules("--deny-tool", &args.permissions.deny_tool)?;
    deny.extend(urls("--deny-url", &args.permissions.deny_url)?);
    Ok(Policy {
        allow,
        deny,
        allow_all_tools: args.permissions.allow_all_tools
            || args.permissions.allow_all
            || settings.flag("COPILOT_ALLOW_ALL"),
        allow_all_paths: args.permissions.allow_all_paths || args.permissions.allow_all,
        allow_all_urls: args.permissions.allow_all_urls || args.permissions.allow_all,
        ..Policy::default()
    })
}
