//! Variables of prompts.

use hangar_trackers::Issue;
use hangar_workflow::Workflow;
use hangar_workflow::reactions::PullMode;
use hangar_workflow::template::{Language, TemplateError};
use serde_json::{Value, json};

use crate::contest;
use crate::pulls::{Reaction, Remark};
use crate::state::IssueClaim;

/// Prompt of a continuation whose template renders to nothing.
pub const CONTINUE: &str =
    "Continue with the task. Look at the state of the workspace first, and do not repeat work that is done.";

/// Instructions for the agent: how it reports that it is blocked or done.
pub const PROTOCOL: &str = "\
When you cannot go on without a person, write one word into the file `.sortie/status` in the workspace and end your turn: \
`blocked` if something prevents the work, `needs-human-review` if it is done and somebody should look at it.";

/// The variables of a turn.
pub fn context(workflow: &Workflow, claim: &IssueClaim, issue: &Issue) -> Value {
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
            "max_turns": claim.max_turns.unwrap_or(workflow.config.agent.max_turns),
            "is_continuation": is_continuation,
            "stage": claim.stage.as_deref().unwrap_or_default(),
            "candidate": contest::number_of(claim),
        },
        "ci_failure": ci_failure(claim.reaction.as_ref()),
        "review_comments": review_comments(claim.reaction.as_ref()),
    })
}

fn ci_failure(reaction: Option<&Reaction>) -> Value {
    let Some(Reaction::CiFailure { head, checks, log_excerpt }) = reaction else { return Value::Null };
    let runs = checks.iter().map(|check| {
        json!({
            "name": check.name, "status": "completed", "conclusion": check.conclusion,
            "details_url": check.details_url,
        })
    });
    json!({
        "status": "failing", "check_runs": runs.collect::<Vec<_>>(), "log_excerpt": log_excerpt,
        "failing_count": checks.len(), "ref": head,
    })
}

fn review_comments(reaction: Option<&Reaction>) -> Vec<Value> {
    let remark = |remark: &Remark| {
        json!({
            "id": remark.id, "file": remark.file, "start_line": remark.start_line,
            "end_line": remark.end_line, "reviewer": remark.reviewer, "body": remark.body,
        })
    };
    reaction.map(Reaction::remarks).unwrap_or_default().iter().map(remark).collect()
}

/// The event that a session is about, for prompts whose template does not mention it.
fn event(reaction: &Reaction) -> String {
    match reaction {
        Reaction::CiFailure { checks, log_excerpt, .. } => {
            let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            format!(
                "CI fails on your pull request: {}. Find the cause and repair it.\n\nEnd of the log:\n\n```\n{log_excerpt}\n```",
                names.join(", ")
            )
        }
        Reaction::Review { remarks } | Reaction::BotReview { remarks } => {
            let remarks: Vec<String> = remarks.iter().map(remark).collect();
            format!(
                "Your pull request was reviewed. Do what each remark asks for, or decide not to. {REPLIES}\n\n{}",
                remarks.join("\n\n")
            )
        }
        Reaction::Conflict { base } => format!(
            "Your pull request conflicts with the branch `{base}`, which was merged into the workspace: edit the files with conflict markers so that both changes work together. {COMMITTED}"
        ),
        Reaction::Diverged => format!(
            "Others pushed commits to the branch of your pull request; they were merged into the workspace: edit the files with conflict markers so that both changes work together. {COMMITTED}"
        ),
        Reaction::Label { label } => format!(
            "A person put the label `{label}` on your pull request: look at the issue and at the state of the work again, and complete it."
        ),
    }
}

const REPLIES: &str =
    "Write your answers into `.sortie/replies.json`, a map from the id of each remark to a sentence.";
const COMMITTED: &str = "The merge is committed for you.";

fn remark(remark: &Remark) -> String {
    let place = match (remark.file.as_str(), remark.end_line) {
        ("", _) => String::new(),
        (file, Some(line)) => format!(", {file}:{line}"),
        (file, None) => format!(", {file}"),
    };
    let body = remark.body.trim().replace('\n', "\n> ");
    format!("{} (id {}{place}):\n> {body}", remark.reviewer, remark.id)
}

/// The text for the agent.
pub fn render(workflow: &Workflow, claim: &IssueClaim, issue: &Issue) -> Result<String, TemplateError> {
    let text = workflow.prompt.render(&context(workflow, claim, issue))?;
    let text = match text.trim().is_empty() {
        true => CONTINUE.to_owned(),
        false => text,
    };
    if claim.turn > 1 {
        return Ok(text);
    }
    let mut parts = vec![text.trim_end().to_owned()];
    if let Some(reaction) = &claim.reaction {
        let without = IssueClaim { reaction: None, ..claim.clone() };
        let is_mentioned = workflow.prompt.render(&context(workflow, &without, issue)).ok() != Some(text);
        if !is_mentioned {
            parts.push(event(reaction));
        }
    }
    if let Some(question) = &claim.question {
        let said = issue.comments.as_deref().unwrap_or_default().iter().filter(|comment| !comment.is_ours());
        let said: Vec<String> = said.map(|comment| format!("{}: {}", comment.author, comment.body)).collect();
        let last = said[said.len().saturating_sub(ANSWERS)..].join("\n\n");
        parts.push(format!("You asked a person: {question}\n\nThe last comments on the issue:\n\n{last}"));
    }
    parts.push(match workflow.config.pulls.mode {
        PullMode::Open => format!("{PROTOCOL} {PUBLISHED}"),
        PullMode::Adopt | PullMode::Off => PROTOCOL.to_owned(),
    });
    Ok(parts.join("\n\n"))
}

/// Comments that are shown after a question.
const ANSWERS: usize = 5;

/// Addition to the protocol where the orchestrator opens pull requests.
const PUBLISHED: &str = "\
Write `done` when the work is complete. Your changes are then committed and pushed, and the pull request is opened, without your help.";

/// Title and text of the pull request of an issue.
pub fn pull_request(workflow: &Workflow, issue: &Issue) -> Result<(String, String), TemplateError> {
    let context = json!({ "issue": issue, "attempt": 0, "run": {} });
    let title = workflow.title.render(&context)?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let body = match &workflow.body {
        Some(body) => body.render(&context)?,
        // Forges close the issues that a merged pull request names so.
        None if workflow.config.pulls.provider == workflow.config.tracker.kind => {
            format!("Closes #{}", issue.identifier)
        }
        None => [Some(issue.display_id.clone()), issue.url.clone()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n"),
    };
    Ok((if title.is_empty() { issue.identifier.clone() } else { title }, body))
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
