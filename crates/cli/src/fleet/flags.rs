//! Flags of `hangar run` as settings of an order, and back.

use anyhow::{Result, bail};
use clap::ValueEnum as _;
use hangar_fleet::order::SessionSettings;

use crate::args::EffortArg;
use crate::redact::Redactor;
use crate::runtimes::args::{
    AgentSwitchArgs, RunAgentArgs, RunLimitArgs, RunPromptArgs, RunToolArgs, RunWithArgs,
};

/// Settings of an order. Flags that name files or machines of this place are refused.
pub(super) fn settings(args: &RunWithArgs, redactor: &Redactor) -> Result<SessionSettings> {
    let here = [
        ("--ssh", args.agent.ssh.is_some()),
        ("--rehearse", args.agent.rehearse.is_some()),
        ("--explain", args.agent.explain),
        ("--attachment", !args.input.attachment.is_empty()),
        ("--mcp-config", args.tools.mcp_config.is_some()),
        ("--add-dir", !args.tools.add_dir.is_empty()),
        ("--secret-env-vars", !args.tools.secret_env_vars.is_empty()),
        ("--continue", args.selection.continue_last),
    ];
    if let Some((flag, _)) = here.iter().find(|(_, given)| *given) {
        bail!("{flag} is about this machine and cannot be used with --fleet");
    }
    let system = match &args.input.system_file {
        Some(file) => Some(std::fs::read_to_string(file).map_err(|error| {
            anyhow::anyhow!("cannot read the instructions in {}: {error}", file.display())
        })?),
        None => args.input.system.clone(),
    };
    Ok(SessionSettings {
        runtime: args.agent.runtime.clone(),
        agent: args.switches.agent.clone(),
        persona: args.switches.persona.clone(),
        model: args.agent.model.clone(),
        effort: args.agent.effort.map(|effort| effort.as_str().to_owned()),
        system: system.map(|system| redactor.text(system)),
        name: args.selection.name.clone().map(|name| redactor.text(name)),
        allow_tool: args.tools.allow_tool.clone(),
        allow_all_tools: args.tools.allow_all_tools,
        deny_tool: args.tools.deny_tool.clone(),
        available_tools: args.tools.available_tools.clone(),
        excluded_tools: args.tools.excluded_tools.clone(),
        bare: args.switches.bare,
        no_agents_md: args.switches.no_agents_md,
        no_builtin_mcp: args.switches.no_builtin_mcp,
        turn_timeout: args.limits.turn_timeout,
        stall_timeout: args.limits.stall_timeout,
        max_steps: args.limits.max_steps,
        budget: args.limits.budget,
        asks: false,
        run: None,
        job_tools: false,
        extra: args.extra.clone(),
    })
}

/// The flags that an order asks for.
pub(super) fn args(settings: &SessionSettings) -> RunWithArgs {
    RunWithArgs {
        extra: settings.extra.clone(),
        agent: RunAgentArgs {
            runtime: settings.runtime.clone(),
            model: settings.model.clone(),
            effort: settings.effort.as_deref().and_then(|level| EffortArg::from_str(level, true).ok()),
            ..RunAgentArgs::default()
        },
        switches: AgentSwitchArgs {
            agent: settings.agent.clone(),
            persona: settings.persona.clone(),
            bare: settings.bare,
            no_agents_md: settings.no_agents_md,
            no_builtin_mcp: settings.no_builtin_mcp,
            ..AgentSwitchArgs::default()
        },
        input: RunPromptArgs { system: settings.system.clone(), ..RunPromptArgs::default() },
        tools: RunToolArgs {
            allow_tool: settings.allow_tool.clone(),
            allow_all_tools: settings.allow_all_tools,
            deny_tool: settings.deny_tool.clone(),
            available_tools: settings.available_tools.clone(),
            excluded_tools: settings.excluded_tools.clone(),
            ..RunToolArgs::default()
        },
        limits: RunLimitArgs {
            turn_timeout: settings.turn_timeout,
            stall_timeout: settings.stall_timeout,
            max_steps: settings.max_steps,
            budget: settings.budget,
            ..RunLimitArgs::default()
        },
        ..RunWithArgs::default()
    }
}
