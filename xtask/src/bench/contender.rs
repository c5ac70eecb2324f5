//! The programs that are compared, and how each is asked for the same thing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use super::measure::Job;
use crate::npm;

/// The versions that the figures are compared with.
const PACKAGES: [(&str, &str); 3] =
    [("@github/copilot", "1.0.102"), ("@openai/codex", "0.166.0"), ("@anthropic-ai/claude-code", "2.1.197")];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Hangar,
    Copilot,
    Codex,
    Claude,
}

pub(crate) struct Contender {
    pub(crate) kind: Kind,
    program: PathBuf,
    /// Everything that the program remembers, kept from run to run so that it is warm.
    home: PathBuf,
    model_url: String,
}

/// What a contender is asked to do. The scripted model answers by the markers in the prompt.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    Pong,
    /// That many shell calls, one after the other.
    ShellCalls(u32),
    /// An answer in that many pieces.
    Deltas(u32),
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Hangar => "hangar",
            Kind::Copilot => "copilot",
            Kind::Codex => "codex",
            Kind::Claude => "claude",
        }
    }

    /// Where npm puts the program itself, before the script that starts it. The script costs time of its own.
    fn places(self) -> &'static [&'static str] {
        match self {
            Kind::Hangar => &[],
            Kind::Copilot => &["@github/copilot-linux-x64/copilot", ".bin/copilot"],
            Kind::Codex => {
                &["@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", ".bin/codex"]
            }
            Kind::Claude => &["@anthropic-ai/claude-code-linux-x64/claude", ".bin/claude"],
        }
    }

    fn prompt(self, task: Task) -> String {
        match task {
            Task::Pong => "say pong".to_owned(),
            Task::Deltas(count) => format!("STREAM:{count}"),
            Task::ShellCalls(count) => {
                // Each is another one: an agent may stop a model that repeats itself.
                let call = |n: u32| {
                    let command = format!("true {n}");
                    let (tool, arguments) = match self {
                        Kind::Hangar | Kind::Copilot => {
                            ("bash", json!({ "command": command, "description": "nothing" }))
                        }
                        Kind::Codex => ("exec_command", json!({ "cmd": command })),
                        Kind::Claude => ("Bash", json!({ "command": command, "description": "nothing" })),
                    };
                    format!("TOOL:{tool}:{arguments}\n")
                };
                format!("{}SAY:done", (0..count).map(call).collect::<String>())
            }
        }
    }

    fn args(self, prompt: String, model_url: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Kind::Hangar | Kind::Copilot => {
                &["--output-format", "json", "--no-auto-update", "--allow-all-tools", "-p"]
            }
            Kind::Claude => &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
                "--allowedTools",
                "Bash",
                "-p",
            ],
            Kind::Codex => {
                let provider = format!(
                    "model_providers.mock={{name=\"mock\",base_url=\"{model_url}/v1\",env_key=\"MOCK_KEY\",wire_api=\"responses\"}}"
                );
                let flags =
                    ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
                let settings = ["model_provider=\"mock\"", "model=\"gpt-5\"", &provider];
                let settings = settings.into_iter().flat_map(|setting| ["-c", setting]);
                return flags.into_iter().chain(settings).map(str::to_owned).chain([prompt]).collect();
            }
        };
        words.iter().map(|word| (*word).to_owned()).chain([prompt]).collect()
    }

    fn environment(self, home: &str, model_url: &str) -> Vec<(&'static str, String)> {
        let on = || "1".to_owned();
        match self {
            Kind::Hangar | Kind::Copilot => vec![
                ("HANGAR_HOME", format!("{home}/state")),
                ("COPILOT_HOME", format!("{home}/state")),
                ("COPILOT_AUTO_UPDATE", "false".to_owned()),
                ("COPILOT_MODEL", "mock-model".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", "dummy".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", format!("{model_url}/v1")),
                ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
            ],
            Kind::Codex => vec![("CODEX_HOME", format!("{home}/.codex")), ("MOCK_KEY", "dummy".to_owned())],
            Kind::Claude => vec![
                ("ANTHROPIC_API_KEY", "dummy".to_owned()),
                ("ANTHROPIC_BASE_URL", model_url.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", on()),
                ("DISABLE_AUTOUPDATER", on()),
                ("DISABLE_ERROR_REPORTING", on()),
                ("DISABLE_TELEMETRY", on()),
            ],
        }
    }
}

impl Contender {
    pub(crate) fn new(kind: Kind, program: PathBuf, cache: &Path, model_url: &str) -> Result<Self> {
        let home = cache.join("home").join(kind.name());
        // Codex wants its home to exist.
        std::fs::create_dir_all(home.join(".codex"))?;
        std::fs::create_dir_all(home.join("project"))?;
        Ok(Self { kind, program, home, model_url: model_url.to_owned() })
    }

    /// The other agents that npm has installed below `directory`.
    pub(crate) fn peers(directory: &Path, cache: &Path, model_url: &str) -> Result<Vec<Self>> {
        let modules = directory.join("node_modules");
        let mut found = Vec::new();
        for kind in [Kind::Copilot, Kind::Codex, Kind::Claude] {
            match kind.places().iter().map(|place| modules.join(place)).find(|path| path.exists()) {
                Some(program) => found.push(Self::new(kind, program, cache, model_url)?),
                None => println!("{} is not installed and is left out", kind.name()),
            }
        }
        Ok(found)
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn model_url(&self) -> &str {
        &self.model_url
    }

    /// Where the program works.
    pub(crate) fn project(&self) -> PathBuf {
        self.home.join("project")
    }

    /// A prompt for a model of a simulated vendor.
    pub(crate) fn job_at(&self, vendor: &str, model: &str, url: &str, prompt: &str) -> Job {
        let provider = if vendor == "anthropic" { "anthropic" } else { "openai" };
        let mut args = self.kind.args(prompt.to_owned(), url.strip_suffix("/v1").unwrap_or(url));
        if let Some(setting) = args.iter_mut().find(|word| word.starts_with("model=\"")) {
            *setting = format!("model=\"{model}\"");
        }
        let mut job = self.job_with(args);
        let settings = [
            ("COPILOT_MODEL", model),
            ("COPILOT_PROVIDER_BASE_URL", url),
            ("COPILOT_PROVIDER_TYPE", provider),
            ("COPILOT_PROVIDER_WIRE_API", "responses"),
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_MODEL", model),
        ];
        for (name, value) in settings {
            job.env.retain(|(known, _)| known != name);
            job.env.push((name.to_owned(), value.to_owned()));
        }
        job
    }

    /// Where the program keeps its sessions.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.join("state")
    }

    pub(crate) fn job(&self, task: Task) -> Job {
        self.job_with(self.kind.args(self.kind.prompt(task), &self.model_url))
    }

    pub(crate) fn job_with(&self, args: Vec<String>) -> Job {
        let home = self.home.to_string_lossy().into_owned();
        let mut env: Vec<(String, String)> = vec![
            ("HOME".to_owned(), home.clone()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        let own = self.kind.environment(&home, &self.model_url);
        env.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Job { program: self.program.clone(), args, env, directory: self.home.join("project") }
    }
}

/// Installs the other agents. Without npm or a network the benchmark goes on without them.
pub(crate) fn install_peers(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let pinned: serde_json::Map<_, _> =
        PACKAGES.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
    let manifest = json!({ "name": "peers", "private": true, "dependencies": pinned });
    std::fs::write(directory.join("package.json"), serde_json::to_string_pretty(&manifest)?)?;
    std::fs::write(directory.join(".npmrc"), "package-lock=false\n")?;
    npm::install(directory)
}
