//! Registry of the agents that a session has started: a fold over its log, and the texts that the model is given about
//! them.

use std::collections::VecDeque;

use hangar_protocol::data::{self, ExecutionMode, NotificationKind};
use hangar_protocol::{Body, Event};
use jiff::Timestamp;

use super::call::MessageScope;
use crate::tool::ToolOutcome;

/// Number of finished agents that are kept. The oldest are dropped first; running ones never.
const MAX_REMEMBERED: usize = 1000;
/// Lines of recent activity that are kept per agent.
const ACTIVITY_LINES: usize = 20;
/// Error of an agent that was stopped.
pub const CANCELLED: &str = "The agent was cancelled.";
/// Error of an agent whose process ended while it was running.
pub const CUT_OFF: &str = "The agent was interrupted: the process that ran it went away.";

#[derive(Debug, Clone, Default)]
pub struct AgentRegistry {
    agents: Vec<Agent>,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub id: String,
    pub tool_call_id: String,
    pub agent_type: String,
    /// Name that its caller gave it.
    pub name: String,
    pub description: String,
    /// Its last prompt.
    pub prompt: String,
    pub model: Option<String>,
    pub mode: ExecutionMode,
    pub parent: Option<String>,
    pub started: String,
    pub ended: Option<String>,
    pub status: Status,
    /// Its answers, one per prompt.
    pub answers: Vec<String>,
    /// Recent activity, with the time.
    pub activity: VecDeque<(String, String)>,
    /// Its last message, until that is known to be its answer.
    saying: Option<String>,
    /// Whether its caller has been told the outcome.
    reported: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Running,
    /// It has answered and accepts further messages.
    Idle,
    Failed {
        error: String,
    },
    Cancelled,
}

impl Status {
    pub fn as_str(&self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Idle => "idle",
            Status::Failed { .. } => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

impl AgentRegistry {
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter()
    }

    /// Finds an agent by id, or by name if that is unique.
    pub fn find(&self, key: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == key).or_else(|| {
            let mut named = self.agents.iter().filter(|agent| agent.name == key);
            named.next().filter(|_| named.next().is_none())
        })
    }

    pub fn running(&self) -> usize {
        self.agents.iter().filter(|agent| agent.status == Status::Running).count()
    }

    /// Removes a finished agent. False if there is none or it is not finished.
    pub fn forget(&mut self, id: &str) -> bool {
        let before = self.agents.len();
        self.agents.retain(|agent| agent.id != id || matches!(agent.status, Status::Running | Status::Idle));
        self.agents.len() < before
    }

    /// Closes an idle agent, which then accepts no more messages. False if there is none.
    pub fn dismiss(&mut self, id: &str) -> bool {
        let waits = |agent: &&mut Agent| agent.id == id && agent.status == Status::Idle;
        let Some(agent) = self.agents.iter_mut().find(waits) else { return false };
        agent.status = Status::Cancelled;
        true
    }

    /// Applies an event of one of the agents.
    pub(crate) fn apply_agent(&mut self, id: &str, event: &Event) {
        if let Body::SubagentStarted(started) = event.body() {
            self.agents.push(Agent::new(id, started, event.timestamp()));
            self.forget_oldest();
            return;
        }
        let now = event.timestamp();
        let Some(agent) = self.agents.iter_mut().rev().find(|agent| agent.id == id) else { return };
        match event.body() {
            Body::UserMessage(message) if message.source.as_deref().is_some_and(is_from_agent) => {
                agent.prompt.clone_from(&message.content);
                agent.status = Status::Running;
                agent.ended = None;
                agent.saying = None;
            }
            Body::AssistantMessage(message) => {
                agent.saying = message.tool_requests.is_empty().then(|| message.content.clone());
            }
            Body::HookEnd(end) if end.hook_type == "subagentStop" => {
                let output = end.output.as_ref();
                if let Some(text) = output.and_then(|output| output["modifiedResponse"].as_str()) {
                    agent.saying = Some(text.to_owned());
                }
            }
            Body::ToolStart(start) => {
                agent.activity.push_back((format!("\u{25b8} {}", start.tool_name), now.to_owned()));
                if agent.activity.len() > ACTIVITY_LINES {
                    agent.activity.pop_front();
                }
            }
            Body::SubagentCompleted(_) => {
                agent.answers.push(agent.saying.take().unwrap_or_default());
                agent.end(Status::Idle, now);
            }
            Body::SubagentFailed(failed) => {
                let status = match failed.error.as_str() {
                    CANCELLED => Status::Cancelled,
                    error => Status::Failed { error: error.to_owned() },
                };
                agent.end(status, now);
            }
            _ => {}
        }
    }

    /// Applies an event of the session itself, which may show that an outcome has been reported.
    pub(crate) fn apply_main(&mut self, body: &Body) {
        let known = match body {
            Body::SystemNotification(data::SystemNotification {
                kind:
                    NotificationKind::AgentIdle { agent_id, .. }
                    | NotificationKind::AgentCompleted { agent_id, .. },
                ..
            }) => self.agents.iter_mut().find(|agent| agent.id == *agent_id),
            Body::ToolComplete(complete) => {
                let agent = self.agents.iter_mut().find(|agent| agent.tool_call_id == complete.tool_call_id);
                match agent {
                    // The call did not wait for the agent, or no longer does.
                    Some(agent) if agent.status == Status::Running => {
                        agent.mode = ExecutionMode::Background;
                        None
                    }
                    Some(agent) if agent.mode == ExecutionMode::Sync => {
                        let interrupted = complete.error.as_ref().and_then(|error| error.code.as_deref());
                        Some(agent).filter(|_| interrupted != Some("interrupted"))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(agent) = known {
            agent.reported = true;
        }
    }

    /// Closing events for agents whose process is gone.
    pub(crate) fn cut_off(&self) -> Vec<(String, data::SubagentFailed)> {
        let cut = self.agents.iter().filter(|agent| agent.status == Status::Running);
        cut.map(|agent| (agent.id.clone(), agent.failed(CUT_OFF))).collect()
    }

    /// Finished agents whose outcome has not been reported to the session.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = &Agent> {
        self.agents
            .iter()
            .filter(|agent| !agent.reported && agent.parent.is_none() && agent.status != Status::Running)
    }

    fn forget_oldest(&mut self) {
        if self.agents.len() <= MAX_REMEMBERED {
            return;
        }
        if let Some(oldest) = self.agents.iter().position(|agent| agent.status != Status::Running) {
            self.agents.remove(oldest);
        }
    }

    /// Agents that are visible to one of them, or to the session itself.
    pub(crate) fn seen_by<'a>(
        &'a self,
        caller: Option<&'a str>,
        scope: Option<MessageScope>,
    ) -> impl Iterator<Item = &'a Agent> {
        let parent = caller.and_then(|id| self.find(id)).and_then(|agent| agent.parent.as_deref());
        self.agents.iter().filter(move |agent| {
            let is_caller = caller == Some(agent.id.as_str());
            let child = self.descends(agent, caller);
            let sibling = caller.is_some() && agent.parent.as_deref() == parent;
            !is_caller
                && match scope {
                    Some(MessageScope::All) => true,
                    Some(MessageScope::Children) => child,
                    Some(MessageScope::Siblings) => sibling,
                    None => child || sibling,
                }
        })
    }

    fn descends(&self, agent: &Agent, from: Option<&str>) -> bool {
        let Some(from) = from else { return true };
        let mut parent = agent.parent.as_deref();
        while let Some(id) = parent {
            if id == from {
                return true;
            }
            parent =
                self.agents.iter().find(|agent| agent.id == id).and_then(|agent| agent.parent.as_deref());
        }
        false
    }

    /// Result of `list_agents`. `session` is the id that stands for the session itself.
    pub(crate) fn list(
        &self,
        caller: Option<&str>,
        session: &str,
        finished: bool,
        scope: Option<MessageScope>,
        now: Timestamp,
    ) -> String {
        let groups = [
            ("Running", "\u{1f504}"),
            ("Idle", "\u{1f4a4}"),
            ("Failed", "\u{274c}"),
            ("Cancelled", "\u{1f6d1}"),
        ];
        let mut text = String::new();
        for (group, mark) in groups {
            let members: Vec<&Agent> = self
                .seen_by(caller, scope)
                .filter(|agent| agent.status.as_str().eq_ignore_ascii_case(group))
                .filter(|agent| finished || matches!(agent.status, Status::Running | Status::Idle))
                .collect();
            if members.is_empty() {
                continue;
            }
            text.push_str(&format!("\n\n{group} ({}):", members.len()));
            for agent in members {
                let owner = agent.parent.as_deref().unwrap_or(session);
                let relation = match agent.parent.as_deref() == caller {
                    true => "child",
                    false if self.descends(agent, caller) => "descendant",
                    false => "sibling",
                };
                text.push_str(&format!(
                    "\n  {mark} {} ({}): {} - \"{}\" ({}s, owner: {owner}, relation: {relation})",
                    agent.name,
                    agent.id,
                    agent.agent_type,
                    agent.description,
                    agent.elapsed(now),
                ));
            }
        }
        match text.is_empty() {
            true => "No agents.".to_owned(),
            false => format!("Background agents:{text}"),
        }
    }
}

impl Agent {
    fn new(id: &str, started: &data::SubagentStarted, now: &str) -> Self {
        Self {
            id: id.to_owned(),
            tool_call_id: started.tool_call_id.clone(),
            agent_type: started.agent_type.clone().unwrap_or_else(|| started.agent_name.clone()),
            name: started.agent_display_name.clone(),
            description: started.agent_description.clone(),
            prompt: String::new(),
            model: started.model.clone(),
            mode: started.execution_mode.unwrap_or(ExecutionMode::Sync),
            parent: started.parent_id.clone(),
            started: now.to_owned(),
            ended: None,
            status: Status::Running,
            answers: Vec::new(),
            activity: VecDeque::new(),
            saying: None,
            reported: false,
        }
    }

    fn end(&mut self, status: Status, now: &str) {
        self.status = status;
        self.ended = Some(now.to_owned());
        self.reported = false;
    }

    fn failed(&self, error: &str) -> data::SubagentFailed {
        data::SubagentFailed {
            tool_call_id: self.tool_call_id.clone(),
            agent_name: self.agent_type.clone(),
            agent_display_name: self.name.clone(),
            error: error.to_owned(),
            model: self.model.clone(),
            ..Default::default()
        }
    }

    /// Whole seconds from its start to its end, or to now.
    fn elapsed(&self, now: Timestamp) -> i64 {
        let at = |text: &str| text.parse::<Timestamp>().ok();
        let end = self.ended.as_deref().and_then(at).unwrap_or(now);
        at(&self.started).map_or(0, |start| (end.as_second() - start.as_second()).max(0))
    }

    /// Result of `read_agent`.
    pub(crate) fn read(&self, since_turn: Option<usize>, now: Timestamp) -> ToolOutcome {
        let lead = match &self.status {
            Status::Running => "Agent is still running.",
            Status::Idle => "Agent is idle (waiting for messages).",
            Status::Failed { .. } => "Agent failed.",
            Status::Cancelled => "Agent was cancelled.",
        };
        let mut text = format!(
            "{lead} agent_id: {}, agent_type: {}, status: {}, description: {}, elapsed: {}s, total_turns: {}",
            self.id,
            self.agent_type,
            self.status.as_str(),
            self.description,
            self.elapsed(now),
            self.answers.len(),
        );
        for (turn, answer) in self.answers.iter().enumerate().skip(since_turn.unwrap_or(0)) {
            text.push_str(&format!("\n\n[Turn {turn}]\n{answer}"));
        }
        match &self.status {
            Status::Failed { error } => ToolOutcome::failure(format!("{text}\n\nError: {error}")),
            Status::Running | Status::Idle | Status::Cancelled => ToolOutcome {
                detailed: Some(format!("<agent {} {}>", self.id, self.status.as_str())),
                ..ToolOutcome::success(text)
            },
        }
    }

    /// Notification to the model that the agent is done.
    pub(crate) fn news(&self, hint: bool) -> (String, NotificationKind) {
        let what = match (&self.status, hint) {
            (Status::Failed { .. }, _) => "has failed.".to_owned(),
            (Status::Cancelled, _) => "was cancelled.".to_owned(),
            (Status::Idle | Status::Running, false) => "has finished processing and is now idle.".to_owned(),
            (Status::Idle | Status::Running, true) => format!(
                "has finished processing and is now idle. Use read_agent with agent_id \"{}\" to read the results, or \
                 write_agent to send follow-up messages.",
                self.id
            ),
        };
        let text = format!("Agent \"{}\" ({}) {what}", self.name, self.agent_type);
        let (agent_id, agent_type) = (self.id.clone(), self.agent_type.clone());
        let (display_name, description) = (Some(self.name.clone()), Some(self.description.clone()));
        let kind = match &self.status {
            Status::Failed { .. } | Status::Cancelled => NotificationKind::AgentCompleted {
                agent_id,
                agent_type,
                status: "failed".to_owned(),
                display_name,
                description,
                prompt: Some(self.prompt.clone()),
            },
            Status::Idle | Status::Running => {
                NotificationKind::AgentIdle { agent_id, agent_type, display_name, description }
            }
        };
        (text, kind)
    }
}

/// Result of a call about an unknown agent.
pub(crate) fn not_found(id: &str) -> ToolOutcome {
    let text =
        format!("No agent found with agent_id: {id}. The agent may have been cleared or never existed.");
    ToolOutcome { error: Some("Agent not found".to_owned()), ..ToolOutcome::failure(text) }
}

/// Result of a call that started an agent in the background.
pub(crate) fn started_in_background(agent_type: &str, id: &str, prompt: &str) -> ToolOutcome {
    let text = format!(
        "Agent started in background with agent_id: {id}. You'll be notified when it completes. Tell the user you're \
         waiting and end your response, or continue unrelated work until notified. The agent supports multi-turn \
         conversations: write_agent sends it follow-up messages about the same task."
    );
    ToolOutcome {
        detailed: Some(format!("Prompt to {agent_type} agent ({id}):\n{prompt}")),
        ..ToolOutcome::success(text)
    }
}

/// `source` of a message from one agent, or the main one, to another.
pub(crate) fn source_of(sender: &str) -> String {
    format!("agent-{sender}")
}

fn is_from_agent(source: &str) -> bool {
    source.starts_with("agent-")
}
