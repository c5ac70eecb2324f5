//! The workflows that `hangar up` runs: as many loops as `[[orchestrator]]` names, each with its lock, and what people see of them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hangar_orchestrator::contest::number_of;
use hangar_orchestrator::prompt;
use hangar_orchestrator::record::{IssueFact, PersonRequest, Release};
use hangar_orchestrator::state::IssueClaim;
use hangar_portal::issues::{
    Asked, BoardColumn, BoardQuery, CandidateDiff, ColumnCount, IssueAction, IssueBlocker, IssueBoard,
    IssueCard, IssueComment, IssueDetails, IssueOrder, IssueRefusal, IssuesHost, PullCheck, PullReview,
    PullThread, WorkflowCheck, WorkflowDraft, WorkflowProblem, WorkflowStatus, WorkflowText, WorkflowView,
    WorkflowsHost,
};
use hangar_registry::hub::Hub;
use hangar_registry::ledger::{CostsBy, CostsQuery};
use hangar_trackers::forge::{PullRequest, ReviewVerdict};
use hangar_trackers::issue::{Comment, PERSON};
use hangar_trackers::{Issue, IssueId, NewComment, TrackerError};
use hangar_workflow::Report;
use hangar_workflow::problem::Severity;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::board::{BoardCard, FoundIssue, WorkflowBoard, check_result, rival_view};
use super::config::{self, OrchestratorTable};
use super::contest;
use super::driver::LoopEnd;
use super::serve::{Ask, PATIENCE};
use super::show::{self, Shown};
use super::source::{Source, hash};
use super::{Output, Workbench};
use crate::config::live::LiveConfig;
use crate::machine::Machine;
use crate::settings::Settings;

/// How often configuration, locks and invalid files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Delay before a loop that failed is started again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Time that the tracker has to answer a person.
const TRACKER_PATIENCE: Duration = Duration::from_secs(20);
/// Longest answer to a question.
const MAX_ANSWER: usize = 32 << 10;

/// The workflows of a portal.
pub(crate) struct Orchestrators {
    bench: Workbench,
    hosted: Mutex<BTreeMap<String, Arc<Hosted>>>,
}

/// One workflow.
struct Hosted {
    table: OrchestratorTable,
    source: Source,
    stop: CancellationToken,
    standing: Mutex<Standing>,
}

/// Condition of a workflow.
#[derive(Clone)]
struct Standing {
    status: WorkflowStatus,
    problem: Option<String>,
    asks: Option<mpsc::Sender<Ask>>,
}

impl Standing {
    fn new(status: WorkflowStatus, problem: Option<String>) -> Self {
        Self { status, problem, asks: None }
    }
}

impl Hosted {
    fn stands(&self, standing: Standing) {
        *self.standing.lock() = standing;
    }

    /// Asks the loop. `None` if none runs or it does not answer in time.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let asks = self.standing.lock().asks.clone()?;
        let (reply, answer) = oneshot::channel();
        let answered = async {
            asks.send(ask(reply)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(PATIENCE, answered).await.ok().flatten()
    }

    fn view(&self, board: Option<&WorkflowBoard>) -> WorkflowView {
        let standing = self.standing.lock().clone();
        let trouble = board.and_then(|board| board.trouble.clone());
        let name = self.source.path.parent().and_then(Path::file_name);
        WorkflowView {
            key: self.source.key(),
            name: name.map_or_else(|| self.source.name(), |name| name.to_string_lossy().into_owned()),
            path: self.source.path.display().to_string(),
            status: standing.status,
            problem: standing.problem.or(trouble),
            states: board.map(|board| board.states.clone()).unwrap_or_default(),
            terminal_states: board.map(|board| board.terminal_states.clone()).unwrap_or_default(),
            read_at: board.and_then(|board| board.read_at.clone()),
        }
    }
}

impl Orchestrators {
    pub(crate) fn new(settings: &Settings, machine: Arc<Machine>, hub: Hub) -> Self {
        let bench = Workbench { settings: settings.clone(), machine, hub };
        Self { bench, hosted: Mutex::default() }
    }

    /// Follows the configuration until the portal stops: starts what is new, and ends what is gone.
    pub(crate) async fn run(self: Arc<Self>) {
        let stopping = self.bench.hub.stopping().clone();
        let live = LiveConfig::new(self.bench.settings.clone());
        while !stopping.is_cancelled() {
            let text = live.settings().config_text().unwrap_or_default();
            self.follow(config::read(&text));
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stopping.cancelled() => {}
            }
        }
    }

    fn follow(self: &Arc<Self>, tables: Vec<OrchestratorTable>) {
        let mut hosted = self.hosted.lock();
        hosted.retain(|_, known| {
            let stays = tables.contains(&known.table);
            if !stays {
                known.stop.cancel();
            }
            stays
        });
        for table in tables {
            let hub = self.bench.hub.clone();
            let agents = Arc::new(move || {
                hub.runtimes().iter().map(|runtime| runtime.card().name.to_string()).collect::<Vec<_>>()
            });
            let source = Source::new(
                &self.bench.settings,
                Some(table.workflow.clone()),
                table.env_file.clone(),
                agents,
            );
            let Ok(source) = source else { continue };
            if hosted.values().any(|known| known.table == table) {
                continue;
            }
            let stop = self.bench.hub.stopping().child_token();
            let standing = Mutex::new(Standing::new(WorkflowStatus::Starting, None));
            let one = Arc::new(Hosted { table, source, stop, standing });
            hosted.insert(one.source.key(), Arc::clone(&one));
            self.bench.hub.spawn(Arc::clone(self).keep(one));
        }
    }

    /// Keeps one workflow running until it is stopped.
    async fn keep(self: Arc<Self>, one: Arc<Hosted>) {
        while !one.stop.is_cancelled() {
            let wait = self.once(&one).await;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = one.stop.cancelled() => {}
            }
        }
    }

    /// Runs the loop of a workflow once. The result is the delay before the next time.
    async fn once(&self, one: &Hosted) -> Duration {
        let loaded = match one.source.load() {
            Ok(loaded) => loaded,
            Err(report) => {
                one.stands(Standing::new(WorkflowStatus::Invalid, first_error(&report)));
                return LOOK_EVERY;
            }
        };
        let output = Output { shown: Shown::Logged, until_idle: false };
        let failed = |error: String| {
            tracing::error!(workflow = %one.source.path.display(), "{error}");
            one.stands(Standing::new(WorkflowStatus::Failed, Some(error)));
            AGAIN_AFTER
        };
        let (driver, asks) = match self.bench.driver(one.source.clone(), loaded, output).await {
            Ok(Some(driver)) => driver,
            Ok(None) => {
                let why = "another process works on its issues; the portal goes on when that one ends";
                one.stands(Standing::new(WorkflowStatus::Elsewhere, Some(why.to_owned())));
                return LOOK_EVERY;
            }
            Err(error) => return failed(format!("{error:#}")),
        };
        one.stands(Standing { status: WorkflowStatus::Running, problem: None, asks: Some(asks) });
        let stop = one.stop.clone();
        // A panic of one loop must not end the others.
        let ended = tokio::spawn(async move { driver.run(stop.cancelled()).await }).await;
        match ended {
            Ok(Ok(LoopEnd::Asked)) => LOOK_EVERY,
            Ok(Ok(LoopEnd::StopAll)) => {
                let why = "everything was stopped; save the workflow to go on";
                one.stands(Standing::new(WorkflowStatus::Failed, Some(why.to_owned())));
                self.changed(one).await;
                Duration::ZERO
            }
            Ok(Err(error)) => failed(format!("{error:#}")),
            Err(error) => failed(format!("the loop ended: {error}")),
        }
    }

    /// Waits until the file is another one.
    async fn changed(&self, one: &Hosted) {
        let before = one.source.version();
        while one.source.version() == before && !one.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = one.stop.cancelled() => {}
            }
        }
    }

    fn all(&self) -> Vec<Arc<Hosted>> {
        self.hosted.lock().values().cloned().collect()
    }

    fn one(&self, key: &str) -> Result<Arc<Hosted>, IssueRefusal> {
        self.hosted.lock().get(key).cloned().ok_or_else(|| {
            IssueRefusal::Missing(format!(
                "there is no workflow `{key}`; [[orchestrator]] in config.toml adds one"
            ))
        })
    }

    /// An issue as its loop knows it.
    async fn found(&self, workflow: &str, issue: &str) -> Result<(Arc<Hosted>, FoundIssue), IssueRefusal> {
        let one = self.one(workflow)?;
        if one.standing.lock().asks.is_none() {
            let problem = one.standing.lock().problem.clone();
            let why = problem.unwrap_or_else(|| "the workflow is being started".to_owned());
            return Err(IssueRefusal::Unavailable(why));
        }
        match one.ask(|reply| Ask::Details(issue.to_owned(), reply)).await {
            None => Err(IssueRefusal::Unavailable("the workflow does not answer in time".to_owned())),
            Some(None) => Err(IssueRefusal::Missing(format!("there is no issue `{issue}` on the board"))),
            Some(Some(found)) => Ok((one, found)),
        }
    }

    /// Known costs of sessions, in US dollars.
    fn costs(&self) -> HashMap<String, f64> {
        let query = CostsQuery { by: CostsBy::Session, since: None, until: None };
        let rows = self.bench.hub.ledger().costs(&query).rows;
        rows.into_iter().filter_map(|row| Some((row.key, row.figures.known_cost()?))).collect()
    }

    async fn board_of(self: Arc<Self>, query: BoardQuery) -> Result<IssueBoard, IssueRefusal> {
        let wanted = match &query.workflow {
            Some(key) => vec![self.one(key)?],
            None => self.all(),
        };
        let parts =
            futures_util::future::join_all(wanted.iter().map(|one| async {
                (Arc::clone(one), one.ask(|reply| Ask::Board(query.limit, reply)).await)
            }));
        let parts = parts.await;
        let costs = self.costs();
        let mut board = IssueBoard::default();
        let mut counts: BTreeMap<BoardColumn, usize> = BTreeMap::new();
        for (one, part) in parts {
            board.workflows.push(one.view(part.as_ref()));
            let Some(part) = part else { continue };
            part.counts.iter().for_each(|(column, count)| *counts.entry(*column).or_default() += count);
            board.issues.extend(part.cards.into_iter().map(|card| priced(card, &costs)));
        }
        let count = |column: BoardColumn| counts.get(&column).copied().unwrap_or_default();
        board.counts = BoardColumn::ALL.map(|column| ColumnCount { column, count: count(column) }).into();
        Ok(board)
    }

    async fn details_of(
        self: Arc<Self>,
        workflow: String,
        name: String,
    ) -> Result<IssueDetails, IssueRefusal> {
        let (_, found) = self.found(&workflow, &name).await?;
        Ok(self.details(found).await)
    }

    async fn details(&self, found: FoundIssue) -> IssueDetails {
        let id = IssueId(found.found.card.id.clone());
        let read =
            tokio::time::timeout(TRACKER_PATIENCE, found.tracker.by_ids(std::slice::from_ref(&id))).await;
        // Without the tracker, what was read last is better than nothing.
        let read = read.ok().and_then(Result::ok).and_then(|issues| issues.into_iter().next());
        let issue = read.or(found.issue);
        let session_ids = found.found.session_ids.clone();
        let costs = self.costs();
        let rivals = found.rivals.iter();
        let candidates = rivals.map(|rival| rival_view(rival, cost_of(&rival.session_ids, &costs))).collect();
        let mut card = priced(found.found, &costs);
        if let Some(issue) = &issue {
            card.state.clone_from(&issue.state);
        }
        let (checks, log_excerpt, threads, reviews) = found.pull.map(pull_parts).unwrap_or_default();
        IssueDetails {
            card,
            description: issue.as_ref().map(|issue| issue.description.clone()).unwrap_or_default(),
            comments: issue
                .as_ref()
                .and_then(|issue| issue.comments.as_deref())
                .unwrap_or_default()
                .iter()
                .map(comment)
                .collect(),
            blockers: issue
                .iter()
                .flat_map(|issue| &issue.blocked_by)
                .map(|blocker| IssueBlocker {
                    identifier: if blocker.identifier.is_empty() {
                        blocker.id.clone()
                    } else {
                        blocker.identifier.clone()
                    },
                    state: blocker.state.clone(),
                })
                .collect(),
            workspace: found.workspace.map(|path| path.display().to_string()),
            branch: found.branch,
            session_ids,
            candidates,
            checks,
            log_excerpt,
            threads,
            reviews,
        }
    }

    /// Carries an order out, and returns the issue as it is afterwards.
    async fn done(
        self: Arc<Self>,
        workflow: String,
        name: String,
        order: IssueOrder,
    ) -> Result<IssueDetails, IssueRefusal> {
        let (one, found) = self.found(&workflow, &name).await?;
        let moved = self.carry_out(&one, &found, order).await?;
        match (self.found(&workflow, &name).await, moved) {
            (Ok((_, found)), _) => Ok(self.details(found).await),
            // An issue that nobody has worked on leaves the board with its active state.
            (Err(IssueRefusal::Missing(_)), Some(state)) => {
                let mut details = self.details(found).await;
                let card = &mut details.card;
                (card.column, card.code, card.state) = (BoardColumn::Done, "inactive".to_owned(), state);
                card.why = show::released(&Release::Inactive { state: card.state.clone() });
                card.actions.clear();
                Ok(details)
            }
            (Err(refusal), _) => Err(refusal),
        }
    }

    /// The result is the state that the issue was moved to, if it was.
    async fn carry_out(
        &self,
        one: &Hosted,
        found: &FoundIssue,
        order: IssueOrder,
    ) -> Result<Option<String>, IssueRefusal> {
        let card = &found.found.card;
        if !card.actions.contains(&order.action) {
            let verb = format!("{:?}", order.action).to_lowercase();
            return Err(IssueRefusal::Invalid(format!(
                "`{verb}` does not fit {}: {}",
                card.identifier, card.why
            )));
        }
        let (id, identifier) = (IssueId(card.id.clone()), card.identifier.clone());
        let request = match order.action {
            IssueAction::Start => PersonRequest::Start,
            IssueAction::Stop => PersonRequest::Stop,
            IssueAction::Park => PersonRequest::Park,
            IssueAction::Retry => PersonRequest::Retry,
            IssueAction::Promote => PersonRequest::Promote { candidate: promotable(found, order.candidate)? },
            IssueAction::Move => {
                let state = order.state.unwrap_or_default();
                let known = found.states.iter().find(|known| known.to_lowercase() == state.to_lowercase());
                let Some(known) = known else {
                    let states = found.states.join(", ");
                    return Err(IssueRefusal::Invalid(format!("the states of the workflow are: {states}")));
                };
                written(found.tracker.transition(&id, known)).await?;
                one.ask(Ask::Refresh).await;
                return Ok(Some(known.clone()));
            }
            IssueAction::Answer => {
                let text = order.text.unwrap_or_default().trim().to_owned();
                if text.is_empty() || text.len() > MAX_ANSWER {
                    return Err(IssueRefusal::Invalid(format!("`text` must have 1 to {MAX_ANSWER} bytes")));
                }
                // The same answer again is the same comment.
                let marker =
                    format!("{PERSON}{}-{}", hash(&card.since.clone().unwrap_or_default()), hash(&text));
                let comment = NewComment { marker, body: text, at: Timestamp::now() };
                written(found.tracker.comment(&id, comment)).await?;
                one.ask(Ask::Refresh).await;
                return Ok(None);
            }
        };
        let fact =
            IssueFact::Requested { issue: id, identifier, request, id: uuid::Uuid::new_v4().to_string() };
        let noted = one.ask(|reply| Ask::Person(fact, reply)).await;
        let noted = noted.map(|()| None);
        noted.ok_or_else(|| IssueRefusal::Unavailable("the workflow does not answer in time".to_owned()))
    }

    async fn diff_of(
        self: Arc<Self>,
        workflow: String,
        issue: String,
        candidate: u32,
    ) -> Result<CandidateDiff, IssueRefusal> {
        let (_, found) = self.found(&workflow, &issue).await?;
        let rival = found.rivals.iter().find(|rival| number_of(rival) == candidate);
        let result = rival.and_then(|rival| rival.result.as_ref());
        let commits = result.and_then(|result| Some((result.base.as_ref()?, result.commit.as_ref()?)));
        let (Some((base, commit)), Some(mirror)) = (commits, &found.mirror) else {
            let why =
                format!("candidate {candidate} of {} has no changes to show", found.found.card.identifier);
            return Err(IssueRefusal::Missing(why));
        };
        let shown = contest::diff(mirror, base, commit).await;
        let (diff, complete) = shown.map_err(IssueRefusal::Unavailable)?;
        Ok(CandidateDiff { diff, complete })
    }

    async fn checked(
        self: Arc<Self>,
        workflow: String,
        draft: WorkflowDraft,
    ) -> Result<WorkflowCheck, IssueRefusal> {
        let one = self.one(&workflow)?;
        let (source, text) = (one.source.clone(), draft.text.clone());
        let loaded = tokio::task::spawn_blocking(move || source.load_text(&text)).await;
        let loaded = match loaded.map_err(|error| IssueRefusal::Unavailable(error.to_string()))? {
            Ok(loaded) => loaded,
            Err(report) => {
                let problems = problems(&report);
                return Ok(WorkflowCheck { valid: false, problems, prompt: None, prompt_problem: None });
            }
        };
        let problems = problems(&Report::of(loaded.warnings));
        let mut check = WorkflowCheck { valid: true, problems, prompt: None, prompt_problem: None };
        let Some(name) = draft.issue else { return Ok(check) };
        // The loop knows the id of an identifier; the tracker of the draft has the issue.
        let id = match self.found(&workflow, &name).await {
            Ok((_, found)) => IssueId(found.found.card.id),
            Err(_) => IssueId(name.clone()),
        };
        let read =
            tokio::time::timeout(TRACKER_PATIENCE, loaded.tracker.by_ids(std::slice::from_ref(&id))).await;
        let issue = match read {
            Err(_) => Err("the tracker does not answer in time".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(issues)) => {
                issues.into_iter().next().ok_or_else(|| format!("the tracker has no issue `{name}`"))
            }
        };
        let rendered = issue.and_then(|issue: Issue| {
            let claim = IssueClaim::preview(&issue, loaded.workflow.config.agent.runtime(), Timestamp::now());
            prompt::render(&loaded.workflow, &claim, &issue)
                .map_err(|error| format!("line {}: {}", error.line, error.message))
        });
        match rendered {
            Ok(prompt) => check.prompt = Some(prompt),
            Err(why) => check.prompt_problem = Some(why),
        }
        Ok(check)
    }

    async fn text_of(self: Arc<Self>, workflow: String) -> Result<WorkflowText, IssueRefusal> {
        let one = self.one(&workflow)?;
        let text = std::fs::read_to_string(&one.source.path).map_err(|error| {
            IssueRefusal::Missing(format!("{} cannot be read: {error}", one.source.path.display()))
        })?;
        let check = self.checked(workflow, WorkflowDraft { text: text.clone(), issue: None }).await?;
        Ok(WorkflowText { path: one.source.path.display().to_string(), revision: hash(&text), text, check })
    }

    async fn saved(
        self: Arc<Self>,
        workflow: String,
        text: String,
        revision: String,
    ) -> Result<WorkflowText, IssueRefusal> {
        let one = self.one(&workflow)?;
        let path = &one.source.path;
        let current = std::fs::read_to_string(path).unwrap_or_default();
        if hash(&current) != revision {
            let why = format!("{} was changed meanwhile; load it again", path.display());
            return Err(IssueRefusal::Changed(why));
        }
        let draft = WorkflowDraft { text: text.clone(), issue: None };
        let check = Arc::clone(&self).checked(workflow.clone(), draft).await?;
        if !check.valid {
            let first =
                check.problems.first().map(|problem| format!("line {}: {}", problem.line, problem.message));
            return Err(IssueRefusal::Invalid(first.unwrap_or_else(|| "the workflow has errors".to_owned())));
        }
        hangar_disk::replace(path, text.as_bytes())
            .map_err(|error| IssueRefusal::Unavailable(format!("writing {}: {error}", path.display())))?;
        self.text_of(workflow).await
    }
}

/// A write of a person to the tracker, within a time.
async fn written(write: impl Future<Output = Result<(), TrackerError>>) -> Result<(), IssueRefusal> {
    match tokio::time::timeout(TRACKER_PATIENCE, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.kind.is_retryable() => Err(IssueRefusal::Unavailable(error.to_string())),
        Ok(Err(error)) => Err(IssueRefusal::Invalid(error.to_string())),
        Err(_) => Err(IssueRefusal::Unavailable("the tracker does not answer in time".to_owned())),
    }
}

fn priced(found: BoardCard, costs: &HashMap<String, f64>) -> IssueCard {
    IssueCard { cost: cost_of(&found.session_ids, costs), ..found.card }
}

/// Known cost of sessions. `None` if that of none is known.
fn cost_of(session_ids: &[String], costs: &HashMap<String, f64>) -> Option<f64> {
    let mut known = session_ids.iter().filter_map(|id| costs.get(id)).peekable();
    known.peek().is_some().then(|| known.sum())
}

/// The candidate that a person promotes.
fn promotable(found: &FoundIssue, candidate: Option<u32>) -> Result<u32, IssueRefusal> {
    let all = found.rivals.iter().filter(|rival| rival.is_promotable()).map(number_of);
    let all: Vec<u32> = all.collect();
    if all.is_empty() {
        let why =
            format!("no candidate of {} has work to promote; try it again", found.found.card.identifier);
        return Err(IssueRefusal::Invalid(why));
    }
    candidate.filter(|candidate| all.contains(candidate)).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(u32::to_string).collect();
        IssueRefusal::Invalid(format!("`candidate` must be one of: {}", names.join(", ")))
    })
}

fn comment(comment: &Comment) -> IssueComment {
    IssueComment {
        author: comment.author.clone(),
        body: without_mark(&comment.body),
        at: comment.created_at.clone(),
        ours: comment.is_ours(),
    }
}

/// A text without the marks that people do not need to see.
fn without_mark(body: &str) -> String {
    let lines = body.lines().filter(|line| !line.trim_start().starts_with("<!-- hangar:"));
    lines.collect::<Vec<_>>().join("\n")
}

type PullParts = (Vec<PullCheck>, Option<String>, Vec<PullThread>, Vec<PullReview>);

fn pull_parts(pull: PullRequest) -> PullParts {
    let checks = pull.checks.iter().map(|check| PullCheck {
        name: check.name.clone(),
        result: check_result(check.status),
        conclusion: check.conclusion.clone(),
        url: check.details_url.clone(),
    });
    let checks = checks.collect();
    let threads = pull.threads.into_iter().map(|thread| PullThread {
        file: thread.file,
        line: thread.end_line.or(thread.start_line),
        resolved: thread.is_resolved,
        outdated: thread.is_outdated,
        comments: thread
            .comments
            .into_iter()
            .map(|comment| IssueComment {
                ours: comment.body.contains("<!-- hangar:"),
                author: comment.author,
                body: without_mark(&comment.body),
                at: comment.created_at,
            })
            .collect(),
    });
    let reviews = pull.reviews.into_iter().map(|review| {
        let verdict = match review.verdict {
            ReviewVerdict::Approved => "approved",
            ReviewVerdict::ChangesRequested => "changes requested",
            ReviewVerdict::Commented => "commented",
            ReviewVerdict::Void => "void",
        };
        PullReview { author: review.author, verdict: verdict.to_owned(), body: without_mark(&review.body) }
    });
    let log = Some(pull.log_excerpt).filter(|log| !log.is_empty());
    (checks, log, threads.collect(), reviews.collect())
}

fn problems(report: &Report) -> Vec<WorkflowProblem> {
    let problem = |problem: &hangar_workflow::Problem| WorkflowProblem {
        severity: match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
        .to_owned(),
        check: problem.check.clone(),
        line: problem.at.line,
        column: problem.at.column,
        message: problem.message.clone(),
    };
    report.all().map(problem).collect()
}

fn first_error(report: &Report) -> Option<String> {
    report.errors.first().map(|problem| format!("line {}: {}", problem.at.line, problem.message))
}

/// The workflows as the portal's routes use them.
pub(crate) struct Desk(pub(crate) Arc<Orchestrators>);

impl IssuesHost for Desk {
    fn board(&self, query: BoardQuery) -> Asked<IssueBoard> {
        Box::pin(Arc::clone(&self.0).board_of(query))
    }

    fn issue(&self, workflow: String, issue: String) -> Asked<IssueDetails> {
        Box::pin(Arc::clone(&self.0).details_of(workflow, issue))
    }

    fn act(&self, workflow: String, issue: String, order: IssueOrder) -> Asked<IssueDetails> {
        Box::pin(Arc::clone(&self.0).done(workflow, issue, order))
    }

    fn diff(&self, workflow: String, issue: String, candidate: u32) -> Asked<CandidateDiff> {
        Box::pin(Arc::clone(&self.0).diff_of(workflow, issue, candidate))
    }
}

impl WorkflowsHost for Desk {
    fn read(&self, workflow: String) -> Asked<WorkflowText> {
        Box::pin(Arc::clone(&self.0).text_of(workflow))
    }

    fn check(&self, workflow: String, draft: WorkflowDraft) -> Asked<WorkflowCheck> {
        Box::pin(Arc::clone(&self.0).checked(workflow, draft))
    }

    fn save(&self, workflow: String, text: String, revision: String) -> Asked<WorkflowText> {
        Box::pin(Arc::clone(&self.0).saved(workflow, text, revision))
    }
}
