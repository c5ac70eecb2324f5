//! Variables of prompts.

use hangar_trackers::Issue;
use hangar_workflow::Workflow;
use hangar_workflow::template::{Language, TemplateError};
use serde_json::{Value, json};

use crate::state::Claim;

/// Prompt of a continuation whose template renders to nothing.
pub const CONTINUE: &str =
    "Continue with the task. Look at the state of the workspace first, and do not repeat work that is done.";

/// How an agent tells the orchestrator that it cannot or need not go on.
pub const PROTOCOL: &str = "\
When you cannot go on without a person, write one word into the file `.sortie/status` in the workspace and end your turn: \
`blocked` if something prevents the work, `needs-human-review` if it is done and somebody should look at it.";

/// The variables of a turn.
pub fn context(workflow: &Workflow, claim: &Claim, issue: &Issue) -> Value {
    let is_continuation = claim.turns > 1;
    // Liquid takes 0 for true.
    let attempt = match (claim.failures, workflow.prompt.language()) {
        (0, Language::Liquid) if !is_continuation => Value::Null,
        (0, Language::Liquid) => Value::from(claim.sessions.max(1)),
        (failures, _) => Value::from(failures),
    };
    json!({
        "issue": issue,
        "attempt": attempt,
        "run": {
            "turn_number": claim.turn,
            "max_turns": workflow.config.agent.max_turns,
            "is_continuation": is_continuation,
        },
        "ci_failure": Value::Null,
        "review_comments": [],
    })
}

/// The text for the agent.
pub fn render(workflow: &Workflow, claim: &Claim, issue: &Issue) -> Result<String, TemplateError> {
    let text = workflow.prompt.render(&context(workflow, claim, issue))?;
    let text = match text.trim().is_empty() {
        true => CONTINUE.to_owned(),
        false => text,
    };
    Ok(if claim.turn <= 1 { format!("{}\n\n{PROTOCOL}", text.trim_end()) } else { text })
}

/// Name of the branch of an issue, with what git refuses replaced.
pub fn branch(workflow: &Workflow, issue: &Issue) -> Result<String, TemplateError> {
    if let Some(branch) = issue.branch_name.as_deref().filter(|branch| is_branch(branch)) {
        return Ok(branch.to_owned());
    }
    let context = json!({ "issue": issue, "attempt": 0, "run": {} });
    let name = workflow.branch.render(&context)?;
    Ok(clean_branch(&name))
}

fn is_branch(name: &str) -> bool {
    !name.is_empty() && clean_branch(name) == name
}

fn clean_branch(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/') { c } else { '-' };
    let text: String = name.trim().chars().map(plain).collect();
    let parts = text.split('/').map(|part| part.trim_matches(['.', '-']).replace("..", "-"));
    let parts = parts.map(|part| part.strip_suffix(".lock").map(str::to_owned).unwrap_or(part));
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "hangar/issue".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_are_ones_that_git_takes() {
        for (name, branch) in [
            ("hangar/A-1", "hangar/A-1"),
            ("a b~c", "a-b-c"),
            ("/x//y/", "x/y"),
            ("-x/.y/z.lock", "x/y/z"),
            ("a..b", "a-b"),
            ("  ", "hangar/issue"),
        ] {
            assert_eq!(clean_branch(name), branch, "{name}");
        }
    }
}
