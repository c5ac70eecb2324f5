//! Self-review: before a session ends, the workflow's commands verify the work, and the agent looks at its own diff and repairs
//! what it finds.

use std::path::Path;

use hangar_orchestrator::record::{Tokens, WorkTurnEnd};
use hangar_orchestrator::state::IssueClaim;
use serde::{Deserialize, Serialize};

use super::effects::Context;
use super::hooks;
use super::publish::side_file;
use super::session::LiveSession;
use super::workspace::SIDE;

const VERDICT: &str = "review_verdict.json";
const SUMMARY: &str = "review_summary.md";
const STATUS: &str = "self_review.json";
/// Bytes of a command's output that the agent sees.
const MAX_OUTPUT: usize = 8 << 10;

/// End of a self-review, as hooks see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReviewStatus {
    #[default]
    Disabled,
    Passed,
    /// There was something to repair in every round.
    CapReached,
    /// The agent failed, or gave no verdict.
    Error,
}

impl ReviewStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ReviewStatus::Disabled => "disabled",
            ReviewStatus::Passed => "passed",
            ReviewStatus::CapReached => "cap_reached",
            ReviewStatus::Error => "error",
        }
    }
}

#[derive(Debug, Deserialize)]
struct ReviewVerdict {
    verdict: String,
    #[serde(default)]
    summary: String,
}

/// Result of one command.
struct Verified {
    command: String,
    passed: bool,
    output: String,
}

/// Status of the last self-review in a workspace.
pub(super) fn status(workspace: &Path) -> ReviewStatus {
    side_file(workspace, STATUS).unwrap_or_default()
}

/// Path of the summary.
pub(super) fn summary(workspace: &Path) -> std::path::PathBuf {
    workspace.join(SIDE).join(SUMMARY)
}

/// Removes what an earlier session left.
pub(super) fn clear(workspace: &Path) {
    for name in [VERDICT, SUMMARY, STATUS] {
        let _ = std::fs::remove_file(workspace.join(SIDE).join(name));
    }
}

impl Context {
    /// Reviews the work of a session. The tokens are those of all its turns.
    pub(super) async fn self_review(&self, claim: &IssueClaim, live: &mut LiveSession) -> Tokens {
        let settings = &self.workflow.config.self_review;
        let (mut tokens, mut status, mut summaries) =
            (Tokens::default(), ReviewStatus::CapReached, Vec::new());
        for round in 1..=settings.max_iterations {
            let side = live.workspace.join(SIDE);
            let _ = std::fs::remove_file(side.join(VERDICT));
            let verified = self.verify(claim, &live.workspace).await;
            let diff = self.diff(&live.workspace).await;
            let prompt = prompt(&verified, diff.as_deref());
            let (end, used) = live.turn(prompt, &self.workflow.config.agent).await;
            tokens += used;
            let verdict: Option<ReviewVerdict> = side_file(&live.workspace, VERDICT);
            let (WorkTurnEnd::Completed, Some(verdict)) = (end, verdict) else {
                status = ReviewStatus::Error;
                break;
            };
            summaries.push(format!("## Round {round}: {}\n\n{}\n", verdict.verdict, verdict.summary));
            // A verdict does not outweigh a command that fails.
            if verdict.verdict == "pass" && verified.iter().all(|verified| verified.passed) {
                status = ReviewStatus::Passed;
                break;
            }
        }
        let side = live.workspace.join(SIDE);
        let written = std::fs::write(side.join(SUMMARY), summaries.join("\n"))
            .and_then(|()| std::fs::write(side.join(STATUS), serde_json::to_vec(&status)?));
        if let Err(error) = written {
            tracing::warn!(issue = %claim.identifier, %error, "the review is not written down");
        }
        tokens
    }

    async fn verify(&self, claim: &IssueClaim, workspace: &Path) -> Vec<Verified> {
        let settings = &self.workflow.config.self_review;
        let mut all = Vec::new();
        for command in &settings.verification_commands {
            let issue = self.hook_issue(claim);
            let ran = hooks::run(
                "verification",
                command,
                workspace,
                &issue,
                &self.hook_variables,
                settings.verification_timeout,
            );
            let ran = ran.await;
            let passed = ran.is_ok();
            let output: String = ran.unwrap_or_else(|message| message);
            all.push(Verified { command: command.clone(), passed, output: cut(&output, MAX_OUTPUT) });
        }
        all
    }

    /// Changes of the work since the base, within the limit of the workflow.
    async fn diff(&self, workspace: &Path) -> Option<String> {
        let mirror = self.mirror.as_deref()?;
        let base = mirror.base(self.workflow.config.workspace.base.as_deref()).await.ok()?;
        // New files count as well.
        mirror.call(workspace, &["add", "--all", "--intent-to-add"]).await.ok()?;
        let diff = mirror.call(workspace, &["diff", "--no-color", "--no-ext-diff", &base]).await.ok()?;
        let limit = usize::try_from(self.workflow.config.self_review.max_diff_bytes).unwrap_or(usize::MAX);
        Some(cut(&diff, limit))
    }
}

fn cut(text: &str, limit: usize) -> String {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn prompt(verified: &[Verified], diff: Option<&str>) -> String {
    let mut parts = vec![format!(
        "Review your own work before it is handed over. If something is wrong, repair it now. Then write the file `{SIDE}/{VERDICT}`: \
        {{\"verdict\": \"pass\" or \"iterate\", \"summary\": \"…\"}}. After `iterate`, the work is verified and reviewed again."
    )];
    for one in verified {
        let result = if one.passed { "passed" } else { "failed" };
        parts.push(format!("`{}` {result}:\n\n{}", one.command, one.output));
    }
    if let Some(diff) = diff {
        parts.push(format!("Your changes:\n\n```diff\n{diff}\n```"));
    }
    parts.join("\n\n")
}
