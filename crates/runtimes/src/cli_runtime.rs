//! Agents that are a process per turn. Everything that they have in common is here; an [`Adapter`] is what differs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_protocol::data::{self, WorkingDirectory};
use hangar_protocol::{AgentId, Body, Event, EventId};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::outcome::{ErrorKind, Evidence, Failure, TurnEnd, TurnOutcome, decide};
use crate::runtime::{Auth, Card, Command, Live, Model, News, Order, Preflight, Runtime};
use crate::surroundings::Surroundings;
use crate::translate::{Spoken, Translator};
use crate::turn::{Invocation, Listener, TurnProcess};
use crate::usage::{Counting, Meter};

/// News that may wait for whoever listens before the agent has to.
const NEWS_QUEUE: usize = 256;
/// Prompts and answers that may wait for the agent.
const COMMAND_QUEUE: usize = 64;
/// How long a program may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// What differs between agents that are a process per turn.
pub trait Adapter: Send + Sync + 'static {
    fn card(&self) -> &Card;

    /// The program, with arguments that stand before all others.
    fn locate(&self, surroundings: &Surroundings) -> Option<Located>;

    /// The command line of one turn, without the program.
    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation;

    fn translator(&self) -> Box<dyn Translator>;

    fn counting(&self) -> Counting;

    /// What is known of a login, without using it.
    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>);

    fn models(&self, surroundings: &Surroundings) -> BoxFuture<'static, Option<Vec<Model>>> {
        let _ = surroundings;
        Box::pin(std::future::ready(None))
    }

    /// Whether it writes down the prompt itself.
    fn echoes_prompt(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub program: String,
    pub leading: Vec<String>,
    /// Why this may not be the real thing, if so.
    pub doubt: Option<String>,
}

/// One turn of a session.
pub struct Turn<'a> {
    pub prompt: &'a str,
    /// What the agent calls the session, once that is known.
    pub agent_session: Option<&'a str>,
    /// How many turns came before it here.
    pub before: u32,
}

/// Serves any adapter.
pub struct CliRuntime {
    adapter: Arc<dyn Adapter>,
    surroundings: Arc<Surroundings>,
}

impl CliRuntime {
    pub fn new(adapter: impl Adapter, surroundings: Arc<Surroundings>) -> Self {
        Self { adapter: Arc::new(adapter), surroundings }
    }
}

impl Runtime for CliRuntime {
    fn card(&self) -> &Card {
        self.adapter.card()
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let adapter = Arc::clone(&self.adapter);
        let surroundings = Arc::clone(&self.surroundings);
        Box::pin(async move {
            let card = adapter.card();
            let Some(located) = adapter.locate(&surroundings) else {
                let problem = format!("{} is not installed: {}", card.label, card.install);
                return Preflight { problems: vec![problem], auth: Auth::Unknown, ..Preflight::default() };
            };
            let (auth, warnings) = adapter.auth(&surroundings);
            let mut preflight = Preflight {
                program: Some(located.program.clone().into()),
                auth,
                warnings,
                ..Preflight::default()
            };
            preflight.warnings.extend(located.doubt.clone());
            match version(&located, &surroundings).await {
                Ok(version) => preflight.version = Some(version),
                Err(why) => preflight.problems.push(format!("`{} --version` {why}", located.program)),
            }
            if preflight.auth == Auth::Missing {
                preflight.problems.push(format!("no login for {} was found", card.label));
            }
            preflight
        })
    }

    fn models(&self) -> BoxFuture<'static, Option<Vec<Model>>> {
        self.adapter.models(&self.surroundings)
    }

    fn open(&self, order: Order) -> BoxFuture<'static, Result<Live, Failure>> {
        let adapter = Arc::clone(&self.adapter);
        let surroundings = Arc::clone(&self.surroundings);
        Box::pin(async move {
            let located = match &order.host {
                Host::Local => {
                    check_workspace(&order.workspace)?;
                    let card = adapter.card();
                    adapter.locate(&surroundings).ok_or_else(|| {
                        refusal(
                            ErrorKind::AgentNotFound,
                            format!("{} is not installed: {}", card.label, card.install),
                        )
                    })?
                }
                // What is over there only the other side knows.
                Host::Ssh(_) => {
                    let name = adapter.card().name;
                    let program = surroundings.programs.get(name).cloned().unwrap_or_else(|| name.to_owned());
                    Located { program, leading: Vec::new(), doubt: None }
                }
            };
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let meter = match &order.resume {
                Some(_) => Meter::resumed(adapter.counting()),
                None => Meter::new(adapter.counting()),
            };
            let session = Session {
                agent_session: order.resume.clone(),
                teller: Teller { outbox, parent: None, now: surroundings.now },
                adapter,
                located,
                order,
                meter,
                turns: 0,
                mark: uuid::Uuid::new_v4().to_string(),
            };
            let owner = tokio::spawn(session.run(inbox)).abort_handle();
            Ok(Live::new(commands, news, owner))
        })
    }
}

async fn version(located: &Located, surroundings: &Surroundings) -> Result<String, String> {
    let mut command = tokio::process::Command::new(&located.program);
    command.args(&located.leading).arg("--version").kill_on_drop(true).stdin(std::process::Stdio::null());
    command.env_clear().envs(&surroundings.vars);
    let output = tokio::time::timeout(VERSION_PATIENCE, command.output())
        .await
        .map_err(|_| format!("said nothing for {} s", VERSION_PATIENCE.as_secs()))?
        .map_err(|error| format!("could not be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("failed: {why}"));
    }
    // A number with dots, wherever it stands in the line.
    let number = first
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    Ok(number.unwrap_or(first).trim_end_matches('.').to_owned())
}

fn check_workspace(workspace: &Path) -> Result<(), Failure> {
    let problem = if workspace.as_os_str().is_empty() {
        "no working directory was given".to_owned()
    } else if !workspace.is_absolute() {
        format!("the working directory {} is not an absolute path", workspace.display())
    } else if !workspace.is_dir() {
        format!("the working directory {} is not a directory", workspace.display())
    } else {
        return Ok(());
    };
    Err(refusal(ErrorKind::InvalidWorkspace, problem))
}

fn refusal(kind: ErrorKind, message: String) -> Failure {
    Failure { kind, message, evidence: Evidence::default() }
}

/// One session, owned by one task.
struct Session {
    adapter: Arc<dyn Adapter>,
    located: Located,
    order: Order,
    agent_session: Option<String>,
    teller: Teller,
    meter: Meter,
    turns: u32,
    /// Names its processes. Not the session's id: the same session may be open twice by mistake, and one must not end the
    /// other's processes.
    mark: String,
}

impl Session {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        self.begin().await;
        let mut waiting = std::collections::VecDeque::new();
        loop {
            let prompt = match waiting.pop_front() {
                Some(prompt) => prompt,
                None => match inbox.recv().await {
                    Some(Command::Send(prompt)) => prompt,
                    // Nothing is under way that these could be about.
                    Some(
                        Command::Abort | Command::AnswerPermission { .. } | Command::AnswerQuestion { .. },
                    ) => continue,
                    Some(Command::Stop) | None => return,
                },
            };
            let cancel = CancellationToken::new();
            let mut stop = false;
            {
                let turn = self.turn(prompt, cancel.clone());
                tokio::pin!(turn);
                loop {
                    tokio::select! {
                        () = &mut turn => break,
                        command = inbox.recv(), if !stop => match command {
                            Some(Command::Send(prompt)) if waiting.len() < COMMAND_QUEUE => waiting.push_back(prompt),
                            Some(Command::Abort) => cancel.cancel(),
                            Some(Command::Send(_) | Command::AnswerPermission { .. } | Command::AnswerQuestion { .. }) => {}
                            Some(Command::Stop) | None => {
                                stop = true;
                                cancel.cancel();
                            }
                        },
                    }
                }
            }
            if stop {
                return;
            }
        }
    }

    async fn begin(&mut self) {
        if self.order.resume.is_some() {
            return;
        }
        let start = data::SessionStart {
            session_id: self.order.session_id.clone(),
            version: 1,
            producer: self.adapter.card().name.to_owned(),
            copilot_version: env!("CARGO_PKG_VERSION").to_owned(),
            start_time: self.teller.now(),
            selected_model: self.order.model.clone(),
            reasoning_effort: self.order.effort.clone(),
            context: Some(WorkingDirectory {
                cwd: self.order.workspace.display().to_string(),
                git_root: None,
                repository: None,
                branch: None,
            }),
        };
        self.teller.tell(None, start.into()).await;
    }

    async fn turn(&mut self, prompt: String, cancel: CancellationToken) {
        if !self.adapter.echoes_prompt() {
            let message = data::UserMessage {
                content: prompt.clone(),
                message_id: Some(uuid::Uuid::new_v4().to_string()),
                ..Default::default()
            };
            self.teller.tell(None, message.into()).await;
        }
        let turn = Turn { prompt: &prompt, agent_session: self.agent_session.as_deref(), before: self.turns };
        let mut invocation = self.adapter.invocation(&self.order, &turn);
        invocation.program.clone_from(&self.located.program);
        invocation.args.splice(0..0, self.located.leading.iter().map(Into::into));
        invocation.env.extend(self.order.env.iter().cloned());
        self.turns += 1;
        let mut translator = self.adapter.translator();
        let process = TurnProcess {
            invocation,
            workspace: self.order.workspace.clone(),
            host: &self.order.host,
            limits: self.order.limits,
            cancel,
            mark: format!("{}:{}.", self.mark, self.turns),
        };
        let (facts, said) = process.run(translator.as_mut(), &mut self.teller).await;
        if said.facts.session_id.is_some() {
            self.agent_session.clone_from(&said.facts.session_id);
        }
        let end = decide(&facts);
        if let TurnEnd::Failed(failure) = &end {
            self.report(failure, said.facts.complaint.is_some()).await;
        }
        let usage = self.meter.turn_ended(said.facts.usage);
        self.teller.tell(None, data::AssistantIdle::default().into()).await;
        let outcome = TurnOutcome { end, usage, total: self.meter.total() };
        let _ = self.teller.outbox.send(News::TurnEnded(Box::new(outcome))).await;
    }

    /// Puts a failure on record that the agent itself did not.
    async fn report(&mut self, failure: &Failure, complained: bool) {
        match failure.kind {
            ErrorKind::TurnCancelled => {
                let abort = data::Abort { reason: "user_initiated".to_owned() };
                self.teller.tell(None, abort.into()).await;
            }
            _ if complained => {}
            _ => {
                let error = data::SessionError {
                    error_type: failure.kind.as_str().to_owned(),
                    message: failure.message.clone(),
                    status_code: failure.evidence.status_code,
                    error_code: failure.evidence.code.clone(),
                    transient: false,
                };
                self.teller.tell(None, error.into()).await;
            }
        }
    }
}

/// Gives events their place in the session and hands them on.
struct Teller {
    outbox: mpsc::Sender<News>,
    parent: Option<EventId>,
    now: fn() -> Timestamp,
}

impl Teller {
    fn now(&self) -> String {
        format!("{:.3}", (self.now)())
    }

    async fn tell(&mut self, agent: Option<AgentId>, body: Body) {
        let id = EventId(uuid::Uuid::new_v4().to_string());
        let event = Event::new(id, self.now(), self.parent.clone(), agent, body);
        self.send(event).await;
    }

    async fn send(&mut self, event: Event) {
        if !event.is_ephemeral() {
            self.parent = Some(event.id().clone());
        }
        // Nobody listens any more: the session is about to be stopped.
        let _ = self.outbox.send(News::Event(Box::new(event))).await;
    }
}

impl Listener for Teller {
    async fn hear(&mut self, spoken: Vec<Spoken>) {
        for spoken in spoken {
            match spoken {
                Spoken::Body { agent, body } => self.tell(agent, body).await,
                Spoken::Whole(event) => self.send(event).await,
            }
        }
    }
}
