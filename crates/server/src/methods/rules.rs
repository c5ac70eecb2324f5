//! The rules by which a session asks: rules, directories, URLs, approvals of places, trusted folders.

use std::path::{Path, PathBuf};

use hangar_agent::permissions::{Policy, Rule, SessionApproval};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::locations::{self, PermissionLocation};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.permissions.configure", run: |call| Box::pin(configure(call)) },
    Method { name: "session.permissions.modifyRules", run: |call| Box::pin(modify(call)) },
    Method { name: "session.permissions.paths.list", run: |call| Box::pin(list_paths(call)) },
    Method { name: "session.permissions.paths.add", run: |call| Box::pin(add_path(call)) },
    Method { name: "session.permissions.paths.updatePrimary", run: |call| Box::pin(update_primary(call)) },
    Method {
        name: "session.permissions.paths.isPathWithinAllowedDirectories",
        run: |call| Box::pin(is_allowed(call)),
    },
    Method {
        name: "session.permissions.paths.isPathWithinWorkspace",
        run: |call| Box::pin(is_in_workspace(call)),
    },
    Method { name: "session.permissions.urls.setUnrestrictedMode", run: |call| Box::pin(set_any_url(call)) },
    Method { name: "session.permissions.locations.resolve", run: |call| Box::pin(resolve(call)) },
    Method {
        name: "session.permissions.locations.addToolApproval",
        run: |call| Box::pin(add_approval(call)),
    },
    Method { name: "session.permissions.locations.apply", run: |call| Box::pin(apply(call)) },
    Method { name: "session.permissions.folderTrust.isTrusted", run: |call| Box::pin(is_trusted(call)) },
    Method { name: "session.permissions.folderTrust.addTrusted", run: |call| Box::pin(add_trusted(call)) },
];

#[derive(Debug, Clone, Deserialize)]
struct RuleParams {
    kind: String,
    argument: Option<String>,
}

impl RuleParams {
    fn parse(&self) -> Result<Rule, Failure> {
        let kind = if self.kind == "commands" { "shell" } else { &self.kind };
        let text = match &self.argument {
            Some(argument) => format!("{kind}({argument})"),
            None => kind.to_owned(),
        };
        Rule::parse(&text).map_err(|error| Failure::new(error.to_string()))
    }
}

fn parse_all(rules: &[RuleParams]) -> Result<Vec<Rule>, Failure> {
    rules.iter().map(RuleParams::parse).collect()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigureParams {
    approve_all_tool_permission_requests: Option<bool>,
    approve_all_read_permission_requests: Option<bool>,
    rules: Option<RulesParams>,
    paths: Option<PathsParams>,
    urls: Option<UrlsParams>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RulesParams {
    approved: Vec<RuleParams>,
    denied: Vec<RuleParams>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PathsParams {
    workspace_path: Option<PathBuf>,
    additional_directories: Vec<PathBuf>,
    unrestricted: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UrlsParams {
    initial_allowed: Vec<String>,
    unrestricted: Option<bool>,
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

async fn configure(call: Call) -> Result<Reply, Failure> {
    let params: ConfigureParams = call.params()?;
    let rules = params.rules.unwrap_or_default();
    let (allow, deny) = (parse_all(&rules.approved)?, parse_all(&rules.denied)?);
    let urls = params.urls.unwrap_or_default();
    let urls_allowed: Vec<Rule> = urls
        .initial_allowed
        .iter()
        .map(|url| RuleParams { kind: "url".to_owned(), argument: Some(url.clone()) }.parse())
        .collect::<Result<_, _>>()?;
    let paths = params.paths.unwrap_or_default();
    let live = call.live()?;
    live.ask(move |task| {
        let policy = task.engine.driver_mut().session_mut().policy_mut();
        policy.allow = allow.into_iter().chain(urls_allowed).collect();
        policy.deny = deny;
        if let Some(all) = params.approve_all_tool_permission_requests {
            policy.allow_all_tools = all;
        }
        if let Some(all) = params.approve_all_read_permission_requests {
            policy.asks_about_reads = !all;
        }
        if let Some(any) = paths.unrestricted {
            policy.allow_all_paths = any;
        }
        if let Some(any) = urls.unrestricted {
            policy.allow_all_urls = any;
        }
        if let Some(primary) = &paths.workspace_path {
            set_primary(policy, real(primary));
        }
        for directory in &paths.additional_directories {
            add_root(policy, real(directory));
        }
    })
    .await?;
    Reply::success()
}

pub(super) fn add_root(policy: &mut Policy, root: PathBuf) {
    if !policy.roots.contains(&root) {
        policy.roots.push(root);
    }
}

/// The first of the directories is the one that the session works in.
fn set_primary(policy: &mut Policy, root: PathBuf) {
    policy.roots.retain(|known| *known != root);
    policy.roots.insert(0, root);
}

async fn modify(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(default)]
        add: Vec<RuleParams>,
        #[serde(default)]
        remove: Vec<RuleParams>,
        #[serde(default)]
        remove_all: bool,
    }
    let params: Params = call.params()?;
    let (add, remove) = (parse_all(&params.add)?, parse_all(&params.remove)?);
    let live = call.live()?;
    live.ask(move |task| {
        let allow = &mut task.engine.driver_mut().session_mut().policy_mut().allow;
        allow.retain(|rule| !params.remove_all && !remove.contains(rule));
        allow.extend(add);
    })
    .await?;
    Reply::success()
}

async fn list_paths(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let roots = live.ask(|task| task.session().config().policy.roots.clone()).await?;
    Reply::of(json!({ "directories": roots, "primary": roots.first() }))
}

#[derive(Deserialize)]
struct PathParams {
    path: PathBuf,
}

async fn add_path(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    let live = call.live()?;
    live.ask(move |task| add_root(task.engine.driver_mut().session_mut().policy_mut(), real(&path))).await?;
    Reply::success()
}

async fn update_primary(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    let live = call.live()?;
    live.ask(move |task| set_primary(task.engine.driver_mut().session_mut().policy_mut(), real(&path)))
        .await?;
    Reply::success()
}

/// Links resolved as far as the path exists, since that is how it would be touched.
fn resolved(path: &Path) -> PathBuf {
    let Some(existing) = path.ancestors().find(|ancestor| ancestor.exists()) else {
        return path.to_path_buf();
    };
    match path.strip_prefix(existing) {
        Ok(rest) if rest.as_os_str().is_empty() => real(existing),
        Ok(rest) => real(existing).join(rest),
        Err(_) => path.to_path_buf(),
    }
}

async fn is_allowed(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    let live = call.live()?;
    let policy = live.ask(|task| task.session().config().policy.clone()).await?;
    let path = resolved(&path);
    let allowed = policy.allow_all_paths || policy.roots.iter().any(|root| path.starts_with(root));
    Reply::of(json!({ "allowed": allowed }))
}

async fn is_in_workspace(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    let live = call.live()?;
    let primary = live.ask(|task| task.session().config().policy.roots.first().cloned()).await?;
    let path = resolved(&path);
    Reply::of(json!({ "allowed": primary.is_some_and(|root| path.starts_with(root)) }))
}

async fn set_any_url(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        enabled: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    live.ask(move |task| task.engine.driver_mut().session_mut().policy_mut().allow_all_urls = params.enabled)
        .await?;
    Reply::success()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DirectoryParams {
    working_directory: PathBuf,
}

async fn resolve(call: Call) -> Result<Reply, Failure> {
    let DirectoryParams { working_directory } = call.params()?;
    call.live()?;
    let location = PermissionLocation::of(&working_directory);
    Reply::of(json!({ "locationKey": location.key, "locationType": location.kind }))
}

async fn add_approval(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        location_key: String,
        approval: Value,
    }
    let params: Params = call.params()?;
    call.live()?;
    locations::add_approval(&call.hub.home(), &params.location_key, params.approval)
        .map_err(|error| Failure::new(format!("keeping the approval: {error}")))?;
    Reply::success()
}

async fn apply(call: Call) -> Result<Reply, Failure> {
    let DirectoryParams { working_directory } = call.params()?;
    let live = call.live()?;
    let location = PermissionLocation::of(&working_directory);
    let approvals: Vec<SessionApproval> = locations::approvals(&call.hub.home(), &location.key)
        .iter()
        .filter_map(SessionApproval::parse)
        .collect();
    let rules: Vec<Value> = approvals.iter().flat_map(rules_of).collect();
    let changed = !approvals.is_empty();
    live.ask(move |task| task.engine.driver_mut().session_mut().policy_mut().approvals.extend(approvals))
        .await?;
    Reply::of(json!({
        "locationKey": location.key,
        "locationType": location.kind,
        "changed": changed,
        "appliedRuleCount": rules.len(),
        "appliedDirectoryCount": 0,
        "appliedRules": rules,
    }))
}

/// Converts an approval into rules.
fn rules_of(approval: &SessionApproval) -> Vec<Value> {
    let rule = |kind: &str, argument: Option<&str>| json!({ "kind": kind, "argument": argument });
    match approval {
        SessionApproval::Commands(commands) => {
            commands.iter().map(|command| rule("shell", Some(command))).collect()
        }
        SessionApproval::Write => vec![rule("write", None)],
        SessionApproval::Read => vec![rule("read", None)],
        SessionApproval::Mcp { server, tool } => vec![rule(server, tool.as_deref())],
        SessionApproval::McpSampling { server } => vec![rule("mcp-sampling", Some(server))],
        SessionApproval::Url { domain } => vec![rule("url", Some(domain))],
        SessionApproval::CustomTool(tool) => vec![rule("custom-tool", Some(tool))],
        SessionApproval::Memory => vec![rule("memory", None)],
        SessionApproval::ExtensionManagement(operation) => {
            vec![rule("extension-management", operation.as_deref())]
        }
        SessionApproval::ExtensionPermissionAccess(extension)
        | SessionApproval::ExtensionEnvAccess { extension, .. } => {
            vec![rule("extension-permission-access", Some(extension))]
        }
    }
}

async fn is_trusted(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    call.live()?;
    Reply::of(json!({ "trusted": locations::is_trusted(&call.hub.home(), &real(&path)) }))
}

async fn add_trusted(call: Call) -> Result<Reply, Failure> {
    let PathParams { path } = call.params()?;
    call.live()?;
    locations::trust(&call.hub.home(), &real(&path))
        .map_err(|error| Failure::new(format!("trusting {}: {error}", path.display())))?;
    Reply::success()
}
