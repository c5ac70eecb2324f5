//! The built-in tools of a session.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use hangar_agent::permissions::Rule;
use hangar_agent::session::{BackgroundNotice, SessionInput};
use hangar_agent::tool::{Tool, ToolSource, ToolSpec, Toolset};
use hangar_images::ImageLimits;
use hangar_models::facts;
use hangar_models::hosted::{WEB_SEARCH, WebSearchTool};
use hangar_store::snapshots::Snapshots;
use hangar_tools::memory::StoreMemory;
use hangar_tools::shell::{ShellCompletion, ShellOptions, Shells};
use hangar_tools::spill::{DEFAULT_THRESHOLD, Spill};
use hangar_tools::sql::Database;
use hangar_tools::tool_files::ToolFiles;
use hangar_tools::web::{Redirects, WebAccess};
use hangar_tools::{Builtin, FileToolSet, Workspace};
use tokio::sync::mpsc;

use super::Checked;
use super::model::image_limits;
use super::opened::INBOX;
use crate::credentials;
use crate::redact::Redactor;
use crate::settings::Settings;
use crate::tracked::TrackedTool;

/// Shell that runs commands.
const SHELL: &str = "/bin/bash";

pub(super) struct BuiltinTools {
    pub(super) shells: Shells,
    /// All tools, including those that the model is not offered.
    pub(super) all: Vec<Arc<dyn Tool>>,
    /// Tools that the model is offered.
    pub(super) shown: Toolset,
    /// Names of the tools that it is not offered.
    pub(super) disabled: Vec<String>,
    /// Names of tools whose feature is off.
    pub(super) absent: Vec<String>,
}

/// Storage that tools use.
pub(super) struct Storage {
    pub(super) database: Option<Arc<Database>>,
    pub(super) spill: Spill,
    /// Copies of files from before tools change them.
    pub(super) snapshots: Option<Arc<Snapshots>>,
}

impl BuiltinTools {
    pub(super) fn make(
        checked: &Checked<'_>,
        storage: &Storage,
        inbox: &mpsc::Sender<Box<SessionInput>>,
    ) -> Self {
        let request = &checked.request;
        let shells = shells(checked, &storage.spill, inbox);
        let mut tools = shells.tools();
        tools.extend(hangar_tools::builtin(Builtin {
            workspace: Arc::new(Workspace {
                cwd: checked.paths.cwd.clone(),
                files: storage.spill.files.clone(),
                spill: storage.spill.clone(),
                images: image_limits(&checked.model.facts.images),
            }),
            dialect: dialect(&checked.model.model),
            database: storage.database.clone(),
            web: web_access(checked),
        }));
        if offers_search(checked) {
            tools.push(Arc::new(WebSearchTool::default()));
        }
        if let Some(memory) = checked.memory() {
            tools.push(Arc::new(StoreMemory::new(memory)));
        }
        if checked.configured.offers_skills(&request.spec.tools) {
            tools.push(checked.configured.skills.tool());
        }
        let absent: Vec<String> = request.host.features.absent_tools().map(str::to_owned).collect();
        let watched = |tool| match &storage.snapshots {
            Some(snapshots) => TrackedTool::watch(tool, snapshots),
            None => tool,
        };
        let present = tools.into_iter().filter(|tool| !absent.contains(&tool.spec().name));
        let all: Vec<Arc<dyn Tool>> = present.map(|tool| checked.redactor.tool(watched(tool))).collect();
        let filter = request.spec.tools.filter();
        let (kept, dropped): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(|tool| filter.admits(ToolSource::Builtin, &tool.spec().name));
        let mut disabled: Vec<String> = dropped.iter().map(|tool| tool.spec().name.clone()).collect();
        disabled.sort();
        Self { shells, all, shown: Toolset::new(kept), disabled, absent }
    }
}

fn shells(checked: &Checked<'_>, spill: &Spill, inbox: &mpsc::Sender<Box<SessionInput>>) -> Shells {
    let (completions, completed) = mpsc::channel(INBOX);
    let secrets = &checked.request.host.permissions.secrets;
    let shells = Shells::new(ShellOptions {
        program: PathBuf::from(SHELL),
        cwd: checked.paths.cwd.clone(),
        env: std::env::vars_os().collect(),
        secrets: credentials::withheld_from_commands(checked.settings, secrets),
        sandbox: checked.confinement.sandbox().cloned(),
        confinement: checked.confinement.limited.clone(),
        spill: spill.clone(),
        completions,
    });
    tokio::spawn(FutureExt::boxed(report_completions(completed, inbox.clone(), checked.redactor.clone())));
    shells
}

/// Access of the web tools; none if the sandbox closes the network to commands.
fn web_access(checked: &Checked<'_>) -> Option<WebAccess> {
    let online = !checked.settings.flag("COPILOT_OFFLINE") && !checked.confinement.closes_network();
    let any_host = checked.request.host.permissions.policy.allow_all_urls;
    online.then(|| WebAccess {
        redirects: if any_host { Redirects::AnyHost } else { Redirects::SameHost },
        ..WebAccess::default()
    })
}

/// Whether the model is offered the search of its provider. Nobody is asked before it searches, so a rule against it or against any
/// address takes it away, and so does a cap: what a search brings in is counted only when it was paid for.
fn offers_search(checked: &Checked<'_>) -> bool {
    let policy = &checked.request.host.permissions.policy;
    let denied =
        policy.deny.iter().any(|rule| rule.matches_custom(WEB_SEARCH) || matches!(rule, Rule::Url(_)));
    let capped = checked.budget.max_cost.is_some() || checked.budget.max_tokens.is_some();
    checked.model.web_search && web_access(checked).is_some() && !denied && !capped
}

fn dialect(model: &str) -> FileToolSet {
    if facts::of(model).patches { FileToolSet::Patches } else { FileToolSet::Edits }
}

/// Notifies the session when a background command ends.
async fn report_completions(
    mut completed: mpsc::Receiver<ShellCompletion>,
    inbox: mpsc::Sender<Box<SessionInput>>,
    redactor: Redactor,
) {
    while let Some(mut completion) = completed.recv().await {
        completion.read = redactor.outcome(completion.read);
        if inbox.send(Box::new(SessionInput::Background(BackgroundNotice::from(completion)))).await.is_err() {
            return;
        }
    }
}

/// The built-in tools that a session with this model would have. Nothing is started or opened for the answer.
pub(crate) fn tool_specs(settings: &Settings, model: &str) -> Vec<Arc<ToolSpec>> {
    let nowhere = PathBuf::from("/");
    let spill =
        Spill { dir: nowhere.clone(), threshold: DEFAULT_THRESHOLD, files: ToolFiles::Here, clean: None };
    let (completions, _) = mpsc::channel(1);
    let shells = Shells::new(ShellOptions {
        program: PathBuf::from(SHELL),
        cwd: nowhere.clone(),
        env: Vec::new(),
        secrets: Vec::new(),
        spill: spill.clone(),
        completions,
        sandbox: None,
        confinement: None,
    });
    let builtin = hangar_tools::builtin(Builtin {
        workspace: Arc::new(Workspace {
            cwd: nowhere.clone(),
            spill,
            files: ToolFiles::Here,
            images: ImageLimits::default(),
        }),
        dialect: dialect(model),
        database: Some(Arc::new(Database::new(nowhere))),
        web: (!settings.flag("COPILOT_OFFLINE")).then(WebAccess::default),
    });
    shells.tools().into_iter().chain(builtin).map(|tool| tool.spec().clone()).collect()
}
