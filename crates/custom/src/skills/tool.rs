//! The tool that tells the model a skill.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};
use serde_json::json;

use super::{Skill, SkillUnavailable, Skills};

/// The most that the list of skills may take of every request.
const LIST_LIMIT: usize = 15_000;

pub(super) struct SkillTool {
    skills: Arc<Skills>,
    spec: Arc<ToolSpec>,
}

impl SkillTool {
    pub(super) fn new(skills: Arc<Skills>, spec: ToolSpec) -> Self {
        Self { skills, spec: Arc::new(spec) }
    }
}

pub(super) fn spec<'a>(skills: impl Iterator<Item = &'a Skill>) -> ToolSpec {
    let mut description = "Brings a skill into the conversation: instructions for one kind of task. When a skill of the \
                           list fits the task, call this first, with its name and nothing else, and then do what the \
                           skill says. Do not guess names, and do not call a skill again that is loaded already."
        .to_owned();
    let mut list = String::new();
    let mut left_out = 0;
    for skill in skills {
        let line = format!(
            "<skill>\n  <name>{}</name>\n  <description>{}</description>\n  <location>{}</location>\n</skill>\n",
            escaped(&skill.name),
            escaped(&skill.description),
            skill.source.as_str()
        );
        if list.len() + line.len() > LIST_LIMIT {
            left_out += 1;
        } else {
            list.push_str(&line);
        }
    }
    if left_out > 0 {
        list.push_str(&format!("<!-- {left_out} more are not listed; the user may name them -->\n"));
    }
    if !list.is_empty() {
        description.push_str(&format!("\n\n<available_skills>\n{list}</available_skills>"));
    }
    ToolSpec {
        name: "skill".to_owned(),
        title: Some("Loading skill".to_owned()),
        description,
        input: ToolSchema::function(json!({
            "type": "object",
            "properties": {
                "skill": { "type": "string", "description": "The name of the skill." }
            },
            "required": ["skill"]
        })),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Tool for SkillTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        match call.arguments["skill"].as_str() {
            Some(_) => Ok(Access::None),
            None => Err(ToolOutcome::failure("\"skill\": Required")),
        }
    }

    fn run(&self, call: ToolInput, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let skills = Arc::clone(&self.skills);
        Box::pin(async move {
            let name = call.arguments["skill"].as_str().unwrap_or_default().trim_start_matches('/');
            let invoked_skill = match skills.called_by_model(name) {
                Ok(invoked_skill) => invoked_skill,
                Err(SkillUnavailable::Unknown) => {
                    let known = skills.names();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let text = format!("Skill \"{name}\" not found. Available skills: {known}");
                    let short = format!("Skill not found: {name}");
                    return ToolOutcome { error: Some(short), ..ToolOutcome::failure(text) };
                }
                Err(SkillUnavailable::Unreadable(problem)) => {
                    return ToolOutcome::failure(format!("Skill \"{name}\" cannot be loaded: {problem}"));
                }
            };
            let told = format!(
                "Skill \"{name}\" loaded successfully. Follow the instructions in the skill context."
            );
            ToolOutcome { skill: Some(Box::new(invoked_skill)), ..ToolOutcome::success(told) }
        })
    }
}
