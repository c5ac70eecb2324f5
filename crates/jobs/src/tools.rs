//! The tools by which agents report to a job: each takes one text and hands it back. What matters is that it was called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use hangar_protocol::data::ToolStart;

use crate::prompt::ToolAnswer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum JobTool {
    #[serde(rename = "job_prepare_document")]
    PrepareDocument,
    #[serde(rename = "job_boolean_true")]
    BooleanTrue,
    #[serde(rename = "job_boolean_false")]
    BooleanFalse,
    #[serde(rename = "job_prerequisite_failed")]
    PrerequisiteFailed,
}

impl JobTool {
    pub const ALL: [JobTool; 4] =
        [Self::PrepareDocument, Self::BooleanTrue, Self::BooleanFalse, Self::PrerequisiteFailed];

    pub fn name(self) -> &'static str {
        match self {
            Self::PrepareDocument => "job_prepare_document",
            Self::BooleanTrue => "job_boolean_true",
            Self::BooleanFalse => "job_boolean_false",
            Self::PrerequisiteFailed => "job_prerequisite_failed",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::PrepareDocument => "Report the document that you prepared. The argument is its path.",
            Self::BooleanTrue => "Answer a condition with yes. The argument is the reason.",
            Self::BooleanFalse => "Answer a condition with no. The argument is the reason.",
            Self::PrerequisiteFailed => "Report that the work cannot begin. The argument is the reason.",
        }
    }

    /// The tool behind a name, which agents may have put the name of a server before.
    pub fn called(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| {
            name.strip_suffix(tool.name()).is_some_and(|before| {
                before.is_empty() || before.ends_with(|c: char| !c.is_ascii_alphanumeric())
            })
        })
    }
}

/// Maximum size of an argument that is kept.
const MAX_ARGUMENT: usize = 64 << 10;

/// Calls of job tools during one prompt.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<JobTool>,
    pub document: Option<String>,
    /// The last word of the boolean tools.
    pub answer: Option<ToolAnswer>,
}

impl Round {
    pub fn note(&mut self, start: &ToolStart) {
        let named = start.mcp_tool_name.as_deref().and_then(JobTool::called);
        let Some(tool) = named.or_else(|| JobTool::called(&start.tool_name)) else { return };
        if !self.tools.contains(&tool) {
            self.tools.push(tool);
        }
        let argument = argument(&start.arguments);
        match tool {
            JobTool::PrepareDocument => {
                self.document = Some(argument.lines().next().unwrap_or_default().trim().to_owned());
            }
            JobTool::BooleanTrue => self.answer = Some(ToolAnswer { value: true, reason: argument }),
            JobTool::BooleanFalse => self.answer = Some(ToolAnswer { value: false, reason: argument }),
            JobTool::PrerequisiteFailed => {}
        }
    }

    /// Whether the answer to a condition was yes. No answer is no.
    pub fn says_yes(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.value)
    }
}

/// A text, the first text of an object, or all of it as JSON.
fn argument(arguments: &Value) -> String {
    let text = match arguments {
        Value::String(text) => text.clone(),
        Value::Object(members) => match members.values().find_map(Value::as_str) {
            Some(text) => text.to_owned(),
            None => arguments.to_string(),
        },
        other => other.to_string(),
    };
    match text.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_ARGUMENT) {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(calls: &[(&str, Value)], expected: Round) {
        let mut round = Round::default();
        for (name, arguments) in calls {
            let start = json!({ "toolCallId": "1", "toolName": name, "arguments": arguments });
            round.note(&serde_json::from_value(start).unwrap());
        }
        assert_eq!(round, expected);
    }

    fn answer(value: bool, reason: &str) -> Option<ToolAnswer> {
        Some(ToolAnswer { value, reason: reason.to_owned() })
    }

    #[test]
    fn the_last_boolean_counts() {
        let calls = [
            ("job_boolean_true", json!({ "argument": "a" })),
            ("job_boolean_false", json!({ "argument": "b" })),
        ];
        let tools = vec![JobTool::BooleanTrue, JobTool::BooleanFalse];
        check(&calls, Round { tools, answer: answer(false, "b"), document: None });
    }

    #[test]
    fn names_may_have_a_server_before_them() {
        let calls =
            [("jobs-job_boolean_true", json!("x")), ("mcp__jobs__job_prerequisite_failed", json!({}))];
        let tools = vec![JobTool::BooleanTrue, JobTool::PrerequisiteFailed];
        check(&calls, Round { tools, answer: answer(true, "x"), document: None });
    }

    #[test]
    fn other_tools_do_not_count() {
        check(&[("bash", json!({})), ("myjob_boolean_true", json!({}))], Round::default());
    }

    #[test]
    fn a_document_is_the_first_line() {
        let calls = [("job_prepare_document", json!({ "n": 1, "argument": "  a.md \nmore" }))];
        let tools = vec![JobTool::PrepareDocument];
        check(&calls, Round { tools, document: Some("a.md".to_owned()), answer: None });
    }

    #[test]
    fn arguments_without_a_text_are_json() {
        let calls = [("job_boolean_true", json!({ "n": 1 }))];
        let tools = vec![JobTool::BooleanTrue];
        check(&calls, Round { tools, answer: answer(true, r#"{"n":1}"#), document: None });
    }
}
