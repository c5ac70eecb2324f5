//! Carries runs out. [`RunProgress`] says what is next; the driver logs the step, takes it, and logs its result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_git::Git;
use hangar_protocol::{Body, Event};
use hangar_runtimes::host::{Host, Ssh};
use hangar_runtimes::runtime::{AgentOrder, AgentSession, Runtime};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::check::check;
use crate::record::{
    CrashError, Limit, RunEnd, RunFact, RunId, RunOrder, RunRecord, Subject, TaskId, TaskSessionId,
};
use crate::retry;
use crate::slots::{SlotRequest, SlotSource, TaskSlot};
use crate::state::{EffectOwner, NoRun, RunEffect, RunProgress, RunStep};
use crate::store::{RunLog, RunStore, RunStoreError};
use crate::task_session::{LogOwner, TaskSession};
use crate::worktree;

/// Capacity of a run's queue of commands; each ends something, so there are few.
const COMMAND_QUEUE: usize = 16;

/// Executor of runs. One serves any number of them.
pub struct Executor {
    /// The agents, the default one first.
    pub runtimes: RuntimeSource,
    pub store: Arc<dyn RunStore>,
    pub slots: Arc<dyn SlotSource>,
    /// An MCP configuration that offers the job tools, for agents that take one.
    pub job_tools: Option<String>,
    pub environment: RunEnvironment,
    pub now: fn() -> Timestamp,
}

/// Facts about the machine. They are handed in, so that nothing here reads the process environment.
#[derive(Clone)]
pub struct RunEnvironment {
    /// The variables of commands that check the work of a task.
    pub variables: Vec<(OsString, OsString)>,
    pub git: Git,
    /// Takes secrets out of a record before it is written down.
    pub clean: RecordFilter,
}

pub type RecordFilter = Arc<dyn Fn(RunRecord) -> RunRecord + Send + Sync>;

/// Receives notices in order, after they were logged. Must not block: the run waits for it.
pub trait RunListener: Send + Sync {
    fn hear(&self, run: &RunId, notice: RunNotice<'_>);
}

#[derive(Debug, Clone, Copy)]
pub enum RunNotice<'a> {
    Record(&'a RunRecord),
    /// Event of a session of the run.
    Event {
        task: TaskId,
        session: &'a TaskSessionId,
        event: &'a Event,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum RunStartError {
    #[error(transparent)]
    NoRun(#[from] NoRun),
    #[error(transparent)]
    Store(#[from] RunStoreError),
    #[error("there is no agent \"{0}\"")]
    UnknownRuntime(String),
    #[error(
        "agent \"{runtime}\" takes no MCP servers, so it cannot be given the job tools that task \"{task}\" needs"
    )]
    WithoutJobTools { runtime: String, task: String },
    #[error("run {0} has ended")]
    Ended(RunId),
    #[error("run {0} worked in a session that ended with its process")]
    Orphaned(RunId),
}

impl Executor {
    /// Begins a run that `audience` hears. It gets on while its [`to_end`](RunDriver::to_end) is awaited.
    pub fn start(
        self: &Arc<Self>,
        order: RunOrder,
        audience: Arc<dyn RunListener>,
    ) -> Result<RunDriver, RunStartError> {
        self.begin(self.new_run(), order, None, audience)
    }

    /// The same with an id that was chosen before. A run with that id is not started twice.
    pub fn start_as(
        self: &Arc<Self>,
        run: RunId,
        order: RunOrder,
        audience: Arc<dyn RunListener>,
    ) -> Result<RunDriver, RunStartError> {
        self.begin(run, order, None, audience)
    }

    fn new_run(&self) -> RunId {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        RunId(format!("{}-{}", (self.now)().strftime("%Y%m%d-%H%M%S"), &mark[..8]))
    }

    /// Begins a run of one task in a session that stays its owner's.
    pub fn start_borrowing(
        self: &Arc<Self>,
        order: RunOrder,
        (session, live): (TaskSessionId, AgentSession),
        audience: Arc<dyn RunListener>,
    ) -> Result<RunDriver, RunStartError> {
        let subject = match order.subject {
            Subject::Task { name, model, .. } => Subject::Task {
                name,
                model,
                borrowed_session: Some(session.clone()),
                skip_availability: true,
            },
            Subject::Job { name } => return Err(NoRun::NothingToDo(name).into()),
        };
        self.begin(self.new_run(), RunOrder { subject, ..order }, Some((session, live)), audience)
    }

    fn begin(
        self: &Arc<Self>,
        run: RunId,
        order: RunOrder,
        borrowed: Option<(TaskSessionId, AgentSession)>,
        audience: Arc<dyn RunListener>,
    ) -> Result<RunDriver, RunStartError> {
        let at = (self.now)();
        let first = RunRecord { seq: 0, at, fact: RunFact::RunStarted { run: run.clone(), order } };
        let first = (self.environment.clean)(first);
        let state = RunProgress::begin(&first)?;
        self.check_runtimes(state.order())?;
        let mut log = self.store.create(&run)?;
        log.append(&first)?;
        audience.hear(&run, RunNotice::Record(&first));
        let mut running = RunDriver::new(Arc::clone(self), audience, state, log);
        if let Some((session, live)) = borrowed {
            let task_session = TaskSession {
                run,
                task: TaskId(0),
                session: session.clone(),
                live,
                audience: Arc::clone(&running.audience),
                owner: LogOwner::SomebodyElse,
                slot: None,
                failure: None,
            };
            running.task_sessions.insert(session, task_session);
        }
        Ok(running)
    }

    /// Continues a run whose process ended. One that cannot be continued is ended for good.
    pub fn resume(
        self: &Arc<Self>,
        run: &RunId,
        audience: Arc<dyn RunListener>,
    ) -> Result<RunDriver, RunStartError> {
        let (records, log) = self.store.open(run)?;
        let state = RunProgress::fold(&records)?;
        if state.end().is_some() {
            return Err(RunStartError::Ended(run.clone()));
        }
        self.check_runtimes(state.order())?;
        let orphaned = !state.can_resume();
        let mut running = RunDriver::new(Arc::clone(self), audience, state, log);
        if orphaned {
            running.note(RunFact::RunEnded { end: RunEnd::Interrupted })?;
            running.tell_end();
            return Err(RunStartError::Orphaned(run.clone()));
        }
        running.note(RunFact::RunResumed)?;
        Ok(running)
    }

    /// Checks the runtimes of an order before the work begins.
    fn check_runtimes(&self, order: &RunOrder) -> Result<(), RunStartError> {
        let work = order.work();
        for work in work.iter().flat_map(|work| work.tasks()) {
            let Some(task) = order.entry.tasks.get(&work.task_id) else { continue };
            let driving = order.runtime.as_deref();
            for name in [task.worker().or(driving), driving] {
                let Some(runtime) = self.runtime(name) else {
                    let name = name.unwrap_or("default").to_owned();
                    return Err(RunStartError::UnknownRuntime(name));
                };
                if task.needs_job_tools() && !runtime.card().capabilities.mcp_config {
                    let (runtime, task) = (runtime.card().name.to_string(), work.task_id.clone());
                    return Err(RunStartError::WithoutJobTools { runtime, task });
                }
            }
        }
        Ok(())
    }

    fn runtime(&self, name: Option<&str>) -> Option<Arc<dyn Runtime>> {
        let mut runtimes = (self.runtimes)().into_iter();
        match name {
            Some(name) => runtimes.find(|runtime| runtime.card().name == name),
            None => runtimes.next(),
        }
    }
}

/// Runtimes and named agents as they are configured now, the default one first.
pub type RuntimeSource = Arc<dyn Fn() -> Vec<Arc<dyn Runtime>> + Send + Sync>;

/// Handle that controls a run from outside.
#[derive(Debug, Clone)]
pub struct Controls(mpsc::Sender<RunCommand>);

#[derive(Debug)]
enum RunCommand {
    Stop,
    StopTask(TaskId),
}

impl Controls {
    /// Ends the run. One that has ended stays as it is.
    pub async fn stop(&self) {
        // It has ended by itself.
        let _ = self.0.send(RunCommand::Stop).await;
    }

    /// Ends one task, which then has no verdict: the run fails.
    pub async fn stop_task(&self, task: TaskId) {
        let _ = self.0.send(RunCommand::StopTask(task)).await;
    }
}

/// Driver of a run. Dropping it ends its agents and leaves the run to be resumed.
pub struct RunDriver {
    executor: Arc<Executor>,
    audience: Arc<dyn RunListener>,
    state: RunProgress,
    log: Box<dyn RunLog>,
    task_sessions: BTreeMap<TaskSessionId, TaskSession>,
    effects: JoinSet<FinishedEffect>,
    /// Owners of the effects, by task.
    owners: HashMap<tokio::task::Id, EffectOwner>,
    /// Effects that have not ended, those that were aborted included.
    under_way: BTreeMap<EffectOwner, RunningEffect>,
    /// Sessions that are coming to their end.
    leaving: JoinSet<()>,
    controls: Controls,
    commands: mpsc::Receiver<RunCommand>,
    /// End of the run, from when it is logged until it is published.
    untold_end: Option<RunRecord>,
}

/// An effect that has not ended.
struct RunningEffect {
    handle: AbortHandle,
    aborted: bool,
}

/// Result of an effect.
struct FinishedEffect {
    facts: Vec<RunFact>,
    task_session: Option<TaskSession>,
}

impl From<RunFact> for FinishedEffect {
    fn from(fact: RunFact) -> Self {
        Self { facts: vec![fact], task_session: None }
    }
}

impl RunDriver {
    fn new(
        executor: Arc<Executor>,
        audience: Arc<dyn RunListener>,
        state: RunProgress,
        log: Box<dyn RunLog>,
    ) -> Self {
        let (sender, commands) = mpsc::channel(COMMAND_QUEUE);
        Self {
            executor,
            audience,
            state,
            log,
            task_sessions: BTreeMap::new(),
            effects: JoinSet::new(),
            owners: HashMap::new(),
            under_way: BTreeMap::new(),
            leaving: JoinSet::new(),
            controls: Controls(sender),
            commands,
            untold_end: None,
        }
    }

    pub fn run(&self) -> &RunId {
        self.state.run()
    }

    /// The order that is carried out.
    pub fn order(&self) -> &RunOrder {
        self.state.order()
    }

    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Carries the run out. An error means that it could not be written down, and the run is left as it is.
    ///
    /// Listeners may act on the end of a task at once, so its sessions are released before the end is published or returned.
    pub async fn to_end(mut self) -> Result<RunEnd, RunStoreError> {
        let ended = self.carry_out().await;
        self.effects.shutdown().await;
        self.task_sessions.clear();
        let end = ended?;
        self.tell_end();
        self.clean_up(&end).await;
        Ok(end)
    }

    async fn carry_out(&mut self) -> Result<RunEnd, RunStoreError> {
        loop {
            while let Some(step) = self.state.next(&self.busy()) {
                match step {
                    RunStep::Note(fact) => self.note(fact)?,
                    RunStep::Do(effect) => self.start(effect),
                }
            }
            if let Some(end) = self.state.end() {
                return Ok(end.clone());
            }
            let left = self.state.time_left((self.executor.now)());
            tokio::select! {
                Some(done) = self.effects.join_next_with_id() => self.done(done)?,
                Some(command) = self.commands.recv() => self.obey(command)?,
                () = limit(left) => {
                    self.note(RunFact::RunEnded { end: RunEnd::LimitReached { limit: Limit::Time } })?;
                }
            }
        }
    }

    fn is_aborted(&self, task: TaskId) -> bool {
        self.under_way.get(&EffectOwner::Task(task)).is_some_and(|effect| effect.aborted)
    }

    fn busy(&self) -> BTreeSet<EffectOwner> {
        self.under_way.keys().cloned().collect()
    }

    /// Logs a fact, then applies its consequences. [`tell_end`](Self::tell_end) reports the end of the run.
    fn note(&mut self, fact: RunFact) -> Result<(), RunStoreError> {
        let record = RunRecord { seq: self.state.next_seq(), at: (self.executor.now)(), fact };
        let record = (self.executor.environment.clean)(record);
        self.log.append(&record)?;
        self.state.apply(&record);
        match &record.fact {
            RunFact::SessionStopped { session, .. } => {
                if let Some(task_session) = self.task_sessions.remove(session) {
                    self.leaving.spawn(FutureExt::boxed(task_session.leave()));
                }
            }
            RunFact::TaskStopped { task } => {
                if let Some(effect) = self.under_way.get_mut(&EffectOwner::Task(*task)) {
                    effect.handle.abort();
                    effect.aborted = true;
                }
            }
            // A session that was borrowed goes back before its owner hears that the task is done with it.
            RunFact::TaskEnded { task, .. } => {
                self.executor.slots.withdraw_task(self.state.run(), *task);
                self.task_sessions.retain(|_, task_session| task_session.owner == LogOwner::Run);
            }
            RunFact::RunEnded { .. } => {
                self.untold_end = Some(record);
                return Ok(());
            }
            _ => {}
        }
        self.audience.hear(self.state.run(), RunNotice::Record(&record));
        Ok(())
    }

    fn tell_end(&mut self) {
        if let Some(record) = self.untold_end.take() {
            self.audience.hear(self.state.run(), RunNotice::Record(&record));
        }
    }

    fn obey(&mut self, command: RunCommand) -> Result<(), RunStoreError> {
        match command {
            RunCommand::Stop => self.note(RunFact::RunEnded { end: RunEnd::Canceled }),
            RunCommand::StopTask(task) if self.state.is_running(task) && !self.is_aborted(task) => {
                self.note(RunFact::TaskStopped { task })
            }
            RunCommand::StopTask(_) => Ok(()),
        }
    }

    fn done(
        &mut self,
        done: Result<(tokio::task::Id, FinishedEffect), tokio::task::JoinError>,
    ) -> Result<(), RunStoreError> {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let aborted = match self.owners.remove(&id).and_then(|owner| self.under_way.remove(&owner)) {
            Some(effect) => effect.aborted,
            None => true,
        };
        match done {
            Ok((_, done)) => {
                if let Some(task_session) = done.task_session {
                    self.task_sessions.insert(task_session.session.clone(), task_session);
                }
                // The facts of a task that was stopped meanwhile come too late.
                if aborted {
                    return Ok(());
                }
                done.facts.into_iter().try_for_each(|fact| self.note(fact))
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Ok(()),
            },
        }
    }

    fn start(&mut self, effect: RunEffect) {
        let owner = effect.owner();
        let run = self.state.run().clone();
        let handle = match effect {
            RunEffect::Open { task, driving, model, runtime, directory, since } => {
                let session = TaskSessionId(uuid::Uuid::new_v4().to_string());
                let (executor, audience) = (Arc::clone(&self.executor), Arc::clone(&self.audience));
                let mut order = AgentOrder::new(session.0.clone(), directory);
                order.model = Some(model.clone()).filter(|model| !model.is_empty());
                // The session records the task that it works for, so that runs need not be searched for it.
                order.opening.extend(self.state.assignment(task, driving).map(Body::from));
                let request = SlotRequest {
                    run: run.clone(),
                    task,
                    job: self.state.order().subject.name().to_owned(),
                    project: self.state.order().working_directory.clone(),
                    runtime: runtime.clone(),
                    model: model.clone(),
                    priority: self.state.order().priority(),
                    labels: self.state.order().labels(),
                    since,
                };
                self.effects.spawn(FutureExt::boxed(async move {
                    let (live, slot) = match open(&executor, request, order).await {
                        Ok(opened) => opened,
                        Err(error) => return RunFact::SessionRefused { task, error }.into(),
                    };
                    let id = session.clone();
                    let (owner, slot) = (LogOwner::Run, Some(slot));
                    let task_session =
                        TaskSession { run, task, session, live, audience, owner, slot, failure: None };
                    let fact = RunFact::SessionStarted { task, session: id, driving, model, runtime };
                    FinishedEffect { facts: vec![fact], task_session: Some(task_session) }
                }))
            }
            RunEffect::Ask { task, session, prompt } => {
                let task_session = self.task_sessions.remove(&session);
                self.effects.spawn(FutureExt::boxed(async move {
                    let Some(mut task_session) = task_session else {
                        let error = CrashError::new("port_exit", "the session is not open");
                        let end = crate::record::TurnReport::Crashed { error };
                        return RunFact::TurnEnded { task, session, end, tokens: 0 }.into();
                    };
                    let (end, tokens) = task_session.ask(prompt).await;
                    FinishedEffect {
                        facts: vec![RunFact::TurnEnded { task, session, end, tokens }],
                        task_session: Some(task_session),
                    }
                }))
            }
            RunEffect::Check { task, commands, files, directory } => {
                let executor = Arc::clone(&self.executor);
                self.effects.spawn(FutureExt::boxed(async move {
                    let variables = &executor.environment.variables;
                    let failures = check(&commands, &files, &directory, variables).await;
                    RunFact::Checked { task, failures }.into()
                }))
            }
            RunEffect::MakeWorktree { place, number, from } => {
                let scratch = self.log.scratch().to_owned();
                let executor = Arc::clone(&self.executor);
                self.effects.spawn(FutureExt::boxed(async move {
                    let git = &executor.environment.git;
                    match worktree::make(git, &scratch, &run, &place, number, &from).await {
                        Ok(worktree) => RunFact::WorktreeMade { place, worktree }.into(),
                        Err(error) => RunFact::WorktreeFailed { place, error }.into(),
                    }
                }))
            }
            RunEffect::LeaveWorktree { place, worktree } => {
                let executor = Arc::clone(&self.executor);
                self.effects.spawn(FutureExt::boxed(async move {
                    let kept = worktree::leave(&executor.environment.git, &worktree).await;
                    RunFact::WorktreeLeft { place, kept }.into()
                }))
            }
        };
        self.owners.insert(handle.id(), owner.clone());
        self.under_way.insert(owner, RunningEffect { handle, aborted: false });
    }

    /// Waits for sessions that close, unless there is a hurry, and leaves the worktrees.
    async fn clean_up(&mut self, end: &RunEnd) {
        match end {
            RunEnd::Succeeded | RunEnd::Failed { .. } | RunEnd::LimitReached { .. } => {
                while self.leaving.join_next().await.is_some() {}
            }
            RunEnd::Canceled | RunEnd::Interrupted => self.leaving.shutdown().await,
        }
        self.executor.slots.withdraw_run(self.state.run());
        for worktree in self.state.worktrees().values() {
            worktree::leave(&self.executor.environment.git, worktree).await;
        }
    }
}

async fn limit(left: Option<Duration>) {
    match left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Waits for a slot and opens a session in it.
async fn open(
    executor: &Executor,
    request: SlotRequest,
    mut order: AgentOrder,
) -> Result<(AgentSession, Box<dyn TaskSlot>), CrashError> {
    let Some(runtime) = executor.runtime(request.runtime.as_deref()) else {
        let name = request.runtime.as_deref().unwrap_or("the default");
        return Err(CrashError::new("agent_not_found", format!("there is no agent \"{name}\"")));
    };
    if runtime.card().capabilities.mcp_config {
        order.mcp_config.clone_from(&executor.job_tools);
    }
    let slot = executor.slots.acquire(request).await;
    let slot = slot.map_err(|why| CrashError::new("queue_failed", why))?;
    if let Some(target) = slot.host() {
        order.host = Host::Ssh(Ssh { target: target.to_owned(), ..Ssh::default() });
    }
    match runtime.open(order).await {
        Ok(live) => Ok((live, slot)),
        Err(failure) => {
            let error = CrashError::from(&failure);
            slot.end(Some(retry::failure(&error)));
            Err(error)
        }
    }
}
