//! Hooks: scripts of a workflow around the work on an issue.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use hangar_process::{ScriptFailure, run_script};

use super::review::{self, ReviewStatus};
use crate::settings::Settings;

/// Variables of this process that hooks see, beside those with the prefix.
const ALLOWED: &[&str] =
    &["PATH", "HOME", "SHELL", "TMPDIR", "USER", "LOGNAME", "TERM", "LANG", "LC_ALL", "SSH_AUTH_SOCK"];
const PREFIX: &str = "SORTIE_";

/// Facts about an issue that its hooks see.
#[derive(Debug, Clone)]
pub(super) struct HookIssue {
    pub(super) id: String,
    pub(super) identifier: String,
    pub(super) attempt: u32,
    pub(super) review: ReviewStatus,
    /// Its number, in the workspace of a candidate.
    pub(super) candidate: Option<u32>,
}

/// Runs a script in a workspace. The result is the end of its output; the error is a sentence.
pub(super) async fn run(
    name: &str,
    script: &str,
    workspace: &Path,
    issue: &HookIssue,
    variables: &[(OsString, OsString)],
    timeout: Duration,
) -> Result<String, String> {
    let (attempt, review) = (issue.attempt.to_string(), review::summary(workspace));
    let candidate = issue.candidate.map(|number| number.to_string()).unwrap_or_default();
    let mut own: Vec<(&str, &OsStr)> = vec![
        ("SORTIE_ISSUE_ID", issue.id.as_ref()),
        ("SORTIE_ISSUE_IDENTIFIER", issue.identifier.as_ref()),
        ("SORTIE_WORKSPACE", workspace.as_ref()),
        ("SORTIE_ATTEMPT", attempt.as_ref()),
        ("SORTIE_SSH_HOST", "".as_ref()),
        ("HANGAR_CANDIDATE", candidate.as_ref()),
        ("SORTIE_SELF_REVIEW_STATUS", issue.review.as_str().as_ref()),
    ];
    if issue.review != ReviewStatus::Disabled {
        own.push(("SORTIE_SELF_REVIEW_SUMMARY_PATH", review.as_ref()));
    }
    let inherited = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let all = inherited.chain(own.into_iter().map(|(name, value)| (OsStr::new(name), value)));
    run_script(script, workspace, all, timeout).await.map_err(|failure| match failure {
        ScriptFailure::Broken(error) => format!("the hook `{name}` could not be run: {error}"),
        ScriptFailure::Exited { code, output } => format!("the hook `{name}` exited with {code}: {output}"),
        ScriptFailure::TimedOut { output } => {
            format!("the hook `{name}` was not done after {} s: {output}", timeout.as_secs_f64())
        }
    })
}

/// Variables of hooks.
pub(super) fn variables(settings: &Settings) -> Vec<(OsString, OsString)> {
    let seen = |name: &str| ALLOWED.contains(&name) || name.starts_with(PREFIX);
    let seen = settings.variables().filter(|(name, _)| seen(name));
    seen.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}
