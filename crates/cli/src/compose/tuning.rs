//! Numbers and instructions that the environment and `config.toml` set for every session.

use anyhow::{Result, bail};
use hangar_agent::agents::config::{AgentLimits, AgentSettings};
use hangar_agent::session::JustInTime;
use hangar_agent::tool_search::DEFAULT_TOKENS;

use super::spill;
use crate::just_in_time;
use crate::providers;
use crate::settings::Settings;

/// Valid limits of the depth of agents.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=128;

/// Read before a session is created, so that an invalid value is refused.
pub(super) struct Tuning {
    /// Factor of the delays before a retry.
    pub(super) retry_scale: f64,
    /// Size above which an output is saved to a file.
    pub(super) large_output: usize,
    /// Tokens of the descriptions of MCP servers' tools above which they are hidden behind a search; never if 0.
    pub(super) tool_tokens: u64,
    pub(super) agents: AgentLimits,
    /// `[agents.NAME]` of config.toml.
    pub(super) agent_settings: AgentSettings,
    /// The configured model for agents that only explore.
    pub(super) small_model: Option<String>,
    pub(super) just_in_time: Vec<JustInTime>,
}

impl Tuning {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let preferences = providers::preferences(settings)?;
        Ok(Self {
            retry_scale: settings.retry_scale()?,
            large_output: spill::threshold(settings)?,
            tool_tokens: settings.number("HANGAR_MCP_TOOL_TOKENS")?.unwrap_or(DEFAULT_TOKENS),
            agents: agents(settings)?,
            agent_settings: preferences.agent_settings(),
            small_model: preferences.small_model,
            just_in_time: just_in_time::load(settings)?,
        })
    }
}

fn agents(settings: &Settings) -> Result<AgentLimits> {
    let usual = AgentLimits::default();
    let depth = settings.number("COPILOT_SUBAGENT_MAX_DEPTH")?.unwrap_or(usual.depth);
    if !DEPTHS.contains(&depth) {
        bail!("COPILOT_SUBAGENT_MAX_DEPTH is {depth}; it must be from 1 to 128");
    }
    let running = settings.number("COPILOT_SUBAGENT_MAX_CONCURRENT")?.unwrap_or(usual.running);
    if running == 0 {
        bail!("COPILOT_SUBAGENT_MAX_CONCURRENT is 0; it must be at least 1");
    }
    Ok(AgentLimits { depth, running })
}
