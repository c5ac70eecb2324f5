//! The driver carries a session's decisions out: it logs events, publishes them, then performs effects and feeds their
//! results back. One task owns the session and all its agents, so their state has one writer and needs no lock.
//!
//! Each agent has a lane: its own session, model call and tools. All lanes write to one log and one sink. Their futures
//! are polled only when they are ready, so that many lanes cost little.

mod agents;
mod effects;
mod lane;
mod rate_limit;
mod running;
mod tools;
mod unfinished;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use hangar_protocol::data::{self, PlanAndTodos};
use hangar_protocol::{AgentId, Body, Event, EventId};
use jiff::Timestamp;
use tokio::sync::mpsc;

pub use agents::Refused;

use crate::agents::config::{ModelChoice, Models};
use crate::agents::toolset::AgentToolProvider;
use crate::budget::{Budget, BudgetLedger, Cap, ReservedCall, USD_PER_CREDIT, UnloggedCall};
use crate::entropy::Entropy;
use crate::hook::{HookAnswer, HookKind, HookRequest};
use crate::interned;
use crate::log::{ListedFact, LogError, SessionLog};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, TokenUsage};
use crate::session::{
    Command, Context, Opening, PendingPermission, Reminder, Session, SessionInput, Step, ended, iso, started,
};
use crate::tool::{ToolSpec, Toolset};
use agents::WaitingRead;
use lane::{AgentLane, Lane, LaneId, MAIN};
use rate_limit::RateLimits;
use running::{Next, RunningWork};
use unfinished::UnfinishedAnswers;

/// Reason of an abort by the user of the session.
const USER_INITIATED: &str = "user_initiated";
/// Grace period for cancelled tools when the session closes.
const CLOSING_GRACE: Duration = Duration::from_secs(5);

/// Listener that is given each event, in order, right after it is logged. It must not fail and should not block: the
/// session waits for it.
pub trait EventSink: Send {
    fn publish(&mut self, event: &Event);
}

/// Finder of instructions about files that tools touched. Each is reported once per conversation.
pub trait InstructionFinder: Send {
    fn discover(&mut self, touched: Vec<(PathBuf, String)>) -> Vec<Reminder>;

    /// A finder for another conversation, which has been told nothing yet.
    fn anew(&self) -> Box<dyn InstructionFinder>;
}

/// Queries about the session's working directory and folder.
pub trait Surroundings: Send {
    /// The plan and the open todos, as they are now.
    fn plan_and_todos(&mut self) -> PlanAndTodos;

    /// Whether the working tree is unchanged since the session began. `false` if unknown.
    fn unchanged(&self) -> BoxFuture<'static, bool>;
}

/// User-defined code that runs at fixed points of a session.
pub trait Hooks: Send + Sync {
    /// Runs the hooks, with a time limit.
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer>;
}

/// Environment of a session: log, sink, provider, tools and callbacks.
pub struct SessionHost {
    pub provider: Arc<dyn ModelProvider>,
    pub tools: Toolset,
    pub log: Box<dyn SessionLog>,
    pub sink: Box<dyn EventSink>,
    pub discovery: Option<Box<dyn InstructionFinder>>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub surroundings: Option<Box<dyn Surroundings>>,
    /// Models for agents beside the session's own.
    pub models: Option<Arc<dyn Models>>,
    /// The account of the budget that all calls share.
    pub ledger: BudgetLedger,
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    pub entropy: Entropy,
    /// Factor for the waits before retries; 1 outside tests.
    pub retry_scale: f64,
}

/// Inputs that follow from an effect, each with its lane.
type Inputs = Vec<(LaneId, SessionInput)>;

pub struct Driver {
    host: SessionHost,
    commands: mpsc::Receiver<Box<SessionInput>>,
    /// Lanes by id. Boxed, because a node of the map has room for many, and most sessions have one.
    lanes: BTreeMap<LaneId, Box<Lane>>,
    next_lane: u64,
    running: RunningWork,
    /// Calls of `read_agent` that wait for their agents.
    readers: Vec<WaitingRead>,
    rate_limits: RateLimits,
    /// Whether a refused login is tried again within the session.
    retries_logins: bool,
    /// Gets ready what agents have of their own.
    tool_provider: Option<Arc<dyn AgentToolProvider>>,
    /// All tools except the sessions' own; the main agent may be shown fewer.
    offered: Arc<[Arc<ToolSpec>]>,
    parent: Option<EventId>,
    /// Id of the last published event, ephemeral or not.
    latest: Option<EventId>,
    /// Model switches that were made since they were last taken.
    switched: Vec<String>,
    /// The last summary of the conversation, until somebody takes it.
    compaction: Option<data::CompactionComplete>,
    unfinished: UnfinishedAnswers,
}

impl Driver {
    /// Creates a driver. `commands` carries input from outside: commands and news of background work.
    pub fn new(session: Session, host: SessionHost, commands: mpsc::Receiver<Box<SessionInput>>) -> Self {
        let parent = session.state().last_event.clone();
        let provider =
            host.ledger.provider(Arc::clone(&host.provider), session.config().metering.meter.clone());
        let offered = interned::list(host.tools.iter().map(|tool| tool.spec()));
        let mut driver = Self {
            host,
            commands,
            lanes: BTreeMap::new(),
            next_lane: MAIN.0,
            running: RunningWork::default(),
            readers: Vec::new(),
            rate_limits: RateLimits::default(),
            retries_logins: true,
            tool_provider: None,
            offered,
            parent,
            latest: None,
            switched: Vec::new(),
            compaction: None,
            unfinished: UnfinishedAnswers::default(),
        };
        driver.open_lane(session, provider, None);
        driver.apply_client_limits();
        driver
    }

    /// The account of the session's budget.
    pub fn ledger(&self) -> &BudgetLedger {
        &self.host.ledger
    }

    /// The provider of the main agent, within the budget.
    pub fn provider(&self) -> Arc<dyn ModelProvider> {
        Arc::clone(&self.lanes[&MAIN].provider)
    }

    /// The model that makes titles, with its name. Its calls are made within the session's budget and put on record; they need
    /// [`Self::turn`] to go on.
    pub fn title_model(&self) -> Option<(Arc<dyn ModelProvider>, String)> {
        let name = self.session().config().agent_config.as_ref()?.title_model()?.to_owned();
        let ModelChoice { provider, model, .. } = self.host.models.as_ref()?.find(&name)?;
        Some((self.host.ledger.unattended(provider), model))
    }

    /// A provider whose calls are made within the session's budget.
    fn budgeted(&self, provider: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        self.host.ledger.provider(provider, self.session().config().metering.meter.clone())
    }

    /// Holds the limits that a client set, where the price of the model is known.
    fn apply_client_limits(&mut self) {
        let session = self.session();
        let priced = session.config().provider.price.is_some();
        let credits = session.state().limits.and_then(|limits| limits.max_ai_credits).filter(|_| priced);
        let max_cost = credits.map(|credits| credits * USD_PER_CREDIT);
        self.host.ledger.set(Cap::Client, Budget { max_cost, ..Budget::default() });
    }

    fn open_lane(
        &mut self,
        session: Session,
        provider: Arc<dyn ModelProvider>,
        agent: Option<AgentLane>,
    ) -> LaneId {
        let id = LaneId(self.next_lane);
        self.next_lane += 1;
        let (lane, mut reports) = Lane::new(session, provider, agent);
        let reports = stream::poll_fn(move |context| reports.poll_recv(context));
        self.running.reports.push(reports.map(move |body| (id, body)).boxed());
        self.lanes.insert(id, Box::new(lane));
        id
    }

    /// The session of the main agent.
    pub fn session(&self) -> &Session {
        &self.lanes[&MAIN].session
    }

    #[expect(clippy::expect_used, reason = "the main lane is opened with the driver and never closed")]
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.lanes.get_mut(&MAIN).expect("the main lane is always there").session
    }

    /// All tools except the session's own.
    pub fn tools(&self) -> &Toolset {
        &self.host.tools
    }

    /// Whether the session and its agents are idle and the queue is empty.
    pub fn is_idle(&self) -> bool {
        self.session().is_idle() && self.running_agents() == 0
    }

    /// Open permission requests of the main agent and all others.
    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        self.lanes.values().flat_map(|lane| lane.session.pending_permissions()).collect()
    }

    /// Runs hooks outside a run and logs their start. `None` if there are none. The answer goes to
    /// [`Self::hooks_answered`].
    pub fn ask_hooks(
        &mut self,
        kind: HookKind,
        fields: serde_json::Value,
    ) -> Result<Option<(HookRequest, BoxFuture<'static, HookAnswer>)>, LogError> {
        let Some(hooks) = self.host.hooks.clone().filter(|_| self.session().asks(kind)) else {
            return Ok(None);
        };
        let Some(lane) = self.lanes.get(&MAIN) else { return Ok(None) };
        let mut context = Context { now: (self.host.now)(), entropy: &mut self.host.entropy };
        let request = lane.session.hook_request(kind, fields, &mut context);
        self.advance(SessionInput::Command(Command::Record(started(&request).into())))?;
        let answer = hooks.ask(&request);
        Ok(Some((request, answer)))
    }

    pub fn hooks_answered(&mut self, request: &HookRequest, answer: &HookAnswer) -> Result<(), LogError> {
        let end = ended(&request.id, request.kind, answer);
        self.advance(SessionInput::Command(Command::Record(end.into())))
    }

    /// Replaces all tools except the session's own. Calls that are running keep theirs. Hidden tools are for agents,
    /// not for the main one.
    pub fn set_tools(&mut self, tools: Toolset, hidden: &[String]) -> Result<(), LogError> {
        self.offered = interned::list(tools.iter().map(|tool| tool.spec()));
        let shown = interned::list(self.offered.iter().filter(|tool| !hidden.contains(&tool.name)));
        self.host.tools = tools;
        self.advance(SessionInput::Command(Command::SetTools(shown)))
    }

    /// Releases the log while the session is idle, so that another process can take it over.
    pub fn rest(&mut self) {
        self.host.log.rest();
    }

    /// Stores a fact that lists show of the session.
    pub fn note(&mut self, fact: ListedFact) -> Result<(), LogError> {
        self.host.log.note(fact)
    }

    /// Syncs the log to disk.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.host.log.sync()
    }

    /// Makes a model request that is no part of the session. Dropping the stream cancels it. It needs [`Self::turn`] to go
    /// on, and its usage is for the caller to record.
    pub fn ask_model(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.provider().stream(request)
    }

    pub fn set_provider(&mut self, provider: Arc<dyn ModelProvider>) {
        self.host.provider = Arc::clone(&provider);
        // Without it a resumed session takes the first provider that has the model.
        let _ = self.host.log.note(ListedFact::ModelProvider(provider.facts().into()));
        if let Some(lane) = self.lanes.get_mut(&MAIN) {
            lane.session.set_provider_facts(provider.facts());
        }
        let provider = self.budgeted(provider);
        if let Some(lane) = self.lanes.get_mut(&MAIN) {
            lane.provider = provider;
        }
        self.apply_client_limits();
    }

    /// Id of the last published event, logged or not.
    pub fn latest_event(&self) -> Option<&EventId> {
        self.latest.as_ref()
    }

    /// Takes the queued model switches that were made since the last call, by their ids in the queue.
    pub fn take_switched(&mut self) -> Vec<String> {
        std::mem::take(&mut self.switched)
    }

    /// How the last summary of the conversation ended, if one did since the last time.
    pub fn take_compaction(&mut self) -> Option<data::CompactionComplete> {
        self.compaction.take()
    }

    pub fn set_tool_provider(&mut self, tool_provider: Option<Arc<dyn AgentToolProvider>>) {
        self.tool_provider = tool_provider;
    }

    /// Gives up at the first refused login. For work that nobody waits for: its queue holds the account instead.
    pub fn give_up_refused_logins(&mut self) {
        self.retries_logins = false;
    }

    /// Processes one input and all that follows from it.
    pub fn advance(&mut self, input: SessionInput) -> Result<(), LogError> {
        let lane = self.addressee(&input);
        self.run_inputs(vec![(lane, input)])
    }

    /// Lane of an input from outside. Answers go to the lane that asked, all else to the main one.
    fn addressee(&self, input: &SessionInput) -> LaneId {
        let asks = |lane: &Lane| match input {
            SessionInput::Command(Command::AnswerPermission { request_id, .. }) => {
                lane.session.pending_permissions().iter().any(|asked| asked.request_id == *request_id)
            }
            SessionInput::Command(Command::AnswerQuestion { request_id, .. }) => {
                lane.session.awaits_answer(request_id)
            }
            _ => false,
        };
        self.lanes.iter().find(|(_, lane)| asks(lane)).map_or(MAIN, |(id, _)| *id)
    }

    /// Puts calls on record that no session does: those that were interrupted, which a provider may charge, and those that servers
    /// made. The next process of this session must know.
    fn record_unlogged_calls(&mut self) -> Result<(), LogError> {
        for UnloggedCall { model, usage, cut, calls } in self.host.ledger.take_unlogged() {
            let finish_reason = cut.then(|| "cut".to_owned());
            // What an interrupted call cost is computed from a bound or an estimate.
            let computed = (cut && usage.cost.is_some()).then_some(true);
            let usage = data::AssistantUsage { finish_reason, ..usage_of(model, usage) };
            let record = data::UsageRecord { computed, ..usage.into() };
            let ends = calls.into_iter().map(|call| data::Reservation { call, bound: None }.into());
            self.record_own([record.into()].into_iter().chain(ends).collect())?;
        }
        Ok(())
    }

    /// Puts reservations on record. Their calls are made from then on.
    fn record_reservations(&mut self) -> Result<(), LogError> {
        let reserved = self.host.ledger.unrecorded();
        let body = |call: &ReservedCall| {
            let bound = Some(usage_of(call.model.clone(), call.bound));
            data::Reservation { call: call.number, bound }.into()
        };
        self.record_own(reserved.iter().map(body).collect())?;
        self.host.ledger.note_recorded(&reserved);
        Ok(())
    }

    /// Ends the reservations of calls whose usage is on record.
    fn record_ended_calls(&mut self) -> Result<(), LogError> {
        let ended = self.host.ledger.take_ended().into_iter();
        self.record_own(ended.map(|call| data::Reservation { call, bound: None }.into()).collect())
    }

    /// Logs events of the session that no input brought about.
    fn record_own(&mut self, bodies: Vec<Body>) -> Result<(), LogError> {
        let state = self.session_mut().state_mut();
        bodies.iter().for_each(|body| state.apply(body));
        self.record(MAIN, bodies)
    }

    fn run_inputs(&mut self, inputs: Inputs) -> Result<(), LogError> {
        self.record_unlogged_calls()?;
        // An effect may have an answer at once, and one step may have several such effects.
        let mut next = VecDeque::from(inputs);
        while let Some((id, mut input)) = next.pop_front() {
            if !self.retries_logins {
                settle_refused_login(&mut input);
            }
            let stops = match &input {
                SessionInput::Command(Command::Abort { reason }) => Some(reason.clone()),
                SessionInput::Command(Command::Shutdown { .. }) => Some(USER_INITIATED.to_owned()),
                _ => None,
            };
            let interrupts = matches!(&input, SessionInput::Command(Command::Interrupt { .. }));
            let resumes = matches!(&input, SessionInput::Opened(Opening::Resumed { .. }));
            let answers = matches!(&input, SessionInput::Command(Command::AnswerPermission { .. }));
            let limits = matches!(&input, SessionInput::Command(Command::SetLimits(_)));
            self.agree(id, &input);
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            let mut context = Context { now: (self.host.now)(), entropy: &mut self.host.entropy };
            let Step { events, effects } = lane.session.step(input, &mut context);
            self.record(id, events)?;
            self.note_arrived(id);
            for effect in effects {
                next.extend(self.perform(id, effect)?);
            }
            if limits {
                self.apply_client_limits();
            }
            if answers && id != MAIN {
                self.share_approvals(id);
            }
            if let Some(reason) = stops {
                self.stop_children(id, &reason, &mut next);
            }
            if interrupts {
                self.release_children(id);
            }
            if resumes {
                self.close_left_behind()?;
            }
        }
        self.record_ended_calls()?;
        self.record_reservations()
    }

    /// Drops the waiting calls of a lane; their agents then report like background ones.
    fn release_children(&mut self, parent: LaneId) {
        self.readers.retain(|reader| reader.lane != parent);
        let agents = self.lanes.values_mut().filter_map(|lane| lane.agent.as_mut());
        for agent in agents.filter(|agent| agent.parent == parent) {
            agent.awaited_by = None;
        }
    }

    /// Stops the agents that a lane started, and theirs.
    fn stop_children(&mut self, parent: LaneId, reason: &str, next: &mut VecDeque<(LaneId, SessionInput)>) {
        let abort = || SessionInput::Command(Command::Abort { reason: reason.to_owned() });
        let children = self.lanes.iter().filter(|(_, lane)| {
            let held = |agent: &AgentLane| !agent.held.is_empty();
            let ours = lane.agent.as_ref().filter(|agent| agent.parent == parent);
            ours.is_some_and(|agent| held(agent) || lane.session.is_running())
        });
        let children: Vec<LaneId> = children.map(|(id, _)| *id).collect();
        self.readers.retain(|reader| reader.lane != parent);
        for child in children {
            // The agent that waited for it has been stopped.
            if let Some(agent) = self.lanes.get_mut(&child).and_then(|lane| lane.agent.as_mut()) {
                agent.awaited_by = None;
                // An agent that has not begun is started and stopped at once, so that its end is logged.
                next.extend(std::mem::take(&mut agent.held).into_iter().map(|input| (child, input)));
            }
            next.push_back((child, abort()));
        }
    }

    /// Gives an agent the session's policy and reachability, before it decides anything.
    fn agree(&mut self, id: LaneId, input: &SessionInput) {
        let decides = matches!(input, SessionInput::Inspected(_) | SessionInput::HookDone { .. });
        if id == MAIN || !decides {
            return;
        }
        let main = self.session().config();
        let policy = main.policy.clone();
        let clients = main.clients;
        let only_plans = self.session().mode() == data::Mode::Plan;
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.session.adopt(policy);
            lane.session.set_clients(clients);
            lane.session.set_only_plans(only_plans);
        }
    }

    /// Gives the session the approvals for the session that an agent was given.
    fn share_approvals(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get(&id) else { return };
        let approvals = lane.session.config().policy.approvals.clone();
        self.session_mut().policy_mut().approvals = approvals;
    }

    /// Waits for the next input and processes it. Returns false when the command channel is closed and nothing is
    /// running.
    pub async fn turn(&mut self) -> Result<bool, LogError> {
        if let Some(kept) = self.host.log.settle() {
            kept.await?;
        }
        let next = tokio::select! {
            // Commands first: an abort must not wait behind a flood of pieces.
            biased;
            command = self.commands.recv() => match command {
                Some(input) => Next::Command(input),
                None if self.running.is_empty() => return Ok(false),
                None => tokio::select! {
                    () = self.host.ledger.reserved() => Next::Reserved,
                    next = self.running.next() => next,
                },
            },
            () = self.host.ledger.reserved() => Next::Reserved,
            () = self.unfinished.is_due() => Next::Unfinished,
            next = self.running.next() => next,
        };
        match next {
            Next::Command(input) => self.advance(*input)?,
            Next::Input(lane, input) => self.take(lane, *input)?,
            Next::Report(lane, body) => self.run_inputs(vec![(lane, SessionInput::Progress(*body))])?,
            Next::Waited(lane, call_id) => {
                let inputs = self.read_timed_out(lane, call_id);
                self.run_inputs(inputs)?;
            }
            Next::AgentToolset(lane, toolset) => {
                let inputs = self.equip(lane, toolset);
                self.run_inputs(inputs)?;
            }
            Next::Reserved => self.record_reservations()?,
            Next::Unfinished => self.keep_unfinished(),
            Next::Stopped => {}
        }
        Ok(true)
    }

    fn take(&mut self, lane: LaneId, input: SessionInput) -> Result<(), LogError> {
        if matches!(input, SessionInput::HookDone { .. }) {
            // Events of a hook belong before its answer, which may end the session.
            while let Ok(command) = self.commands.try_recv() {
                self.advance(*command)?;
            }
        }
        if matches!(input, SessionInput::ToolDone { .. }) {
            // Output of a tool belongs before its end.
            while let Some((lane, body)) = self.running.reported() {
                self.run_inputs(vec![(lane, SessionInput::Progress(*body))])?;
            }
        }
        self.run_inputs(vec![(lane, input)])
    }

    /// Closes the session: stops running work, waits for it, and writes the closing event.
    pub async fn close(&mut self, error: Option<String>) -> Result<(), LogError> {
        // The closing event is the last, so agents end before it.
        let mut running = VecDeque::new();
        self.stop_children(MAIN, USER_INITIATED, &mut running);
        self.run_inputs(running.into())?;
        self.finish_hooks().await?;
        // Calls that nobody waits for end here, so that they are logged before the closing event.
        self.running.calls.clear();
        self.advance(SessionInput::Command(Command::Shutdown { error }))?;
        self.running.drop_all_but_work();
        for lane in self.lanes.values() {
            lane.tools.cancel();
        }
        // A tool that does not stop in time is dropped here, with its children. Hooks get their own time limit.
        let asked = std::mem::take(&mut self.running.asked).for_each(|_| std::future::ready(()));
        let stopped = self.running.work_ended();
        let _ = tokio::join!(tokio::time::timeout(CLOSING_GRACE, stopped), asked);
        self.host.log.sync()?;
        match self.host.log.settle() {
            Some(kept) => kept.await,
            None => Ok(()),
        }
    }

    /// Drops all running work after a panic, with its child processes, and logs the panic. Only [`Self::close`] may
    /// follow: a step may be half done.
    pub fn crash(&mut self, message: &str) -> Result<(), LogError> {
        self.running = RunningWork::default();
        self.readers.clear();
        self.lanes.retain(|id, _| *id == MAIN);
        let error = data::SessionError {
            error_type: "internal".to_owned(),
            message: message.to_owned(),
            ..data::SessionError::default()
        };
        self.record(MAIN, vec![error.into()])
    }

    /// Waits for hooks that run beside the work. A session that is not idle is stopped instead, and its hooks with it.
    async fn finish_hooks(&mut self) -> Result<(), LogError> {
        while self.session().is_idle()
            && let Some((lane, input)) = self.running.asked.next().await
        {
            if let Some(input) = input {
                self.take(lane, input)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, lane: LaneId, bodies: Vec<Body>) -> Result<(), LogError> {
        let agent = self.lanes.get(&lane).and_then(|lane| lane.agent.as_ref()).map(|agent| agent.id.clone());
        self.record_as(agent, bodies)
    }

    /// Logs events, then publishes them. Ephemeral ones are only published.
    fn record_as(&mut self, agent: Option<AgentId>, bodies: Vec<Body>) -> Result<(), LogError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let timestamp = iso((self.host.now)());
        let mut events = Vec::with_capacity(bodies.len());
        let mut logged = Vec::new();
        for body in bodies {
            let id = EventId(self.host.entropy.uuid());
            let event = Event::new(id.clone(), timestamp.clone(), self.parent.clone(), agent.clone(), body);
            if !event.is_ephemeral() {
                self.parent = Some(id);
                logged.push(event.clone());
            }
            events.push(event);
        }
        if !logged.is_empty() {
            let end = self.session().state().end;
            let end = self.host.log.append(end, &logged)?;
            let positions = self.host.log.appended().iter();
            let kept = events.iter_mut().filter(|event| !event.is_ephemeral());
            kept.zip(positions).for_each(|(event, position)| event.set_position(*position));
            let last = self.parent.clone();
            let state = self.session_mut().state_mut();
            state.end = end;
            state.last_event = last;
        }
        if let Some(agent) = &agent {
            // The state of the session is a fold over all its events, its agents' too.
            let state = self.session_mut().state_mut();
            for event in &logged {
                state.apply_agent(agent, event);
            }
        }
        for event in &events {
            if let (None, Body::CompactionComplete(complete)) = (&agent, event.body()) {
                self.compaction = Some(complete.clone());
            }
            self.host.sink.publish(event);
        }
        self.latest = events.last().map(|event| event.id().clone());
        Ok(())
    }
}

/// Usage of a call, as the data of an event.
fn usage_of(model: String, usage: TokenUsage) -> data::AssistantUsage {
    data::AssistantUsage {
        model,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        cost: usage.cost,
        ..Default::default()
    }
}

/// Marks a refused login as one that another attempt does not change.
fn settle_refused_login(input: &mut SessionInput) {
    if let SessionInput::Model(_, Err(error)) | SessionInput::Summary(_, Err(error)) = input
        && error.kind == ModelErrorKind::Authentication
    {
        error.should_retry = Some(false);
    }
}
