//! `hangar doctor`: what works on this machine and what does not, without ever printing a credential.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use hangar_models::catalogue;
use hangar_models::config::{Auth, ProviderConfig};
use hangar_runtimes::runtime::{Lookup, Runtime};
use hangar_sandbox::Gap;
use serde_json::json;

use super::{checks, print_line, probe};
use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::portal::args::ListenArgs;
use crate::providers::{self, GITHUB_TOKENS};
use crate::runtimes::AgentRuntimes;
use crate::runtimes::commands::{Look, look};
use crate::sandbox;
use crate::settings::Settings;

/// Time limit of a provider's list of models.
pub(super) const PROVIDER_PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of an agent's list of models.
const MODELS_PATIENCE: Duration = Duration::from_secs(20);
/// Limits of the answer of a server on the portal's port: time and bytes.
const PORTAL_PATIENCE: Duration = Duration::from_secs(2);
const PORTAL_ANSWER: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// Information that requires no action.
    Plain,
    Bad,
}

pub(super) struct Finding {
    health: Health,
    subject: String,
    says: String,
}

impl Finding {
    pub(super) fn new(health: Health, subject: impl Into<String>, says: impl Into<String>) -> Self {
        Self { health, subject: subject.into(), says: says.into() }
    }
}

pub(crate) fn run(settings: &Settings, args: &DoctorArgs) -> Result<Exit> {
    let mut findings = vec![home(&settings.home)];
    findings.extend(tokens(settings));
    findings.extend(checks::configuration(settings));
    findings.extend(providers(settings)?);
    if args.probe {
        findings.extend(probe::run(settings)?);
    }
    if let Some(url) = &args.fleet {
        let health = |good| if good { Health::Good } else { Health::Bad };
        let examined = crate::fleet::doctor::run(settings, Some(url))?;
        findings.extend(
            examined.into_iter().map(|found| Finding::new(health(found.good), found.subject, found.says)),
        );
    }
    findings.extend(tools(settings));
    findings.extend(agents(settings)?);
    findings.push(portal(settings, &args.portal)?);
    findings.extend(checks::agents(settings));
    findings.extend(checks::hosts(settings));
    findings.push(checks::disk(&settings.home));
    findings.push(checks::clock(&settings.home));
    findings.extend(confinement(settings));
    let bad = findings.iter().any(|finding| finding.health == Health::Bad);
    if args.json {
        let rows: Vec<serde_json::Value> = findings
            .iter()
            .map(|finding| json!({ "ok": finding.health != Health::Bad, "check": finding.subject, "says": finding.says }))
            .collect();
        print_line(&serde_json::to_string_pretty(&rows)?)?;
    } else {
        for finding in &findings {
            let mark = match finding.health {
                Health::Good => "ok ",
                Health::Plain => "-  ",
                Health::Bad => "BAD",
            };
            print_line(&format!("{mark} {}: {}", finding.subject, finding.says))?;
        }
    }
    Ok(if bad { Exit::NeedsAttention } else { Exit::Done })
}

fn home(home: &Path) -> Finding {
    let probe = home.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::create_dir_all(home)
        .and_then(|()| std::fs::write(&probe, b"ok"))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => Finding::new(Health::Good, "home", format!("{} is writable", home.display())),
        Err(error) => {
            Finding::new(Health::Bad, "home", format!("{} cannot be written: {error}", home.display()))
        }
    }
}

/// Whether the kernel confines commands that nobody approved, and by which layers.
fn confinement(settings: &Settings) -> Vec<Finding> {
    let gaps = match sandbox::gaps(settings) {
        Ok(gaps) => gaps,
        Err(error) => {
            let why = anyhow::Error::from(error);
            let says = format!("none: {why:#}; only a few plain commands run without being asked about");
            return vec![Finding::new(Health::Plain, "sandbox", says)];
        }
    };
    let namespaces = if gaps.contains(&Gap::Processes) { "" } else { ", namespaces" };
    let says = format!("commands that nobody approved are confined by Landlock, seccomp{namespaces}");
    let plain = |gap: Gap| Finding::new(Health::Plain, "sandbox", gap.sentence().to_owned());
    std::iter::once(Finding::new(Health::Good, "sandbox", says)).chain(gaps.into_iter().map(plain)).collect()
}

fn tokens(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in GITHUB_TOKENS {
        let Some(token) = settings.var(name) else { continue };
        findings.push(if token.starts_with("ghp_") {
            Finding::new(
                Health::Bad,
                name,
                "is a classic token (ghp_), which the Copilot API does not accept",
            )
        } else {
            Finding::new(Health::Good, name, "is set")
        });
    }
    if findings.is_empty() {
        let names = GITHUB_TOKENS.join(", ");
        findings.push(Finding::new(Health::Plain, "GitHub", format!("none of {names} is set")));
    }
    findings
}

fn providers(settings: &Settings) -> Result<Vec<Finding>> {
    let configured = match providers::configured(settings) {
        Ok(configured) => configured,
        Err(error) => return Ok(vec![Finding::new(Health::Bad, "configuration", format!("{error:#}"))]),
    };
    if configured.is_empty() && settings.var("COPILOT_MODEL").is_some_and(providers::is_scripted) {
        let says = "none configured; COPILOT_MODEL chooses the scripted model, which needs none";
        return Ok(vec![Finding::new(Health::Plain, "providers", says)]);
    }
    if configured.is_empty() {
        let says = format!(
            "none configured: set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL, or add a [providers.NAME] table to {}",
            settings.config_path().display()
        );
        return Ok(vec![Finding::new(Health::Bad, "providers", says)]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    Ok(configured.iter().map(|provider| runtime.block_on(look_at(provider))).collect())
}

async fn look_at(provider: &ProviderConfig) -> Finding {
    let (ok, says) = ask_provider(provider).await;
    let health = if ok { Health::Good } else { Health::Bad };
    Finding::new(health, format!("provider {}", provider.name), says)
}

/// Asks a provider for its models: whether it answers, and the result in a sentence.
pub(crate) async fn ask_provider(provider: &ProviderConfig) -> (bool, String) {
    let auth = match provider.auth {
        Auth::None => "no credentials",
        Auth::ApiKey(_) => "an API key",
        Auth::Bearer(_) => "a bearer token",
        Auth::Command(_) => "a key command",
    };
    match tokio::time::timeout(PROVIDER_PATIENCE, catalogue::list_models(provider)).await {
        Ok(Ok(models)) => (true, format!("answers with {auth}, {} models", models.len())),
        Ok(Err(error)) => (false, format!("with {auth}: {error}")),
        Err(_) => (false, format!("gave no answer within {} s", PROVIDER_PATIENCE.as_secs())),
    }
}

/// Findings about the agents that `hangar run` can use. A missing one is not a problem.
fn agents(settings: &Settings) -> Result<Vec<Finding>> {
    let runtimes = match AgentRuntimes::assemble(settings) {
        Ok(runtimes) => runtimes,
        Err(error) => return Ok(vec![Finding::new(Health::Bad, "agents", format!("{error:#}"))]),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let (looks, models) = runtime.block_on(async {
        let looks = look(settings, &runtimes).await;
        let models =
            join_all(looks.iter().zip(runtimes.iter()).map(|(look, agent)| count_models(look, agent))).await;
        (looks, models)
    });
    let finding = |(look, models): (&Look, &Option<String>)| {
        let subject = format!("agent {}", look.card.name);
        if !look.is_installed() {
            let says = match (&look.preflight.host, look.preflight.problems.first()) {
                (Some(_), Some(problem)) => problem.clone(),
                _ => format!("not installed: {}", look.card.install),
            };
            return Finding::new(Health::Plain, subject, says);
        }
        let version = look.preflight.version.as_deref().unwrap_or("of unknown version");
        let notes = look.preflight.problems.iter().chain(&look.preflight.warnings).chain(&look.drift);
        let notes = models.iter().chain(notes);
        let says: Vec<&str> = std::iter::once(version).chain(notes.map(String::as_str)).collect();
        let sound = look.preflight.is_ready() && look.drift.is_empty() && look.preflight.warnings.is_empty();
        Finding::new(if sound { Health::Good } else { Health::Plain }, subject, says.join("; "))
    };
    // Our own agent depends on the providers, which were checked already.
    let others = looks.iter().zip(&models).filter(|(look, _)| !look.card.capabilities.own_log);
    let default = runtimes.config.default.as_deref().map(|name| match runtimes.find(name) {
        Ok(_) => Finding::new(Health::Good, "default agent", name),
        Err(error) => Finding::new(Health::Bad, "default agent", format!("[runtimes] default: {error}")),
    });
    Ok(default.into_iter().chain(others.map(finding)).collect())
}

/// Number of models that an agent offers, if it lists them.
async fn count_models(look: &Look, agent: &Arc<dyn Runtime>) -> Option<String> {
    if !look.is_installed() || look.card.capabilities.own_log || !look.card.capabilities.model_discovery {
        return None;
    }
    let models = tokio::time::timeout(MODELS_PATIENCE, agent.models(Lookup::Cached)).await.ok().flatten();
    Some(match models {
        Some(models) => format!("{} models", models.len()),
        None => "its models cannot be listed".to_owned(),
    })
}

/// Finding about the portal: whether it runs, or can be started.
fn portal(settings: &Settings, args: &ListenArgs) -> Result<Finding> {
    let found = |health, says: String| Ok(Finding::new(health, "portal", says));
    let (address, token) = match crate::portal::listen_address(settings, args) {
        Ok(listen) => listen,
        Err(error) => return found(Health::Bad, format!("{error:#}")),
    };
    let token = if token.is_some() { "a token" } else { "no token, for this machine alone" };
    if std::net::TcpListener::bind(address).is_ok() {
        return found(Health::Good, format!("{address} is free; {token}"));
    }
    match running_portal(address) {
        Some(version) => found(Health::Good, format!("version {version} runs at {address}")),
        None => found(Health::Plain, format!("{address} is taken by another program; --port picks another")),
    }
}

/// The version of the portal that listens there, if it is one.
fn running_portal(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PORTAL_PATIENCE).ok()?;
    stream.set_read_timeout(Some(PORTAL_PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PORTAL_PATIENCE)).ok()?;
    let request = format!("GET /api/v1/meta HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.take(PORTAL_ANSWER).read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let meta: serde_json::Value = serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()?;
    meta.get("tokenRequired")?;
    Some(meta.get("version")?.as_str()?.to_owned())
}

/// Programs that tools rely on, found on the search path.
fn tools(settings: &Settings) -> Vec<Finding> {
    let path = settings.var("PATH").unwrap_or_default();
    let find =
        |program: &str| std::env::split_paths(path).map(|dir| dir.join(program)).find(|file| file.is_file());
    let needed = [("bash", Health::Bad), ("git", Health::Plain), ("gh", Health::Plain)];
    needed
        .into_iter()
        .map(|(program, missing)| match find(program) {
            Some(file) => Finding::new(Health::Good, program, file.display().to_string()),
            None => Finding::new(missing, program, "not on PATH"),
        })
        .collect()
}
