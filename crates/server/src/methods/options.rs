//! Settings of a session that clients change after the fact.

use std::path::PathBuf;

use hangar_protocol::data::{ContextTier, ReasoningSummary, Verbosity};
use hangar_sandbox::SandboxConfig;
use serde::Deserialize;

use super::model::{Choice, Chooser, When, choose};
use super::{Call, Failure, Method, Reply};
use crate::spec::{CapabilityOverrides, ProviderSpec, SessionSpec, ToolFilterPrecedence};

pub(super) const METHODS: &[Method] =
    &[Method { name: "session.options.update", run: |call| Box::pin(update(call)) }];

/// Those that mean something here. Others are taken without a word.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    client_name: Option<String>,
    // Who answers.
    model: Option<String>,
    provider: Option<ProviderSpec>,
    reasoning_effort: Option<String>,
    reasoning_summary: Option<ReasoningSummary>,
    verbosity: Option<Verbosity>,
    context_tier: Option<ContextTier>,
    model_capabilities_overrides: Option<CapabilityOverrides>,
    // What the model has.
    available_tools: Option<Vec<String>>,
    excluded_tools: Option<Vec<String>>,
    tool_filter_precedence: Option<ToolFilterPrecedence>,
    excluded_builtin_agents: Option<Vec<String>>,
    ask_user_disabled: Option<bool>,
    enable_streaming: Option<bool>,
    // What it is told.
    skip_custom_instructions: Option<bool>,
    organization_custom_instructions: Option<String>,
    enable_on_demand_instruction_discovery: Option<bool>,
    // What the session stands on.
    working_directory: Option<PathBuf>,
    sandbox_config: Option<SandboxConfig>,
    skill_directories: Option<Vec<PathBuf>>,
    disabled_skills: Option<Vec<String>>,
    enable_skills: Option<bool>,
    enable_file_hooks: Option<bool>,
    enable_host_git_operations: Option<bool>,
    is_experimental_mode: Option<bool>,
}

impl Options {
    fn changes_model(&self) -> bool {
        self.model.is_some()
            || self.provider.is_some()
            || self.reasoning_effort.is_some()
            || self.reasoning_summary.is_some()
            || self.verbosity.is_some()
            || self.context_tier.is_some()
            || self.model_capabilities_overrides.is_some()
    }

    /// Whether the session has to be put together anew.
    fn changes_ground(&self) -> bool {
        self.working_directory.is_some()
            || self.sandbox_config.is_some()
            || self.skill_directories.is_some()
            || self.disabled_skills.is_some()
            || self.enable_skills.is_some()
            || self.enable_file_hooks.is_some()
            || self.enable_host_git_operations.is_some()
            || self.is_experimental_mode.is_some()
    }

    fn changes_instructions(&self) -> bool {
        self.skip_custom_instructions.is_some()
            || self.organization_custom_instructions.is_some()
            || self.enable_on_demand_instruction_discovery.is_some()
    }
}

async fn update(call: Call) -> Result<Reply, Failure> {
    let options: Options = call.params()?;
    let live = call.live()?;
    let (model, ground, instructions) =
        (options.changes_model(), options.changes_ground(), options.changes_instructions());
    let choice = Choice {
        effort: options.reasoning_effort.into(),
        summary: options.reasoning_summary,
        verbosity: options.verbosity,
        tier: options.context_tier,
        capabilities: options.model_capabilities_overrides,
        model: options.model.unwrap_or_default(),
    };
    let change = SessionSpec {
        client_name: options.client_name,
        provider: options.provider,
        available_tools: options.available_tools,
        excluded_tools: options.excluded_tools,
        tool_filter_precedence: options.tool_filter_precedence,
        excluded_builtin_agents: options.excluded_builtin_agents,
        streaming: options.enable_streaming,
        ask_user_disabled: options.ask_user_disabled,
        skip_custom_instructions: options.skip_custom_instructions,
        organization_custom_instructions: options.organization_custom_instructions,
        enable_on_demand_instruction_discovery: options.enable_on_demand_instruction_discovery,
        working_directory: options.working_directory,
        sandbox_config: options.sandbox_config,
        skill_directories: options.skill_directories,
        disabled_skills: options.disabled_skills,
        enable_skills: options.enable_skills,
        enable_file_hooks: options.enable_file_hooks,
        enable_host_git_operations: options.enable_host_git_operations,
        is_experimental_mode: options.is_experimental_mode,
        ..SessionSpec::default()
    };
    if ground {
        call.hub.reopen(&live, change).await?;
    } else {
        let spec = live
            .ask(move |task| {
                task.spec.adopt(change);
                SessionSpec { working_directory: Some(task.cwd().into()), ..task.spec.clone() }
            })
            .await?;
        let told = if instructions { Some(call.hub.config().opener.instructions(&spec)?) } else { None };
        live.ask(move |task| {
            if let Some(told) = told {
                task.set_instructions(told);
            }
            task.apply_options();
        })
        .await?;
    }
    if model {
        let (now, tier) =
            live.ask(|task| (task.session().state().model.clone(), task.spec.context_tier)).await?;
        let model = if choice.model.is_empty() { now } else { choice.model };
        let choice = Choice { model, tier: choice.tier.or(tier), ..choice };
        choose(&call, &live, choice, Chooser::Client, When::FromNextCall).await?;
    }
    Reply::success()
}
