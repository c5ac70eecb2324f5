//! What was typed, as the plan of a session.

use anyhow::{Result, anyhow, bail};
use hangar_agent::agents::config::Reporting;
use hangar_agent::driver::EventSink;
use hangar_agent::permissions::{Policy, Rule};
use hangar_agent::session::Compaction;
use hangar_agent::tool::ToolFilter;
use hangar_protocol::data::Mode;
use hangar_store::Store;

use crate::agents::{self, AgentPlan};
use crate::args::{ModeArg, RunArgs, Switch};
use crate::compose::Plan;
use crate::custom::Customs;
use crate::mcp::{GitHubServer, Servers};
use crate::providers::Chosen;
use crate::sandbox;
use crate::selection;
use crate::settings::Settings;
use crate::workspace::trust::Trust;

/// The plan of one prompt's run.
pub(crate) fn of_run<'a>(
    settings: &Settings,
    args: &RunArgs,
    prompt: &str,
    choose: &'a dyn Fn(Option<&str>) -> Result<Chosen>,
    sink: Box<dyn EventSink>,
) -> Result<Plan<'a>> {
    // What was typed is checked before anything is looked up or made.
    let policy = policy(args, settings)?;
    let features = settings.features()?;
    if let Some(feature) = features.absent_mode(mode(args)) {
        bail!("the feature `{feature}` is off; HANGAR_FEATURES switches it");
    }
    Ok(Plan {
        selection: selection::select(&Store::new(&settings.home), args)?,
        directory: args.directory.clone(),
        choose,
        effort: args.reasoning_effort.map(|effort| effort.as_str().to_owned()),
        mode: Some(mode(args)),
        policy,
        add_dirs: args.add_dir.clone(),
        temp_dir: !args.disallow_temp_dir,
        filter: filter(args),
        own_tools: filter(args),
        headers: Vec::new(),
        custom_instructions: !args.no_custom_instructions,
        instruction_dirs: Vec::new(),
        further_instructions: None,
        on_demand_instructions: true,
        shows_git: true,
        secrets: args.secret_env_vars.clone(),
        hidden: Vec::new(),
        features,
        sandbox: sandbox::wanted(settings, args)?,
        // Only a reader of all events sees the count, and the tokenizer is not free.
        metered: args.all_events,
        streaming: args.stream == Switch::On,
        compaction: Some(Compaction::default()),
        tracks_files: true,
        vision: true,
        autopilot_cap: args.max_autopilot_continues,
        may_ask: !args.no_ask_user,
        prompt: Some(prompt.to_owned()),
        client_name: None,
        silent_resume: false,
        continue_pending: None,
        sink,
        hooks: None,
        agents: AgentPlan {
            custom: Vec::new(),
            excluded: Vec::new(),
            selected: args.agent.clone(),
            may_choose_model: args.model.is_none() && settings.var("COPILOT_MODEL").is_none(),
            // Nobody else reads what an agent found, so it is put before the model with the news.
            reporting: Reporting::Delivered,
            models: Some(agents::configured_models(settings)),
        },
        customs: customs(args),
        mcp: Some(servers(args)),
        client_session: None,
        large_output: None,
    })
}

/// What flags add to what is configured.
pub(crate) fn customs(args: &RunArgs) -> Customs {
    Customs {
        trust: trust(args),
        plugin_dirs: args.extensions.plugin_dir.clone(),
        skill_dirs: Vec::new(),
        project_skills: true,
        disabled_skills: Vec::new(),
        skills: true,
        hooks: true,
    }
}

fn trust(args: &RunArgs) -> Trust {
    if args.extensions.trust_folder { Trust::Given } else { Trust::AsDecided }
}

/// The MCP servers that flags name, beside those that are configured.
pub(crate) fn servers(args: &RunArgs) -> Servers {
    let flags = &args.extensions;
    let github = GitHubServer {
        enable_all_tools: flags.enable_all_github_mcp_tools,
        additional_toolsets: flags.add_github_mcp_toolset.clone(),
        additional_tools: flags.add_github_mcp_tool.clone(),
        enable_insiders_mode: false,
    };
    let wants_github = github.enable_all_tools
        || !github.additional_toolsets.is_empty()
        || !github.additional_tools.is_empty();
    Servers {
        discover: true,
        trust: trust(args),
        additional: flags.additional_mcp_config.clone(),
        client: serde_json::Map::new(),
        role: serde_json::Map::new(),
        plugin_dirs: flags.plugin_dir.clone(),
        disabled: flags.disable_mcp_server.clone(),
        enabled: flags.enable_mcp_server.clone(),
        github: Some(github).filter(|_| wants_github && !flags.disable_builtin_mcps),
        for_agents: false,
    }
}

pub(crate) fn filter(args: &RunArgs) -> ToolFilter {
    let names = |values: &[String]| -> Vec<String> {
        values.iter().flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect()
    };
    // Where both lists are given, the one that names what is available wins.
    match args.available_tools.as_deref() {
        Some(available) => ToolFilter { available: Some(names(available)), excluded: Vec::new() },
        None => ToolFilter { available: None, excluded: names(&args.excluded_tools) },
    }
}

fn mode(args: &RunArgs) -> Mode {
    match args.mode {
        _ if args.plan => Mode::Plan,
        _ if args.autopilot => Mode::Autopilot,
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
    let mut allow = rules("--allow-tool", &args.allow_tool)?;
    allow.extend(urls("--allow-url", &args.allow_url)?);
    let mut deny = rules("--deny-tool", &args.deny_tool)?;
    deny.extend(urls("--deny-url", &args.deny_url)?);
    Ok(Policy {
        allow,
        deny,
        allow_all_tools: args.allow_all_tools || args.allow_all || settings.flag("COPILOT_ALLOW_ALL"),
        allow_all_paths: args.allow_all_paths || args.allow_all,
        allow_all_urls: args.allow_all_urls || args.allow_all,
        ..Policy::default()
    })
}
