//! Carries a session's decisions out: logs events, publishes them, then performs effects and feeds back what comes of
//! them. One task owns the session and all agents that it started, so their state has one writer and needs no lock.
//!
//! Each of them has a lane: its own session, its own model call, its own tools. All lanes write to one log and one
//! sink. What is under way for them is polled only when it is ready, so that many lanes cost little.

mod crew;
mod lane;
mod pace;
mod tools;
mod under_way;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use hangar_protocol::data::{self, Commitments};
use hangar_protocol::{AgentId, Body, Event, EventId};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use crew::Refused;

use crate::agents::crew::Models;
use crate::agents::outfit::Outfitter;
use crate::entropy::Entropy;
use crate::hook::{HookAnswer, HookKind, HookRequest};
use crate::log::{Fact, LogError, SessionLog};
use crate::model::{ModelError, ModelEvent, ModelProvider, ModelRequest};
use crate::retry::Reason;
use crate::session::{
    Command, Context, Effect, Input, Opening, PendingPermission, Reminder, Session, Step, ended, iso, started,
};
use crate::shared;
use crate::tool::{ToolSpec, Toolset};
use crew::Reader;
use lane::{AgentLane, Lane, LaneId, MAIN, renew};
use pace::Pace;
use tools::Inspected;
use under_way::{Next, UnderWay};

/// How long tools that were told to stop may take to do so when the session closes.
const CLOSING_GRACE: Duration = Duration::from_secs(5);

/// Takes each event, in order, right after it is logged. Must not fail and should not wait long: the session does.
pub trait EventSink: Send {
    fn publish(&mut self, event: &Event);
}

/// Finds instructions about files that tools touched. Each is reported once per conversation.
pub trait Discovery: Send {
    fn discover(&mut self, touched: Vec<(PathBuf, String)>) -> Vec<Reminder>;

    /// The same for a conversation that has been told nothing yet.
    fn anew(&self) -> Box<dyn Discovery>;
}

/// What a session asks about the place where it works.
pub trait Surroundings: Send {
    /// The plan and the open todos, as they are now.
    fn commitments(&mut self) -> Commitments;

    /// Whether nothing has changed since the work began. `false` where that cannot be told.
    fn unchanged(&self) -> BoxFuture<'static, bool>;
}

/// Someone else's code that is asked at fixed points of a session.
pub trait Hooks: Send + Sync {
    /// Asks, and waits for the answer no longer than is sensible.
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer>;
}

/// What a session runs on.
pub struct Host {
    pub provider: Arc<dyn ModelProvider>,
    pub tools: Toolset,
    pub log: Box<dyn SessionLog>,
    pub sink: Box<dyn EventSink>,
    pub discovery: Option<Box<dyn Discovery>>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub surroundings: Option<Box<dyn Surroundings>>,
    /// The models that agents may have besides the session's own.
    pub models: Option<Arc<dyn Models>>,
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    pub entropy: Entropy,
    /// Multiplies the waits before retries; 1 outside tests.
    pub retry_scale: f64,
}

/// Inputs that follow from something, each with the lane that it is for.
type Happened = Vec<(LaneId, Input)>;

pub struct Driver {
    host: Host,
    commands: mpsc::Receiver<Box<Input>>,
    /// Boxed: a node of the map has room for many, and most sessions have one.
    lanes: BTreeMap<LaneId, Box<Lane>>,
    next_lane: u64,
    under_way: UnderWay,
    /// Calls that wait for agents.
    readers: Vec<Reader>,
    pace: Pace,
    /// Gets ready what agents have of their own.
    outfitter: Option<Arc<dyn Outfitter>>,
    /// All tools outside the sessions' own; the main agent may be shown fewer.
    offered: Arc<[Arc<ToolSpec>]>,
    parent: Option<EventId>,
    /// The last event that was published, of the moment or not.
    latest: Option<EventId>,
    /// Switches of the model that were made since somebody asked.
    switched: Vec<String>,
    /// The last summary of the conversation, until somebody takes it.
    compaction: Option<data::CompactionComplete>,
}

impl Driver {
    /// `commands` carries what comes from outside: commands and news of background work.
    pub fn new(session: Session, host: Host, commands: mpsc::Receiver<Box<Input>>) -> Self {
        let parent = session.state().last_event.clone();
        let provider = Arc::clone(&host.provider);
        let offered = shared::list(host.tools.iter().map(|tool| tool.spec()));
        let mut driver = Self {
            host,
            commands,
            lanes: BTreeMap::new(),
            next_lane: MAIN.0,
            under_way: UnderWay::default(),
            readers: Vec::new(),
            pace: Pace::default(),
            outfitter: None,
            offered,
            parent,
            latest: None,
            switched: Vec::new(),
            compaction: None,
        };
        driver.open_lane(session, provider, None);
        driver
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
        self.under_way.reports.push(reports.map(move |body| (id, body)).boxed());
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

    /// The tools outside the session's own.
    pub fn tools(&self) -> &Toolset {
        &self.host.tools
    }

    /// Nothing is under way, in the session or in its agents, and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.session().is_idle() && self.running_agents() == 0
    }

    /// Questions about permissions that nobody has answered yet, of the main agent and all others.
    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        self.lanes.values().flat_map(|lane| lane.session.pending_permissions()).collect()
    }

    /// Asks the hooks about something that is part of no run, on the record. `None` where there is nobody to ask. What
    /// they say goes to [`Self::hooks_answered`].
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
        self.advance(Input::Command(Command::Record(started(&request).into())))?;
        let answer = hooks.ask(&request);
        Ok(Some((request, answer)))
    }

    pub fn hooks_answered(&mut self, request: &HookRequest, answer: &HookAnswer) -> Result<(), LogError> {
        let end = ended(&request.id, request.kind, answer);
        self.advance(Input::Command(Command::Record(end.into())))
    }

    /// Puts other tools in the place of those outside the session's own. Calls under way keep theirs. What is hidden
    /// is there for agents, but not for the main one.
    pub fn set_tools(&mut self, tools: Toolset, hidden: &[String]) -> Result<(), LogError> {
        self.offered = shared::list(tools.iter().map(|tool| tool.spec()));
        let shown = shared::list(self.offered.iter().filter(|tool| !hidden.contains(&tool.name)));
        self.host.tools = tools;
        self.advance(Input::Command(Command::SetTools(shown)))
    }

    /// Lets another process take the session over while nothing happens in it.
    pub fn rest(&mut self) {
        self.host.log.rest();
    }

    /// Keeps something that lists show of the session.
    pub fn note(&mut self, fact: Fact) -> Result<(), LogError> {
        self.host.log.note(fact)
    }

    /// Makes everything on record survive a power cut.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.host.log.sync()
    }

    /// Asks the session's model something that is no part of the session. Dropping the stream cancels it.
    pub fn ask_model(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.host.provider.stream(request)
    }

    pub fn set_provider(&mut self, provider: Arc<dyn ModelProvider>) {
        self.host.provider = Arc::clone(&provider);
        if let Some(lane) = self.lanes.get_mut(&MAIN) {
            lane.provider = provider;
        }
    }

    /// The last event of all, whether the log keeps it or not.
    pub fn latest_event(&self) -> Option<&EventId> {
        self.latest.as_ref()
    }

    /// The switches of the model that waited and were made since the last time, by the ids that they waited under.
    pub fn take_switched(&mut self) -> Vec<String> {
        std::mem::take(&mut self.switched)
    }

    /// How the last summary of the conversation ended, if one did since the last time.
    pub fn take_compaction(&mut self) -> Option<data::CompactionComplete> {
        self.compaction.take()
    }

    pub fn set_outfitter(&mut self, outfitter: Option<Arc<dyn Outfitter>>) {
        self.outfitter = outfitter;
    }

    pub fn set_models(&mut self, models: Option<Arc<dyn Models>>) {
        self.host.models = models;
    }

    /// Takes one input and all that follows from it at once.
    pub fn advance(&mut self, input: Input) -> Result<(), LogError> {
        let lane = self.addressee(&input);
        self.run_inputs(vec![(lane, input)])
    }

    /// Answers are for whoever asked; all else that comes from outside is for the main agent.
    fn addressee(&self, input: &Input) -> LaneId {
        let asks = |lane: &Lane| match input {
            Input::Command(Command::AnswerPermission { request_id, .. }) => {
                lane.session.pending_permissions().iter().any(|asked| asked.request_id == *request_id)
            }
            Input::Command(Command::AnswerQuestion { request_id, .. }) => {
                lane.session.awaits_answer(request_id)
            }
            _ => false,
        };
        self.lanes.iter().find(|(_, lane)| asks(lane)).map_or(MAIN, |(id, _)| *id)
    }

    fn run_inputs(&mut self, inputs: Happened) -> Result<(), LogError> {
        // An effect may have an answer at once, and one step may have several such effects.
        let mut next = VecDeque::from(inputs);
        while let Some((id, input)) = next.pop_front() {
            let stops = matches!(&input, Input::Command(Command::Abort { .. } | Command::Shutdown { .. }));
            let interrupts = matches!(&input, Input::Command(Command::Interrupt { .. }));
            let resumes = matches!(&input, Input::Opened(Opening::Resumed { .. }));
            let answers = matches!(&input, Input::Command(Command::AnswerPermission { .. }));
            self.agree(id, &input);
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            let mut context = Context { now: (self.host.now)(), entropy: &mut self.host.entropy };
            let Step { events, effects } = lane.session.step(input, &mut context);
            self.record(id, events)?;
            for effect in effects {
                next.extend(self.perform(id, effect)?);
            }
            if answers && id != MAIN {
                self.share_approvals(id);
            }
            if stops {
                self.stop_children(id, &mut next);
            }
            if interrupts {
                self.release_children(id);
            }
            if resumes {
                self.close_left_behind()?;
            }
        }
        Ok(())
    }

    /// The calls that waited for agents are gone; the agents report like those that nobody waits for.
    fn release_children(&mut self, parent: LaneId) {
        self.readers.retain(|reader| reader.lane != parent);
        let agents = self.lanes.values_mut().filter_map(|lane| lane.agent.as_mut());
        for agent in agents.filter(|agent| agent.parent == parent) {
            agent.awaited_by = None;
        }
    }

    /// Who stops an agent stops those that it started.
    fn stop_children(&mut self, parent: LaneId, next: &mut VecDeque<(LaneId, Input)>) {
        let abort = || Input::Command(Command::Abort { reason: "user_initiated".to_owned() });
        let children = self.lanes.iter().filter(|(_, lane)| {
            let held = |agent: &AgentLane| !agent.held.is_empty();
            let ours = lane.agent.as_ref().filter(|agent| agent.parent == parent);
            ours.is_some_and(|agent| held(agent) || lane.session.is_running())
        });
        let children: Vec<LaneId> = children.map(|(id, _)| *id).collect();
        self.readers.retain(|reader| reader.lane != parent);
        for child in children {
            // Whoever waited for it has been stopped.
            if let Some(agent) = self.lanes.get_mut(&child).and_then(|lane| lane.agent.as_mut()) {
                agent.awaited_by = None;
                // One that has not begun begins to be stopped, so that its end is on record.
                next.extend(std::mem::take(&mut agent.held).into_iter().map(|input| (child, input)));
            }
            next.push_back((child, abort()));
        }
    }

    /// The rules are the session's, and so is whoever can be asked: an agent takes them over before it decides.
    fn agree(&mut self, id: LaneId, input: &Input) {
        let decides = matches!(input, Input::Inspected(_) | Input::HookDone { .. });
        if id == MAIN || !decides {
            return;
        }
        let main = self.session().config();
        let policy = main.policy.clone();
        let (permissions, questions, hooks) =
            (main.user_reachable, main.questions_answered, main.client_hooks);
        let only_plans = self.session().mode() == data::Mode::Plan;
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.session.adopt(policy);
            lane.session.set_reachable(permissions, questions, hooks);
            lane.session.set_only_plans(only_plans);
        }
    }

    /// What a person allows an agent for the session, the session may do.
    fn share_approvals(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get(&id) else { return };
        let approvals = lane.session.config().policy.approvals.clone();
        self.session_mut().policy_mut().approvals = approvals;
    }

    /// Waits for the next thing to happen and takes it. Returns false when the command channel is closed and nothing is
    /// under way.
    pub async fn turn(&mut self) -> Result<bool, LogError> {
        if let Some(kept) = self.host.log.settle() {
            kept.await?;
        }
        let next = tokio::select! {
            // Commands first: an abort must not wait behind a flood of pieces.
            biased;
            command = self.commands.recv() => match command {
                Some(input) => Next::Command(input),
                None if self.under_way.is_empty() => return Ok(false),
                None => self.under_way.next().await,
            },
            next = self.under_way.next() => next,
        };
        match next {
            Next::Command(input) => self.advance(*input)?,
            Next::Input(lane, input) => self.take(lane, *input)?,
            Next::Report(lane, body) => self.run_inputs(vec![(lane, Input::Progress(*body))])?,
            Next::Waited(lane, call_id) => {
                let inputs = self.read_anyway(lane, call_id);
                self.run_inputs(inputs)?;
            }
            Next::Outfit(lane, outfit) => {
                let inputs = self.dress(lane, outfit);
                self.run_inputs(inputs)?;
            }
            Next::Stopped => {}
        }
        Ok(true)
    }

    fn take(&mut self, lane: LaneId, input: Input) -> Result<(), LogError> {
        if matches!(input, Input::HookDone { .. }) {
            // What came of a hook before it answered belongs before its answer, which may end the session.
            while let Ok(command) = self.commands.try_recv() {
                self.advance(*command)?;
            }
        }
        if let Input::ToolDone { outcome, .. } = &input {
            // What a tool said before it ended belongs before its end.
            while let Some((lane, body)) = self.under_way.reported() {
                self.run_inputs(vec![(lane, Input::Progress(*body))])?;
            }
            if lane != MAIN {
                self.session_mut().state_mut().totals.add_changes(&outcome.changes);
            }
        }
        self.run_inputs(vec![(lane, input)])
    }

    /// Ends the session: stops what runs, waits for it, and writes the closing event.
    pub async fn close(&mut self, error: Option<String>) -> Result<(), LogError> {
        // The closing event is the last, so agents end before it.
        let mut running = VecDeque::new();
        self.stop_children(MAIN, &mut running);
        self.run_inputs(running.into())?;
        self.finish_hooks().await?;
        self.advance(Input::Command(Command::Shutdown { error }))?;
        self.under_way.drop_what_waits();
        for lane in self.lanes.values() {
            lane.tools.cancel();
        }
        // A tool that does not stop in time loses its future here, and with it its children. Hooks take the time that
        // they were given.
        let asked = std::mem::take(&mut self.under_way.asked).for_each(|_| std::future::ready(()));
        let stopped = self.under_way.work_ended();
        let _ = tokio::join!(tokio::time::timeout(CLOSING_GRACE, stopped), asked);
        self.host.log.sync()?;
        match self.host.log.settle() {
            Some(kept) => kept.await,
            None => Ok(()),
        }
    }

    /// Gives up what is under way after a panic, and puts the panic on record. Dropping what runs ends it, with its
    /// children. Nothing but [`Self::close`] makes sense afterwards: a step may have been taken by half.
    pub fn crash(&mut self, message: &str) -> Result<(), LogError> {
        self.under_way = UnderWay::default();
        self.readers.clear();
        self.lanes.retain(|id, _| *id == MAIN);
        let error = data::SessionError {
            error_type: "internal".to_owned(),
            message: message.to_owned(),
            status_code: None,
            error_code: None,
            transient: false,
        };
        self.record(MAIN, vec![error.into()])
    }

    /// Hears out the hooks that were told something in passing: what they were told of came before the end. A session
    /// that is at work is stopped instead, and they with it.
    async fn finish_hooks(&mut self) -> Result<(), LogError> {
        while self.session().is_idle()
            && let Some((lane, input)) = self.under_way.asked.next().await
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

    /// Logs, then publishes. Events of the moment have no place in the log.
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
            let last = self.parent.clone();
            let state = self.session_mut().state_mut();
            state.end = end;
            state.last_event = last;
        }
        if let Some(AgentId(agent)) = &agent {
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

    fn perform(&mut self, id: LaneId, effect: Effect) -> Result<Happened, LogError> {
        let Some(lane) = self.lanes.get_mut(&id) else { return Ok(Vec::new()) };
        let here = |input: Input| Ok(vec![(id, input)]);
        match effect {
            Effect::CallModel(seq, request) => {
                let stop = renew(&mut lane.call);
                let pieces = self.pace.ask(&lane.provider, *request);
                let pieces = pieces.map(move |piece| (id, Input::Model(seq, piece)));
                self.under_way.calls.push(pieces.take_until(stop.cancelled_owned()).boxed());
            }
            Effect::Summarize(seq, request) => {
                let stop = renew(&mut lane.summary);
                let pieces = self.pace.ask(&lane.provider, *request);
                let pieces = pieces.map(move |piece| (id, Input::Summary(seq, piece)));
                self.under_way.calls.push(pieces.take_until(stop.cancelled_owned()).boxed());
            }
            Effect::UseModel(switch, waited) => {
                self.set_provider(switch.provider);
                self.switched.extend(waited);
            }
            Effect::CancelModel => {
                renew(&mut lane.call);
            }
            Effect::RetryAfter(seq, delay, reason) => {
                let stop = renew(&mut lane.call);
                let delay = delay.mul_f64(self.host.retry_scale);
                let now = Instant::now();
                if reason == Reason::RateLimit {
                    self.pace.hold(&lane.provider, delay, now);
                }
                let wait = async move {
                    tokio::time::sleep_until(now + delay).await;
                    (id, Input::RetryDue(seq))
                };
                self.under_way.calls.push(stream::once(wait).take_until(stop.cancelled_owned()).boxed());
            }
            Effect::Inspect(calls) => {
                let stop = lane.tools.clone();
                match self.inspect(id, calls) {
                    Inspected::Now(inspections) => return here(Input::Inspected(inspections)),
                    Inspected::Later(inspections) => self.under_way.work.push(Box::pin(async move {
                        (id, stop.run_until_cancelled(inspections).await.map(Input::Inspected))
                    })),
                }
            }
            Effect::RunTool(name, input, grant) => self.run_tool(id, &name, input, grant),
            Effect::CancelTools => {
                renew(&mut lane.tools);
                renew(&mut lane.hooks);
            }
            Effect::Hurry => {
                renew(&mut lane.hurry);
            }
            Effect::Hook(request) => {
                let stop = lane.hooks.clone();
                let Some(hooks) = &self.host.hooks else { return here(request.done(Ok(None))) };
                let answer = hooks.ask(&request);
                self.under_way.asked.push(Box::pin(async move {
                    let answer = stop.run_until_cancelled(answer).await;
                    (id, answer.map(|answer| request.done(answer)))
                }));
            }
            Effect::Agents(call_id, call) => return self.deal(id, call_id, call),
            Effect::AgentDone(end) => return Ok(self.agent_done(id, end)),
            Effect::ReadPlan(call_id) => {
                let content = self.host.log.plan().unwrap_or_default();
                return here(Input::Plan { call_id, content });
            }
            Effect::Discover(touched) => {
                // What one has been told, another has not.
                if id != MAIN && lane.discovery.is_none() {
                    lane.discovery = self.host.discovery.as_ref().map(|discovery| discovery.anew());
                }
                let discovery = if id == MAIN { &mut self.host.discovery } else { &mut lane.discovery };
                let reminders = discovery.as_mut().map(|discovery| discovery.discover(touched));
                return here(Input::Discovered(reminders.unwrap_or_default()));
            }
            // The plan and the todos are the session's, not those of an agent that it started.
            Effect::Gather if id != MAIN => return here(Input::Gathered(Commitments::default())),
            Effect::Gather => {
                let surroundings = self.host.surroundings.as_mut();
                let commitments = surroundings.map(|place| place.commitments()).unwrap_or_default();
                return here(Input::Gathered(commitments));
            }
            Effect::AskUnchanged => {
                let stop = lane.hooks.clone();
                let Some(place) = &self.host.surroundings else { return here(Input::Unchanged(false)) };
                let answer = place.unchanged();
                self.under_way.work.push(Box::pin(async move {
                    (id, stop.run_until_cancelled(answer).await.map(Input::Unchanged))
                }));
            }
            Effect::Checkpoint(checkpoint) => {
                // The summary is in the log; without its file the session is poorer, not broken.
                if let Err(error) = self.host.log.note(Fact::Checkpoint(checkpoint)) {
                    let warning = data::SessionWarning::new("checkpoint", error.to_string());
                    return here(Input::Command(Command::Record(warning.into())));
                }
            }
            Effect::Sync => {
                self.host.log.sync()?;
                if self.running_agents() == 0 {
                    self.host.log.rest();
                }
            }
        }
        Ok(Vec::new())
    }
}
