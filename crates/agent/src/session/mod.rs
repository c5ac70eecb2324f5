//! The session: its state and its decisions.
//!
//! [`Session::step`] takes one input and returns the events that happened and the effects to perform. It does no I/O
//! and cannot fail. The driver logs the events before it performs the effects, so a crash leaves a started call without
//! an end, never an effect that the log does not know of.

mod access;
mod active_role;
mod agent;
mod background_hooks;
mod beginning;
mod call;
mod checkpoint;
mod compaction;
mod ending;
mod facts;
mod hooks;
mod io;
mod just_in_time;
mod limits;
mod live;
mod mcp_instructions;
mod news;
mod own_tools;
mod pending;
mod prompt_hooks;
mod questions;
mod queue;
mod repetition;
mod run;
mod scheduled;
pub mod state;
mod stop_hooks;
mod switch;
mod system_prompt;
mod tools;
mod truncation;
mod visible_tools;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_protocol::Body;
use hangar_protocol::data::{self, Mode, SkillInvoked};

pub use agent::{AgentEnd, AgentRole, Role};
pub use checkpoint::Checkpoint;
pub use compaction::{Compaction, NOTHING_TO_COMPACT};
pub use ending::OUTPUT_LIMIT;
pub(crate) use hooks::{ended, started};
pub use io::{
    BackgroundNotice, CallOptions, CallSeq, Command, Context, Inspection, Opening, Origin, Prompt,
    ReadForModel, Reminder, SessionEffect, SessionInput, Step, Timing, Unqueue, iso,
};
pub use just_in_time::{Due, JustInTime, SOURCE as JUST_IN_TIME};
pub use live::{LiveSettings, PendingPermission, QueuedPrompt};
pub use pending::{ClientCall, OpenTurn, PendingAnswer};
pub use questions::AnswerableQuestions;
pub use queue::QueueEdit;
pub use scheduled::{ScheduledPrompt, ScheduledPrompts, rewind_to};
pub use state::ConversationState;
pub use switch::ModelSwitch;

use crate::agents::config::AgentConfig;
use crate::conversation::INTERRUPTED;
use crate::entropy::Entropy;
use crate::hook::{HookKind, HookSet};
use crate::model::{ProviderFacts, TokenMeter};
use crate::permissions::{Policy, Rule};
use crate::token_counts::TokenCounts;
use crate::tool::{ToolFilter, ToolSpec};
use crate::tool_search::Deferral;
use compaction::Compacting;
use just_in_time::JustInTimeState;
use live::ToolsChanged;
use mcp_instructions::McpInstructions;
use run::Run;

/// Capacity of the queue. A sender beyond it is told so by an event.
const QUEUE_LIMIT: usize = 256;

pub struct SessionConfig {
    /// The system prompt, assembled once so that it stays the same over all turns.
    pub system: Arc<str>,
    /// The custom instructions in it.
    pub instructions: Arc<str>,
    /// All tools except the session's own, as the model is shown them.
    pub tools: Arc<[Arc<ToolSpec>]>,
    pub policy: Policy,
    pub provider: ProviderFacts,
    pub max_prompt_tokens: u64,
    pub metering: Metering,
    pub streaming: bool,
    /// Thresholds of compaction; none happens if absent.
    pub compaction: Option<Compaction>,
    /// Just-in-time instructions.
    pub just_in_time: Arc<[JustInTime]>,
    /// Whether the model is shown images.
    pub vision: bool,
    /// How often an autopilot that stops without `task_complete` is told to continue.
    pub autopilot_cap: u32,
    pub clients: ClientAbilities,
    pub may_ask: bool,
    /// Kinds of the configured hooks.
    pub hooks: HookSet,
    pub notices: StartNotices,
    /// HTTP headers of every model call.
    pub headers: Vec<(String, String)>,
    /// Filter of the session's own tools.
    pub own_tools: ToolFilter,
    /// The session's folder, where plan mode may write.
    pub session_dir: PathBuf,
    /// Tools that are hidden behind a search when they are many; none if absent.
    pub deferral: Option<Deferral>,
    /// Facts about the session's environment, one line each, which the model is told in messages. If empty, the model
    /// is told no other facts either.
    pub facts: Vec<String>,
    pub discovers_instructions: bool,
    pub role: Role,
    /// Agents that the session may start; none if absent.
    pub agent_config: Option<Arc<AgentConfig>>,
}

/// Counting of tokens.
#[derive(Clone, Default)]
pub struct Metering {
    /// Tokenizer. It is used when the context fills up, and for every call if `reports_usage` is set.
    pub meter: Option<Arc<dyn TokenMeter>>,
    /// Whether `session.usage_info` is published. It takes a tokenizer, which costs time to load.
    pub reports_usage: bool,
}

/// Combined abilities of the clients of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// Whether one can answer permission requests.
    pub permissions: bool,
    /// Whether one can answer questions.
    pub questions: bool,
    /// Whether one has hooks, of every kind.
    pub hooks: bool,
}

/// Published once at the start.
#[derive(Default)]
pub struct StartNotices {
    pub skills: Vec<data::LoadedSkill>,
    /// Problems of the configuration.
    pub warnings: Vec<String>,
    /// Built-in tools that are switched off.
    pub disabled_tools: Vec<String>,
}

pub struct Session {
    state: ConversationState,
    config: SessionConfig,
    run: Option<Run>,
    queue: VecDeque<Prompt>,
    steering: Vec<Prompt>,
    /// Whether the queue is paused.
    queue_paused: bool,
    calls: u64,
    /// Continuations of the autopilot since the last user message.
    nudges: u32,
    /// Whether `sessionStart` has run.
    greeted: bool,
    shown: ShownTools,
    /// Whether the session was resumed.
    resumed: bool,
    /// The compaction that is running.
    compacting: Option<Compacting>,
    /// Length of the conversation at the last compaction that failed.
    failed_at: Option<usize>,
    token_counts: TokenCounts,
    just_in_time: JustInTimeState,
    mcp: McpState,
    /// Hooks that are running.
    open_hooks: Vec<(String, HookKind)>,
    /// News for the next prompt, which do not start a run: from before the session was resumed, or from a run that was
    /// aborted.
    owed: Vec<Prompt>,
    /// Whether `session.idle` is still to be published, once the agents are done.
    idle_owed: bool,
    last_run: LastRun,
    stats: agent::AgentStats,
    system: SystemPromptState,
    /// Whether nothing may be changed, because the parent is in plan mode.
    only_plans: bool,
    /// Which further questions the clients can answer.
    answerable: AnswerableQuestions,
    /// Notices of the provider that were told.
    told_notices: VecDeque<String>,
}

/// Tools as the model was shown them.
#[derive(Default)]
struct ShownTools {
    /// Tools that the model was shown and that are gone. Requests keep their definitions, and calls are refused.
    withdrawn: Vec<Arc<ToolSpec>>,
    /// Changes of the tools that the model has not been told yet.
    changes: ToolsChanged,
}

#[derive(Default)]
struct McpState {
    /// MCP servers, as events list them.
    servers: Vec<serde_json::Value>,
    instructions: McpInstructions,
}

/// How the last run ended.
#[derive(Default)]
struct LastRun {
    /// Its error, if it failed.
    failure: Option<String>,
    aborted: bool,
}

/// System prompts that take the place of the configured one.
#[derive(Default)]
struct SystemPromptState {
    /// That of the resumed conversation, if it differs from the one that would be made now.
    kept: Option<Arc<str>>,
    /// Whether the system prompt of the conversation is fixed.
    settled: bool,
    /// That of the agent whose role the session has.
    role: Option<Arc<str>>,
}

impl Session {
    pub fn new(state: ConversationState, config: SessionConfig) -> Self {
        let invoked = state.skills.clone();
        let mut session = Self {
            state,
            config,
            run: None,
            queue: VecDeque::new(),
            steering: Vec::new(),
            queue_paused: false,
            calls: 0,
            nudges: 0,
            greeted: false,
            shown: ShownTools::default(),
            resumed: false,
            compacting: None,
            failed_at: None,
            token_counts: TokenCounts::default(),
            just_in_time: JustInTimeState::default(),
            mcp: McpState::default(),
            open_hooks: Vec::new(),
            owed: Vec::new(),
            idle_owed: false,
            last_run: LastRun::default(),
            stats: agent::AgentStats::default(),
            system: SystemPromptState::default(),
            only_plans: false,
            answerable: AnswerableQuestions::default(),
            told_notices: VecDeque::new(),
        };
        invoked.iter().for_each(|skill| session.trust_skill(skill));
        session
    }

    /// Allows the tools that an invoked skill names.
    fn trust_skill(&mut self, skill: &SkillInvoked) {
        let tools = skill.allowed_tools.iter().flatten();
        self.config.policy.allow.extend(tools.flat_map(|tool| Rule::of_tool(tool)));
    }

    /// Takes over the policy of the parent, and keeps what its own skills allow.
    pub(crate) fn adopt(&mut self, policy: Policy) {
        self.config.policy = policy;
        let invoked = self.state.skills.clone();
        invoked.iter().for_each(|skill| self.trust_skill(skill));
    }

    pub fn state(&self) -> &ConversationState {
        &self.state
    }

    pub(crate) fn state_mut(&mut self) -> &mut ConversationState {
        &mut self.state
    }

    /// Whether no run is under way and the queue is empty or paused.
    pub fn is_idle(&self) -> bool {
        self.run.is_none() && (self.queue.is_empty() || self.queue_paused)
    }

    pub fn step(&mut self, input: SessionInput, context: &mut Context<'_>) -> Step {
        let mut step = Step::default();
        match input {
            SessionInput::Opened(opening) => self.open(opening, &mut step, context),
            SessionInput::Command(Command::Send(prompt)) => self.send(prompt, &mut step, context),
            SessionInput::Command(Command::Abort { reason }) => self.abort(reason, &mut step, context),
            SessionInput::Command(Command::SetMode(mode)) => self.set_mode(mode, &mut step),
            SessionInput::Command(Command::SetModel { model, effort }) => {
                self.set_model(model, effort, &mut step);
            }
            SessionInput::Command(Command::SwitchModel(switch)) => {
                self.switch_model(*switch, None, &mut step);
            }
            SessionInput::Command(Command::AnswerPermission { request_id, answer }) => {
                self.permission_answered(&request_id, answer, &mut step, context);
            }
            SessionInput::Command(Command::AnswerQuestion { request_id, answer, was_freeform }) => {
                self.question_answered(&request_id, answer, was_freeform, &mut step, context);
            }
            SessionInput::Command(Command::AnswerClientCall { request_id, outcome }) => {
                self.client_answered(&request_id, *outcome, &mut step, context);
            }
            SessionInput::Command(Command::ReviewPlan { request_id, decision }) => {
                self.plan_reviewed(&request_id, decision, &mut step, context);
            }
            SessionInput::Command(Command::AnswerSwitch { request_id, answer }) => {
                self.switch_answered(&request_id, answer, &mut step, context);
            }
            SessionInput::Command(Command::SetLimits(limits)) => self.set_limits(limits, &mut step),
            SessionInput::Plan { call_id, content } => self.plan_read(&call_id, content, &mut step, context),
            SessionInput::Command(Command::Record(body)) => self.emit(&mut step, body),
            SessionInput::Command(Command::SetTools(tools)) => self.set_tools_offered(tools),
            SessionInput::Command(Command::Unqueue(which)) => self.unqueue(which, &mut step),
            SessionInput::Command(Command::ClearContext { prompt }) => self.clear_context(prompt, &mut step),
            SessionInput::Command(Command::EditQueue(edit)) => self.edit_queue(edit, &mut step, context),
            SessionInput::Command(Command::SendNow { id }) => self.send_now(&id, &mut step, context),
            SessionInput::Command(Command::Interrupt { reason, keep_queue }) => {
                self.interrupt(reason, keep_queue, &mut step, context);
            }
            SessionInput::Command(Command::Rejoined { continue_pending }) => {
                self.rejoined(continue_pending, &mut step, context);
            }
            SessionInput::Command(Command::Compact { instructions, trigger }) => {
                self.compact(instructions.as_deref(), trigger, &mut step, context);
            }
            SessionInput::Summary(call, event) => self.summarized(call, event, &mut step, context),
            SessionInput::Gathered(plan_and_todos) => self.gathered(plan_and_todos, &mut step, context),
            SessionInput::Unchanged(unchanged) => self.changes_known(unchanged, &mut step, context),
            SessionInput::HookDone { id, output } => self.hook_done(&id, output, &mut step, context),
            SessionInput::Command(Command::SelectAgent(name)) => self.select_agent(name, &mut step),
            SessionInput::Command(Command::Shutdown { error }) => self.shutdown(error, &mut step, context),
            SessionInput::Model(call, event) => self.model(call, event, &mut step, context),
            SessionInput::RetryDue(call) => self.retry_due(call, &mut step, context),
            SessionInput::Inspected(inspections) => self.inspected(inspections, &mut step, context),
            SessionInput::Progress(body) => self.progress(body, &mut step),
            SessionInput::ToolDone { call_id, outcome } => {
                self.tool_done(&call_id, outcome, &mut step, context);
            }
            SessionInput::Discovered(reminders) => self.discovered(reminders, &mut step, context),
            SessionInput::Background(notice) => self.background(notice, &mut step, context),
            SessionInput::AgentsSettled => self.agents_settled(&mut step),
        }
        step
    }

    /// Emits an event. All events pass here: the state is a fold over them, live as on resume.
    fn emit(&mut self, step: &mut Step, body: impl Into<Body>) {
        let mut body = body.into();
        self.mark(&mut body);
        self.state.apply(&body);
        step.events.push(body);
    }

    fn open(&mut self, opening: Opening, step: &mut Step, context: &mut Context<'_>) {
        let now = iso(context.now);
        self.just_in_time.opened = Some(context.now);
        let model = (!self.state.model.is_empty()).then(|| self.state.model.clone());
        let effort = self.state.effort.clone();
        let mode = self.state.mode;
        match opening {
            Opening::New { session_id, version, context: directory } => {
                let start = data::SessionStart {
                    session_id,
                    version: 1,
                    producer: "hangar".to_owned(),
                    copilot_version: version,
                    start_time: now,
                    selected_model: model,
                    reasoning_effort: effort,
                    context: Some(directory),
                    remote_steerable: Some(false),
                    already_in_use: Some(false),
                };
                self.emit(step, start);
                self.announce(step);
                if mode != Mode::Interactive {
                    self.emit(step, data::ModeChanged { previous_mode: Mode::Interactive, new_mode: mode });
                }
            }
            Opening::Agent => self.open_agent(step),
            Opening::Resumed { log_bytes, context: directory, silent, continue_pending } => {
                let resume = data::SessionResume {
                    resume_time: now,
                    event_count: self.state.end.0,
                    events_file_size_bytes: Some(log_bytes),
                    selected_model: model,
                    reasoning_effort: effort,
                    context: Some(directory),
                    session_was_active: Some(false),
                    continue_pending_work: continue_pending,
                };
                self.resumed = true;
                if !silent {
                    self.emit(step, resume);
                }
                self.announce(step);
                let kept = match continue_pending {
                    Some(true) => self.take_up_pending(context),
                    Some(false) | None => Vec::new(),
                };
                self.close_interrupted(&kept, step, context.entropy);
                self.close_killed_calls(step);
                self.ask_again(step);
                self.update_role_prompt();
            }
        }
    }

    fn announce(&mut self, step: &mut Step) {
        let skills = self.config.notices.skills.clone();
        self.emit(step, data::SkillsLoaded { skills });
        for warning in std::mem::take(&mut self.config.notices.warnings) {
            self.emit(step, data::SessionWarning::new("configuration", warning));
        }
        if !self.config.notices.disabled_tools.is_empty() {
            let message = format!("Disabled tools: {}", self.config.notices.disabled_tools.join(", "));
            self.emit(step, data::SessionInfo::new("configuration", message));
        }
    }

    /// Ends the calls that were running when the last process of this session ended.
    fn close_interrupted(&mut self, kept: &[String], step: &mut Step, entropy: &mut Entropy) {
        let open = self.state.conversation.open_calls().map(|(id, _)| id.to_owned());
        let open: Vec<String> = open.filter(|id| !kept.contains(id)).collect();
        let interaction_id = entropy.uuid();
        for call_id in &open {
            self.emit(
                step,
                data::ToolComplete {
                    tool_call_id: call_id.clone(),
                    model: Some(self.state.model.clone()),
                    interaction_id: Some(interaction_id.clone()),
                    success: false,
                    error: Some(data::ToolError {
                        message: INTERRUPTED.to_owned(),
                        code: Some("interrupted".to_owned()),
                    }),
                    ..Default::default()
                },
            );
        }
        if !open.is_empty() {
            let message = format!(
                "{} tool call(s) had no result when the session was resumed. What they were doing may be undone, half \
                 done or done; results that were complete are kept and nothing was run again.",
                open.len()
            );
            self.emit(step, data::SessionWarning::new("interrupted_tools", message));
        }
    }

    /// Takes the model calls that were under way when the last process was killed as what they could use at most: the provider
    /// may have charged them.
    fn close_killed_calls(&mut self, step: &mut Step) {
        for (call, bound) in self.state.totals.reserved.clone() {
            let usage = data::AssistantUsage { finish_reason: Some("cut".to_owned()), ..bound };
            self.emit(step, data::UsageRecord::from(usage));
            self.emit(step, data::Reservation { call, bound: None });
        }
    }

    /// The current mode. Plan mode and autopilot of the session hold for every prompt; otherwise it is the mode of the
    /// current prompt.
    pub(crate) fn mode(&self) -> Mode {
        match self.state.mode {
            Mode::Interactive => self.run.as_ref().and_then(|run| run.mode).unwrap_or(Mode::Interactive),
            own => own,
        }
    }

    fn set_mode(&mut self, mode: Mode, step: &mut Step) {
        if let Some(run) = &mut self.run {
            run.mode = None;
        }
        let previous_mode = self.state.mode;
        if previous_mode != mode {
            self.emit(step, data::ModeChanged { previous_mode, new_mode: mode });
        }
    }

    fn set_model(&mut self, model: String, effort: Option<String>, step: &mut Step) {
        if self.state.model == model && self.state.effort == effort {
            return;
        }
        let change = data::ModelChange {
            previous_model: Some(self.state.model.clone()),
            previous_reasoning_effort: self.state.effort.clone(),
            new_model: model,
            reasoning_effort: effort,
            ..Default::default()
        };
        self.emit(step, change);
    }

    fn shutdown(&mut self, error: Option<String>, step: &mut Step, context: &mut Context<'_>) {
        if self.run.is_some() {
            self.abort("user_initiated".to_owned(), step, context);
        }
        self.cancel_compaction(step);
        self.announce_end(error.as_deref(), step, context);
        let started = self.state.started.parse::<jiff::Timestamp>().unwrap_or(context.now);
        let totals = &self.state.totals;
        let shutdown = data::SessionShutdown {
            shutdown_type: if error.is_some() { "error" } else { "routine" }.to_owned(),
            error_reason: error,
            total_api_duration_ms: totals.api_ms,
            session_start_time: u64::try_from(started.as_millisecond()).unwrap_or(0),
            code_changes: totals.changes.clone(),
            model_metrics: totals.models.clone(),
            current_model: Some(self.state.model.clone()),
        };
        self.emit(step, shutdown);
    }
}
