//! The one task that drives one session. Other code sends it jobs; jobs and the
//! session's own happenings take turns, so nothing here needs a lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::agents::config::{AgentConfig, AgentSettings};
use hangar_agent::agents::{AgentDefinition, AgentSource, builtin};
use hangar_agent::driver::Driver;
use hangar_agent::log::{ListedFact, LogError};
use hangar_agent::model::ModelProvider;
use hangar_agent::prompt::{PromptEnvironment, SystemPrompt};
use hangar_agent::session::{
    AnswerableQuestions, ClientAbilities, Command, LiveSettings, Origin, Prompt, Session, SessionInput,
};
use hangar_agent::tool::{Tool, ToolSource};
use hangar_engine::commands::{CommandError, CommandOutcome, SlashCommand};
use hangar_engine::{Engine, EngineProgress, Mcp};
use hangar_mcp::{Interest, McpHost, ToolGuard};
use hangar_protocol::Body;
use hangar_protocol::data::{
    BackgroundTasksChanged, CapabilitiesChanged, ClientCommand, CommandsChanged, SkillsLoaded,
    UiCapabilities, schedule_source,
};
use hangar_sandbox::Sandbox;
use hangar_spec::{SessionSpec, TraceContext};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::audience::Audience;
use crate::client::ClientId;
use crate::client_tasks::ClientTasks;
use crate::commands::CommandQueue;
use crate::extensions::ProgramSandbox;
use crate::hosted::HostAbilities;
use crate::interests::Interests;
use crate::methods::canvas::{self, CanvasLinks};
use crate::methods::{self, AutoTier, Failure};
use crate::model_choices::QueuedModel;
use crate::opener::{OpenedSession, Recomposed, Recomposer, SessionSurroundings, Todos};
use crate::pending_permissions::PendingPermissions;
use crate::schedules::{Moment, ScheduledPrompt, Schedules};
use crate::system;

/// Longest time that a session without clients may continue its work.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(600);

pub(crate) type SessionJob = Box<dyn FnOnce(&mut SessionTask) + Send>;

pub(crate) struct SessionTask {
    pub(crate) engine: Engine,
    pub(crate) jobs: mpsc::Receiver<SessionJob>,
    pub(crate) spec: SessionSpec,
    pub(crate) recomposer: Arc<dyn Recomposer>,
    audience: Arc<Audience>,
    builtin: Vec<Arc<dyn Tool>>,
    prompt_parts: PromptParts,
    /// Slash commands of clients, as they were last published.
    client_commands: Vec<ClientCommand>,
    todos: Arc<dyn Todos>,
    guard: ToolGuard,
    /// Makes the sandboxes of programs that join the session.
    pub(crate) confine: ProgramSandbox,
    /// Tools for extensions.
    management: Vec<Arc<dyn Tool>>,
    /// Questions that the program around the session answers, beside those that clients answer.
    pub(crate) host: HostAbilities,
    /// Idle time after which the session is closed.
    idle_timeout: Option<Duration>,
    /// Set when the session is to end, with the error if there is one.
    ending: Option<Option<String>>,
    /// Prompts of agents that clients replace, by name.
    agent_prompts: BTreeMap<String, String>,
    /// Tools of clients that may not have the name they have.
    pub(crate) clashes: Vec<String>,
    orphaned: Option<Instant>,
    /// Whether a client can show forms.
    elicitations: bool,
    pub(crate) commands: CommandQueue,
    /// Host context of MCP views, as the client describes it.
    pub(crate) host_context: serde_json::Map<String, serde_json::Value>,
    sandbox: Option<Sandbox>,
    /// Kinds of MCP questions that clients subscribed to.
    interests: Interests,
    /// Login that the client reported, instead of the token's own.
    pub(crate) credentials: Option<serde_json::Value>,
    pub(crate) models: ModelSelection,
    /// Questions about calls that are part of no turn.
    pub(crate) asked: PendingPermissions,
    /// Work that clients do elsewhere.
    pub(crate) client_tasks: ClientTasks,
    pub(crate) canvases: CanvasLinks,
    /// Prompts that the session sends itself.
    pub(crate) schedules: Schedules,
}

/// Parts of the system prompt.
struct PromptParts {
    environment: PromptEnvironment,
    instructions: String,
    /// Sections that the client has rewritten.
    transformed: BTreeMap<String, String>,
}

/// Models that the session changes to.
#[derive(Default)]
pub(crate) struct ModelSelection {
    /// Priority of automatic model selection.
    pub(crate) auto_tier: Option<AutoTier>,
    /// The model and the effort that the session had before it began to plan with others.
    pub(crate) plan_base: Option<(String, Option<String>)>,
    /// Models that were chosen and wait among the session's prompts, by the ids that they wait under.
    pub(crate) choices: Vec<(String, QueuedModel)>,
}

impl hangar_engine::FrontEndTask for SessionTask {
    fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn run(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            self.drive().await;
            self.ending.take().flatten()
        })
    }
}

impl SessionTask {
    pub(crate) fn new(
        engine: Engine,
        surroundings: SessionSurroundings,
        jobs: mpsc::Receiver<SessionJob>,
        spec: SessionSpec,
        audience: Arc<Audience>,
        idle_timeout: Option<Duration>,
    ) -> Self {
        Self {
            engine,
            jobs,
            spec,
            recomposer: surroundings.recomposer,
            audience,
            builtin: surroundings.tools,
            prompt_parts: PromptParts {
                environment: surroundings.environment,
                instructions: surroundings.instructions,
                transformed: BTreeMap::new(),
            },
            client_commands: Vec::new(),
            todos: surroundings.todos,
            guard: surroundings.guard,
            confine: surroundings.confine,
            management: Vec::new(),
            sandbox: surroundings.sandbox,
            idle_timeout,
            host: HostAbilities::default(),
            ending: None,
            clashes: Vec::new(),
            agent_prompts: BTreeMap::new(),
            orphaned: None,
            elicitations: false,
            commands: CommandQueue::default(),
            host_context: serde_json::Map::new(),
            interests: Interests::default(),
            credentials: None,
            models: ModelSelection::default(),
            asked: PendingPermissions::default(),
            client_tasks: ClientTasks::default(),
            canvases: CanvasLinks::default(),
            schedules: Schedules::default(),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        self.engine.session()
    }

    /// Gives the session an input. A log that cannot be written ends the session.
    pub(crate) fn input(&mut self, input: SessionInput) {
        let result = self.engine.driver_mut().advance(input);
        self.survive(result);
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.input(SessionInput::Command(command));
    }

    pub(crate) fn record(&mut self, body: impl Into<Body>) {
        self.command(Command::Record(body.into()));
    }

    /// Has the driver do something. `None` when its log cannot be written, which ends the session.
    pub(crate) fn attempt<T>(
        &mut self,
        action: impl FnOnce(&mut Driver) -> Result<T, LogError>,
    ) -> Option<T> {
        match action(self.engine.driver_mut()) {
            Ok(done) => Some(done),
            Err(error) => {
                self.survive(Err(error));
                None
            }
        }
    }

    fn survive(&mut self, result: Result<(), LogError>) {
        if let Err(error) = result {
            tracing::error!(%error, "a session cannot go on");
            self.audience.farewell(&error);
            self.ending = Some(Some(error.to_string()));
        }
    }

    /// Publishes the first events of the session, once.
    pub(crate) fn begin(&mut self) {
        let begun = self.engine.open();
        self.survive(begun);
    }

    /// Gives the session a prompt.
    pub(crate) fn deliver(&mut self, prompt: Prompt) {
        let delivered = self.engine.deliver(prompt);
        self.survive(delivered);
    }

    /// Gets a prompt ready that is to wait.
    pub(crate) fn prepare(&mut self, prompt: &mut Prompt) {
        let prepared = self.engine.prepare(prompt);
        self.survive(prepared);
    }

    /// Carries a slash command out.
    pub(crate) fn carry_out(&mut self, command: SlashCommand) -> Result<CommandOutcome, Failure> {
        self.engine.carry_out(command).map_err(|error| {
            let failure = Failure::new(error.to_string());
            if let CommandError::Log(error) = error {
                self.survive(Err(error));
            }
            failure
        })
    }

    /// Replaces the parts of the session by recomposed ones.
    pub(crate) fn replace(&mut self, opened: OpenedSession) {
        let OpenedSession { parts, surroundings } = opened;
        self.engine.replace(parts);
        self.recomposer = surroundings.recomposer;
        self.builtin = surroundings.tools;
        self.todos = surroundings.todos;
        self.guard = surroundings.guard;
        self.confine = surroundings.confine;
        self.sandbox = surroundings.sandbox;
        self.prompt_parts.environment = surroundings.environment;
        self.prompt_parts.instructions = surroundings.instructions;
        self.refresh();
        self.renew_system();
        self.begin();
        // A rewind takes back what was said, not what was scheduled meanwhile.
        self.log_schedules();
    }

    /// Has another model answer, the agent and the MCP servers that ask it.
    pub(crate) fn set_provider(&mut self, provider: Arc<dyn ModelProvider>, model: &str) {
        self.engine.set_provider(provider, model);
    }

    /// Replaces parts by recomposed ones; `model` is the model of the new provider.
    pub(crate) fn take_parts(&mut self, parts: Recomposed, model: &str) {
        if let Some(instructions) = parts.instructions {
            self.prompt_parts.instructions = instructions;
        }
        if let Some(servers) = parts.servers {
            self.set_mcp(servers);
        }
        if let Some(provider) = parts.provider {
            self.set_provider(provider, model);
        }
    }

    pub(crate) fn mcp(&self) -> Option<&McpHost> {
        self.engine.mcp()
    }

    /// Replaces the MCP servers.
    pub(crate) fn set_mcp(&mut self, mcp: Option<Mcp>) {
        self.engine.set_mcp(mcp);
    }

    /// False where there are too many already.
    pub(crate) fn add_interest(&mut self, handle: String, client: ClientId, interest: Interest) -> bool {
        let added = self.interests.add(handle, client, interest);
        self.settle_interests();
        added
    }

    pub(crate) fn release_interest(&mut self, handle: &str) {
        self.interests.release(handle);
        self.settle_interests();
    }

    fn settle_interests(&self) {
        let Some(mcp) = self.mcp() else { return };
        mcp.set_interest(Interest::Elicitation, self.elicitations);
        for interest in [Interest::OAuth, Interest::Sampling] {
            mcp.set_interest(interest, self.interests.contain(interest));
        }
    }

    /// Takes what has happened to the MCP servers.
    pub(crate) fn catch_up(&mut self) {
        let caught_up = self.engine.catch_up();
        self.survive(caught_up);
    }

    /// Whether the session is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    pub(crate) fn end(&mut self) {
        self.ending.get_or_insert(None);
    }

    /// Ends the session with an error.
    pub(crate) fn end_for(&mut self, reason: String) {
        self.ending.get_or_insert(Some(reason));
    }

    /// Sets the name of a session and publishes it.
    pub(crate) fn set_name(&mut self, name: ListedFact, title: String) -> Result<(), LogError> {
        self.engine.rename(name, title)
    }

    /// Sets the name without an event.
    pub(crate) fn keep_name(&mut self, name: ListedFact) -> Result<(), LogError> {
        self.engine.keep_name(name)
    }

    /// Shell tool of the session, unless it is disabled.
    pub(crate) fn shell(&self) -> Option<Arc<dyn Tool>> {
        self.builtin.iter().find(|tool| tool.spec().name == "bash").cloned()
    }

    /// A tool that the model is shown.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.engine.driver().tools().find(name).cloned()
    }

    /// The built-in tools, shown or not.
    pub(crate) fn builtin(&self) -> &[Arc<dyn Tool>] {
        &self.builtin
    }

    pub(crate) fn todos(&self) -> Arc<dyn Todos> {
        Arc::clone(&self.todos)
    }

    /// Sandbox of the session's commands, and of calls that inspect their results.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Working directory of the session.
    pub(crate) fn cwd(&self) -> String {
        self.prompt_parts.environment.cwd.clone()
    }

    /// The prompt before the client's changes to it.
    pub(crate) fn prompt(&self) -> SystemPrompt {
        let names = self.session().config().tools.iter().map(|tool| tool.name.clone()).collect();
        let environment = PromptEnvironment { tools: names, ..self.prompt_parts.environment.clone() };
        SystemPrompt::new(&environment, &self.prompt_parts.instructions)
    }

    /// Writes the system prompt, with the sections that the client has rewritten.
    pub(crate) fn settle_system(&mut self, transformed: BTreeMap<String, String>) {
        self.prompt_parts.transformed = transformed;
        self.renew_system();
    }

    /// Writes the system prompt after one of its parts has changed.
    pub(crate) fn renew_system(&mut self) {
        let text = system::render(
            self.spec.instructions.system.as_ref(),
            self.prompt(),
            &self.prompt_parts.transformed,
        );
        self.engine.driver_mut().session_mut().set_system(text.into());
    }

    /// Applies the changed settings, as far as a live session can.
    pub(crate) fn apply_options(&mut self) {
        let spec = &self.spec;
        let (streaming, asks) =
            (spec.conversation.streaming, spec.conversation.ask_user_disabled.map(|disabled| !disabled));
        let discovers = match (spec.instructions.skip, spec.instructions.on_demand) {
            (Some(true), _) => Some(false),
            (skips, discovers) => discovers.or(skips.map(|_| true)),
        };
        self.engine.driver_mut().session_mut().change_settings(LiveSettings { streaming, asks, discovers });
        self.refresh();
        self.renew_system();
    }

    /// Gives the model tools for extensions.
    pub(crate) fn set_management(&mut self, tools: Vec<Arc<dyn Tool>>) {
        self.management = tools;
        self.refresh();
    }

    /// Takes over tools that a client has replaced on purpose: those that are gone leave the requests too.
    pub(crate) fn replace_tools(&mut self) {
        self.refresh();
        self.engine.driver_mut().session_mut().forget_withdrawn_tools();
    }

    /// Takes over what the clients of the session bring and can answer now.
    pub(crate) fn refresh(&mut self) {
        let filter = self.spec.tools.filter();
        let HostAbilities { mut permissions, mut questions, plans, mut elicitations } = self.host;
        let mut hooks = false;
        let mut commands: Vec<ClientCommand> = Vec::new();
        let mut answerable = AnswerableQuestions { plans, switches: self.audience.switches_directly() };
        let mut external: Vec<Arc<dyn Tool>> = Vec::new();
        let mut overriding: Vec<String> = Vec::new();
        self.clashes.clear();
        for member in self.audience.members().iter() {
            permissions |= member.permissions;
            questions |= member.questions;
            hooks |= member.hooks;
            elicitations |= member.elicitations;
            for command in &member.commands {
                if !commands.iter().any(|known| known.name == command.name) {
                    commands.push(command.clone());
                }
            }
            answerable.plans |= member.plans;
            answerable.switches |= member.switches;
            for tool in &member.tools {
                let name = tool.tool.spec().name.clone();
                let builtin = self.builtin.iter().any(|builtin| builtin.spec().name == name);
                if builtin && !tool.overrides_builtin {
                    self.clashes.push(name);
                    continue;
                }
                if builtin {
                    overriding.push(name.clone());
                }
                let known = external.iter().any(|known| known.spec().name == name);
                if !known && filter.admits(ToolSource::Custom, &name) {
                    external.push((self.guard)(Arc::clone(&tool.tool)));
                }
            }
        }
        let kept = self.builtin.iter().chain(&self.management).filter(|tool| {
            let name = &tool.spec().name;
            filter.admits(ToolSource::Builtin, name) && !overriding.contains(name)
        });
        let tools: Vec<Arc<dyn Tool>> = kept.cloned().chain(external).collect();
        if let Some(mcp) = self.mcp() {
            mcp.set_hooked(hooks);
        }
        let session = self.engine.driver_mut().session_mut();
        session.set_own_tools(filter.clone());
        session.set_clients(ClientAbilities { permissions, questions, hooks });
        session.set_answerable_questions(answerable);
        let offered = self.engine.set_tools(tools, filter, self.spec.agents.hidden_tools());
        self.survive(offered);
        self.settle_agent_config();
        if commands != self.client_commands {
            self.client_commands.clone_from(&commands);
            if self.engine.has_begun() {
                self.record(CommandsChanged { commands });
            }
        }
        let before = std::mem::replace(&mut self.elicitations, elicitations);
        self.settle_interests();
        if before != elicitations && self.engine.has_begun() {
            self.record(CapabilitiesChanged { ui: UiCapabilities { elicitation: elicitations } });
        }
    }

    /// Removes a client that has left, with its tools, commands and tasks.
    pub(crate) fn client_left(&mut self, now: Timestamp) {
        let audience = Arc::clone(&self.audience);
        let is_here = |client| audience.member(client).is_some();
        self.interests.keep_of(is_here);
        self.refresh();
        canvas::withdraw(self, is_here);
        if self.client_tasks.orphan(is_here, now) {
            self.record(BackgroundTasksChanged {});
        }
    }

    /// Gives an agent another prompt than its description has.
    pub(crate) fn set_agent_prompt(&mut self, agent: String, prompt: String) {
        self.agent_prompts.insert(agent, prompt);
        self.settle_agent_config();
    }

    /// Sets models, efforts and limits of agents that are started from now on.
    pub(crate) fn set_agent_settings(&mut self, client_settings: AgentSettings) {
        let Some(agent_config) = self.session().config().agent_config.as_deref() else { return };
        let agent_config = AgentConfig { client_settings, ..agent_config.clone() };
        self.engine.driver_mut().session_mut().set_agent_config(Some(Arc::new(agent_config)));
    }

    /// Takes over the agents that the specification names now. Those of files stay.
    fn settle_agent_config(&mut self) {
        let Some(agent_config) = self.session().config().agent_config.as_deref() else { return };
        let excluded = self.spec.agents.excluded.as_deref().unwrap_or_default();
        let builtin = builtin::definitions().into_iter().filter(|agent| !excluded.contains(&agent.name));
        let files =
            agent_config.definitions.iter().filter(|agent| matches!(agent.source, AgentSource::File(_)));
        let skills = Arc::clone(self.engine.skills());
        let brief = |mut agent: AgentDefinition| {
            skills.brief(&mut agent);
            if let Some(prompt) = self.agent_prompts.get(&agent.name) {
                agent.prompt.clone_from(prompt);
            }
            agent
        };
        let definitions =
            builtin.chain(files.cloned()).chain(self.spec.agents.definitions()).map(brief).collect();
        let agent_config = AgentConfig {
            definitions,
            instructions: self.prompt_parts.instructions.clone(),
            ..agent_config.clone()
        };
        self.engine.driver_mut().session_mut().set_agent_config(Some(Arc::new(agent_config)));
    }

    pub(crate) fn client_commands(&self) -> &[ClientCommand] {
        &self.client_commands
    }

    /// Shows the model the current skills, and publishes them.
    pub(crate) fn renew_skills(&mut self) {
        self.builtin.retain(|tool| tool.spec().name != "skill");
        let skills = Arc::clone(self.engine.skills());
        if self.spec.tools.names_skills() || !skills.is_empty() {
            self.builtin.push(skills.tool());
        }
        self.refresh();
        let skills = skills.list();
        self.record(SkillsLoaded { skills });
    }

    /// Goes on with the schedules of the session's log.
    pub(crate) fn restore_schedules(&mut self, time: Timestamp) {
        let now = Moment { instant: Instant::now(), time };
        self.schedules = Schedules::restored(&self.session().state().scheduled, now);
    }

    /// Sends the prompts that are due.
    fn send_scheduled(&mut self) {
        let due = self.schedules.take_due(Instant::now()).into_iter();
        let prompts = due.map(|(id, ScheduledPrompt { prompt, shown })| Prompt {
            shown,
            origin: Origin::Source(schedule_source(id)),
            message_id: Some(uuid::Uuid::new_v4().to_string()),
            ..Prompt::user(prompt)
        });
        methods::take_prompts(self, prompts.collect(), &TraceContext::default());
    }

    /// Ends the schedules of the log whose only prompt was taken and reached nobody, because a hook blocked it or somebody took
    /// it out of the queue: the next process would send it.
    fn settle_schedules(&mut self) {
        let is_done = self.session().is_idle() && self.session().queued().next().is_none();
        if is_done && self.engine.has_begun() && self.ending.is_none() {
            self.log_schedules();
        }
    }

    /// Has the log say which schedules there are.
    fn log_schedules(&mut self) {
        for correction in self.schedules.corrections(&self.session().state().scheduled) {
            self.record(correction);
        }
    }

    /// Drives the session until it is to end.
    async fn drive(&mut self) {
        while self.ending.is_none() {
            let orphaned = self.orphaned;
            let patience = async {
                match orphaned {
                    Some(since) => tokio::time::sleep_until(since + ORPHAN_PATIENCE).await,
                    None => std::future::pending().await,
                }
            };
            // Any activity restarts the timer.
            let is_idle = self.session().is_idle();
            let rest =
                self.idle_timeout.filter(|_| is_idle && self.engine.has_begun() && self.schedules.is_empty());
            let rested = async {
                match rest {
                    Some(rest) => tokio::time::sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            // A prompt that is due while the agent works waits until it is done, so that they cannot pile up.
            let due = self.schedules.next_due().filter(|_| is_idle);
            let scheduled = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                job = self.jobs.recv() => match job {
                    Some(job) => job(self),
                    None => self.end(),
                },
                progress = self.engine.next() => match progress {
                    Ok(EngineProgress::Moved) => {}
                    // Callers that wait for the end of the work are woken by news.
                    Ok(EngineProgress::Ended(_)) => self.audience.wake(),
                    Ok(EngineProgress::Closed) => self.end(),
                    Err(error) => self.survive(Err(error)),
                },
                () = patience => self.end(),
                () = rested => self.end(),
                () = scheduled => self.send_scheduled(),
            }
            self.settle_choices();
            self.settle_schedules();
            if !self.audience.is_empty() {
                self.orphaned = None;
            } else if self.engine.driver().is_idle() {
                self.end();
            } else {
                self.orphaned.get_or_insert_with(Instant::now);
            }
        }
    }
}
