//! Agents that are a process per turn. Everything that they have in common is here; an [`Adapter`] is what differs.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::inspect;
use crate::outcome::{ErrorKind, Evidence, Failure, TurnEnd, TurnOutcome, decide};
use crate::runtime::{Auth, Card, Command, Live, Model, Order, Preflight, Runtime, Stage, TurnEnded};
use crate::surroundings::Surroundings;
use crate::teller::{SaidIt, Teller};
use crate::translate::{Facts, Spoken, Translator};
use crate::turn::{Invocation, Listener, TurnProcess};
use crate::usage::{Counting, Meter};

/// News that may wait for whoever listens before the agent has to.
pub(crate) const NEWS_QUEUE: usize = 256;
/// Prompts and answers that may wait for the agent.
pub(crate) const COMMAND_QUEUE: usize = 64;

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

    /// The arguments with which it tells about the flags that are used here.
    fn help(&self) -> &'static [&'static str] {
        &["--help"]
    }

    /// Makes an order one for a rehearsal.
    fn rehearse(&self, order: &mut Order, stage: &Stage);

    /// Adds what is known of a turn from elsewhere than the agent's output, once the turn is over.
    fn complete(&self, order: &Order, turn: &Turn<'_>, facts: &mut Facts) {
        let _ = (order, turn, facts);
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
            match inspect::version(&located, &surroundings).await {
                Ok(version) => preflight.version = Some(version),
                Err(why) => preflight.problems.push(format!("`{} --version` {why}", located.program)),
            }
            preflight.help_hash = inspect::help_hash(&located, adapter.help(), &surroundings).await;
            if preflight.auth == Auth::Missing {
                preflight.problems.push(format!("no login for {} was found", card.label));
            }
            preflight
        })
    }

    fn models(&self) -> BoxFuture<'static, Option<Vec<Model>>> {
        self.adapter.models(&self.surroundings)
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
        self.adapter.rehearse(order, stage);
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
                    let name = &*adapter.card().name;
                    let program = surroundings.programs.get(name).cloned().unwrap_or_else(|| name.to_owned());
                    Located { program, leading: Vec::new(), doubt: None }
                }
            };
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let known = order.resume.as_ref().is_some_and(|resume| resume.agent_session.is_some());
            let meter = match known {
                true => Meter::resumed(adapter.counting()),
                false => Meter::new(adapter.counting()),
            };
            let card = adapter.card();
            let given = card.capabilities.session_id_given.then(|| order.session_id.clone());
            let session = Session {
                teller: Teller::new(outbox, surroundings.now, card, &order, given),
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

pub(crate) fn check_workspace(workspace: &Path) -> Result<(), Failure> {
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

pub(crate) fn refusal(kind: ErrorKind, message: String) -> Failure {
    Failure { kind, message, evidence: Evidence::default() }
}

/// One session, owned by one task.
struct Session {
    adapter: Arc<dyn Adapter>,
    located: Located,
    order: Order,
    teller: Teller,
    meter: Meter,
    turns: u32,
    /// Names its processes. Not the session's id: the same session may be open twice by mistake, and one must not end the
    /// other's processes.
    mark: String,
}

impl Session {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        self.teller.begin(&self.order).await;
        let mut waiting = std::collections::VecDeque::new();
        loop {
            let prompt = match waiting.pop_front() {
                Some(prompt) => prompt,
                None => match inbox.recv().await {
                    Some(Command::Send(prompt) | Command::Steer(prompt)) => prompt,
                    // Nothing is under way that these could be about.
                    Some(Command::Abort | Command::Answer { .. } | Command::Rename(_)) => continue,
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
                            Some(Command::Send(prompt) | Command::Steer(prompt)) if waiting.len() < COMMAND_QUEUE => {
                                waiting.push_back(prompt);
                            }
                            Some(Command::Abort) => cancel.cancel(),
                            Some(
                                Command::Send(_) | Command::Steer(_) | Command::Answer { .. } | Command::Rename(_),
                            ) => {}
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

    async fn turn(&mut self, prompt: String, cancel: CancellationToken) {
        if !self.adapter.echoes_prompt() {
            self.teller.prompted(&prompt).await;
        }
        let agent_session = self.teller.agent_session().map(str::to_owned);
        let turn = Turn { prompt: &prompt, agent_session: agent_session.as_deref(), before: self.turns };
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
        let (facts, mut said) = process.run(translator.as_mut(), &mut self.teller).await;
        self.adapter.complete(&self.order, &turn, &mut said.facts);
        let end = decide(&facts);
        if let TurnEnd::Failed(failure) = &end {
            let said_it = SaidIt { complained: said.facts.complaint.is_some(), aborted: said.facts.aborted };
            self.teller.report(failure, said_it).await;
        }
        let usage = self.meter.turn_ended(said.facts.usage);
        let outcome = TurnOutcome { end, usage, total: self.meter.total() };
        let Facts { model, unknown, .. } = said.facts;
        self.teller.ended(TurnEnded { outcome, model, unknown }).await;
    }
}

impl Listener for Teller {
    async fn hear(&mut self, spoken: Vec<Spoken>) {
        Teller::hear(self, spoken).await;
    }

    async fn named(&mut self, agent_session: &str) {
        Teller::named(self, agent_session).await;
    }
}
