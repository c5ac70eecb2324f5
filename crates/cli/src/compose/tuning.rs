//! What the environment and `config.toml` set for every session.

use anyhow::{Result, bail};
use hangar_agent::agents::crew::Limits;
use hangar_agent::session::JustInTime;

use super::spill;
use crate::just_in_time;
use crate::settings::Settings;

/// How deep agents may be allowed to start agents.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=128;

/// Read before a session is made, so that a value which makes no sense is refused.
pub(super) struct Tuning {
    /// How long the waits before another try are, as a factor.
    pub(super) retry_scale: f64,
    /// From which size on outputs are saved to a file.
    pub(super) large_output: usize,
    pub(super) agents: Limits,
    pub(super) just_in_time: Vec<JustInTime>,
}

impl Tuning {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            retry_scale: settings.number("HANGAR_RETRY_SCALE")?.unwrap_or(1.0),
            large_output: spill::threshold(settings)?,
            agents: agents(settings)?,
            just_in_time: just_in_time::load(settings)?,
        })
    }
}

fn agents(settings: &Settings) -> Result<Limits> {
    let usual = Limits::default();
    let depth = settings.number("COPILOT_SUBAGENT_MAX_DEPTH")?.unwrap_or(usual.depth);
    if !DEPTHS.contains(&depth) {
        bail!("COPILOT_SUBAGENT_MAX_DEPTH is {depth}; it must be from 1 to 128");
    }
    let running = settings.number("COPILOT_SUBAGENT_MAX_CONCURRENT")?.unwrap_or(usual.running);
    if running == 0 {
        bail!("COPILOT_SUBAGENT_MAX_CONCURRENT is 0; it must be at least 1");
    }
    Ok(Limits { depth, running })
}
