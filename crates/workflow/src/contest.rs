//! Contests: several agents work on one issue, and a judge promotes the work of one of them. Workflows call them candidates.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::runtime_of;
use crate::dispatch::turns_of;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::yaml::{Node, Yaml};

/// Most candidates of an issue.
pub const MAX_RIVALS: usize = 8;
/// Limit of one command of the judge.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Code of problems with the candidates of a rule.
const CHECK: &str = "dispatch.candidates";
/// Settings of a candidate.
const SETTINGS: &[&str] = &["agent", "count", "max_turns"];

/// Agents that work on the same issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// Two or more.
    pub rivals: Vec<Rival>,
    pub judge: JudgeKind,
}

/// One of the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Name of the agent.
    pub agent: String,
    /// Most turns of its session, if not those of the workflow.
    pub max_turns: Option<u32>,
}

impl Rival {
    /// Name of the runtime that the agent stands for.
    pub fn runtime(&self) -> &str {
        runtime_of(&self.agent)
    }
}

/// Who promotes a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JudgeKind {
    /// The commands, the score and the preference of the workflow.
    #[default]
    Criteria,
    Person,
}

/// Settings of the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeConfig {
    /// Commands that have to pass in the workspace of a candidate.
    pub commands: Vec<String>,
    /// Limit of each of them.
    pub timeout: Duration,
    /// Command whose last line is a number; the candidate with the highest is promoted.
    pub score: Option<String>,
    /// Preference among candidates with the same score.
    pub prefer: Preference,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    SmallestDiff,
    FewestTokens,
    /// The order of the workflow.
    First,
}

pub(crate) fn judge(reader: &mut Reader<'_>) -> JudgeConfig {
    let known = ["smallest_diff", "fewest_tokens", "first"];
    let prefer = reader.choice("dispatch.judge.prefer", &known, "smallest_diff");
    JudgeConfig {
        commands: reader.list("dispatch.judge.commands").unwrap_or_default(),
        timeout: reader.milliseconds("dispatch.judge.timeout_ms", JUDGE_TIMEOUT),
        score: reader.script("dispatch.judge.score"),
        prefer: match prefer.as_str() {
            "fewest_tokens" => Preference::FewestTokens,
            "first" => Preference::First,
            _ => Preference::SmallestDiff,
        },
    }
}

/// The contest of a rule. `None` if it has no candidates, or if something is wrong with them.
pub(crate) fn of_rule(reader: &mut Reader<'_>, rule: &Node) -> Option<Contest> {
    let node = rule.get("candidates")?;
    let problem = |at, message: &str| Problem::error(CHECK, at, message);
    let Yaml::List(items) = &node.value else {
        reader.problems.push(problem(node.at, "`candidates` is a list of agents"));
        return None;
    };
    let turns = turns_of(rule);
    let mut rivals: Vec<Rival> = Vec::new();
    for item in items {
        match several(item) {
            Ok(more) => {
                rivals.extend(more.map(|rival| Rival { max_turns: rival.max_turns.or(turns), ..rival }));
            }
            Err(why) => reader.problems.push(problem(item.at, &why)),
        }
    }
    if !(2..=MAX_RIVALS).contains(&rivals.len()) {
        let why = format!("an issue has 2 to {MAX_RIVALS} candidates, and these are {}", rivals.len());
        reader.problems.push(problem(node.at, &why));
    }
    if !reader.has("workspace.repository") && !reader.has("pull_requests") {
        let why =
            "candidates need a repository, which the work of one is taken from; set `workspace.repository`";
        reader.problems.push(problem(node.at, why));
    }
    if !reader.has("tracker.handoff_state") && !reader.has("pull_requests") {
        let why =
            "the candidate that is promoted is handed over: set `tracker.handoff_state` or `pull_requests`";
        reader.problems.push(problem(node.at, why));
    }
    let judge = rule.get("judge").map(|node| (node.at, node.value.clone()));
    let judge = match judge {
        None => JudgeKind::Criteria,
        Some((_, Yaml::Text(text))) if text == "criteria" => JudgeKind::Criteria,
        Some((_, Yaml::Text(text))) if text == "person" => JudgeKind::Person,
        Some((at, _)) => {
            reader.problems.push(problem(at, "`judge` is `criteria` or `person`"));
            JudgeKind::Criteria
        }
    };
    Some(Contest { rivals, judge })
}

/// Candidates that an entry stands for.
fn several(item: &Node) -> Result<impl Iterator<Item = Rival>, String> {
    let wrong = || format!("a candidate is the name of an agent, or has: {}", SETTINGS.join(", "));
    let number = |name: &str, most: i64| match item.get(name).map(|node| &node.value) {
        None => Ok(None),
        Some(Yaml::Int(number)) if (1..=most).contains(number) => Ok(u32::try_from(*number).ok()),
        Some(_) => Err(format!("`{name}` of a candidate must be from 1 to {most}")),
    };
    let (agent, count, max_turns) = match &item.value {
        Yaml::Text(agent) => (agent.clone(), None, None),
        Yaml::Map(entries) => {
            if entries.iter().any(|(key, _)| !SETTINGS.contains(&key.name.as_str())) {
                return Err(wrong());
            }
            let agent = match item.get("agent").map(|node| &node.value) {
                Some(Yaml::Text(agent)) => agent.clone(),
                _ => return Err(wrong()),
            };
            (agent, number("count", MAX_RIVALS as i64)?, number("max_turns", i64::from(u32::MAX))?)
        }
        _ => return Err(wrong()),
    };
    let rival = Rival { agent, max_turns };
    Ok(std::iter::repeat_n(rival, count.unwrap_or(1) as usize))
}
