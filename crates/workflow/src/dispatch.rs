//! Rules that choose the agent of an issue by its labels, identifier, type, assignee and priority, and the stages that an issue
//! goes through with one agent after another.

use std::collections::BTreeSet;

use crate::config::runtime_of;
use crate::contest::{self, Contest};
use crate::reader::Reader;
use crate::yaml::{Node, Yaml};

/// A rule. Conditions that it does not have are met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchRule {
    pub name: String,
    /// Patterns with `*`; the issue has a label for each.
    pub labels: Vec<String>,
    pub identifier: Option<String>,
    pub issue_type: Option<String>,
    pub assignee: Option<String>,
    pub priority: Option<PriorityRange>,
    /// The stages of the issue, in their order. A rule with an agent of its own has one, without a name.
    pub stages: Vec<Stage>,
    /// Agents that work on the issue side by side, instead of stages.
    pub contest: Option<Contest>,
}

impl DispatchRule {
    /// Names of the agents, as runtimes.
    pub fn runtimes(&self) -> impl Iterator<Item = (&str, &str)> {
        let stages = self.stages.iter().map(|stage| (stage.runtime(), stage.agent.as_str()));
        let rivals = self.contest.iter().flat_map(|contest| &contest.rivals);
        stages.chain(rivals.map(|rival| (rival.runtime(), rival.agent.as_str())))
    }
}

/// Work of one agent on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Empty for the agent of a rule.
    pub name: String,
    /// Name of the agent.
    pub agent: String,
    /// Most turns of a session, if not those of the workflow.
    pub max_turns: Option<u32>,
}

impl Stage {
    /// Name of the runtime that the agent stands for.
    pub fn runtime(&self) -> &str {
        runtime_of(&self.agent)
    }
}

/// Priorities that a rule is for, as `<= 2` or `3`. An issue without a priority is in no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityRange {
    least: i64,
    most: i64,
}

/// Properties of an issue that rules look at.
#[derive(Debug, Clone, Copy)]
pub struct IssueProperties<'a> {
    pub identifier: &'a str,
    /// In lower case.
    pub labels: &'a [String],
    pub issue_type: Option<&'a str>,
    pub assignee: Option<&'a str>,
    pub priority: Option<i64>,
}

impl DispatchRule {
    pub fn fits(&self, issue: IssueProperties<'_>) -> bool {
        let equal = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| found.is_some_and(|found| found.eq_ignore_ascii_case(wanted)))
        };
        let has =
            |pattern: &String| issue.labels.iter().any(|label| is_match(&pattern.to_lowercase(), label));
        self.labels.iter().all(has)
            && self.identifier.as_ref().is_none_or(|pattern| is_match(pattern, issue.identifier))
            && equal(&self.issue_type, issue.issue_type)
            && equal(&self.assignee, issue.assignee)
            && self.priority.is_none_or(|range| {
                issue.priority.is_some_and(|priority| (range.least..=range.most).contains(&priority))
            })
    }
}

/// Whether a text has the form of a pattern, in which `*` stands for anything.
fn is_match(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn range(text: &str) -> Option<PriorityRange> {
    let text = text.trim();
    let number = |rest: &str| rest.trim().parse::<i64>().ok();
    let (least, most) = match text {
        text if text.starts_with("<=") => (i64::MIN, number(&text[2..])?),
        text if text.starts_with(">=") => (number(&text[2..])?, i64::MAX),
        text if text.starts_with('<') => (i64::MIN, number(&text[1..])?.checked_sub(1)?),
        text if text.starts_with('>') => (number(&text[1..])?.checked_add(1)?, i64::MAX),
        text => (number(text)?, number(text)?),
    };
    Some(PriorityRange { least, most })
}

/// Settings of a rule.
const SETTINGS: &[&str] = &[
    "name",
    "labels",
    "identifier",
    "issue_type",
    "assignee",
    "priority",
    "agent",
    "max_turns",
    "stage",
    "candidates",
    "judge",
];
/// Settings of a stage.
const STAGE_SETTINGS: &[&str] = &["name", "agent", "max_turns", "next"];

/// A stage as it is written, with the name of the one that follows.
struct Written {
    stage: Stage,
    next: Option<String>,
}

fn text_of(node: &Node, name: &str) -> Option<String> {
    match node.get(name).map(|node| &node.value) {
        Some(Yaml::Text(text)) => Some(text.clone()),
        Some(Yaml::Int(number)) => Some(number.to_string()),
        _ => None,
    }
}

pub(crate) fn turns_of(node: &Node) -> Option<u32> {
    match node.get("max_turns").map(|node| &node.value) {
        Some(Yaml::Int(turns @ 1..)) => u32::try_from(*turns).ok(),
        _ => None,
    }
}

fn unknown_settings(reader: &mut Reader<'_>, node: &Node, known: &[&str], of: &str) {
    if let Some((key, _)) = node.entries().iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
        let message = format!("`{}` is not a setting of a {of}; they are: {}", key.name, known.join(", "));
        reader.wrong(key.at, message);
    }
}

fn stages(reader: &mut Reader<'_>) -> Vec<Written> {
    let mut stages: Vec<Written> = Vec::new();
    for node in reader.items("dispatch.stages") {
        unknown_settings(reader, node, STAGE_SETTINGS, "stage");
        let (Some(name), Some(agent)) = (text_of(node, "name"), text_of(node, "agent")) else {
            reader.wrong(node.at, "a stage needs a `name` and an `agent`".to_owned());
            continue;
        };
        if stages.iter().any(|known| known.stage.name == name) {
            reader.wrong(node.at, format!("there are two stages `{name}`"));
        }
        let stage = Stage { name, agent, max_turns: turns_of(node) };
        stages.push(Written { stage, next: text_of(node, "next") });
    }
    stages
}

/// The stages from one on. `Err` says why there is no end or no such stage.
fn chain(stages: &[Written], first: &str) -> Result<Vec<Stage>, String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut next = Some(first);
    while let Some(name) = next {
        if !seen.insert(name) {
            return Err(format!("the stage `{name}` follows itself"));
        }
        let written = stages.iter().find(|written| written.stage.name == name);
        let written = written.ok_or_else(|| format!("there is no stage `{name}` in `dispatch.stages`"))?;
        found.push(written.stage.clone());
        next = written.next.as_deref();
    }
    Ok(found)
}

pub(crate) fn rules(reader: &mut Reader<'_>) -> Vec<DispatchRule> {
    let stages = stages(reader);
    let mut rules = Vec::new();
    for (at, node) in reader.items("dispatch.rules").iter().enumerate() {
        unknown_settings(reader, node, SETTINGS, "rule");
        let text = |name: &str| text_of(node, name);
        let labels = match node.get("labels").map(|node| &node.value) {
            Some(Yaml::List(items)) => items.iter().filter_map(word).collect(),
            Some(Yaml::Text(label)) => vec![label.clone()],
            _ => Vec::new(),
        };
        let own = match (text("agent"), text("stage"), node.get("candidates")) {
            (None, None, Some(_)) => Ok(Vec::new()),
            (_, _, Some(_)) => Err("a rule has an `agent`, a `stage` or `candidates`, not two".to_owned()),
            (Some(agent), None, None) => {
                Ok(vec![Stage { name: String::new(), agent, max_turns: turns_of(node) }])
            }
            (None, Some(first), None) => chain(&stages, &first),
            (None, None, None) => Err("a rule needs an `agent` or a `stage`".to_owned()),
            (Some(_), Some(_), None) => Err("a rule has an `agent` or a `stage`, not both".to_owned()),
        };
        let own = match own {
            Ok(own) => own,
            Err(why) => {
                reader.wrong(node.at, why);
                continue;
            }
        };
        let priority = text("priority").map(|text| (range(&text), text));
        if let Some((None, text)) = &priority {
            reader.wrong(
                node.at,
                format!("`priority` is a number or `<=`, `<`, `>=`, `>` and a number, not `{text}`"),
            );
        }
        rules.push(DispatchRule {
            name: text("name").unwrap_or_else(|| format!("rule {}", at + 1)),
            labels,
            identifier: text("identifier"),
            issue_type: text("issue_type"),
            assignee: text("assignee"),
            priority: priority.and_then(|(range, _)| range),
            stages: own,
            contest: contest::of_rule(reader, node),
        });
    }
    rules
}

fn word(node: &Node) -> Option<String> {
    match &node.value {
        Yaml::Text(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_ranges_fit() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*-1", "X-1", true),
            ("a*c*", "abc", true),
            ("a*b", "ac", false),
        ] {
            assert_eq!(is_match(pattern, text), fits, "{pattern} {text}");
        }
        let holds = |text: &str, priority: i64| {
            let range = range(text).unwrap();
            (range.least..=range.most).contains(&priority)
        };
        assert!(holds("<= 2", 2) && !holds("<2", 2) && holds(">2", 3) && holds("3", 3) && !holds("3", 2));
        assert!(range("high").is_none());
    }
}
