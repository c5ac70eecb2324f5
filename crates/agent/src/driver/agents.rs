//! Running agents: starting one in a lane of its own, and reporting its outcome.

use std::sync::Arc;

use hangar_protocol::data::{ExecutionMode, SubagentStarted};
use hangar_protocol::{AgentId, Body};
use serde_json::json;
use tokio::time::Instant;

use super::lane::{AgentLane, Lane, LaneId, MAIN};
use super::{Driver, Inputs};
use crate::agents::call::{AgentCall, Recipients, StartAgent};
use crate::agents::config::{AgentConfig, Reporting, select_model};
use crate::agents::registry::{self, Status};
use crate::agents::toolset::AgentToolset;
use crate::agents::{AgentDefinition, AgentSource};
use crate::conversation::INTERRUPTED;
use crate::interned;
use crate::log::LogError;
use crate::session::{
    AgentEnd, AgentRole, BackgroundNotice, Command, ConversationState, Metering, Opening, Origin, Prompt,
    ReadForModel, Role, Session, SessionConfig, SessionInput, StartNotices, Timing,
};
use crate::tool::{ToolOutcome, ToolSpec, ToolStatus};

/// Number of idle agents that are kept open. Beyond it the one that has been idle longest is closed.
const MAX_IDLE: usize = 64;

/// A call of `read_agent` that waits for its agent.
pub(super) struct WaitingRead {
    pub(super) lane: LaneId,
    pub(super) call_id: String,
    pub(super) agent_id: String,
    pub(super) since_turn: Option<usize>,
}

/// Reason why an agent was not started, as a text for the caller.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Driver {
    /// Starts an agent in the background, on behalf of the session.
    pub fn start_agent(&mut self, start: StartAgent) -> Result<Result<String, Refused>, LogError> {
        if let Some(model) = &start.model
            && self.host.models.as_ref().is_some_and(|models| models.find(model).is_none())
        {
            return Ok(Err(Refused(format!("the model `{model}` is not available"))));
        }
        let call_id = self.host.entropy.uuid();
        let launched = match self.launch(MAIN, &call_id, start) {
            Ok(launched) => launched,
            Err(outcome) => return Ok(Err(Refused(outcome.text))),
        };
        let id = launched.id.clone();
        let inputs = self.begin(launched)?;
        self.run_inputs(inputs)?;
        Ok(Ok(id))
    }

    /// Stops an agent and those that it started. False if it is not running.
    pub fn cancel_agent(&mut self, id: &str) -> Result<bool, LogError> {
        let stops = |lane: &LaneId| {
            let lane = &self.lanes[lane];
            lane.session.is_running() || lane.agent.as_ref().is_some_and(|agent| !agent.held.is_empty())
        };
        let Some(id) = self.lane_of(id).filter(stops) else {
            let main = self.lanes.get_mut(&MAIN);
            return Ok(main.is_some_and(|lane| lane.session.state_mut().agents.dismiss(id)));
        };
        let agent = self.lanes.get_mut(&id).and_then(|lane| lane.agent.as_mut());
        // An agent that has not begun is started and stopped at once, so that its end is logged.
        let held = agent.map(|agent| std::mem::take(&mut agent.held)).unwrap_or_default();
        let abort = SessionInput::Command(Command::Abort { reason: "user_initiated".to_owned() });
        self.run_inputs(held.into_iter().chain([abort]).map(|input| (id, input)).collect())?;
        Ok(true)
    }

    /// Sends a message to an agent, from the main one or on behalf of another. False if it accepts none.
    pub fn message_agent(
        &mut self,
        id: &str,
        message: String,
        sender: Option<&str>,
    ) -> Result<bool, LogError> {
        let Some(lane) = self.lane_of(id) else { return Ok(false) };
        let input = match sender {
            None => message_input(&self.session().state().session_id, message),
            Some(sender) => {
                let origin = Origin::Source(registry::source_of(sender));
                let text = format!("[Message from {sender}]\n{message}");
                let prompt = Prompt { origin, timing: Timing::Steer, ..Prompt::user(text) };
                SessionInput::Command(Command::Send(Prompt { shown: Some(message), ..prompt }))
            }
        };
        self.run_inputs(vec![(lane, input)])?;
        Ok(true)
    }

    /// Detaches the call that waits for an agent, which then runs in the background. False if none waits.
    pub fn promote_agent(&mut self, id: &str) -> Result<bool, LogError> {
        let Some(lane) = self.lane_of(id) else { return Ok(false) };
        let prompt =
            self.session().state().agents.find(id).map(|agent| agent.prompt.clone()).unwrap_or_default();
        let Some(agent) = self.lanes.get_mut(&lane).and_then(|lane| lane.agent.as_mut()) else {
            return Ok(false);
        };
        let Some(call_id) = agent.awaited_by.take() else { return Ok(false) };
        let (parent, id) = (agent.parent, agent.id.0.clone());
        let agent_type = self.session().state().agents.find(&id).map(|agent| agent.agent_type.clone());
        let outcome = registry::started_in_background(&agent_type.unwrap_or_default(), &id, &prompt);
        self.run_inputs(vec![(parent, SessionInput::ToolDone { call_id, outcome })])?;
        Ok(true)
    }

    /// Whether a call waits for this agent.
    pub fn is_awaited(&self, id: &str) -> bool {
        let lane = self.lane_of(id).and_then(|lane| self.lanes[&lane].agent.as_ref());
        lane.is_some_and(|agent| agent.awaited_by.is_some())
    }

    /// Removes a finished agent from the registry.
    pub fn forget_agent(&mut self, id: &str) -> bool {
        let Some(lane) = self.lanes.get_mut(&MAIN) else { return false };
        lane.session.state_mut().agents.forget(id)
    }

    fn lane_of(&self, id: &str) -> Option<LaneId> {
        let id = self.session().state().agents.find(id).map_or(id, |agent| agent.id.as_str());
        let of = |lane: &Lane| lane.agent.as_ref().is_some_and(|agent| agent.id.0 == id);
        self.lanes.iter().find(|(_, lane)| of(lane)).map(|(lane, _)| *lane)
    }

    /// Performs a call of one of the agent tools.
    pub(super) fn perform_agent_call(
        &mut self,
        lane: LaneId,
        call_id: String,
        call: AgentCall,
    ) -> Result<Inputs, LogError> {
        let outcome = match call {
            AgentCall::Start(start) => {
                let (mode, prompt, agent_type) = (start.mode, start.prompt.clone(), start.agent_type.clone());
                match self.launch(lane, &call_id, start) {
                    Err(outcome) => outcome,
                    Ok(mut launched) => {
                        let id = launched.id.clone();
                        if mode == ExecutionMode::Sync {
                            launched.awaited_by = Some(call_id);
                            return self.begin(launched);
                        }
                        let mut inputs = self.begin(launched)?;
                        let outcome = registry::started_in_background(&agent_type, &id, &prompt);
                        // The caller continues before its agent begins.
                        inputs.insert(0, (lane, SessionInput::ToolDone { call_id, outcome }));
                        return Ok(inputs);
                    }
                }
            }
            AgentCall::Read { agent_id, wait, since_turn } => {
                let now = (self.host.now)();
                match self.session().state().agents.find(&agent_id) {
                    None => registry::not_found(&agent_id),
                    Some(agent) if agent.status == Status::Running && wait.is_some() => {
                        let reader = WaitingRead { lane, call_id, agent_id: agent.id.clone(), since_turn };
                        self.wait_for_agent(reader, wait.unwrap_or_default());
                        return Ok(Vec::new());
                    }
                    Some(agent) => agent.read(since_turn, now),
                }
            }
            AgentCall::List { finished, scope } => {
                let now = (self.host.now)();
                let caller = self.agent_id(lane).map(|id| id.0.clone());
                let state = self.session().state();
                let list = state.agents.list(caller.as_deref(), &state.session_id, finished, scope, now);
                ToolOutcome::success(list)
            }
            AgentCall::Write { to, message } => return Ok(self.write(lane, call_id, to, &message)),
        };
        Ok(vec![(lane, SessionInput::ToolDone { call_id, outcome })])
    }

    fn write(&mut self, lane: LaneId, call_id: String, to: Recipients, message: &str) -> Inputs {
        let caller = self.agent_id(lane).map(|id| id.0.clone());
        let ids: Vec<String> = match to {
            Recipients::Named(ids) => ids,
            Recipients::All(scope) => {
                let registry = &self.session().state().agents;
                registry.seen_by(caller.as_deref(), Some(scope)).map(|agent| agent.id.clone()).collect()
            }
        };
        let sender = caller.unwrap_or_else(|| self.session().state().session_id.clone());
        let mut inputs = Vec::new();
        let mut reached = Vec::new();
        let mut missed = Vec::new();
        for id in ids {
            match self.lane_of(&id) {
                Some(addressee) if addressee != lane => {
                    inputs.push((addressee, message_input(&sender, message.to_owned())));
                    reached.push(id);
                }
                _ => missed.push(id),
            }
        }
        let outcome = match (reached.as_slice(), missed.as_slice()) {
            ([], [one]) if self.session().state().agents.find(one).is_none() => registry::not_found(one),
            ([], _) => ToolOutcome::failure(format!(
                "No agent could take the message. Over, or not there: {}.",
                missed.join(", ")
            )),
            (reached, []) => ToolOutcome::success(format!(
                "Message sent to {}. You'll be notified when there is an answer.",
                reached.join(", ")
            )),
            (reached, missed) => ToolOutcome::success(format!(
                "Message sent to {}. Over, or not there: {}.",
                reached.join(", "),
                missed.join(", ")
            )),
        };
        inputs.insert(0, (lane, SessionInput::ToolDone { call_id, outcome }));
        inputs
    }

    /// Validates a call that starts an agent; `Err` is the answer to an invalid one.
    fn launch(&mut self, parent: LaneId, call_id: &str, start: StartAgent) -> Result<Launch, ToolOutcome> {
        let caller = &self.lanes[&parent];
        let Some(agent_config) = caller.session.config().agent_config.clone() else {
            return Err(ToolOutcome::failure("There are no agents in this session."));
        };
        let Some(agent) = agent_config.find(&start.agent_type).filter(|agent| agent_config.may_start(agent))
        else {
            let names: Vec<&str> = agent_config.callable().map(|agent| agent.name.as_str()).collect();
            let unknown =
                format!("Unknown agent_type: {}. Valid types are: {}", start.agent_type, names.join(", "));
            return Err(ToolOutcome::failure(unknown));
        };
        let depth = caller.agent.as_ref().map_or(0, |agent| agent.depth) + 1;
        let limits = agent_config.limits();
        if depth > limits.depth {
            return Err(ToolOutcome::failure(format!(
                "Agents may start agents {} levels deep, and this one is at the limit. Do the work yourself.",
                limits.depth
            )));
        }
        if self.running_agents() >= limits.running {
            return Err(ToolOutcome::failure(format!(
                "{} agents are running, which is the limit. Wait until one is done, then start this one.",
                limits.running
            )));
        }
        let agent = agent_config.configured(agent);
        Ok(Launch {
            id: self.host.entropy.uuid(),
            parent,
            call_id: call_id.to_owned(),
            start,
            agent_config,
            agent,
            depth,
            awaited_by: None,
        })
    }

    /// Creates the lane of an agent and gives it its task. Its start is logged before anything else happens.
    fn begin(&mut self, launch: Launch) -> Result<Inputs, LogError> {
        let Launch { id, parent, call_id, start, agent_config, agent, depth, awaited_by } = launch;
        let caller = &self.lanes[&parent];
        let caller_model = caller.session.state().model.clone();
        let chosen = select_model(start.model.as_deref(), &agent, &caller_model, self.host.models.as_deref());
        let parent_id = caller.agent.as_ref().map(|agent| agent.id.0.clone());
        let sender = parent_id.clone().unwrap_or_else(|| self.session().state().session_id.clone());
        let (provider, model, max_prompt_tokens) = match &chosen.choice {
            Some(choice) => {
                let provider = self.budgeted(Arc::clone(&choice.provider));
                (provider, choice.model.clone(), choice.max_prompt_tokens)
            }
            None => (Arc::clone(&caller.provider), caller_model, caller.session.config().max_prompt_tokens),
        };
        // A custom agent is shown by its description, a built-in one by the task it was started for.
        let (name, description) = match agent.source {
            AgentSource::Builtin => (start.name, start.description),
            AgentSource::File(_) | AgentSource::Client => {
                (agent.display_name.clone(), agent.description.clone())
            }
        };
        let started = SubagentStarted {
            tool_call_id: call_id.clone(),
            agent_name: agent.name.clone(),
            agent_display_name: name.clone(),
            agent_description: description,
            model: Some(model.clone()),
            task_model_source: Some(chosen.source),
            model_selection_source: Some(chosen.selection),
            resumable: Some(false),
            agent_type: Some(agent.name.clone()),
            execution_mode: Some(start.mode),
            parent_id,
        };
        let effort = start.effort.or_else(|| agent.effort.clone());
        let inherited = || caller.session.state().effort.clone().filter(|_| chosen.choice.is_none());
        let state = ConversationState {
            session_id: id.clone(),
            cwd: self.session().state().cwd.clone(),
            model,
            effort: effort.or_else(inherited),
            ..ConversationState::default()
        };
        let role = AgentRole {
            id: id.clone(),
            tool_call_id: call_id,
            agent_type: agent.name.clone(),
            title: agent.display_name.clone(),
            description: agent.description.clone(),
            name,
            tools: agent.tools.clone(),
            has_role: agent.has_role(),
            selection: chosen.selection,
            parent: sender.clone(),
            depth,
            started: (self.host.now)(),
        };
        let mut config = self.config_of(parent, &agent, &agent_config, role);
        config.provider = provider.facts();
        config.max_prompt_tokens = max_prompt_tokens;
        config.headers.extend([
            ("x-interaction-type".to_owned(), "conversation-subagent".to_owned()),
            ("x-agent-id".to_owned(), id.clone()),
            ("x-parent-agent-id".to_owned(), sender.clone()),
        ]);
        let agent_lane =
            AgentLane { id: AgentId(id), parent, depth, awaited_by, held: Vec::new(), toolset: None };
        let lane = self.open_lane(Session::new(state, config), provider, Some(agent_lane));
        self.record(lane, vec![Body::from(started)])?;
        let prompt =
            Prompt { origin: Origin::Source(registry::source_of(&sender)), ..Prompt::user(start.prompt) };
        let inputs = vec![SessionInput::Opened(Opening::Agent), SessionInput::Command(Command::Send(prompt))];
        let Some(toolset) =
            self.tool_provider.as_ref().and_then(|tool_provider| tool_provider.toolset(&agent))
        else {
            return Ok(inputs.into_iter().map(|input| (lane, input)).collect());
        };
        if let Some(agent) = self.lanes.get_mut(&lane).and_then(|lane| lane.agent.as_mut()) {
            agent.held = inputs;
        }
        self.running.toolsets.push(Box::pin(async move { (lane, toolset.await) }));
        Ok(Vec::new())
    }

    /// Gives an agent its own tools, and lets it begin.
    pub(super) fn equip(&mut self, id: LaneId, toolset: AgentToolset) -> Inputs {
        let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
        let Some(agent) = lane.agent.as_mut() else { return Vec::new() };
        let held = std::mem::take(&mut agent.held);
        if held.is_empty() {
            // The agent was stopped meanwhile.
            return Vec::new();
        }
        let agent_config = self.lanes.get(&MAIN).and_then(|main| main.session.config().agent_config.clone());
        let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
        let kind = match &lane.session.config().role {
            Role::Agent(role) => role.agent_type.clone(),
            Role::Main => return Vec::new(),
        };
        let definition = agent_config.as_deref().and_then(|agent_config| agent_config.find(&kind));
        let admits = |name: &str| definition.is_none_or(|agent| agent.tools.admits(name));
        let own = toolset.tools.iter().map(|tool| tool.spec()).filter(|tool| admits(&tool.name));
        let own: Vec<&Arc<ToolSpec>> = own.collect();
        let known = lane.session.config().tools.iter();
        let known = known.filter(|known| own.iter().all(|tool| tool.name != known.name));
        let tools = interned::list(known.chain(own.iter().copied()));
        if let (Some(agent_config), Some(agent)) = (&agent_config, definition) {
            lane.session
                .set_system(agent_config.prompt(agent, tools.iter().map(|tool| tool.name.clone()).collect()));
        }
        if let Some(agent) = lane.agent.as_mut() {
            agent.toolset = Some(toolset);
        }
        let given = SessionInput::Command(Command::SetTools(tools));
        std::iter::once(given).chain(held).map(|input| (id, input)).collect()
    }

    /// Configuration of an agent's session, derived from its caller's.
    fn config_of(
        &self,
        parent: LaneId,
        agent: &AgentDefinition,
        agent_config: &Arc<AgentConfig>,
        role: AgentRole,
    ) -> SessionConfig {
        let caller = &self.lanes[&parent].session;
        let theirs = caller.config();
        let main = self.session().config();
        // An agent of another kind is shown the session's tools, not only those of its caller.
        let offered = if agent.inherits_tools() { theirs.tools.iter() } else { self.offered.iter() };
        let tools: Arc<[_]> = offered.filter(|tool| agent.tools.admits(&tool.name)).cloned().collect();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        SessionConfig {
            system: agent_config.prompt(agent, names),
            instructions: agent_config.instructions.as_str().into(),
            tools,
            policy: main.policy.clone(),
            provider: theirs.provider.clone(),
            max_prompt_tokens: theirs.max_prompt_tokens,
            metering: Metering {
                meter: main.compaction.and(main.metering.meter.clone()),
                reports_usage: false,
            },
            // Budgets are the session's.
            just_in_time: Arc::default(),
            streaming: main.streaming,
            compaction: main.compaction,
            vision: main.vision,
            autopilot_cap: 0,
            clients: main.clients,
            may_ask: main.may_ask,
            hooks: main.hooks,
            // The session publishes them, for all agents.
            notices: StartNotices::default(),
            headers: main.headers.clone(),
            own_tools: main.own_tools.clone(),
            session_dir: main.session_dir.clone(),
            deferral: main.deferral.clone(),
            facts: main.facts.clone(),
            discovers_instructions: main.discovers_instructions,
            // An agent at the deepest level is not shown a tool that would be refused.
            agent_config: (role.depth < agent_config.limits().depth).then(|| Arc::clone(agent_config)),
            role: Role::Agent(Box::new(role)),
        }
    }

    /// Reports that an agent is done to its caller.
    pub(super) fn agent_done(&mut self, lane: LaneId, end: AgentEnd) -> Inputs {
        let Some(agent) = self.lanes.get_mut(&lane).and_then(|lane| lane.agent.as_mut()) else {
            return Vec::new();
        };
        let (id, parent, awaited_by) = (agent.id.0.clone(), agent.parent, agent.awaited_by.take());
        if let Some(toolset) = &agent.toolset {
            toolset.source.rest();
        }
        let mut inputs = Vec::new();
        let now = (self.host.now)();
        let known = self.session().state().agents.find(&id).cloned();
        let readers: Vec<WaitingRead> = self.readers.extract_if(.., |reader| reader.agent_id == id).collect();
        let read = !readers.is_empty();
        for reader in readers {
            if let Some(agent) = &known {
                let outcome = agent.read(reader.since_turn, now);
                inputs.push((reader.lane, SessionInput::ToolDone { call_id: reader.call_id, outcome }));
            }
        }
        match (awaited_by, known) {
            (Some(call_id), _) => {
                let outcome = match end.clone() {
                    AgentEnd::Answered(answer) => ToolOutcome::success(answer),
                    AgentEnd::Failed(error) => ToolOutcome::failure(error),
                    AgentEnd::Cancelled => ToolOutcome::of(ToolStatus::Interrupted, INTERRUPTED),
                };
                inputs.push((parent, SessionInput::ToolDone { call_id, outcome }));
            }
            // The agent that cancelled it knows already.
            (None, Some(agent)) if !read && end != AgentEnd::Cancelled => {
                // A finished agent is not woken by work that it left behind; the session is.
                let alive = self.lanes.get(&parent).is_some_and(|lane| lane.session.is_running());
                let addressee = if alive { parent } else { MAIN };
                let reporting =
                    self.session().config().agent_config.as_ref().map(|agent_config| agent_config.reporting);
                inputs.push((
                    addressee,
                    SessionInput::Background(report(&agent, reporting.unwrap_or_default(), now)),
                ));
            }
            (None, _) => {}
        }
        if matches!(end, AgentEnd::Failed(_) | AgentEnd::Cancelled) {
            // Nobody can send it messages any more.
            self.lanes.remove(&lane);
        }
        self.let_idle_go();
        if self.running_agents() == 0 {
            inputs.push((MAIN, SessionInput::AgentsSettled));
        }
        inputs
    }

    fn let_idle_go(&mut self) {
        let is_idle = |lane: &Lane| lane.agent.is_some() && lane.session.is_idle();
        let idle: Vec<LaneId> =
            self.lanes.iter().filter(|(_, lane)| is_idle(lane)).map(|(id, _)| *id).collect();
        for lane in idle.iter().take(idle.len().saturating_sub(MAX_IDLE)) {
            self.lanes.remove(lane);
        }
    }

    /// Closes agents that an earlier process left running, and keeps their results so far.
    pub(super) fn close_left_behind(&mut self) -> Result<(), LogError> {
        for (id, failed) in self.session().state().agents.cut_off() {
            self.record_as(Some(AgentId(id)), vec![Body::from(failed)])?;
        }
        let now = (self.host.now)();
        let reporting = self
            .session()
            .config()
            .agent_config
            .as_ref()
            .map(|agent_config| agent_config.reporting)
            .unwrap_or_default();
        let owed: Vec<BackgroundNotice> =
            self.session().state().agents.unreported().map(|agent| report(agent, reporting, now)).collect();
        for report in owed {
            self.session_mut().owe(report);
        }
        Ok(())
    }

    pub(super) fn running_agents(&self) -> usize {
        self.session().state().agents.running()
    }

    fn agent_id(&self, lane: LaneId) -> Option<&AgentId> {
        self.lanes.get(&lane)?.agent.as_ref().map(|agent| &agent.id)
    }

    fn wait_for_agent(&mut self, reader: WaitingRead, wait: std::time::Duration) {
        let (lane, call_id) = (reader.lane, reader.call_id.clone());
        let Some(token) = self.lanes.get(&lane).map(|lane| lane.tools.clone()) else { return };
        self.readers.push(reader);
        let due = Instant::now() + wait;
        self.running.patience.push(Box::pin(async move {
            token.run_until_cancelled(tokio::time::sleep_until(due)).await;
            (lane, call_id)
        }));
    }

    /// Answers a call whose wait for its agent has timed out.
    pub(super) fn read_timed_out(&mut self, lane: LaneId, call_id: String) -> Inputs {
        let is_it = |reader: &WaitingRead| reader.lane == lane && reader.call_id == call_id;
        let Some(index) = self.readers.iter().position(is_it) else { return Vec::new() };
        let reader = self.readers.swap_remove(index);
        let now = (self.host.now)();
        let outcome = match self.session().state().agents.find(&reader.agent_id) {
            Some(agent) => agent.read(reader.since_turn, now),
            None => registry::not_found(&reader.agent_id),
        };
        vec![(lane, SessionInput::ToolDone { call_id, outcome })]
    }
}

struct Launch {
    id: String,
    parent: LaneId,
    call_id: String,
    start: StartAgent,
    agent_config: Arc<AgentConfig>,
    agent: AgentDefinition,
    depth: u32,
    awaited_by: Option<String>,
}

fn message_input(sender: &str, message: String) -> SessionInput {
    let origin = Origin::Source(registry::source_of(sender));
    SessionInput::Command(Command::Send(Prompt { origin, timing: Timing::Steer, ..Prompt::user(message) }))
}

fn report(agent: &registry::Agent, reporting: Reporting, now: jiff::Timestamp) -> BackgroundNotice {
    let delivered = reporting == Reporting::Delivered;
    let (text, kind) = agent.news(!delivered);
    // Only the last answer is new, if there is one.
    let since_turn = agent.answers.len().checked_sub(1);
    let read = delivered.then(|| {
        let mut arguments = json!({ "agent_id": agent.id });
        if let Some(turn) = since_turn {
            arguments["since_turn"] = json!(turn);
        }
        ReadForModel { tool: "read_agent", arguments, outcome: agent.read(since_turn, now) }
    });
    BackgroundNotice { text, kind, read: read.map(Box::new) }
}
