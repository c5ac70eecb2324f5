//! Reads the blocks of the front matter into [`Config`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::Map;

use crate::config::{
    AppConfig, AppKey, BRANCH, Comments, Config, ESCALATION_LABEL, HOOK_TIMEOUT, Logging, MAX_AGENTS,
    MAX_RETRY_BACKOFF, MAX_TURNS, POLL_INTERVAL, PORT, READ_TIMEOUT, STALL_TIMEOUT, SelfReview,
    StateServerConfig, TURN_TIMEOUT, TokenRates, TrackerConfig, WorkerConfig, WorkflowAgent, WorkflowHooks,
    WorkflowSecret, WorkspaceConfig,
};
use crate::contest;
use crate::dispatch;
use crate::keys;
use crate::problem::{Problem, check};
use crate::reactions;
use crate::reader::Reader;
use crate::template::Language;
use crate::yaml::{Node, Yaml};

/// Seconds of a day.
const DAY: u64 = 86_400;
/// States of the issues of forges where a workflow names none.
const FORGE_ACTIVE: &[&str] = &["backlog", "in-progress", "review"];
const FORGE_TERMINAL: &[&str] = &["done", "wontfix"];

pub(crate) fn config(reader: &mut Reader<'_>) -> Config {
    unknown_keys(reader);
    let tracker = tracker(reader);
    check_states(reader, &tracker);
    let pulls = reactions::pulls(reader, &tracker);
    let agent = agent(reader);
    let names = reader.root.map(Node::entries).unwrap_or_default().iter().map(|(key, _)| key.name.clone());
    let is_section = |name: &String| keys::SECTIONS.iter().any(|(known, _)| known == name);
    let blocks: Vec<String> = names.filter(|name| !is_section(name)).collect();
    let mut extensions = Map::new();
    for name in blocks {
        let block = reader.block(&name);
        extensions.insert(name, block.into());
    }
    Config {
        tracker,
        poll_interval: reader.milliseconds("polling.interval_ms", POLL_INTERVAL),
        workspace: workspace(reader),
        hooks: WorkflowHooks {
            after_create: reader.script("hooks.after_create"),
            before_run: reader.script("hooks.before_run"),
            after_run: reader.script("hooks.after_run"),
            before_remove: reader.script("hooks.before_remove"),
            timeout: reader.milliseconds("hooks.timeout_ms", HOOK_TIMEOUT),
        },
        agent,
        pulls,
        dispatch: dispatch::rules(reader),
        judge: contest::judge(reader),
        self_review: self_review(reader),
        server: server(reader),
        logging: Logging {
            level: reader.choice("logging.level", &["debug", "info", "warn", "error"], "info"),
            format: reader.choice("logging.format", &["text", "json"], "text"),
        },
        worker: WorkerConfig {
            ssh_hosts: reader.list("worker.ssh_hosts").unwrap_or_default(),
            max_concurrent_per_host: match reader.count("worker.max_concurrent_agents_per_host", 0, 0) {
                0 => None,
                limit => Some(limit),
            },
            host_key_checking: reader.choice(
                "worker.ssh_strict_host_key_checking",
                &["accept-new", "yes", "no"],
                "accept-new",
            ),
        },
        token_rates: token_rates(reader),
        db_path: reader.path("db_path"),
        template: match reader.choice("template", &["go", "liquid", ""], "").as_str() {
            "go" => Some(Language::Go),
            "liquid" => Some(Language::Liquid),
            _ => None,
        },
        extensions,
    }
}

fn tracker(reader: &mut Reader<'_>) -> TrackerConfig {
    let kind = reader.text("tracker.kind").unwrap_or_default();
    let owned = |states: &[&str]| states.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>();
    let mut active_states = reader.list("tracker.active_states").unwrap_or_default();
    let mut terminal_states = reader.list("tracker.terminal_states").unwrap_or_default();
    if reactions::FORGES.contains(&kind.as_str()) && active_states.is_empty() && terminal_states.is_empty() {
        (active_states, terminal_states) = (owned(FORGE_ACTIVE), owned(FORGE_TERMINAL));
    }
    let mut settings = reader.block(&kind);
    settings.extend(reader.block("tracker.provider"));
    if let Some(path) = reader.text("tracker.path") {
        settings.entry("path").or_insert(path.into());
    }
    if let Some(version) = reader.text("tracker.api_version") {
        settings.entry("api_version").or_insert(version.into());
    }
    let labels = reader.list("tracker.required_labels").unwrap_or_default();
    let mut on = |name: &str| reader.boolean(&format!("tracker.comments.{name}")).unwrap_or(false);
    let comments = Comments {
        on_dispatch: on("on_dispatch"),
        on_completion: on("on_completion"),
        on_failure: on("on_failure"),
    };
    TrackerConfig {
        endpoint: reader.text("tracker.endpoint").unwrap_or_default(),
        api_key: WorkflowSecret(
            reader.expanded("tracker.api_key").unwrap_or_else(|| default_key(reader, &kind)),
        ),
        app: app(reader),
        project: reader.text("tracker.project").unwrap_or_default(),
        query_filter: reader.text("tracker.query_filter").unwrap_or_default(),
        active_states,
        terminal_states,
        handoff_state: reader.text("tracker.handoff_state"),
        in_progress_state: reader.text("tracker.in_progress_state"),
        required_labels: labels.iter().map(|label| label.to_lowercase()).collect(),
        escalation_label: reader
            .text("tracker.escalation_label")
            .unwrap_or_else(|| ESCALATION_LABEL.to_owned()),
        comments,
        settings,
        kind,
    }
}

/// The GitHub App of the tracker, if it has one.
fn app(reader: &mut Reader<'_>) -> Option<AppConfig> {
    if !reader.has("tracker.app") {
        return None;
    }
    let number = |reader: &mut Reader<'_>, path: &str| {
        let number = reader.integer(path).map(|number| number.to_string());
        number.or_else(|| reader.text(path))
    };
    let id = number(reader, "tracker.app.id");
    let installation = number(reader, "tracker.app.installation");
    let text = reader.expanded("tracker.app.private_key").filter(|text| !text.is_empty());
    let file = reader.path("tracker.app.private_key_path");
    let key = text.map(|text| AppKey::Text(WorkflowSecret(text))).or_else(|| file.map(AppKey::File));
    match (id, key) {
        (Some(id), Some(private_key)) => Some(AppConfig { id, installation, private_key }),
        _ => {
            let message = "`tracker.app` needs `id`, and `private_key` or `private_key_path`";
            reader.error("tracker.app", message);
            None
        }
    }
}

/// Key of a tracker whose workflow names none: that of the variable which Symphony uses.
fn default_key(reader: &Reader<'_>, kind: &str) -> String {
    if kind == "linear" { reader.environment.expand("$LINEAR_API_KEY") } else { String::new() }
}

fn check_states(reader: &mut Reader<'_>, tracker: &TrackerConfig) {
    if tracker.kind.is_empty() {
        reader.error(
            "tracker.kind",
            "`tracker.kind` is missing; it names the tracker, such as `file` or `github`",
        );
    }
    if tracker.active_states.is_empty() && tracker.terminal_states.is_empty() {
        let message = "`tracker.active_states` and `tracker.terminal_states` are both empty; name the states to work on";
        reader.error("tracker.active_states", message);
    }
    if let Some(both) = tracker.active_states.iter().find(|state| tracker.is_terminal(state)) {
        reader.error("tracker.terminal_states", format!("the state `{both}` is both active and terminal"));
    }
    if let Some(state) = &tracker.handoff_state
        && (tracker.is_active(state) || tracker.is_terminal(state))
    {
        let message =
            format!("`tracker.handoff_state` must be neither active nor terminal, and `{state}` is");
        reader.error("tracker.handoff_state", message);
    }
    if let Some(state) = &tracker.in_progress_state {
        let same = |other: &Option<String>| {
            other.as_ref().is_some_and(|other| other.to_lowercase() == state.to_lowercase())
        };
        if tracker.is_terminal(state) || same(&tracker.handoff_state) {
            let message = format!(
                "`tracker.in_progress_state` must not be the hand-off or a terminal state, and `{state}` is"
            );
            reader.error("tracker.in_progress_state", message);
        } else if !tracker.is_active(state) {
            let message =
                format!("`tracker.in_progress_state` must be one of the active states, and `{state}` is not");
            reader.error("tracker.in_progress_state", message);
        }
    }
}

fn workspace(reader: &mut Reader<'_>) -> WorkspaceConfig {
    let default = reader.environment.temp.join("sortie_workspaces");
    let several = |limit: u32| Some(limit).filter(|limit| *limit > 0);
    let max_workspaces = several(reader.count("workspace.max_workspaces", 0, 0));
    let quota_bytes = quota_bytes(reader);
    for (path, is_set) in [
        ("workspace.max_workspaces", max_workspaces.is_some()),
        ("workspace.quota_bytes", quota_bytes.is_some()),
    ] {
        // Work that was not committed is kept under a ref; a plain directory has none.
        if is_set && !reader.has("workspace.repository") && !reader.has("pull_requests") {
            reader.error(
                path,
                format!("`{path}` needs a repository, which keeps the work; set `workspace.repository`"),
            );
        }
    }
    let days = several(reader.count("workspace.retention_days", 0, 0));
    WorkspaceConfig {
        max_workspaces,
        quota_bytes,
        retention: days.map(|days| Duration::from_secs(u64::from(days) * DAY)),
        root: reader.path("workspace.root").unwrap_or(default),
        repository: reader.text("workspace.repository"),
        base: reader.text("workspace.base"),
        branch: reader.script("workspace.branch").unwrap_or_else(|| BRANCH.to_owned()),
    }
}

/// Bytes that all workspaces may have; 0 is no limit.
fn quota_bytes(reader: &mut Reader<'_>) -> Option<u64> {
    let path = "workspace.quota_bytes";
    let bytes = reader.integer(path)?;
    let limit = u64::try_from(bytes);
    if limit.is_err() {
        reader.error(path, format!("`{path}` must be at least 0, not {bytes}"));
    }
    limit.ok().filter(|limit| *limit > 0)
}

fn agent(reader: &mut Reader<'_>) -> WorkflowAgent {
    // A workflow of Symphony has a block of its one agent and no kind.
    let default = if reader.has("codex") { "codex" } else { "claude-code" };
    let kind = reader.text("agent.kind").unwrap_or_else(|| default.to_owned());
    let command = reader.text("agent.command").or_else(|| reader.text("codex.command"));
    let mut by_state = BTreeMap::new();
    for (key, value) in reader.entries("agent.max_concurrent_agents_by_state") {
        match value.value {
            Yaml::Int(limit @ 1..) => {
                by_state.insert(key.name.to_lowercase(), u32::try_from(limit).unwrap_or(u32::MAX));
            }
            _ => reader.problems.push(Problem::warning(
                "agent.max_concurrent_agents_by_state",
                value.at,
                format!("the limit of the state `{}` must be an integer above 0; it is ignored", key.name),
            )),
        }
    }
    WorkflowAgent {
        kind,
        command,
        max_concurrent: reader.count("agent.max_concurrent_agents", 1, MAX_AGENTS),
        max_concurrent_by_state: by_state,
        max_turns: reader.count("agent.max_turns", 1, MAX_TURNS),
        max_sessions: match reader.count("agent.max_sessions", 0, 0) {
            0 => None,
            limit => Some(limit),
        },
        turn_timeout: reader.milliseconds("agent.turn_timeout_ms", TURN_TIMEOUT),
        read_timeout: reader.milliseconds("agent.read_timeout_ms", READ_TIMEOUT),
        stall_timeout: reader.limit("agent.stall_timeout_ms", STALL_TIMEOUT),
        max_retry_backoff: reader.milliseconds("agent.max_retry_backoff_ms", MAX_RETRY_BACKOFF),
    }
}

fn self_review(reader: &mut Reader<'_>) -> SelfReview {
    let enabled = reader.boolean("self_review.enabled").unwrap_or(false);
    let max_iterations = reader.count("self_review.max_iterations", 1, 3);
    if max_iterations > 10 {
        reader.error("self_review.max_iterations", "`self_review.max_iterations` must be at most 10");
    }
    let verification_commands = reader.list("self_review.verification_commands").unwrap_or_default();
    if enabled && verification_commands.is_empty() {
        reader.error(
            "self_review.verification_commands",
            "self-review needs `self_review.verification_commands`",
        );
    }
    SelfReview {
        enabled,
        max_iterations,
        verification_commands,
        verification_timeout: reader
            .milliseconds("self_review.verification_timeout_ms", Duration::from_secs(120)),
        max_diff_bytes: reader.count("self_review.max_diff_bytes", 1, 102_400).into(),
        reviewer: reader.choice("self_review.reviewer", &["same"], "same"),
    }
}

fn server(reader: &mut Reader<'_>) -> StateServerConfig {
    let default = StateServerConfig::default();
    let is_named = reader.has("server.port");
    let port = match reader.integer("server.port") {
        // Nobody asked for a server.
        None if !reader.has("server") => None,
        None => Some(PORT),
        Some(0) => None,
        Some(port) => match u16::try_from(port) {
            Ok(port) => Some(port),
            Err(_) => {
                reader.error("server.port", format!("`server.port` must be from 0 to 65535, not {port}"));
                None
            }
        },
    };
    let host = match reader.text("server.host").map(|host| (host.parse::<IpAddr>(), host)) {
        None => default.host,
        Some((Ok(host), _)) => host,
        Some((Err(_), host)) => {
            reader.error("server.host", format!("`server.host` must be an IP address, not `{host}`"));
            default.host
        }
    };
    let webhook_secret = WorkflowSecret(reader.expanded("server.webhook_secret").unwrap_or_default());
    StateServerConfig { port, host, webhook_secret, is_named }
}

fn token_rates(reader: &mut Reader<'_>) -> BTreeMap<String, TokenRates> {
    let mut rates = BTreeMap::new();
    for (key, value) in reader.entries("token_rates") {
        let rate = |name: &str| match value.get(name).map(|node| &node.value) {
            Some(Yaml::Int(rate)) => *rate as f64,
            Some(Yaml::Float(rate)) => *rate,
            _ => 0.0,
        };
        rates.insert(
            key.name.clone(),
            TokenRates {
                input_per_mtok: rate("input_per_mtok"),
                output_per_mtok: rate("output_per_mtok"),
                cache_read_per_mtok: rate("cache_read_per_mtok"),
            },
        );
    }
    rates
}

/// Warns of names that nothing reads, so that a typing error does not go unnoticed.
fn unknown_keys(reader: &mut Reader<'_>) {
    let entries = reader.root.map(Node::entries).unwrap_or_default();
    // A block with the name of the agent is the agent's, whichever agents the machine has.
    let agent = reader.block("agent").get("kind").and_then(|kind| kind.as_str().map(str::to_owned));
    let mut found = Vec::new();
    for (key, value) in entries {
        let section = keys::SECTIONS.iter().find(|(name, _)| *name == key.name);
        let Some((_, settings)) = section else {
            if !keys::ADAPTERS.contains(&key.name.as_str()) && agent.as_deref() != Some(&key.name) {
                let known =
                    keys::SECTIONS.iter().map(|(name, _)| *name).chain(keys::ADAPTERS.iter().copied());
                let message = unknown(&key.name, keys::similar(&key.name, known));
                found.push(Problem::warning(check::UNKNOWN_KEY, key.at, message));
            }
            continue;
        };
        for (sub, _) in value.entries() {
            if !settings.is_empty() && !settings.contains(&sub.name.as_str()) {
                let name = format!("{}.{}", key.name, sub.name);
                let message = unknown(&name, keys::similar(&sub.name, settings.iter().copied()));
                found.push(Problem::warning(check::UNKNOWN_SUB_KEY, sub.at, message));
            }
        }
    }
    reader.problems.extend(found);
}

fn unknown(name: &str, similar: Option<&str>) -> String {
    match similar {
        Some(similar) => format!("`{name}` is not a setting; did you mean `{similar}`?"),
        None => format!("`{name}` is not a setting and has no effect"),
    }
}
