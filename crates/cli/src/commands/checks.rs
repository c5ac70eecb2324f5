//! Checks of `hangar doctor` about the configuration, named agents, hosts, the disk and the clock.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use hangar_process::credentials::Child;
use hangar_runtimes::host::{Host, Ssh};
use hangar_runtimes::runtime::{Lookup, Runtime};
use jiff::Timestamp;

use super::doctor::{Finding, Health};
use crate::automation::{self, tables};
use crate::config;
use crate::credentials;
use crate::notify;
use crate::providers;
use crate::runtimes::{AgentRuntimes, choice};
use crate::settings::Settings;

/// Time limit of an ssh connection.
const SSH_PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of an agent's list of models.
const MODELS_PATIENCE: Duration = Duration::from_secs(20);
/// Free bytes below which the disk is a problem, and below which it is worth a note.
const DISK_FULL: u64 = 100 << 20;
const DISK_LOW: u64 = 1 << 30;
/// How far a file of ours may be in the future.
const CLOCK_SLACK: Duration = Duration::from_secs(120);
/// Hosts that are tried.
const MOST_HOSTS: usize = 32;

/// Problems of `config.toml`, and when its schedules run next.
pub(super) fn configuration(settings: &Settings) -> Vec<Finding> {
    let text = settings.config_text().unwrap_or_default();
    let found = config::problems(settings, &text);
    let mut findings: Vec<Finding> =
        found.iter().map(|problem| Finding::new(Health::Bad, "configuration", problem.to_string())).collect();
    if found.is_empty() && !text.is_empty() {
        findings.push(Finding::new(Health::Good, "configuration", "config.toml is valid"));
    }
    let unset = notify::config::unset(settings, &text).into_iter();
    findings.extend(unset.map(|why| Finding::new(Health::Bad, "notifications", why)));
    findings.extend(automations(settings, &text));
    findings
}

/// When schedules run next, and what keeps schedules and hooks from starting their work.
fn automations(settings: &Settings, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let now = Timestamp::now();
    let tables::Automations { schedules, hooks } = tables::read(text);
    let runtimes = AgentRuntimes::assemble(settings).ok();
    for (name, hook) in hooks.into_iter().filter(|(_, hook)| hook.is_enabled()) {
        let secret = automation::secret(settings, &hook).err().map(|error| format!("{error:#}"));
        let problem = secret.or_else(|| automation::obstacle(&hook.work(), runtimes.as_ref()));
        let subject = format!("hook {name}");
        findings.push(match problem {
            Some(problem) => Finding::new(Health::Bad, subject, problem),
            None => {
                let says = format!("listens at /api/v1/hooks/{name}, if `hangar up` is running");
                Finding::new(Health::Good, subject, says)
            }
        });
    }
    for schedule in schedules {
        let subject = format!("schedule {}", schedule.table.name);
        if let Some(problem) = automation::obstacle(&schedule.work(), runtimes.as_ref())
            && schedule.is_enabled()
        {
            findings.push(Finding::new(Health::Bad, subject, problem));
            continue;
        }
        findings.push(match (schedule.is_enabled(), schedule.next(now)) {
            (false, _) => Finding::new(Health::Plain, subject, "is disabled"),
            (true, Some(next)) => {
                let next = next.to_zoned(schedule.zone.clone()).strftime("%Y-%m-%d %H:%M %Q").to_string();
                Finding::new(Health::Good, subject, format!("runs next at {next}, if `hangar up` is running"))
            }
            // It is among the problems of the file.
            (true, None) => continue,
        });
    }
    findings
}

/// Whether each named agent has a model that its runtime offers.
pub(super) fn agents(settings: &Settings) -> Vec<Finding> {
    // Other checks report a configuration that cannot be used.
    let Ok(runtimes) = AgentRuntimes::assemble(settings) else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    runtimes.named().map(|agent| runtime.block_on(agent_finding(settings, &runtimes, &**agent))).collect()
}

async fn agent_finding(settings: &Settings, runtimes: &AgentRuntimes, agent: &dyn Runtime) -> Finding {
    let card = agent.card();
    let (subject, base) = (format!("agent {}", card.name), card.base());
    let fallbacks = runtimes.config.named.get(&*card.name).map(|table| table.fallback_models.clone());
    let model = runtimes.config.model(&card.name);
    let models: Vec<String> = model.into_iter().chain(fallbacks.unwrap_or_default()).collect();
    let table = runtimes.config.named.get(&*card.name);
    let servers = table.and_then(|table| table.tools.mcp_config.clone());
    let servers = servers.map(|given| runtimes.config.resolved(given));
    if let Some(file) = servers.filter(|given| !given.starts_with('{') && !Path::new(given).is_file()) {
        return Finding::new(Health::Bad, subject, format!("its `mcp_config` {file} does not exist"));
    }
    let prompt =
        table.and_then(|table| table.system_prompt_file.as_ref()).map(|file| settings.home.join(file));
    if let Some(file) = prompt.filter(|file| !file.is_file()) {
        return Finding::new(
            Health::Bad,
            subject,
            format!("its `system_prompt_file` {} does not exist", file.display()),
        );
    }
    if !card.capabilities.own_log
        && let Some(problem) = agent.preflight().await.problems.first()
    {
        return Finding::new(Health::Bad, subject, format!("runs on {base}, which is not ready: {problem}"));
    }
    if models.is_empty() {
        return Finding::new(Health::Good, subject, format!("runs on {base} with its default model"));
    }
    if card.capabilities.own_log {
        let known = providers::configured(settings).unwrap_or_default();
        let missing = models.iter().find(|model| {
            !providers::is_scripted(model)
                && (known.is_empty() || providers::check_provider(&known, model).is_err())
        });
        return match missing {
            Some(model) => {
                Finding::new(Health::Bad, subject, format!("no provider offers its model `{model}`"))
            }
            None => Finding::new(Health::Good, subject, format!("runs on {base} with {}", models.join(", "))),
        };
    }
    let listed = tokio::time::timeout(MODELS_PATIENCE, agent.models(Lookup::Cached)).await.ok().flatten();
    let missing = listed
        .as_ref()
        .and_then(|listed| models.iter().find(|model| listed.iter().all(|offered| offered.id != **model)));
    match (missing, listed) {
        (Some(model), Some(listed)) => {
            let says = format!("its model `{model}` is none of the {} that {base} lists", listed.len());
            Finding::new(Health::Bad, subject, says)
        }
        (_, None) => {
            let says = format!("runs on {base} with {}; {base} does not list its models", models.join(", "));
            Finding::new(Health::Plain, subject, says)
        }
        (None, Some(_)) => {
            Finding::new(Health::Good, subject, format!("runs on {base} with {}", models.join(", ")))
        }
    }
}

/// Whether each configured machine can be reached by ssh.
pub(super) fn hosts(settings: &Settings) -> Vec<Finding> {
    let Ok(runtimes) = AgentRuntimes::assemble(settings) else { return Vec::new() };
    let config = &runtimes.config;
    let of_agents = config.agents.keys().chain(config.named.keys()).map(|name| choice::host_of(config, name));
    let pools =
        config.named.iter().flat_map(|(name, agent)| agent.pool().iter().map(move |host| (name, host)));
    let of_pools = pools.map(|(name, host)| choice::host_named(config, name, host));
    let mut hosts: Vec<Ssh> = Vec::new();
    for host in of_agents.chain(of_pools) {
        if let Host::Ssh(ssh) = host
            && !hosts.contains(&ssh)
        {
            hosts.push(ssh);
        }
    }
    hosts.sort_by(|a, b| a.target.cmp(&b.target));
    hosts.iter().take(MOST_HOSTS).map(|host| host_finding(settings, host)).collect()
}

fn host_finding(settings: &Settings, host: &Ssh) -> Finding {
    let target = &host.target;
    let subject = format!("host {target}");
    let seconds = SSH_PATIENCE.as_secs();
    let child = Command::new("ssh")
        .args(host.trial(seconds))
        .env_clear()
        .envs(credentials::environment(settings, Child::Helper, &[]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Finding::new(Health::Bad, subject, format!("ssh cannot be started: {error}")),
    };
    let deadline = Instant::now() + SSH_PATIENCE + Duration::from_secs(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => {
                return Finding::new(Health::Good, subject, "can be reached by ssh");
            }
            Ok(Some(_)) => {
                let says = format!("cannot be reached without a question; try `ssh {target} true`");
                return Finding::new(Health::Bad, subject, says);
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                // An error means that it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Finding::new(Health::Bad, subject, format!("gave no answer within {seconds} s"));
            }
        }
    }
}

/// Free space where the state is kept.
pub(super) fn disk(home: &Path) -> Finding {
    let Ok(room) = rustix::fs::statvfs(home) else {
        return Finding::new(Health::Plain, "disk", "its free space is unknown");
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let says = format!("{} MB are free in {}", free >> 20, home.display());
    let health = match free {
        ..DISK_FULL => Health::Bad,
        DISK_FULL..DISK_LOW => Health::Plain,
        _ => Health::Good,
    };
    Finding::new(health, "disk", says)
}

/// Whether the clock is behind files that this machine wrote.
pub(super) fn clock(home: &Path) -> Finding {
    let now = SystemTime::now();
    let written = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let places = ["", "config.toml", "queue", "runs", "session-state", "automation"];
    let newest = places.iter().filter_map(|place| written(&home.join(place))).max();
    match newest.and_then(|newest| newest.duration_since(now).ok()).filter(|ahead| *ahead > CLOCK_SLACK) {
        Some(ahead) => Finding::new(
            Health::Bad,
            "clock",
            format!(
                "is {} s behind a file that was written here; schedules and retries depend on it",
                ahead.as_secs()
            ),
        ),
        None => Finding::new(
            Health::Good,
            "clock",
            Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        ),
    }
}
