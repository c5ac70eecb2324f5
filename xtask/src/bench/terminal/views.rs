//! The views that are compared, each set up so that it opens at its prompt and talks to the scripted model.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use crate::bench::contender::{Contender, Kind};
use crate::bench::measure::Job;

const OURS: &str = "hangar";

pub(super) struct View {
    pub(super) name: &'static str,
    job: Job,
}

impl View {
    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    pub(super) fn is_ours(&self) -> bool {
        self.name == OURS
    }

    /// The same view, started with one more argument.
    pub(super) fn with_argument(&self, argument: &str) -> Self {
        let mut job = self.job.clone();
        job.args.push(argument.to_owned());
        Self { name: self.name, job }
    }

    /// Ours first, then the others that are installed.
    pub(super) fn all(hangar: &Path, peers: &Path, cache: &Path, model_url: &str) -> Result<Vec<Self>> {
        let mut views = vec![Self::hangar(hangar, cache, model_url)?];
        let cache = cache.join("terminal");
        for contender in Contender::peers(peers, &cache, model_url)? {
            let project = contender.project();
            match contender.kind {
                Kind::Copilot => views.push(Self::copilot(&contender, &project)?),
                Kind::Claude => views.push(Self::claude(&contender, &project)?),
                Kind::Codex => views.extend(Self::codex(&contender, &project)?),
                Kind::Hangar => {}
            }
        }
        views.extend(Self::opencode(peers, &cache, model_url)?);
        Ok(views)
    }

    fn hangar(program: &Path, cache: &Path, model_url: &str) -> Result<Self> {
        let contender = Contender::new(Kind::Hangar, program.to_owned(), &cache.join("terminal"), model_url)?;
        let args = ["--trust-folder"].map(str::to_owned).to_vec();
        Ok(Self { name: OURS, job: contender.job_with(args) })
    }

    fn copilot(contender: &Contender, project: &Path) -> Result<Self> {
        let state = contender.state();
        std::fs::create_dir_all(&state)?;
        let config = json!({ "trustedFolders": [project], "trusted_folders": [project], "banner": "never", "renderMarkdown": true });
        std::fs::write(state.join("config.json"), config.to_string())?;
        let args = ["--no-auto-update", "--allow-all-tools"].map(str::to_owned).to_vec();
        Ok(Self { name: "copilot", job: contender.job_with(args) })
    }

    fn claude(contender: &Contender, project: &Path) -> Result<Self> {
        let trusted = json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true });
        let config = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": { "approved": ["dummy"], "rejected": [] },
            "projects": { project.to_string_lossy(): trusted },
        });
        let home = project.parent().unwrap_or(project);
        std::fs::write(home.join(".claude.json"), config.to_string())?;
        Ok(Self { name: "claude", job: contender.job_with(Vec::new()) })
    }

    fn codex(contender: &Contender, project: &Path) -> Result<Vec<Self>> {
        let home = project.parent().unwrap_or(project);
        let url = contender.model_url();
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\n\
             [model_providers.mock]\nname = \"mock\"\nbase_url = \"{url}/v1\"\nenv_key = \"MOCK_KEY\"\nwire_api = \"responses\"\n\n\
             [projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            project.display()
        );
        std::fs::write(home.join(".codex/config.toml"), config)?;
        let inline = ["--no-alt-screen", "--disable", "daemon_auto_start"].map(str::to_owned).to_vec();
        Ok(vec![
            Self { name: "codex", job: contender.job_with(Vec::new()) },
            Self { name: "codex inline", job: contender.job_with(inline) },
        ])
    }

    fn opencode(peers: &Path, cache: &Path, model_url: &str) -> Result<Option<Self>> {
        let program: PathBuf = peers.join("node_modules/opencode-linux-x64/bin/opencode");
        if !program.exists() {
            println!("opencode is not installed and is left out");
            return Ok(None);
        }
        let home = cache.join("home/opencode");
        let project = home.join("project");
        std::fs::create_dir_all(&project)?;
        let settings = json!({
            "share": "disabled",
            "autoupdate": false,
            "model": "mock/mock-model",
            "provider": { "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "mock",
                "options": { "baseURL": format!("{model_url}/v1"), "apiKey": "dummy" },
                "models": { "mock-model": { "name": "mock-model" } },
            } },
        });
        let variable = |name: &str, value: String| (name.to_owned(), value);
        let env = vec![
            variable("HOME", home.display().to_string()),
            variable("PATH", std::env::var("PATH").unwrap_or_default()),
            variable("LANG", "C.UTF-8".to_owned()),
            variable("OPENCODE_CONFIG_CONTENT", settings.to_string()),
            variable("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            variable("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            variable("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            variable("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ];
        Ok(Some(Self { name: "opencode", job: Job { program, args: Vec::new(), env, directory: project } }))
    }
}
