//! Effects: what the plan asks for, done. Each ends with facts.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use hangar_jobs::retry::attempt_failure;
use hangar_orchestrator::prompt;
use hangar_orchestrator::record::{ASK, IssueFact, SessionEnd, WorkFailure, WorkTurnEnd, Write};
use hangar_orchestrator::state::IssueClaim;
use hangar_registry::hub::Hub;
use hangar_registry::runs::hub_runtimes;
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{AgentOrder, AgentSession};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_trackers::{Forge, Issue, LabelChange, NewComment, Tracker, TrackerError};
use hangar_workflow::Workflow;
use jiff::Timestamp;
use serde_json::Value;

use super::hooks::{self, HookIssue};
use super::mirror::Mirror;
use super::review::{self, ReviewStatus};
use super::session::{LiveSession, failure};
use super::tools::{Access, Tools};
use super::{contest, mock, publish, source, workspace};

/// Delays before a request to the tracker is made again.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Most bytes of an error that is written down.
const MAX_MESSAGE: usize = 2000;

/// Resources of effects. A reload replaces them as a whole; a running effect keeps those it began with.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) workflow: Arc<Workflow>,
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) forge: Option<Arc<dyn Forge>>,
    pub(super) tools: Tools,
    pub(super) mirror: Option<Arc<Mirror>>,
    pub(super) hub: Hub,
    pub(super) hook_variables: Arc<Vec<(OsString, OsString)>>,
    pub(super) project: String,
    /// Name of the workflow.
    pub(super) key: String,
}

/// Result of an effect.
#[derive(Default)]
pub(super) struct Done {
    pub(super) facts: Vec<IssueFact>,
    pub(super) live: Option<LiveSession>,
}

impl From<IssueFact> for Done {
    fn from(fact: IssueFact) -> Self {
        Self { facts: vec![fact], live: None }
    }
}

/// Identity of the work on an issue in the queue. All its sessions have the same, since there is one at a time.
pub(super) fn item_id(key: &str, claim: &IssueClaim) -> ItemId {
    ItemId(format!("issue/{key}/{}", source::hash(&claim.issue.0)))
}

pub(super) fn failed(kind: &str, message: String, retryable: bool) -> WorkFailure {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    WorkFailure { kind: kind.to_owned(), message: message[..end].to_owned(), retryable }
}

/// Makes a request until it succeeds or would never do so.
pub(super) async fn patiently<T, F>(mut request: impl FnMut() -> F) -> Result<T, TrackerError>
where
    F: Future<Output = Result<T, TrackerError>>,
{
    let mut delay = FIRST_DELAY;
    loop {
        match request().await {
            Err(error) if error.kind.is_retryable() => {
                tracing::warn!(%error, "the tracker is asked again");
                tokio::time::sleep(error.retry_after.unwrap_or(delay).max(delay)).await;
                delay = (delay * 2).min(LONGEST_DELAY);
            }
            other => return other,
        }
    }
}

impl Context {
    pub(super) async fn write(&self, claim: &IssueClaim, write: Write) -> Done {
        let (id, tracker) = (claim.tracked(), &self.tracker);
        let written = patiently(|| match &write {
            Write::Transition { to } => tracker.transition(id, to),
            Write::Comment { marker, body } => {
                let comment = NewComment { marker: marker.clone(), body: body.clone(), at: Timestamp::now() };
                tracker.comment(id, comment)
            }
            Write::Label { label } => tracker.label(id, label, LabelChange::Add),
            Write::Unlabel { label } => tracker.label(id, label, LabelChange::Remove),
        });
        let error = written.await.err().map(|error| error.message);
        IssueFact::Written { issue: claim.issue.clone(), write, error }.into()
    }

    pub(super) async fn issue(&self, claim: &IssueClaim) -> Result<Option<Issue>, TrackerError> {
        let found = patiently(|| self.tracker.by_ids(std::slice::from_ref(claim.tracked()))).await?;
        Ok(found.into_iter().next())
    }

    /// Waits for a slot, prepares the workspace and opens the agent.
    pub(super) async fn open(&self, claim: &IssueClaim) -> Done {
        let end = match self.opened(claim).await {
            Ok(done) => return done,
            Err(end) => end,
        };
        IssueFact::SessionEnded { issue: claim.issue.clone(), end }.into()
    }

    async fn opened(&self, claim: &IssueClaim) -> Result<Done, SessionEnd> {
        let refused =
            |kind: &str, message: String, retryable| SessionEnd::Failed(failed(kind, message, retryable));
        let placement = self.hub.placement(&claim.agent);
        if !placement.pool.is_empty() || matches!(placement.host, Host::Ssh(_)) {
            let message = format!(
                "the agent `{}` is placed on another host, where workspaces of issues are not supported yet; name an agent of this machine",
                claim.agent
            );
            return Err(refused("remote_agent", message, false));
        }
        let slot = self.hub.scheduler().acquire(self.item(claim)).await;
        let slot = slot.map_err(|error| refused("queue_failed", error.to_string(), true))?;
        let issue = self.issue(claim).await;
        let issue = issue.map_err(|error| refused(error.kind.as_str(), error.message, false))?;
        let Some(issue) = issue else {
            slot.finish();
            return Err(SessionEnd::Gone);
        };
        let config = &self.workflow.config;
        let branch = prompt::branch(&self.workflow, &issue)
            .map_err(|error| refused("template_render_error", error.to_string(), false))?;
        let place = contest::place(claim, &issue.identifier, branch);
        let ready = self.workspace(claim, &place).await;
        let ready = ready.map_err(|message| refused("workspace_failed", message, true))?;
        let hook = self.hook_issue(claim);
        if ready.is_new {
            self.hook("after_create", config.hooks.after_create.as_deref(), &ready.path, &hook)
                .await
                .map_err(|message| refused("hook_failed", message, true))?;
        }
        ready.finish().map_err(|message| refused("workspace_failed", message, true))?;
        workspace::clear_status(&ready.path);
        publish::clear(&ready.path);
        review::clear(&ready.path);
        if let Some(branch) = &ready.branch {
            let caught_up = self.catch_up(claim, &ready.path, branch).await;
            caught_up.map_err(|message| refused("workspace_failed", message, true))?;
        }
        self.hook("before_run", config.hooks.before_run.as_deref(), &ready.path, &hook)
            .await
            .map_err(|message| refused("hook_failed", message, true))?;
        let session = uuid::Uuid::new_v4().to_string();
        let marker = format!("agent-{}", claim.number);
        let access = self.tools.open(claim.tracked(), marker, &self.tracker, &config.tracker);
        let agent = match self.agent(claim, &session, &ready.path, &access).await {
            Ok(agent) => agent,
            Err(error) => {
                slot.fail(&attempt_failure(&error));
                return Err(SessionEnd::Failed(failure(&error)));
            }
        };
        let fact = IssueFact::Opened {
            issue: claim.issue.clone(),
            session,
            workspace: ready.path.clone(),
            branch: ready.branch,
            state: issue.state.clone(),
        };
        let live = LiveSession { agent, slot, workspace: ready.path, issue, failure: None, access };
        Ok(Done { facts: vec![fact], live: Some(live) })
    }

    /// The item of the queue: limits, fairness and retries of the home hold for issues as for all other work.
    fn item(&self, claim: &IssueClaim) -> WorkItem {
        let name = &claim.agent;
        let found = self.hub.runtime(Some(name)).ok();
        let card = found.as_ref().map(|runtime| runtime.card());
        let own = [format!("issue:{}", claim.identifier)];
        WorkItem {
            id: item_id(&self.key, claim),
            kind: WorkKind::Task,
            project: self.project.clone(),
            account: self.hub.account(name, self.model(name).as_deref()),
            host: self.hub.host_name(name),
            runtime: card.map_or_else(|| name.clone(), |card| card.base().to_owned()),
            agent: card.and_then(|card| card.agent()).map(str::to_owned),
            job: None,
            run: None,
            labels: self.hub.placement(name).labels.into_iter().chain(own).collect(),
            priority: 0,
            enqueued: claim.since,
            attempt: claim.failures + 1,
        }
    }

    /// Model that the block of an agent names.
    fn model(&self, agent: &str) -> Option<String> {
        let config = &self.workflow.config;
        let block = |name: &str| config.extensions.get(name).and_then(|block| block.get("model"));
        let kind = Some(&config.agent.kind).filter(|_| config.agent.runtime() == agent);
        let model = kind.and_then(|kind| block(kind)).or_else(|| block(agent));
        model.and_then(Value::as_str).map(str::to_owned)
    }

    async fn agent(
        &self,
        claim: &IssueClaim,
        session: &str,
        workspace: &std::path::Path,
        access: &Access,
    ) -> Result<AgentSession, hangar_runtimes::outcome::TurnFailure> {
        if claim.agent == mock::KIND {
            let block = self.workflow.config.extensions.get(mock::KIND).and_then(Value::as_object);
            return Ok(mock::open(&block.cloned().unwrap_or_default()));
        }
        let runtimes = hub_runtimes(&self.hub)();
        let found = runtimes.iter().find(|runtime| *runtime.card().name == claim.agent);
        let Some(runtime) = found else {
            return Err(hangar_runtimes::outcome::TurnFailure {
                kind: hangar_runtimes::outcome::ErrorKind::AgentNotFound,
                message: format!("there is no agent `{}`", claim.agent),
                evidence: Default::default(),
            });
        };
        let mut order = AgentOrder::new(session.to_owned(), workspace.to_owned());
        order.model = self.model(&claim.agent);
        // The limits of the workflow hold, and its session watches over them.
        (order.limits.turn, order.limits.stall) = (None, None);
        // A candidate must not move the issue of all candidates.
        if runtime.card().capabilities.mcp_config && claim.role.is_none() {
            order.mcp_config = Some(access.configuration());
        }
        runtime.open(order).await
    }

    pub(super) fn hook_issue(&self, claim: &IssueClaim) -> HookIssue {
        let (id, identifier) = (claim.tracked().0.clone(), claim.identifier.clone());
        let candidate = claim.role.as_ref().map(|role| role.number);
        HookIssue { id, identifier, attempt: claim.failures, review: ReviewStatus::Disabled, candidate }
    }

    pub(super) async fn hook(
        &self,
        name: &str,
        script: Option<&str>,
        workspace: &std::path::Path,
        issue: &HookIssue,
    ) -> Result<(), String> {
        let Some(script) = script else { return Ok(()) };
        let timeout = self.workflow.config.hooks.timeout;
        hooks::run(name, script, workspace, issue, &self.hook_variables, timeout).await.map(drop)
    }

    /// One turn. The session comes back with its end.
    pub(super) async fn turn(&self, claim: &IssueClaim, live: Option<LiveSession>) -> Done {
        let issue = claim.issue.clone();
        let Some(mut live) = live else {
            let end = WorkTurnEnd::Interrupted;
            return IssueFact::TurnEnded { issue, end, soft_stop: None, tokens: Default::default() }.into();
        };
        let (end, mut tokens) = match prompt::render(&self.workflow, claim, &live.issue) {
            Ok(prompt) => live.turn(prompt, &self.workflow.config.agent).await,
            Err(error) => {
                let message =
                    format!("the prompt cannot be rendered: WORKFLOW.md:{}: {}", error.line, error.message);
                (WorkTurnEnd::Failed(failed("template_render_error", message, false)), Default::default())
            }
        };
        let question = live.access.question();
        let soft_stop = question.or_else(|| workspace::status(&live.workspace));
        if end == WorkTurnEnd::Completed && self.is_last(claim, soft_stop.as_deref()) {
            tokens += self.self_review(claim, &mut live).await;
        }
        Done { facts: vec![IssueFact::TurnEnded { issue, end, soft_stop, tokens }], live: Some(live) }
    }

    /// Whether a turn ends the work, so that it is reviewed.
    fn is_last(&self, claim: &IssueClaim, soft_stop: Option<&str>) -> bool {
        let config = &self.workflow.config;
        let is_done = soft_stop.is_some_and(|word| word != "blocked" && !word.starts_with(ASK));
        let is_full = soft_stop.is_none() && claim.turn >= claim.max_turns.unwrap_or(config.agent.max_turns);
        config.self_review.enabled && (is_done || is_full)
    }

    /// Reads the issue again.
    pub(super) async fn check(&self, claim: &IssueClaim, live: Option<LiveSession>) -> Done {
        let issue = claim.issue.clone();
        match self.issue(claim).await {
            Ok(found) => {
                let state = found.as_ref().map(|found| found.state.clone());
                let live =
                    live.map(|live| LiveSession { issue: found.unwrap_or(live.issue.clone()), ..live });
                Done { facts: vec![IssueFact::Checked { issue, state }], live }
            }
            Err(error) => {
                let end = SessionEnd::Failed(failed(error.kind.as_str(), error.message, false));
                Done { facts: vec![IssueFact::SessionEnded { issue, end }], live }
            }
        }
    }

    /// Ends the agent, gives the slot back and runs the last hook.
    pub(super) async fn close(&self, claim: &IssueClaim, live: Option<LiveSession>) -> Done {
        if let Some(live) = live {
            live.leave().await;
        }
        if claim.is_open
            && let Some(path) = claim.workspace.as_deref().filter(|path| path.is_dir())
        {
            let script = self.workflow.config.hooks.after_run.as_deref();
            let hook = HookIssue { review: review::status(path), ..self.hook_issue(claim) };
            if let Err(message) = self.hook("after_run", script, path, &hook).await {
                tracing::warn!(issue = %claim.identifier, %message, "a hook failed");
            }
        }
        let workspace_bytes = match (&claim.workspace, self.workflow.config.workspace.quota_bytes) {
            (Some(path), Some(_)) => workspace::size(path).await,
            _ => None,
        };
        IssueFact::Finished { issue: claim.issue.clone(), workspace_bytes }.into()
    }

    pub(super) async fn remove(
        &self,
        issue: hangar_trackers::IssueId,
        place: &hangar_orchestrator::state::IssueWorkspace,
    ) -> Done {
        let role = place.role.as_ref();
        let id = role.map_or(&issue, |role| &role.issue).0.clone();
        let (identifier, candidate) = (place.identifier.clone(), role.map(|role| role.number));
        let hook = HookIssue { id, identifier, attempt: 0, review: ReviewStatus::Disabled, candidate };
        if workspace::is_complete(&place.path)
            && let Err(message) = self
                .hook(
                    "before_remove",
                    self.workflow.config.hooks.before_remove.as_deref(),
                    &place.path,
                    &hook,
                )
                .await
        {
            tracing::warn!(issue = %place.identifier, %message, "a hook failed");
        }
        match workspace::remove(self.mirror.as_deref(), &place.path).await {
            Ok(kept) => {
                if place.is_rival {
                    self.forget_branch(place).await;
                }
                IssueFact::WorkspaceRemoved { issue, kept }.into()
            }
            Err(message) => {
                tracing::warn!(issue = %place.identifier, %message, "the workspace stays");
                // It is not tried again for ever; the directory stays where it is.
                IssueFact::WorkspaceRemoved { issue, kept: Some(place.path.display().to_string()) }.into()
            }
        }
    }
}
