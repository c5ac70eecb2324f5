//! `hangar doctor`: what works on this machine and what does not, without ever printing a credential.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use hangar_models::catalogue;
use hangar_models::config::{Auth, ProviderConfig};
use hangar_sandbox::Gap;
use serde_json::json;

use super::print_line;
use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::providers::{self, GITHUB_TOKENS};
use crate::runtimes::Fleet;
use crate::runtimes::commands::{Look, look};
use crate::sandbox;
use crate::settings::Settings;

const PROVIDER_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// Worth knowing, nothing to do.
    Plain,
    Bad,
}

struct Finding {
    health: Health,
    subject: String,
    says: String,
}

impl Finding {
    fn new(health: Health, subject: impl Into<String>, says: impl Into<String>) -> Self {
        Self { health, subject: subject.into(), says: says.into() }
    }
}

pub(crate) fn run(settings: &Settings, args: &DoctorArgs) -> Result<Exit> {
    let mut findings = vec![home(&settings.home)];
    findings.extend(tokens(settings));
    findings.extend(providers(settings)?);
    findings.extend(tools(settings));
    findings.extend(agents(settings)?);
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
    Ok(configured.iter().map(|provider| runtime.block_on(probe(provider))).collect())
}

async fn probe(provider: &ProviderConfig) -> Finding {
    let subject = format!("provider {}", provider.name);
    let auth = match provider.auth {
        Auth::None => "no credentials",
        Auth::ApiKey(_) => "an API key",
        Auth::Bearer(_) => "a bearer token",
        Auth::Command(_) => "a key command",
    };
    match tokio::time::timeout(PROVIDER_PATIENCE, catalogue::list_models(provider)).await {
        Ok(Ok(models)) => {
            Finding::new(Health::Good, subject, format!("answers with {auth}, {} models", models.len()))
        }
        Ok(Err(error)) => Finding::new(Health::Bad, subject, format!("with {auth}: {error}")),
        Err(_) => Finding::new(
            Health::Bad,
            subject,
            format!("gave no answer within {} s", PROVIDER_PATIENCE.as_secs()),
        ),
    }
}

/// The agents that `hangar run` can use. One that is not installed is nothing to worry about.
fn agents(settings: &Settings) -> Result<Vec<Finding>> {
    let fleet = match Fleet::assemble(settings) {
        Ok(fleet) => fleet,
        Err(error) => return Ok(vec![Finding::new(Health::Bad, "agents", format!("{error:#}"))]),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let looks = runtime.block_on(look(settings, &fleet));
    let finding = |look: &Look| {
        let subject = format!("agent {}", look.card.name);
        if !look.is_installed() {
            return Finding::new(Health::Plain, subject, format!("not installed: {}", look.card.install));
        }
        let version = look.preflight.version.as_deref().unwrap_or("of unknown version");
        let notes = look.preflight.problems.iter().chain(&look.preflight.warnings).chain(&look.drift);
        let says: Vec<&str> = std::iter::once(version).chain(notes.map(String::as_str)).collect();
        let sound = look.preflight.is_ready() && look.drift.is_empty() && look.preflight.warnings.is_empty();
        Finding::new(if sound { Health::Good } else { Health::Plain }, subject, says.join("; "))
    };
    // Ours stands on the providers, which were looked at already.
    Ok(looks.iter().filter(|look| !look.card.capabilities.own_log).map(finding).collect())
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
