//! Capabilities of an agent, as data. A record is a claim until `probe` has verified it against the installed version.

use serde::{Deserialize, Serialize};

use crate::options::AgentOption;
use crate::runtime::{AgentCard, AgentOrder, ToolPolicy};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Pieces of an answer while it is written.
    pub streaming: bool,
    pub resume: bool,
    /// Takes the id of a session from outside, so that it is known before the first word.
    pub session_id_given: bool,
    /// Reports the id of a session with its first output, not only at the end.
    pub session_id_early: bool,
    pub cost: bool,
    pub input_tokens: bool,
    /// Levels of effort that it accepts, weakest first.
    pub effort_levels: Vec<String>,
    pub budget_cap: bool,
    /// Takes instructions of the host apart from the prompt.
    pub system_prompt: bool,
    pub model_discovery: bool,
    /// Asks us before it does something, and waits for the answer.
    pub permission_callbacks: bool,
    /// Listens while it works.
    #[serde(default)]
    pub steering: bool,
    /// Reports each tool call.
    pub tool_events: bool,
    pub prompt_by_stdin: bool,
    pub mcp_config: bool,
    /// Takes files with its first prompt. Without it, an order that has some is refused before anything is started.
    #[serde(default)]
    pub attachments: bool,
    /// Rules about single tools.
    pub tool_rules: bool,
    /// One process for many sessions.
    pub shared_process: bool,
    pub remote: bool,
    /// Switches that it has.
    #[serde(default)]
    pub options: Vec<AgentOption>,
    /// Writes the log of the session itself, in our store, so that listeners must not.
    pub own_log: bool,
}

impl Capabilities {
    /// Capabilities that all process-based agents share: they resume a session by its name, report that name early,
    /// count input tokens, report their tools, and run on any host.
    pub fn in_a_process() -> Self {
        Self {
            streaming: false,
            resume: true,
            session_id_given: false,
            session_id_early: true,
            cost: false,
            input_tokens: true,
            effort_levels: Vec::new(),
            budget_cap: false,
            system_prompt: false,
            model_discovery: false,
            permission_callbacks: false,
            steering: false,
            tool_events: true,
            prompt_by_stdin: true,
            mcp_config: false,
            attachments: false,
            tool_rules: false,
            shared_process: false,
            remote: true,
            options: Vec::new(),
            own_log: false,
        }
    }
}

/// Requests of an order that an agent does not support, one sentence each for the user. No request is ignored silently.
pub fn unmet(card: &AgentCard, order: &AgentOrder) -> Vec<String> {
    let AgentCard { label, capabilities, .. } = card;
    let mut unmet = Vec::new();
    if let Some(effort) = &order.effort
        && capabilities.effort_levels.is_empty()
    {
        unmet.push(format!("{label} knows no levels of effort; `{effort}` is not asked for"));
    }
    if let Some(budget) = order.limits.budget_usd
        && !capabilities.budget_cap
    {
        unmet.push(format!("{label} has no cap on cost; nothing ends it at {budget} USD"));
    }
    if order.mcp_config.is_some() && !capabilities.mcp_config {
        unmet.push(format!("{label} takes no MCP servers from outside; those that were given are not used"));
    }
    unmet.extend(order.options.unmet(card));
    if order.tools != ToolPolicy::default() && !capabilities.tool_rules && !capabilities.permission_callbacks
    {
        unmet.push(format!(
            "{label} has no rules about single tools; with any it stays in the bounds that it sets itself"
        ));
    }
    unmet
}

/// All levels of effort that agents know, weakest first.
pub const EFFORT_LEVELS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The level to ask for when a level is wanted: itself if it is there, else the strongest below it, else the weakest.
pub fn nearest_effort<'a>(levels: &'a [String], wanted: &str) -> Option<&'a str> {
    let rank = |level: &str| EFFORT_LEVELS.iter().position(|known| *known == level);
    let Some(rank_wanted) = rank(wanted) else {
        return levels.iter().find(|level| *level == wanted).map(String::as_str);
    };
    let below = levels.iter().filter(|level| rank(level).is_some_and(|rank| rank <= rank_wanted));
    below.max_by_key(|level| rank(level)).or_else(|| levels.first()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[&str], wanted: &str, expected: Option<&str>) {
        let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
        assert_eq!(nearest_effort(&levels, wanted), expected);
    }

    #[test]
    fn a_level_that_is_there_is_taken() {
        check(&["low", "medium", "high"], "medium", Some("medium"));
    }

    #[test]
    fn a_level_beyond_the_strongest_is_the_strongest() {
        check(&["low", "medium", "high", "xhigh"], "max", Some("xhigh"));
    }

    #[test]
    fn a_level_below_the_weakest_is_the_weakest() {
        check(&["low", "medium"], "minimal", Some("low"));
    }

    #[test]
    fn an_agent_without_levels_gets_none() {
        check(&[], "high", None);
    }

    #[track_caller]
    fn check_unmet(capabilities: Capabilities, words: &[&str]) {
        let card = AgentCard {
            name: "a".into(),
            label: "Agent".into(),
            runtime: None,
            capabilities,
            install: "".into(),
            shell_tool: None,
        };
        let mut order = AgentOrder::new("s".to_owned(), "/".into());
        order.effort = Some("high".to_owned());
        order.limits.budget_usd = Some(1.5);
        order.mcp_config = Some("{}".to_owned());
        order.tools.deny = vec!["shell".to_owned()];
        order.options.persona = Some("reviewer".to_owned());
        // They have no effect.
        order.options.stream = Some(false);
        order.options.builtin_mcp = Some(false);
        let unmet = unmet(&card, &order);
        assert_eq!(unmet.len(), words.len(), "{unmet:?}");
        assert!(unmet.iter().zip(words).all(|(sentence, word)| sentence.contains(word)), "{unmet:?}");
    }

    #[test]
    fn wishes_that_cannot_be_met_are_told() {
        check_unmet(Capabilities::in_a_process(), &["`high`", "1.5 USD", "MCP", "`persona`", "single tools"]);
        let able = Capabilities {
            effort_levels: vec!["low".to_owned()],
            budget_cap: true,
            mcp_config: true,
            permission_callbacks: true,
            options: vec![AgentOption::Persona],
            ..Capabilities::in_a_process()
        };
        check_unmet(able, &[]);
    }
}
