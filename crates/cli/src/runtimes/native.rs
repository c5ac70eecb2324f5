//! Our own agent behind the interface of all agents: in this process, without a pipe.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Parser as _;
use futures_util::future::BoxFuture;
use hangar_agent::driver::EventSink;
use hangar_agent::log::Fact;
use hangar_agent::permissions::Approval;
use hangar_agent::session::{self, AnswerableQuestions, Input, Prompt, Timing};
use hangar_agent::tool::{InvokedSkill, ToolFilter};
use hangar_mcp::{ElicitationAnswer, Interest, Running};
use hangar_protocol::data::{Mode, PlanDecision, SessionError, SessionWarning};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::{Body, Event};
use hangar_runtimes::agents::{copilot, system_before};
use hangar_runtimes::capabilities::{Capabilities, unmet};
use hangar_runtimes::host::Host;
use hangar_runtimes::outcome::{
    Complaint, ErrorKind, Evidence, Failure, Stopped, TurnEnd, TurnFacts, TurnOutcome, Verdict, decide,
};
use hangar_runtimes::runtime::{
    Answer, Auth, Card, Command, Consent, Limits, Live, Model, News, Order, PermissionAnswer, Preflight,
    Runtime, ShellTool, Stage, TurnEnded,
};
use hangar_runtimes::usage::{Counting, Meter, Usage};
use hangar_runtimes::waiting::Waiting;
use hangar_store::SessionId;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::choice::NATIVE;
use crate::args::Cli;
use crate::compose::{self, ModelSource, Opened, SessionRequest};
use crate::flags;
use crate::providers;
use crate::selection::Selection;
use crate::settings::Settings;

/// News that may wait for whoever listens before the session has to.
const NEWS_QUEUE: usize = 256;
const COMMAND_QUEUE: usize = 64;
/// How long the news that a background command has ended may take to arrive.
const NEWS_PATIENCE: Duration = Duration::from_secs(1);
/// How long a turn waits for commands that it left in the background.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(600);

pub(super) struct Native {
    settings: Settings,
    card: Card,
}

impl Native {
    pub(super) fn new(settings: Settings) -> Self {
        let levels = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        let capabilities = Capabilities {
            streaming: true,
            resume: true,
            session_id_given: true,
            session_id_early: true,
            cost: false,
            input_tokens: true,
            effort_levels: levels.map(str::to_owned).into(),
            budget_cap: false,
            system_prompt: false,
            model_discovery: true,
            permission_callbacks: true,
            steering: true,
            tool_events: true,
            prompt_by_stdin: false,
            mcp_config: true,
            tool_rules: true,
            shared_process: true,
            remote: false,
            own_log: true,
        };
        let card = Card {
            name: NATIVE.into(),
            label: "Hangar".into(),
            capabilities,
            install: "it is built in".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        };
        Self { settings, card }
    }
}

impl Runtime for Native {
    fn card(&self) -> &Card {
        &self.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let found = match providers::configured(&self.settings) {
            Ok(providers) => match providers.first() {
                Some(first) => (Auth::Found(format!("provider {}", first.name)), Vec::new()),
                None => {
                    (Auth::Missing, vec!["no model provider is configured; see `hangar doctor`".to_owned()])
                }
            },
            Err(error) => (Auth::Unknown, vec![format!("{error:#}")]),
        };
        let preflight = Preflight {
            program: std::env::current_exe().ok(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            auth: found.0,
            problems: found.1,
            ..Preflight::default()
        };
        Box::pin(std::future::ready(preflight))
    }

    fn models(&self) -> BoxFuture<'static, Option<Vec<Model>>> {
        // Where the scripted model is the usual one, it is among those that can be asked for.
        let scripted = providers::prefers_script(&self.settings).then(|| Model {
            id: providers::SCRIPTED.to_owned(),
            name: Some("Scripted model".to_owned()),
            provider: None,
            multiplier: Some(0.0),
        });
        let offered = super::commands::discover(self.settings.clone(), None);
        Box::pin(async move {
            let offered = offered.await;
            match scripted {
                Some(scripted) => Some(offered.into_iter().flatten().chain([scripted]).collect()),
                None => offered,
            }
        })
    }

    fn open(&self, order: Order) -> BoxFuture<'static, Result<Live, Failure>> {
        let settings = self.settings.clone();
        let warnings = unmet(&self.card, &order);
        Box::pin(async move {
            if order.host != Host::Local {
                return Err(refusal(
                    ErrorKind::AgentNotFound,
                    "Hangar's own agent works in this process; for one on another machine use the runtime `copilot` with the \
                     `hangar` over there as its program",
                ));
            }
            let events = Heard::default();
            let name_is_wanted = order.resume.is_none();
            let limits = order.limits;
            let asks = order.consent == Consent::Asked;
            let system = order.system.clone().filter(|system| !system.is_empty() && name_is_wanted);
            let Begun { composed, filter } = compose(&settings, order, events.clone())
                .map_err(|error| refusal(ErrorKind::TurnFailed, format!("{error:#}")))?;
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let before = (!name_is_wanted).then(|| used(&composed));
            let meter = Meter::new(Counting::SinceBegun, before);
            let task = Task {
                composed,
                filter,
                servers: None,
                events,
                outbox,
                limits,
                meter,
                asks,
                name_is_wanted,
                system,
                warnings,
            };
            let owner = tokio::spawn(task.run(inbox)).abort_handle();
            Ok(Live::new(commands, news, owner))
        })
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
        order.env.extend(copilot::rehearsal(stage));
    }
}

fn refusal(kind: ErrorKind, message: impl Into<String>) -> Failure {
    Failure { kind, message: message.into(), evidence: Evidence::default() }
}

/// The same composition as for a prompt, from the flags that say the same.
fn compose(settings: &Settings, order: Order, events: Heard) -> Result<Begun> {
    let settings =
        order.env.iter().fold(settings.clone(), |settings, (name, value)| settings.with_var(name, value));
    let args = Cli::try_parse_from(words(&order))
        .map_err(|error| anyhow!("{}", error.to_string().lines().next().unwrap_or_default()))?
        .run;
    let id: SessionId = order.session_id.parse()?;
    let mut spec = flags::spec(&args);
    spec.model.name = order.model.clone().or(spec.model.name);
    spec.workspace.directory = Some(order.workspace.clone());
    let mut host = flags::host(&settings, &args)?;
    // A session that is gone on with stays in the mode that it was left in, unless the flags name another.
    host.conduct.mode = host.conduct.mode.filter(|mode| order.resume.is_none() || *mode != Mode::Interactive);
    host.models = ModelSource { keeps_model: true, ..host.models.unrecorded() };
    let request = SessionRequest {
        selection: Selection::by_id(id, order.resume.is_some()),
        spec,
        host,
        prompt: None,
        attachments: Vec::new(),
        sink: Box::new(events),
        hooks: None,
        away: None,
    };
    let mut composed = compose::check(&settings, request)?.open()?;
    composed
        .opening
        .extend(order.opening.into_iter().map(|body| Input::Command(session::Command::Record(body))));
    let session = composed.driver.session_mut();
    let hooks = session.config().client_hooks;
    session.set_reachable(true, true, hooks);
    session.set_answerable_questions(AnswerableQuestions {
        plans: order.consent == Consent::Asked,
        switches: false,
    });
    let filter = composed.filter.clone();
    Ok(Begun { composed, filter })
}

/// A session that nothing has happened in.
struct Begun {
    composed: Opened,
    filter: ToolFilter,
}

/// What would be typed to have such a session. Without any rule about tools everything may run, as with other agents.
fn words(order: &Order) -> Vec<String> {
    let mut flags = vec!["hangar".to_owned()];
    let mut flag = |name: &str, value: &str| flags.push(format!("--{name}={value}"));
    if let Some(effort) = &order.effort {
        flag("reasoning-effort", effort);
    }
    for (name, values) in [("allow-tool", &order.tools.allow), ("deny-tool", &order.tools.deny)] {
        values.iter().for_each(|value| flag(name, value));
    }
    if !order.tools.available.is_empty() {
        flag("available-tools", &order.tools.available.join(","));
    }
    if !order.tools.excluded.is_empty() {
        flag("excluded-tools", &order.tools.excluded.join(","));
    }
    if let Some(config) = &order.mcp_config {
        flag("additional-mcp-config", config);
    }
    for dir in &order.add_dirs {
        flag("add-dir", &dir.display().to_string());
    }
    if let Some(steps) = order.limits.steps {
        flag("max-autopilot-continues", &steps.to_string());
        flags.push("--autopilot".to_owned());
    }
    if order.tools.allow.is_empty() && order.consent == Consent::Given {
        flags.push("--allow-all".to_owned());
    }
    flags.extend(order.extra.iter().cloned());
    flags
}

/// Usage of the session so far, over all its turns.
fn used(composed: &Opened) -> Usage {
    Usage::from(&composed.driver.session().state().totals)
}

/// What the session said since somebody looked.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Event>>>);

impl Heard {
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventSink for Heard {
    fn publish(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// The one owner of a session.
struct Task {
    composed: Opened,
    /// Which tools of MCP servers the model is shown.
    filter: ToolFilter,
    /// The MCP servers, once they are started.
    servers: Option<Running>,
    events: Heard,
    outbox: mpsc::Sender<News>,
    limits: Limits,
    meter: Meter,
    /// Whether a person can be asked.
    asks: bool,
    /// Whether the first prompt names the session.
    name_is_wanted: bool,
    /// Instructions of the host, until the first prompt has taken them along.
    system: Option<String>,
    /// What whoever gave the order should know, until it is told.
    warnings: Vec<String>,
}

/// Why a session does not wait for more.
struct Over;

/// A turn under way.
struct Turn {
    facts: TurnFacts,
    model: Option<String>,
    deadline: Option<Instant>,
    heard: Instant,
    /// Questions to a person that are open.
    asked: BTreeSet<String>,
    /// Until when the end of background work is waited for, once it has ended.
    news_until: Option<Instant>,
}

impl Task {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let mut waiting = Waiting::default();
        let mut failure = self.begin().await.err().map(|error| format!("{error:#}"));
        self.pass_on(None).await;
        while failure.is_none() {
            let prompt = match waiting.pop() {
                Some(prompt) => prompt,
                None => match inbox.recv().await {
                    Some(Command::Send(prompt) | Command::Steer(prompt)) => prompt,
                    Some(Command::Stop) | None => break,
                    Some(Command::Rename(name)) => {
                        failure = self.rename(name).err().map(|error| format!("{error:#}"));
                        continue;
                    }
                    // Nothing is under way that these could be about.
                    Some(Command::Abort | Command::Answer { .. }) => continue,
                },
            };
            match self.turn(prompt, &mut inbox, &mut waiting).await {
                Ok(None) => {}
                Ok(Some(Over)) => break,
                Err(error) => failure = Some(format!("{error:#}")),
            }
        }
        if let Some(message) = &failure {
            // Whoever waits for a turn hears why there is none.
            let end = TurnEnd::Failed(refusal(ErrorKind::TurnFailed, message.clone()));
            let outcome = TurnOutcome { end, usage: Usage::default(), total: self.meter.total() };
            let ended = TurnEnded { outcome, model: None, unknown: BTreeSet::new() };
            let _ = self.outbox.send(News::TurnEnded(Box::new(ended))).await;
        }
        // A session whose log cannot be written has nothing more to say.
        let _ = self.composed.driver.close(failure).await;
        self.pass_on(None).await;
        if let Some(servers) = &self.servers {
            servers.shutdown().await;
        }
        self.composed.shells.shutdown().await;
    }

    /// Starts what the session needs and says what it begins with.
    async fn begin(&mut self) -> Result<()> {
        if let Some((host, news)) = self.composed.mcp.take() {
            let driver = &mut self.composed.driver;
            host.set_interest(Interest::Elicitation, self.asks);
            let mut servers = Running::new(host, news, self.filter.clone(), driver);
            servers.start(driver).await?;
            self.servers = Some(servers);
        }
        for input in std::mem::take(&mut self.composed.opening) {
            self.composed.driver.advance(input)?;
        }
        for warning in std::mem::take(&mut self.warnings) {
            self.command(session::Command::Record(SessionWarning::new("agent", warning).into()))?;
        }
        Ok(())
    }

    async fn turn(
        &mut self,
        prompt: String,
        inbox: &mut mpsc::Receiver<Command>,
        waiting: &mut Waiting,
    ) -> Result<Option<Over>> {
        if std::mem::replace(&mut self.name_is_wanted, false) {
            self.composed.driver.note(Fact::FirstPrompt(prompt.clone()))?;
        }
        let now = Instant::now();
        let mut turn = Turn {
            facts: TurnFacts::default(),
            model: None,
            deadline: self.limits.turn.map(|limit| now + limit),
            heard: now,
            asked: BTreeSet::new(),
            news_until: None,
        };
        let mut over = None;
        let preface =
            self.composed.skills.called_by(&prompt).map(InvokedSkill::into_preface).unwrap_or_default();
        let prompt = match self.system.take() {
            Some(system) => system_before(&system, &prompt),
            None => prompt,
        };
        self.command(session::Command::Send(Prompt { preface, ..Prompt::user(prompt) }))?;
        loop {
            self.pass_on(Some(&mut turn)).await;
            if self.is_done(&mut turn) {
                break;
            }
            let stall = self.limits.stall.map(|limit| turn.heard + limit);
            let servers = &mut self.servers;
            let news = async {
                match servers {
                    Some(servers) => servers.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                news = news => if let Some(servers) = &mut self.servers {
                    servers.take(news, &mut self.composed.driver)?;
                },
                command = inbox.recv(), if over.is_none() => match command {
                    Some(Command::Send(prompt)) => if let Err(error) = waiting.push(prompt) {
                        let warning = SessionWarning::new("queue_full", error.to_string());
                        self.command(session::Command::Record(warning.into()))?;
                    },
                    Some(Command::Abort) => self.stop(&mut turn, Stopped::Cancelled)?,
                    Some(Command::Stop) | None => {
                        over = Some(Over);
                        self.stop(&mut turn, Stopped::Cancelled)?;
                    }
                    Some(Command::Steer(prompt)) => {
                        let steered = Prompt { timing: Timing::Steer, ..Prompt::user(prompt) };
                        self.command(session::Command::Send(steered))?;
                    }
                    Some(Command::Rename(name)) => self.rename(name)?,
                    Some(Command::Answer { request_id, answer }) => self.answer(request_id, answer)?,
                },
                going = self.composed.driver.turn() => if !going? { break },
                () = until(turn.deadline), if turn.asked.is_empty() => {
                    let seconds = self.limits.turn.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::TimedOut { seconds })?;
                }
                // A session that waits for a person is not silent; people are.
                () = until(stall), if turn.news_until.is_none() && turn.asked.is_empty() => {
                    let seconds = self.limits.stall.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::Stalled { seconds })?;
                }
                () = until(turn.news_until) => break,
            }
        }
        self.pass_on(Some(&mut turn)).await;
        let ended = self.outcome(turn);
        self.report(&ended)?;
        self.pass_on(None).await;
        let _ = self.outbox.send(News::TurnEnded(Box::new(ended))).await;
        Ok(over)
    }

    fn rename(&mut self, name: String) -> Result<()> {
        Ok(self.composed.driver.note(Fact::GivenName(name))?)
    }

    fn answer(&mut self, request_id: String, answer: Answer) -> Result<()> {
        match answer {
            Answer::Permission(answer) => {
                let pending = self.composed.driver.pending_permissions();
                let Some(asked) = pending.into_iter().find(|asked| asked.request_id == request_id) else {
                    return Ok(());
                };
                let answer = match answer {
                    PermissionAnswer::Once => PermissionOutcome::Approved {},
                    PermissionAnswer::ForSession => {
                        PermissionOutcome::ApprovedForSession { approval: Approval::covering(&asked.request) }
                    }
                    PermissionAnswer::Denied { feedback } => {
                        PermissionOutcome::DeniedInteractivelyByUser { feedback, force_reject: None }
                    }
                };
                self.command(session::Command::AnswerPermission { request_id, answer })
            }
            Answer::Question(answer) => {
                self.command(session::Command::AnswerQuestion { request_id, answer, was_freeform: true })
            }
            Answer::Plan { approved, feedback } => {
                let decision = PlanDecision { approved, feedback, ..PlanDecision::default() };
                self.command(session::Command::ReviewPlan { request_id, decision })
            }
            Answer::Elicitation { action, content } => {
                if let Some(servers) = &self.servers {
                    servers.answer(&request_id, ElicitationAnswer { action, content });
                }
                Ok(())
            }
        }
    }

    /// Puts on record that a limit ended the turn; what else can go wrong the session tells by itself.
    fn report(&mut self, ended: &TurnEnded) -> Result<()> {
        match &ended.outcome.end {
            TurnEnd::Failed(Failure {
                kind: kind @ (ErrorKind::Stalled | ErrorKind::TurnTimeout),
                message,
                ..
            }) => {
                let error = SessionError {
                    error_type: kind.as_str().to_owned(),
                    message: message.clone(),
                    status_code: None,
                    error_code: None,
                    transient: false,
                };
                self.command(session::Command::Record(error.into()))
            }
            TurnEnd::Completed | TurnEnd::Failed(_) => Ok(()),
        }
    }

    fn command(&mut self, command: session::Command) -> Result<()> {
        Ok(self.composed.driver.advance(Input::Command(command))?)
    }

    fn stop(&mut self, turn: &mut Turn, why: Stopped) -> Result<()> {
        turn.facts.stopped.get_or_insert(why);
        self.command(session::Command::Abort { reason: "user_initiated".to_owned() })
    }

    /// Whether nothing is under way, in the session or in the background.
    fn is_done(&self, turn: &mut Turn) -> bool {
        if !self.composed.driver.session().is_idle() {
            turn.news_until = None;
            return false;
        }
        if turn.facts.stopped.is_some() {
            return true;
        }
        let busy = self.composed.shells.has_background_work() || !self.composed.driver.is_idle();
        if !busy && turn.news_until.is_none() {
            return true;
        }
        // What was waited for has ended, or will; its news is on the way then.
        turn.news_until = Some(Instant::now() + if busy { BACKGROUND_PATIENCE } else { NEWS_PATIENCE });
        false
    }

    async fn pass_on(&mut self, mut turn: Option<&mut Turn>) {
        for event in self.events.take() {
            if let Some(turn) = turn.as_deref_mut() {
                turn.note(&event);
            }
            // Nobody listens any more: the session is about to be stopped.
            let _ = self.outbox.send(News::Event(Box::new(event))).await;
        }
    }

    fn outcome(&mut self, mut turn: Turn) -> TurnEnded {
        let failed = turn.facts.complaint.is_some();
        turn.facts.verdict = Some(if failed { Verdict::Failure } else { Verdict::Success });
        let usage = self.meter.turn_ended(used(&self.composed));
        let outcome = TurnOutcome { end: decide(&turn.facts), usage, total: self.meter.total() };
        TurnEnded { outcome, model: turn.model, unknown: BTreeSet::new() }
    }
}

impl Turn {
    fn ask(&mut self, request_id: &str) {
        self.asked.insert(request_id.to_owned());
    }

    fn settle(&mut self, request_id: &str) {
        self.asked.remove(request_id);
    }

    fn note(&mut self, event: &Event) {
        self.heard = Instant::now();
        match event.body() {
            Body::AssistantMessage(message) if event.agent_id().is_none() => {
                self.facts.worked = true;
                self.facts.complaint = None;
                if message.model.is_some() {
                    self.model.clone_from(&message.model);
                }
            }
            Body::ToolComplete(_) => self.facts.worked = true,
            Body::PermissionRequested(asked) => self.ask(&asked.request_id),
            Body::UserInputRequested(asked) => self.ask(&asked.request_id),
            Body::ElicitationRequested(asked) => self.ask(&asked.request_id),
            Body::ExitPlanModeRequested(asked) => self.ask(&asked.request_id),
            Body::PermissionCompleted(done) => self.settle(&done.request_id),
            Body::UserInputCompleted(done) => self.settle(&done.request_id),
            Body::ElicitationCompleted(done) => self.settle(&done.request_id),
            Body::ExitPlanModeCompleted(done) => self.settle(&done.request_id),
            // A prompt that hooks do not let through was not dealt with.
            Body::SessionWarning(warning)
                if event.agent_id().is_none() && warning.warning_type == "policy_blocked" =>
            {
                self.facts.complaint = Some(Complaint {
                    message: warning.message.clone(),
                    status_code: None,
                    code: Some(warning.warning_type.clone()),
                });
            }
            Body::SessionError(error) => {
                self.facts.complaint = Some(Complaint {
                    message: error.message.clone(),
                    status_code: error.status_code,
                    code: Some(error.error_type.clone()),
                });
            }
            _ => {}
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
