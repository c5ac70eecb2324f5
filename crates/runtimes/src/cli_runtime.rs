//! Agents that are a process per turn. Everything that running them has in common is here; an [`Adapter`] is what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_git::Snapshot;
use hangar_process::credentials::Child;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::adapter::{Adapter, AgentProfile, TurnContext};
use crate::capabilities::{nearest_effort, unmet};
use crate::environment::RuntimeEnvironment;
use crate::event_emitter::{AgentRecord, EventEmitter};
use crate::host::{Host, NO_WORKSPACE};
use crate::outcome::{
    ErrorKind, Evidence, ProcessExit, TurnFacts, TurnFailure, TurnOutcome, TurnResult, decide,
};
use crate::probe::Prober;
use crate::program_query::{NO_CONNECTION, NO_SUCH_PROGRAM};
use crate::prompt_queue::PromptQueue;
use crate::resolution::Located;
use crate::runtime::{
    AgentCard, AgentOrder, AgentSession, LoginState, Lookup, OfferedModel, Preflight, RehearsalStage,
    Runtime, SessionCommand, TurnEnded,
};
use crate::translate::{OutputFacts, TranslatedEvent, Translation};
use crate::turn::{TurnListener, TurnProcess};
use crate::usage::UsageMeter;
use crate::watch::TreeProbe;

/// Capacity of a session's queue of news; the agent has to wait beyond it.
pub(crate) const NEWS_QUEUE: usize = 256;
/// Capacity of a session's queue of prompts and answers.
pub(crate) const COMMAND_QUEUE: usize = 64;

/// Serves any adapter.
pub struct CliRuntime {
    profile: Arc<AgentProfile>,
    adapter: Arc<dyn Adapter>,
    runtime_env: Arc<RuntimeEnvironment>,
    prober: Prober,
}

impl CliRuntime {
    pub fn new(profile: AgentProfile, adapter: impl Adapter, runtime_env: &RuntimeEnvironment) -> Self {
        let profile = Arc::new(profile);
        // All that it is asked and does, it is asked and does with its own credentials.
        let runtime_env = runtime_env.seen_by(Child::Agent(&profile.card.name));
        let prober = Prober::new(Arc::clone(&profile), &runtime_env);
        Self { profile, adapter: Arc::new(adapter), runtime_env: Arc::new(runtime_env), prober }
    }
}

impl Runtime for CliRuntime {
    fn card(&self) -> &AgentCard {
        &self.profile.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        Box::pin(self.prober.clone().preflight())
    }

    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        Box::pin(self.prober.clone().models(lookup))
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        self.adapter.rehearse(order, stage);
    }

    fn open(&self, mut order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let (profile, adapter) = (Arc::clone(&self.profile), Arc::clone(&self.adapter));
        let runtime_env = Arc::clone(&self.runtime_env);
        let prober = self.prober.of_session(&order);
        Box::pin(async move {
            if let Some(resume) = &order.resume {
                order.model = order.model.take().or_else(|| resume.model.clone());
                order.effort = order.effort.take().or_else(|| resume.effort.clone());
            }
            let SessionStart { located, levels, lacks, knows_flags, mut warnings } =
                start(&profile, &prober, &order).await?;
            warnings.extend(unmet(&profile.card, &order));
            warnings.extend(profile.model_warning(&order));
            order.effort =
                order.effort.take().and_then(|wanted| nearest_effort(&levels, &wanted).map(str::to_owned));
            let tree = snapshot(&order, &runtime_env).await;
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let meter = UsageMeter::new(profile.counting, order.resume.as_ref().map(|resume| resume.used));
            let session = CliSession {
                tree: tree_probe(&order, &runtime_env),
                environment: match order.host {
                    Host::Local => runtime_env.vars.clone(),
                    Host::Ssh(_) => runtime_env.environment(Child::Helper),
                },
                emitter: EventEmitter::new(outbox, runtime_env, &profile.card, &order),
                profile,
                adapter,
                prober,
                located,
                lacks,
                knows_flags,
                warnings,
                order,
                meter,
                turns: 0,
                mark: uuid::Uuid::new_v4().to_string(),
            };
            let owner = tokio::spawn(FutureExt::boxed(session.run(inbox))).abort_handle();
            Ok(AgentSession::new(commands, news, owner).on(tree))
        })
    }
}

/// Facts that are known before the first turn.
struct SessionStart {
    located: Located,
    /// Levels of effort that the installed version has.
    levels: Vec<String>,
    lacks: BTreeSet<String>,
    knows_flags: bool,
    warnings: Vec<String>,
}

/// Makes sure that a session can begin. What is on another machine is found out when it is started there.
async fn start(
    profile: &AgentProfile,
    prober: &Prober,
    order: &AgentOrder,
) -> Result<SessionStart, TurnFailure> {
    let mut levels = profile.card.capabilities.effort_levels.clone();
    if order.host == Host::Local {
        check_workspace(&order.workspace)?;
    }
    let located = prober.locate().await;
    let located = located.ok_or_else(|| refusal(ErrorKind::AgentNotFound, prober.not_installed()))?;
    let mut warnings: Vec<String> = located.doubt.clone().into_iter().collect();
    let mut known = prober.remembered(&located);
    if order.host == Host::Local {
        let (auth, complaints) = prober.login(&located, known.as_ref()).await;
        if auth == LoginState::Missing && prober.is_conclusive(&located) {
            return Err(refusal(ErrorKind::Auth, prober.login_problem()));
        }
        warnings.extend(complaints);
        // Versions differ in their levels. An order without an effort need not wait for them.
        if order.effort.is_some() {
            let asked = prober.known(&located).await;
            levels = asked.effort_levels.clone().unwrap_or(levels);
            known = Some(asked);
        }
    }
    let knows_flags = known.is_some() || !prober.has_optional_flags();
    let lacks = known.map(|known| prober.lacking(&known)).unwrap_or_default();
    Ok(SessionStart { located, levels, lacks, knows_flags, warnings })
}

pub(crate) fn check_workspace(workspace: &Path) -> Result<(), TurnFailure> {
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
pub(crate) async fn snapshot(order: &AgentOrder, runtime_env: &RuntimeEnvironment) -> Option<Snapshot> {
    let scratch = runtime_env.cache.as_ref()?.join("trees");
    match order.host {
        Host::Local => Snapshot::take(&runtime_env.git, &order.workspace, &scratch).await.ok().flatten(),
        Host::Ssh(_) => None,
    }
}

/// Probe of the working tree, where it is on this machine.
pub(crate) fn tree_probe(order: &AgentOrder, runtime_env: &RuntimeEnvironment) -> TreeProbe {
    match order.host {
        Host::Local => TreeProbe::new(runtime_env.git.clone(), order.workspace.clone()),
        Host::Ssh(_) => TreeProbe::default(),
    }
}

pub(crate) fn refusal(kind: ErrorKind, message: String) -> TurnFailure {
    TurnFailure { kind, message, evidence: Evidence::default() }
}

/// One session, owned by one task.
struct CliSession {
    tree: TreeProbe,
    profile: Arc<AgentProfile>,
    adapter: Arc<dyn Adapter>,
    prober: Prober,
    located: Located,
    /// Flags that the program is known not to have.
    lacks: BTreeSet<String>,
    /// Whether `lacks` is complete, because the help of the program was read.
    knows_flags: bool,
    /// Variables of its processes.
    environment: BTreeMap<String, String>,
    warnings: Vec<String>,
    order: AgentOrder,
    emitter: EventEmitter,
    meter: UsageMeter,
    turns: u32,
    /// Names its processes. Not the session's id: the same session may be open twice by mistake, and one must not end the
    /// other's processes.
    mark: String,
}

impl CliSession {
    async fn run(mut self, mut inbox: mpsc::Receiver<SessionCommand>) {
        self.emitter.begin(&self.order).await;
        self.emitter.warn(std::mem::take(&mut self.warnings)).await;
        let mut waiting = PromptQueue::default();
        loop {
            let prompt = match waiting.pop() {
                Some(prompt) => prompt,
                None => match inbox.recv().await {
                    Some(SessionCommand::Send(prompt) | SessionCommand::Steer(prompt)) => prompt,
                    // Nothing is under way that these could be about.
                    Some(
                        SessionCommand::Abort | SessionCommand::Answer { .. } | SessionCommand::Rename(_),
                    ) => continue,
                    Some(SessionCommand::Stop) | None => return,
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
                            Some(SessionCommand::Send(prompt) | SessionCommand::Steer(prompt)) => {
                                refused.extend(waiting.push(prompt).err().map(|error| error.to_string()));
                                refused.truncate(COMMAND_QUEUE);
                            }
                            Some(SessionCommand::Abort) => cancel.cancel(),
                            Some(SessionCommand::Answer { .. } | SessionCommand::Rename(_)) => {}
                            Some(SessionCommand::Stop) | None => {
                                stop = true;
                                cancel.cancel();
                            }
                        },
                    }
                }
            }
            self.emitter.warn(refused).await;
            if stop {
                return;
            }
        }
    }

    async fn turn(&mut self, prompt: String, cancel: CancellationToken) {
        if !self.profile.echoes_prompt {
            self.emitter.prompted(&prompt).await;
        }
        let (mut facts, mut said) = self.process(&prompt, &cancel).await;
        if is_refused_command_line(&facts) && self.lacks_more().await {
            (facts, said) = self.process(&prompt, &cancel).await;
        }
        self.turns += 1;
        let end = decide(&facts);
        if let TurnResult::Failed(failure) = &end {
            let said_it =
                AgentRecord { complained: said.facts.reported_error.is_some(), aborted: said.facts.aborted };
            self.emitter.report(failure, said_it).await;
        }
        let usage = self.meter.turn_ended(said.facts.usage);
        let outcome = TurnOutcome { end, usage, total: self.meter.total() };
        let OutputFacts { model, unknown, .. } = said.facts;
        self.emitter.ended(TurnEnded { outcome, model, unknown }).await;
    }

    /// Runs one process to its end.
    async fn process(&mut self, prompt: &str, cancel: &CancellationToken) -> (TurnFacts, Translation) {
        let agent_session = self.emitter.agent_session().map(str::to_owned);
        let turn = TurnContext {
            prompt,
            agent_session: agent_session.as_deref(),
            before: self.turns,
            lacks: &self.lacks,
        };
        let mut invocation = self.adapter.invocation(&self.order, &turn);
        invocation.program.clone_from(&self.located.program);
        invocation.args.splice(0..0, self.located.leading.iter().map(Into::into));
        // The adapter's own variables were made from those of the order, and override them.
        invocation.env.splice(0..0, self.order.env.iter().cloned());
        self.emitter.expect(invocation.session_id.take());
        let mut translator = self.adapter.translator(&turn);
        let process = TurnProcess {
            invocation,
            workspace: self.order.workspace.clone(),
            environment: &self.environment,
            host: &self.order.host,
            limits: self.order.limits,
            cancel: cancel.clone(),
            mark: format!("{}:{}.", self.mark, self.turns),
            scratch: self.order.scratch.clone(),
            speaks_at_start: self.profile.speaks_at_start,
            tree: self.tree.clone(),
        };
        process.run(translator.as_mut(), &mut self.emitter).await
    }

    /// Asks the program for its flags, once; true if it lacks some that were not known to be missing.
    async fn lacks_more(&mut self) -> bool {
        if std::mem::replace(&mut self.knows_flags, true) {
            return false;
        }
        let known = self.prober.ask(&self.located).await;
        let lacks = self.prober.lacking(&known);
        let more = !lacks.is_subset(&self.lacks);
        self.lacks.extend(lacks);
        more
    }
}

/// Whether a process rejected its command line: a failing exit code and nothing on stdout.
fn is_refused_command_line(facts: &TurnFacts) -> bool {
    let failed = match facts.exit {
        Some(ProcessExit::Code(code)) => !matches!(code, 0 | NO_SUCH_PROGRAM | NO_CONNECTION | NO_WORKSPACE),
        Some(ProcessExit::Signal(_)) | None => false,
    };
    failed && facts.stopped.is_none() && !facts.spoke
}

impl TurnListener for EventEmitter {
    async fn hear(&mut self, spoken: Vec<TranslatedEvent>) {
        EventEmitter::hear(self, spoken).await;
    }

    async fn named(&mut self, agent_session: &str) {
        EventEmitter::named(self, agent_session).await;
    }
}
