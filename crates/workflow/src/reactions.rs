//! Settings of pull requests and of the reactions to what happens to them.

use std::time::Duration;

use crate::config::{AppConfig, ESCALATION_LABEL, Escalation, TrackerConfig, WorkflowSecret};
use crate::reader::Reader;

/// Shortest pause between two reads of a pull request, unless the workflow polls its tracker less often.
const POLL_FLOOR: Duration = Duration::from_secs(30);
/// Default template of the title of a pull request.
pub const TITLE: &str = "{{ issue.title }}";
/// Settings that name the forge of a reaction.
const PROVIDERS: &[&str] =
    &["reactions.ci_failure.provider", "reactions.review_comments.provider", "ci_feedback.kind"];
/// Kinds of trackers that are forges too.
pub const FORGES: &[&str] = &["github", "gitlab", "gitea", "forgejo"];

/// Pull requests that the orchestrator opens.
#[derive(Debug, Clone, PartialEq)]
pub struct PullConfig {
    pub mode: PullMode,
    /// Kind of the forge.
    pub provider: String,
    pub endpoint: String,
    pub api_key: WorkflowSecret,
    /// The GitHub App of the tracker, where that is the forge and there is no other key.
    pub app: Option<AppConfig>,
    pub project: String,
    /// Branch to merge into. The default branch of the repository if absent.
    pub base: Option<String>,
    pub title: String,
    /// Template of the text. Without one it names the issue.
    pub body: Option<String>,
    pub draft: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
    /// State of an issue whose pull request was merged. The first terminal state if absent.
    pub merged_state: Option<String>,
    pub poll_interval: Duration,
    pub ci: CiConfig,
    pub reviews: ReviewConfig,
    pub bot_reviews: ReviewConfig,
    pub conflicts: ConflictConfig,
    pub auto_merge: AutoMerge,
    /// Label on a pull request that asks for another session.
    pub fix_label: Option<String>,
}

/// Whose pull requests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullMode {
    Off,
    /// Hooks or agents open them and name them in `.sortie/scm.json`; the orchestrator reacts to what happens to them.
    Adopt,
    /// The orchestrator commits, pushes and opens them.
    Open,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CiConfig {
    pub enabled: bool,
    pub max_retries: u32,
    pub max_log_lines: u32,
    pub escalation: Escalation,
    pub escalation_label: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReviewConfig {
    pub enabled: bool,
    pub debounce: Duration,
    /// Most sessions that reviews may cause.
    pub max_rounds: u32,
    pub escalation_label: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ConflictConfig {
    pub enabled: bool,
    pub max_retries: u32,
    pub escalation_label: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMethod {
    Squash,
    Merge,
    Rebase,
}

impl MergeMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            MergeMethod::Squash => "squash",
            MergeMethod::Merge => "merge",
            MergeMethod::Rebase => "rebase",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AutoMerge {
    pub enabled: bool,
    pub method: MergeMethod,
    /// Whether all checks must have passed. A pull request without checks does not count as passed.
    pub require_ci: bool,
    pub require_approval: bool,
    /// Label that a pull request must have, if one is named.
    pub label: Option<String>,
    pub delete_branch: bool,
}

pub(crate) fn pulls(reader: &mut Reader<'_>, tracker: &TrackerConfig) -> PullConfig {
    let opens = reader.has("pull_requests") && reader.boolean("pull_requests.enabled").unwrap_or(true);
    let reacting: Vec<String> = PROVIDERS.iter().filter_map(|path| reader.text(path)).collect();
    let mode = match (opens, reacting.is_empty()) {
        (true, _) => PullMode::Open,
        (false, false) => PullMode::Adopt,
        (false, true) => PullMode::Off,
    };
    let default = if FORGES.contains(&tracker.kind.as_str()) { tracker.kind.as_str() } else { "" };
    let provider = reader.text("pull_requests.provider").or_else(|| reacting.first().cloned());
    let provider = provider.unwrap_or_else(|| default.to_owned());
    if mode != PullMode::Off && !FORGES.contains(&provider.as_str()) {
        let message = format!("`pull_requests.provider` must be one of: {}", FORGES.join(", "));
        reader.error("pull_requests.provider", message);
    }
    // Where the tracker is the forge, it is named once.
    let shared = |value: Option<String>, of_tracker: &str| match value {
        Some(value) => value,
        None if provider == tracker.kind => of_tracker.to_owned(),
        None => String::new(),
    };
    let (endpoint, key) = (reader.text("pull_requests.endpoint"), reader.expanded("pull_requests.api_key"));
    let project = reader.text("pull_requests.project");
    let app = tracker.app.clone().filter(|_| provider == tracker.kind && key.is_none());
    PullConfig {
        app,
        mode,
        endpoint: shared(endpoint, &tracker.endpoint),
        api_key: WorkflowSecret(shared(key, &tracker.api_key.0)),
        project: shared(project, &tracker.project),
        base: reader.text("pull_requests.base"),
        title: reader.script("pull_requests.title").unwrap_or_else(|| TITLE.to_owned()),
        body: reader.script("pull_requests.body"),
        draft: reader.boolean("pull_requests.draft").unwrap_or(false),
        labels: reader.list("pull_requests.labels").unwrap_or_default(),
        reviewers: reader.list("pull_requests.reviewers").unwrap_or_default(),
        merged_state: reader.text("pull_requests.merged_state"),
        poll_interval: poll_interval(reader),
        ci: ci(reader),
        reviews: reviews(reader, "review_comments", 3),
        bot_reviews: reviews(reader, "bot_review", 5),
        conflicts: ConflictConfig {
            enabled: reader.has("reactions.merge_conflicts"),
            max_retries: reader.count("reactions.merge_conflicts.max_retries", 0, 1),
            escalation_label: escalation_label(reader, "reactions.merge_conflicts"),
        },
        auto_merge: auto_merge(reader),
        fix_label: reader.text("reactions.labels.fix").map(|label| label.to_lowercase()),
        provider,
    }
}

/// How often pull requests are read. A workflow that polls its tracker more often than reviews means it so.
fn poll_interval(reader: &mut Reader<'_>) -> Duration {
    let path = "reactions.review_comments.poll_interval_ms";
    let named = reader.milliseconds(path, Duration::from_secs(120));
    match reader.integer("pull_requests.poll_interval_ms") {
        Some(own) => Duration::from_millis(u64::try_from(own).unwrap_or_default().max(1)),
        None => named.max(POLL_FLOOR),
    }
}

fn escalation_label(reader: &mut Reader<'_>, block: &str) -> String {
    reader.text(&format!("{block}.escalation_label")).unwrap_or_else(|| ESCALATION_LABEL.to_owned())
}

fn ci(reader: &mut Reader<'_>) -> CiConfig {
    let reaction = reader.has("reactions.ci_failure");
    let block = if reaction { "reactions.ci_failure" } else { "ci_feedback" };
    let path = |name: &str| format!("{block}.{name}");
    let escalation = match reader.choice(&path("escalation"), &["label", "comment"], "label").as_str() {
        "comment" => Escalation::Comment,
        _ => Escalation::Label,
    };
    CiConfig {
        enabled: reader.has(block),
        max_retries: reader.count(&path("max_retries"), 0, 2),
        max_log_lines: reader.count(&path("max_log_lines"), 0, 50),
        escalation,
        escalation_label: escalation_label(reader, block),
    }
}

fn reviews(reader: &mut Reader<'_>, name: &str, rounds: u32) -> ReviewConfig {
    let block = format!("reactions.{name}");
    ReviewConfig {
        enabled: reader.has(&block),
        debounce: Duration::from_millis(reader.count(&format!("{block}.debounce_ms"), 0, 60_000).into()),
        max_rounds: reader.count(&format!("{block}.max_continuation_turns"), 0, rounds),
        escalation_label: escalation_label(reader, &block),
    }
}

fn auto_merge(reader: &mut Reader<'_>) -> AutoMerge {
    let block = "reactions.auto_merge";
    let path = |name: &str| format!("{block}.{name}");
    let method = reader.choice(&path("method"), &["squash", "merge", "rebase"], "squash");
    AutoMerge {
        enabled: reader.has(block) && reader.boolean(&path("enabled")).unwrap_or(true),
        method: match method.as_str() {
            "merge" => MergeMethod::Merge,
            "rebase" => MergeMethod::Rebase,
            _ => MergeMethod::Squash,
        },
        require_ci: reader.boolean(&path("require_ci")).unwrap_or(true),
        require_approval: reader.boolean(&path("require_approval")).unwrap_or(false),
        label: reader.text(&path("label")).map(|label| label.to_lowercase()),
        delete_branch: reader.boolean(&path("delete_branch")).unwrap_or(true),
    }
}
