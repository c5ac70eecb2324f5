//! The workflow file on disk: loaded with the environment of this process, checked against this machine, and watched.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result};
use hangar_trackers::{Forge, Tracker, TrackerErrorKind};
use hangar_workflow::environment::{ENV_FILE, WorkflowEnvironment, dotenv};
use hangar_workflow::problem::{FilePosition, check};
use hangar_workflow::{Config, Problem, Report, Workflow, load};
use sha2::{Digest, Sha256};

use super::mock;
use crate::settings::Settings;

const DEFAULT: &str = "WORKFLOW.md";
/// Bytes of a hash in names.
const HASH_BYTES: usize = 8;

/// Names of the agents of this machine, as they are configured now.
pub(super) type AgentNames = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Source of a workflow.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    env_file: Option<PathBuf>,
    settings: Settings,
    agents: AgentNames,
}

/// A workflow with its tracker.
pub(super) struct Loaded {
    pub(super) workflow: Workflow,
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) forge: Option<Arc<dyn Forge>>,
    pub(super) warnings: Vec<Problem>,
}

/// Version of a file, as far as its metadata tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version(Option<(u64, u64, Option<SystemTime>)>);

impl Source {
    pub(super) fn new(
        settings: &Settings,
        path: Option<PathBuf>,
        env_file: Option<PathBuf>,
        agents: AgentNames,
    ) -> Result<Self> {
        let path = path.unwrap_or_else(|| DEFAULT.into());
        let path = std::path::absolute(&path).with_context(|| format!("the workflow {}", path.display()))?;
        Ok(Self { path, env_file, settings: settings.clone(), agents })
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Name of the file, for messages.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map_or_else(|| DEFAULT.to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Name of the workflow: no other file has it.
    pub(super) fn key(&self) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let stem = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let plain: String =
            stem.unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).take(24).collect();
        format!("{}-{}", if plain.is_empty() { "workflow" } else { &plain }, hash(&path.to_string_lossy()))
    }

    /// Directory of the records.
    pub(super) fn records(&self) -> PathBuf {
        self.settings.home.join("orchestrator").join(self.key())
    }

    /// Project in the queue: the directory of the workflow.
    pub(super) fn project(&self) -> String {
        self.directory().display().to_string()
    }

    pub(super) fn version(&self) -> Version {
        let metadata = std::fs::metadata(&self.path).ok();
        Version(metadata.map(|found| (found.ino(), found.len(), found.modified().ok())))
    }

    fn environment(&self) -> Result<WorkflowEnvironment, Problem> {
        let variables = self.settings.vars().clone();
        let named = self.env_file.clone().or_else(|| self.settings.var(ENV_FILE).map(PathBuf::from));
        let from_file = match named {
            None => Default::default(),
            Some(path) => {
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    let message = format!("the env file {} cannot be read: {error}", path.display());
                    Problem::error(check::ENV_FILE, FilePosition::START, message)
                })?;
                dotenv(&text)?
            }
        };
        let home = self.settings.var("HOME").map(PathBuf::from).unwrap_or_default();
        Ok(WorkflowEnvironment { variables, home, temp: std::env::temp_dir(), from_file })
    }

    /// Loads and checks the file. All problems come at once.
    pub(super) fn load(&self) -> Result<Loaded, Report> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| {
            let message = format!("the workflow cannot be read: {error}");
            Report::of(vec![Problem::error(check::MISSING_FILE, FilePosition::START, message)])
        })?;
        self.load_text(&text)
    }

    /// Loads and checks a text in the place of the file.
    pub(super) fn load_text(&self, text: &str) -> Result<Loaded, Report> {
        let environment = self.environment().map_err(|problem| Report::of(vec![problem]))?;
        let workflow = load(text, self.directory(), &environment)?;
        let mut problems = workflow.warnings.clone();
        let here = std::env::current_dir().unwrap_or_default();
        let tracker = hangar_trackers::open(&workflow.config.tracker, &[&here, self.directory()]);
        let tracker = tracker
            .inspect_err(|error| {
                let setting = match error.kind {
                    TrackerErrorKind::MissingApiKey => "tracker.api_key",
                    TrackerErrorKind::MissingProject => "tracker.project",
                    _ => "tracker.kind",
                };
                problems.push(located(text, setting, &error.message));
            })
            .ok();
        let forge = hangar_trackers::open_forge(&workflow.config.pulls);
        let forge = forge
            .inspect_err(|error| problems.push(located(text, "pull_requests.provider", &error.message)))
            .unwrap_or_default();
        problems.extend(self.agent_problem(text, &workflow.config));
        if !workflow.config.worker.ssh_hosts.is_empty() {
            // To work here instead would be a surprise.
            let why = "agents do not work on other hosts yet; remove `worker.ssh_hosts`, or run `hangar orchestrate` there";
            problems.push(located(text, "worker.ssh_hosts", why));
        }
        problems.extend(root_problem(text, &workflow.config.workspace.root));
        let report = Report::of(problems);
        match tracker {
            Some(tracker) if report.valid => {
                Ok(Loaded { workflow, tracker, forge, warnings: report.warnings })
            }
            _ => Err(report),
        }
    }

    fn agent_problem(&self, text: &str, config: &Config) -> Option<Problem> {
        let agents = (self.agents)();
        let is_known = |name: &str| name == mock::KIND || agents.iter().any(|agent| agent == name);
        let missing = |kind: &str| format!("there is no agent `{kind}`; `hangar runtimes` lists them");
        if !is_known(config.agent.runtime()) {
            return Some(located(text, "agent.kind", &missing(&config.agent.kind)));
        }
        let mut named =
            config.dispatch.iter().flat_map(|rule| rule.runtimes().map(move |names| (rule, names)));
        let (rule, (_, agent)) = named.find(|(_, (runtime, _))| !is_known(runtime))?;
        Some(located(text, "dispatch.rules", &format!("{}: {}", rule.name, missing(agent))))
    }
}

/// A problem at the line of a setting, or at the start.
fn located(text: &str, setting: &str, message: &str) -> Problem {
    let name = setting.rsplit('.').next().unwrap_or(setting);
    let section = setting.split('.').next().unwrap_or(setting);
    let mut inside = false;
    let line = text.lines().position(|line| {
        inside = if line.starts_with(char::is_alphabetic) { line.starts_with(section) } else { inside };
        inside && line.trim_start().starts_with(&format!("{name}:"))
    });
    Problem::error(setting, line.map_or(FilePosition::START, |line| FilePosition::line(line + 1)), message)
}

/// Workspaces are created below their root, or below the first directory above it that exists.
fn root_problem(text: &str, root: &Path) -> Option<Problem> {
    let existing = root.ancestors().find(|path| path.exists())?;
    let writable = existing.is_dir()
        && rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    (!writable).then(|| {
        let message = format!("workspaces cannot be created in {}", existing.display());
        Problem { check: "workspace.root_writable".to_owned(), ..located(text, "workspace.root", &message) }
    })
}

/// A short hash that is the same everywhere and always.
pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
