//! Names of all settings, and the variables that replace some of them.

/// Blocks at the top of the front matter, with the settings that each has. An empty list is a block of its reader's own.
pub(crate) const SECTIONS: &[(&str, &[&str])] = &[
    (
        "tracker",
        &[
            "kind",
            "endpoint",
            "api_key",
            "project",
            "query_filter",
            "active_states",
            "terminal_states",
            "handoff_state",
            "in_progress_state",
            "required_labels",
            "escalation_label",
            "comments",
            "provider",
            "app",
            "path",
            "api_version",
        ],
    ),
    ("polling", &["interval_ms"]),
    (
        "workspace",
        &["root", "repository", "base", "branch", "max_workspaces", "quota_bytes", "retention_days"],
    ),
    ("hooks", &["after_create", "before_run", "after_run", "before_remove", "timeout_ms"]),
    (
        "agent",
        &[
            "kind",
            "command",
            "max_concurrent_agents",
            "max_concurrent_agents_by_state",
            "max_turns",
            "max_sessions",
            "turn_timeout_ms",
            "read_timeout_ms",
            "stall_timeout_ms",
            "max_retry_backoff_ms",
        ],
    ),
    ("ci_feedback", &["kind", "max_retries", "max_log_lines", "escalation", "escalation_label"]),
    ("reactions", &[]),
    (
        "pull_requests",
        &[
            "enabled",
            "provider",
            "endpoint",
            "api_key",
            "project",
            "base",
            "title",
            "body",
            "draft",
            "labels",
            "reviewers",
            "merged_state",
            "poll_interval_ms",
        ],
    ),
    (
        "self_review",
        &[
            "enabled",
            "max_iterations",
            "verification_commands",
            "verification_timeout_ms",
            "max_diff_bytes",
            "reviewer",
        ],
    ),
    ("server", &["port", "host", "webhook_secret"]),
    ("dispatch", &["rules", "stages", "judge"]),
    ("logging", &["level", "format"]),
    ("worker", &["ssh_hosts", "max_concurrent_agents_per_host", "ssh_strict_host_key_checking"]),
    ("token_rates", &[]),
    ("observability", &["dashboard_enabled", "refresh_ms", "render_interval_ms"]),
    ("db_path", &[]),
    ("template", &[]),
];

/// Blocks that adapters read themselves.
pub(crate) const ADAPTERS: &[&str] = &[
    "file",
    "markdown",
    "github",
    "jira",
    "linear",
    "gitlab",
    "gitea",
    "forgejo",
    "claude-code",
    "copilot-cli",
    "codex",
    "opencode",
    "acp",
    "mock",
    "hangar",
    "extensions",
];

/// Settings that a variable replaces: `tracker.kind` by `SORTIE_TRACKER_KIND`.
const REPLACED: &[&str] = &[
    "tracker.kind",
    "tracker.endpoint",
    "tracker.api_key",
    "tracker.project",
    "tracker.active_states",
    "tracker.terminal_states",
    "tracker.query_filter",
    "tracker.handoff_state",
    "tracker.in_progress_state",
    "tracker.comments.on_dispatch",
    "tracker.comments.on_completion",
    "tracker.comments.on_failure",
    "polling.interval_ms",
    "workspace.root",
    "agent.kind",
    "agent.command",
    "agent.turn_timeout_ms",
    "agent.read_timeout_ms",
    "agent.stall_timeout_ms",
    "agent.max_concurrent_agents",
    "agent.max_turns",
    "agent.max_retry_backoff_ms",
    "agent.max_sessions",
    "db_path",
];

/// Name of the variable that replaces a setting.
pub(crate) fn variable_of(path: &str) -> Option<String> {
    let name = || path.to_uppercase().replace('.', "_");
    REPLACED.contains(&path).then(|| format!("{}{}", crate::environment::PREFIX, name()))
}

/// The known name that is nearest to a mistyped one.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, candidate)| candidate)
}
