//! Agents that are a process per turn. Everything that they have in common is here; an [`Adapter`] is what differs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_git::Snapshot;
use hangar_process::credentials::Child;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::capabilities::{nearest_effort, unmet};
use crate::host::Host;
use crate::inspect;
use crate::invocation::Invocation;
use crate::outcome::{ErrorKind, Evidence, Failure, TurnEnd, TurnOutcome, decide};
pub use crate::resolution::Located;
use crate::resolution::{Questions, Resolution};
use crate::runtime::{Auth, Card, Command, Live, Model, Order, Preflight, Runtime, Stage, TurnEnded};
use crate::surroundings::Surroundings;
use crate::teller::{SaidIt, Teller};
use crate::translate::{Facts, Spoken, Translator};
use crate::turn::{Listener, TurnProcess};
use crate::usage::{Counting, Meter};
use crate::waiting::Waiting;

/// How long another program may take to say whether it has a login, or can do the work.
const KEEPER_PATIENCE: Duration = Duration::from_secs(2);
/// News that may wait for whoever listens before the agent has to.
pub(crate) const NEWS_QUEUE: usize = 256;
/// Prompts and answers that may wait for the agent.
pub(crate) const COMMAND_QUEUE: usize = 64;

/// What differs between agents that are a process per turn.
pub trait Adapter: Send + Sync + 'static {
    fn card(&self) -> &Card;

    fn locate(&self, surroundings: &Surroundings) -> Option<Located>;

    /// The command line of one turn, without the program.
    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation;

    fn translator(&self, turn: &Turn<'_>) -> Box<dyn Translator>;

    fn counting(&self) -> Counting;

    /// What is known of a login, without using it, and what is wrong with it.
    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>);

    /// Who is asked for a login that is not found otherwise.
    fn keeper(&self) -> Option<Keeper> {
        None
    }

    /// What to do where there is no login.
    fn login(&self) -> &'static str {
        "log in with it once"
    }

    /// What is used where the program itself is not installed.
    fn stand_in(&self, surroundings: &Surroundings) -> Option<StandIn> {
        let _ = surroundings;
        None
    }

    /// Flags without which it is of no use, as its help names them.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// What a session of it should know before it begins, each a sentence.
    fn warnings(&self, order: &Order, surroundings: &Surroundings) -> Vec<String> {
        self.auth(&surroundings.with(&order.env)).1
    }

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

    /// Whether it writes down the prompt itself.
    fn echoes_prompt(&self) -> bool {
        false
    }
}

/// A program that may take the place of one that is not installed, if it says so itself.
pub struct StandIn {
    pub located: Located,
    /// What it is asked, and what its answer has to hold.
    pub question: &'static [&'static str],
    pub answer: &'static str,
}

/// Another program that may hold a login for the agent.
pub struct Keeper {
    pub program: &'static str,
    /// Ends with success where there is one.
    pub question: &'static [&'static str],
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
    pub fn new(adapter: impl Adapter, surroundings: &Surroundings) -> Self {
        // All that it is asked and does, it is asked and does with its own credentials.
        let surroundings = Arc::new(surroundings.seen_by(Child::Agent(&adapter.card().name)));
        Self { adapter: Arc::new(adapter), surroundings }
    }
}

impl Runtime for CliRuntime {
    fn card(&self) -> &Card {
        self.adapter.card()
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let look = Look { adapter: Arc::clone(&self.adapter), surroundings: Arc::clone(&self.surroundings) };
        Box::pin(look.preflight())
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
            let mut order = order;
            if let Some(resume) = &order.resume {
                order.model = order.model.take().or_else(|| resume.model.clone());
                order.effort = order.effort.take().or_else(|| resume.effort.clone());
            }
            let look = Look { adapter: Arc::clone(&adapter), surroundings: Arc::clone(&surroundings) };
            let mut levels = adapter.card().capabilities.effort_levels.clone();
            let located = match &order.host {
                Host::Local => {
                    check_workspace(&order.workspace)?;
                    let card = adapter.card();
                    let located = look.locate().await.ok_or_else(|| {
                        refusal(
                            ErrorKind::AgentNotFound,
                            format!("{} is not installed: {}", card.label, card.install),
                        )
                    })?;
                    // Versions differ in their levels. Whoever asks for none need not wait for the answer.
                    if order.effort.is_some() {
                        levels = look.known(&located).await.effort_levels.unwrap_or(levels);
                    }
                    located
                }
                // What is over there only the other side knows.
                Host::Ssh(_) => {
                    let name = &*adapter.card().name;
                    let program = surroundings.programs.get(name).cloned().unwrap_or_else(|| name.to_owned());
                    Located { program, leading: Vec::new(), doubt: None }
                }
            };
            let unmet = unmet(adapter.card(), &order);
            order.effort =
                order.effort.take().and_then(|wanted| nearest_effort(&levels, &wanted).map(str::to_owned));
            let mut warnings: Vec<String> = located.doubt.clone().into_iter().chain(unmet).collect();
            if order.host == Host::Local {
                warnings.extend(adapter.warnings(&order, &surroundings));
            }
            let tree = snapshot(&order, &surroundings).await;
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let meter = Meter::new(adapter.counting(), order.resume.as_ref().map(|resume| resume.used));
            let card = adapter.card();
            let given = card.capabilities.session_id_given.then(|| order.session_id.clone());
            let session = Session {
                environment: match order.host {
                    Host::Local => surroundings.vars.clone(),
                    Host::Ssh(_) => surroundings.environment(Child::Helper),
                },
                teller: Teller::new(outbox, surroundings, card, &order, given),
                adapter,
                located,
                warnings,
                order,
                meter,
                turns: 0,
                mark: uuid::Uuid::new_v4().to_string(),
            };
            let owner = tokio::spawn(session.run(inbox)).abort_handle();
            Ok(Live::new(commands, news, owner).on(tree))
        })
    }
}

/// A look at the program of an agent.
struct Look {
    adapter: Arc<dyn Adapter>,
    surroundings: Arc<Surroundings>,
}

impl Look {
    /// Where the program is, or what may take its place.
    async fn locate(&self) -> Option<Located> {
        if let Some(located) = self.adapter.locate(&self.surroundings) {
            return Some(located);
        }
        let stand_in = self.adapter.stand_in(&self.surroundings)?;
        let remembered = Resolution::remembered(&self.adapter.card().name, &self.surroundings);
        if remembered.is_some_and(|known| known.located == stand_in.located) {
            return Some(stand_in.located);
        }
        let asked = Located { leading: Vec::new(), ..stand_in.located.clone() };
        let output =
            inspect::ask(&asked, stand_in.question, &self.surroundings, KEEPER_PATIENCE).await.ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        (output.status.success() && text.contains(stand_in.answer)).then_some(stand_in.located)
    }

    fn questions(&self) -> Questions<'_> {
        let adapter = &self.adapter;
        Questions { name: &adapter.card().name, help: adapter.help(), needs: adapter.needs() }
    }

    /// What is known of a program: remembered if it is still the same, else asked.
    async fn known(&self, located: &Located) -> Resolution {
        let questions = self.questions();
        match Resolution::remembered(questions.name, &self.surroundings) {
            Some(known) if known.located == *located => known,
            _ => Resolution::ask(located.clone(), &questions, &self.surroundings).await,
        }
    }

    async fn preflight(self) -> Preflight {
        let card = self.adapter.card();
        let Some(located) = self.locate().await else {
            let problem = format!("{} is not installed: {}", card.label, card.install);
            return Preflight { problems: vec![problem], auth: Auth::Unknown, ..Preflight::default() };
        };
        let (auth, warnings) = self.adapter.auth(&self.surroundings);
        // Always anew: a look is how people find out that something has changed.
        let known = Resolution::ask(located, &self.questions(), &self.surroundings).await;
        let program = &known.located.program;
        let mut preflight = Preflight {
            program: Some(program.into()),
            version: known.version,
            help_hash: known.help_hash,
            effort_levels: known.effort_levels,
            best_effort: known.located.doubt.is_some(),
            auth,
            warnings,
            problems: Vec::new(),
        };
        preflight.warnings.extend(known.located.doubt.clone());
        if let Some(why) = known.trouble {
            preflight.problems.push(format!("`{program} --version` {why}"));
        }
        if !known.lacks.is_empty() {
            let flags = known.lacks.join(", ");
            preflight
                .warnings
                .push(format!("the help of `{program}` does not name {flags}, which are needed"));
        }
        if preflight.auth == Auth::Missing {
            self.ask_keeper(&mut preflight).await;
        }
        if preflight.auth == Auth::Missing {
            let login = self.adapter.login();
            preflight.problems.push(format!("no login for {} was found: {login}", card.label));
        }
        preflight
    }

    async fn ask_keeper(&self, preflight: &mut Preflight) {
        let Some(keeper) = self.adapter.keeper() else { return };
        let Some(program) = self.surroundings.on_path(keeper.program) else { return };
        let asked = Located::program(&program);
        let answer = inspect::ask(&asked, keeper.question, &self.surroundings, KEEPER_PATIENCE).await;
        if answer.is_ok_and(|output| output.status.success()) {
            let source = format!("{} {}", keeper.program, keeper.question.join(" "));
            let label = &self.adapter.card().label;
            preflight.warnings.push(format!(
                "no token for {label} is set; the login of `{}` is all there is",
                keeper.program
            ));
            preflight.auth = Auth::Found(source);
        }
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

/// The working tree before the agent changes it. A session goes on without it: its changes are not counted then.
pub(crate) async fn snapshot(order: &Order, surroundings: &Surroundings) -> Option<Snapshot> {
    let scratch = surroundings.cache.as_ref()?.join("trees");
    match order.host {
        Host::Local => Snapshot::take(&surroundings.git, &order.workspace, &scratch).await.ok().flatten(),
        Host::Ssh(_) => None,
    }
}

pub(crate) fn refusal(kind: ErrorKind, message: String) -> Failure {
    Failure { kind, message, evidence: Evidence::default() }
}

/// One session, owned by one task.
struct Session {
    adapter: Arc<dyn Adapter>,
    located: Located,
    /// Of its processes.
    environment: BTreeMap<String, String>,
    warnings: Vec<String>,
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
        self.teller.warn(std::mem::take(&mut self.warnings)).await;
        let mut waiting = Waiting::default();
        loop {
            let prompt = match waiting.pop() {
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
            let mut refused = Vec::new();
            {
                let turn = self.turn(prompt, cancel.clone());
                tokio::pin!(turn);
                loop {
                    tokio::select! {
                        () = &mut turn => break,
                        command = inbox.recv(), if !stop => match command {
                            Some(Command::Send(prompt) | Command::Steer(prompt)) => {
                                refused.extend(waiting.push(prompt).err().map(|error| error.to_string()));
                                refused.truncate(COMMAND_QUEUE);
                            }
                            Some(Command::Abort) => cancel.cancel(),
                            Some(Command::Answer { .. } | Command::Rename(_)) => {}
                            Some(Command::Stop) | None => {
                                stop = true;
                                cancel.cancel();
                            }
                        },
                    }
                }
            }
            self.teller.warn(refused).await;
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
        // What the adapter itself sets was made of the order's variables, and wins.
        invocation.env.splice(0..0, self.order.env.iter().cloned());
        self.turns += 1;
        let mut translator = self.adapter.translator(&turn);
        let process = TurnProcess {
            invocation,
            workspace: self.order.workspace.clone(),
            environment: &self.environment,
            host: &self.order.host,
            limits: self.order.limits,
            cancel,
            mark: format!("{}:{}.", self.mark, self.turns),
            scratch: self.order.scratch.clone(),
        };
        let (facts, said) = process.run(translator.as_mut(), &mut self.teller).await;
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
