//! One session and everything that it runs on, with one owner: the front end's task that embeds it.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use hangar_agent::agents::toolset::AgentToolProvider;
use hangar_agent::driver::Driver;
use hangar_agent::log::{ListedFact, LogError};
use hangar_agent::model::ModelProvider;
use hangar_agent::permissions::Policy;
use hangar_agent::session::{Command, Opening, PendingPermission, Prompt, Session, SessionInput};
use hangar_agent::tool::{InvokedSkill, Tool, ToolFilter, ToolSource, Toolset};
use hangar_custom::skills::Skills;
use hangar_mcp::{McpHost, News};
use hangar_protocol::Body;
use hangar_protocol::data::{
    ContextChanged, SessionError, SessionInfo, TitleChanged, ToolsUpdated, WorkingDirectory,
};
use hangar_store::SessionName;
use tokio::time::Instant;

use crate::commands::{CommandRefusal, CommandReply};
use crate::parts::{
    Background, BackgroundWork, EngineParts, Mcp, Naming, Options, ServerStart, SessionComposer,
};
use crate::servers::{self, Servers};
use crate::title;
use crate::wait::{Activity, Wait};

/// The type of events that carry the answer of a slash command, and of those that say why there is none.
const COMMAND: &str = "command";
/// The tool by which the model reads skills.
const SKILL_TOOL: &str = "skill";

pub struct Engine {
    pub(crate) driver: Driver,
    pub(crate) options: Options,
    pub(crate) composer: Arc<dyn SessionComposer>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) sandboxed: bool,
    directory: PathBuf,
    background: Arc<dyn Background>,
    /// The first inputs, until they were taken.
    opening: Option<Vec<SessionInput>>,
    /// New working directory, until it is recorded.
    moved: Option<WorkingDirectory>,
    servers: Option<Servers>,
    offer: McpOffer,
    /// A fact for the model that is being found out.
    fact: Option<BoxFuture<'static, Option<String>>>,
    /// The MCP servers are starting, and the fact is being found out.
    starting: Option<BoxFuture<'static, Option<String>>>,
    /// Prompts that wait for both.
    held: Vec<Prompt>,
    wait: Wait,
    /// Whether a requested summary is pending.
    compacting: bool,
    /// Answers of slash commands that are on their way.
    replies: FuturesUnordered<BoxFuture<'static, Result<CommandReply, CommandRefusal>>>,
    /// Work that ended and was not reported yet.
    ended: VecDeque<SubmissionEnd>,
    /// Permissions that the front end knows to be asked for.
    asked: HashSet<String>,
    /// A better title that is being made.
    title: Option<BoxFuture<'static, Option<String>>>,
}

/// Tools that the model is shown beside the session's own.
struct McpOffer {
    /// Tools that are not of MCP servers; they come first.
    others: Vec<Arc<dyn Tool>>,
    filter: ToolFilter,
    /// Tools that sub-agents have and the main agent is not shown.
    hidden: Vec<String>,
}

/// Result of [`Engine::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineProgress {
    /// The session made progress: it may have new questions or a new state.
    Moved,
    /// A submission has ended.
    Ended(SubmissionEnd),
    /// The session is closed.
    Closed,
}

/// End of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionEnd {
    /// The session is idle, and so is its background, or that was waited for long enough.
    Idle,
    /// A slash command was carried out; an event has its answer.
    Replied,
    /// A slash command was not carried out; an event says why.
    Refused,
}

impl Engine {
    pub fn new(parts: EngineParts, options: Options, composer: Arc<dyn SessionComposer>) -> Self {
        let others = parts.driver.tools().iter().cloned().collect();
        let mut engine = Self {
            driver: parts.driver,
            wait: Wait::new(options.task_wait),
            options,
            composer,
            skills: parts.skills,
            sandboxed: parts.sandboxed,
            directory: parts.directory,
            background: parts.background,
            opening: Some(parts.opening),
            moved: None,
            servers: parts.mcp.map(Servers::new),
            offer: McpOffer { others, filter: parts.filter, hidden: Vec::new() },
            fact: parts.fact,
            starting: None,
            held: Vec::new(),
            compacting: false,
            replies: FuturesUnordered::new(),
            ended: VecDeque::new(),
            asked: HashSet::new(),
            title: None,
        };
        engine.share_provider();
        engine
    }

    /// Has the MCP servers ask the model that the session asks, within the same budget.
    fn share_provider(&mut self) {
        if let Some(servers) = &self.servers {
            let model = self.driver.session().state().model.clone();
            servers.host.set_model(self.driver.provider(), model);
        }
    }

    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    pub fn driver_mut(&mut self) -> &mut Driver {
        &mut self.driver
    }

    pub fn session(&self) -> &Session {
        self.driver.session()
    }

    pub fn policy_mut(&mut self) -> &mut Policy {
        self.driver.session_mut().policy_mut()
    }

    /// Working directory of the session.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn skills(&self) -> &Arc<Skills> {
        &self.skills
    }

    pub fn mcp(&self) -> Option<&McpHost> {
        self.servers.as_ref().map(|servers| &servers.host)
    }

    pub fn command(&mut self, command: Command) -> Result<(), LogError> {
        self.driver.advance(SessionInput::Command(command))
    }

    pub fn record(&mut self, body: impl Into<Body>) -> Result<(), LogError> {
        self.command(Command::Record(body.into()))
    }

    /// Whether the session has had its first event since it was opened.
    pub fn has_begun(&self) -> bool {
        self.opening.is_none()
    }

    /// Starts what is to run before the first event, and takes the first inputs.
    pub async fn begin(&mut self) -> Result<(), LogError> {
        if self.options.servers == ServerStart::BeforeOpening {
            let fact = found(self.fact.take());
            let fact = match &mut self.servers {
                Some(servers) => {
                    let (fact, started) = tokio::join!(fact, servers.start(&mut self.driver));
                    started?;
                    self.offer_tools()?;
                    fact
                }
                None => fact.await,
            };
            self.take_fact(fact);
        }
        self.open()
    }

    /// Takes the first inputs, once.
    pub fn open(&mut self) -> Result<(), LogError> {
        for input in self.opening.take().into_iter().flatten() {
            self.driver.advance(input)?;
        }
        if let Some(directory) = self.moved.take() {
            self.record(ContextChanged {
                directory,
                repository_host: None,
                host_type: None,
                base_commit: None,
                head_commit: None,
            })?;
        }
        // A prompt follows at once where servers were started for it.
        if self.options.servers == ServerStart::WithPrompt {
            self.rest();
        }
        Ok(())
    }

    /// Lets another process take the session over, if nothing happens in it.
    pub fn rest(&mut self) {
        if self.session().is_idle() {
            self.driver.rest();
        }
    }

    /// Submits typed text: a slash command, or a prompt.
    pub fn submit(&mut self, prompt: Prompt) -> Result<(), LogError> {
        // An earlier stop does not affect this.
        self.ended.clear();
        self.wait.forget();
        match crate::commands::parse(&prompt.text) {
            Some(command) => self.execute(command),
            None => self.send(prompt),
        }
    }

    /// Takes a prompt that is no slash command. It waits for MCP servers that start with it, or are starting.
    pub fn send(&mut self, prompt: Prompt) -> Result<(), LogError> {
        if self.options.servers == ServerStart::WithPrompt || self.fact.is_some() {
            self.start_servers();
        }
        if self.starting.is_none() {
            return self.deliver(prompt);
        }
        self.wait.begin();
        self.held.push(prompt);
        Ok(())
    }

    /// Has the MCP servers start that have not, if there are any. Prompts wait for them.
    pub(crate) fn start_servers(&mut self) {
        if self.starting.is_some() {
            return;
        }
        let host = self.servers.as_ref().map(|servers| servers.host.clone());
        let fact = self.fact.take();
        if host.is_none() && fact.is_none() {
            return;
        }
        self.starting = Some(Box::pin(async move {
            let ready = async {
                if let Some(host) = host {
                    host.ready().await;
                }
            };
            tokio::join!(found(fact), ready).0
        }));
    }

    /// Gives the session a prompt now, with the skill that it calls.
    pub fn deliver(&mut self, mut prompt: Prompt) -> Result<(), LogError> {
        self.wait.begin();
        self.prepare(&mut prompt)?;
        self.command(Command::Send(prompt))
    }

    /// Names the session after a prompt, and adds the skill to it that it calls.
    pub fn prepare(&mut self, prompt: &mut Prompt) -> Result<(), LogError> {
        self.name_after(prompt.as_shown().to_owned())?;
        let called = self.skills.called_by(&prompt.text).map(InvokedSkill::into_preface);
        prompt.preface.extend(called.unwrap_or_default());
        Ok(())
    }

    /// Aborts the current work.
    pub fn abort(&mut self, reason: &str) -> Result<(), LogError> {
        let commanded = self.compacting || !self.replies.is_empty() || !self.ended.is_empty();
        self.compacting = false;
        self.held.clear();
        self.replies.clear();
        self.ended.clear();
        if commanded {
            self.ended.push_back(SubmissionEnd::Refused);
        }
        self.wait.stop();
        match self.driver.is_idle() {
            true => Ok(()),
            false => self.command(Command::Abort { reason: reason.to_owned() }),
        }
    }

    /// Whether no submission is in progress.
    pub fn is_settled(&self) -> bool {
        self.wait.is_resting() && self.held.is_empty() && !self.compacting && self.replies.is_empty()
    }

    /// Commands that run on, and what can be done with them.
    pub fn background(&self) -> &dyn Background {
        &*self.background
    }

    /// Whether the session is idle and waits only for its background work.
    pub fn waits_for_background(&self) -> bool {
        self.session().is_idle() && self.wait.deadline().is_some()
    }

    /// Waits for the next thing to happen and takes it. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<EngineProgress, LogError> {
        if let Some(ended) = self.settle()? {
            return Ok(EngineProgress::Ended(ended));
        }
        let deadline = self.wait.deadline();
        tokio::select! {
            biased;
            news = next_news(&mut self.servers) => self.take_news(news)?,
            fact = arrival(&mut self.starting) => {
                self.take_fact(fact);
                self.servers_arrived()?;
            }
            title = arrival(&mut self.title) => self.take_title(title)?,
            Some(reply) = self.replies.next(), if !self.replies.is_empty() => self.answer(reply)?,
            going = self.driver.turn() => if !going? {
                return Ok(EngineProgress::Closed);
            },
            () = until(deadline) => {}
        }
        Ok(self.settle()?.map_or(EngineProgress::Moved, EngineProgress::Ended))
    }

    /// Settles the submission that has ended by now, if any.
    fn settle(&mut self) -> Result<Option<SubmissionEnd>, LogError> {
        if self.compacting && !self.session().is_compacting() {
            self.compacting = false;
            let summary = crate::commands::summary(self.driver.take_compaction());
            self.answer(summary)?;
        }
        if let Some(ended) = self.ended.pop_front() {
            return Ok(Some(ended));
        }
        if !self.held.is_empty() || self.compacting {
            return Ok(None);
        }
        let idle = self.session().is_idle();
        let commands = self.options.waits_for == BackgroundWork::All && self.background.is_running();
        let background = idle && (commands || !self.driver.is_idle());
        Ok(self.wait.has_ended(Activity { idle, background }, Instant::now()).then_some(SubmissionEnd::Idle))
    }

    /// Publishes the reply of a slash command.
    pub(crate) fn answer(&mut self, reply: Result<CommandReply, CommandRefusal>) -> Result<(), LogError> {
        match reply {
            Ok(reply) => {
                self.ended.push_back(SubmissionEnd::Replied);
                match reply.into_text() {
                    Some(text) => {
                        self.record(SessionInfo { transient: true, ..SessionInfo::new(COMMAND, text) })
                    }
                    None => Ok(()),
                }
            }
            Err(CommandRefusal(message)) => {
                self.ended.push_back(SubmissionEnd::Refused);
                self.record(SessionError {
                    error_type: COMMAND.to_owned(),
                    message,
                    transient: true,
                    ..SessionError::default()
                })
            }
        }
    }

    /// Carries out a slash command that answers later.
    pub fn reply_later(&mut self, reply: BoxFuture<'static, Result<CommandReply, CommandRefusal>>) {
        self.replies.push(reply);
    }

    pub(crate) fn compact(&mut self, instructions: Option<String>) -> Result<(), LogError> {
        use hangar_protocol::data::CompactionTrigger::Manual;
        self.driver.take_compaction();
        self.compacting = true;
        self.command(Command::Compact { instructions, trigger: Some(Manual) })
    }

    /// Questions about permissions that came up since the last time, of the main agent and of its sub-agents.
    pub fn new_questions(&mut self) -> Vec<PendingPermission> {
        let pending = self.driver.pending_permissions();
        self.asked.retain(|known| pending.iter().any(|asked| asked.request_id == *known));
        pending.into_iter().filter(|asked| self.asked.insert(asked.request_id.clone())).collect()
    }

    /// Whether questions are pending.
    pub fn has_questions(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Names a session that has no name after a prompt.
    fn name_after(&mut self, prompt: String) -> Result<(), LogError> {
        let Some(name) = SessionName::from_prompt(&prompt) else { return Ok(()) };
        match std::mem::replace(&mut self.options.naming, Naming::Named) {
            Naming::Named => return Ok(()),
            Naming::Quiet => {}
            Naming::Announced => self.record(TitleChanged { title: name.as_str().to_owned() })?,
            Naming::Titled => {
                self.record(TitleChanged { title: name.as_str().to_owned() })?;
                self.make_title(&prompt);
            }
        }
        // A list without the name is a poorer list, not a failure.
        let _ = self.driver.note(ListedFact::FirstPrompt(prompt));
        Ok(())
    }

    /// Has the model for titles make one, if there is such a model.
    fn make_title(&mut self, prompt: &str) {
        let session_id = self.session().state().session_id.clone();
        self.title = self
            .driver
            .title_model()
            .map(|(provider, model)| title::title(provider, model, session_id, prompt.to_owned()).boxed());
    }

    /// Takes a title that was made. A name that somebody gave meanwhile stays.
    fn take_title(&mut self, title: Option<String>) -> Result<(), LogError> {
        self.title = None;
        let Some(title) = title else { return Ok(()) };
        let _ = self.driver.note(ListedFact::DerivedName(title.clone()));
        self.record(TitleChanged { title })?;
        self.rest();
        Ok(())
    }

    /// Renames the session and publishes the name.
    pub fn rename(&mut self, fact: ListedFact, title: String) -> Result<(), LogError> {
        self.keep_name(fact)?;
        self.record(TitleChanged { title })
    }

    /// The same without an event.
    pub fn keep_name(&mut self, fact: ListedFact) -> Result<(), LogError> {
        self.driver.note(fact)?;
        self.title = None;
        self.options.naming = Naming::Named;
        Ok(())
    }

    /// Has another model answer, the agent and the MCP servers that ask it.
    pub fn set_provider(&mut self, provider: Arc<dyn ModelProvider>, model: &str) {
        self.driver.set_provider(provider);
        if let Some(servers) = &self.servers {
            servers.host.set_model(self.driver.provider(), model.to_owned());
        }
    }

    /// Replaces the MCP servers. Their tools are offered with the next change of the tools.
    pub fn set_mcp(&mut self, mcp: Option<Mcp>) {
        let before = std::mem::replace(&mut self.servers, mcp.map(Servers::new));
        self.starting = None;
        self.share_provider();
        let host = self.mcp().cloned();
        self.driver.set_tool_provider(host.map(|host| Arc::new(host) as Arc<dyn AgentToolProvider>));
        if let Some(before) = before {
            tokio::spawn(FutureExt::boxed(async move { before.host.shutdown().await }));
        }
    }

    /// Offers the model these tools, and those of MCP servers that the filter admits.
    pub fn set_tools(
        &mut self,
        others: Vec<Arc<dyn Tool>>,
        filter: ToolFilter,
        hidden: &[String],
    ) -> Result<(), LogError> {
        self.offer = McpOffer { others, filter, hidden: hidden.to_vec() };
        self.offer_tools()
    }

    fn offer_tools(&mut self) -> Result<(), LogError> {
        let mut tools = self.offer.others.clone();
        let mut deferrable = BTreeSet::new();
        if let Some(servers) = &mut self.servers {
            servers.generation = Some(servers.host.generation());
            self.driver.session_mut().set_mcp_servers(servers.host.summaries());
            for tool in servers.host.tools() {
                let name = &tool.spec().name;
                let taken = tools.iter().any(|known| known.spec().name == *name);
                if !taken && self.offer.filter.admits(ToolSource::Mcp, name) {
                    deferrable.insert(name.clone());
                    tools.push(tool);
                }
            }
        }
        self.driver.session_mut().set_deferrable(deferrable);
        let tools = Toolset::new(tools);
        let specs = |tools: &Toolset| tools.iter().map(|tool| Arc::clone(tool.spec())).collect::<Vec<_>>();
        let changed = self.options.announces_tools && specs(&tools) != specs(self.driver.tools());
        self.driver.set_tools(tools, &self.offer.hidden)?;
        if changed && self.has_begun() {
            let model = self.session().state().model.clone();
            self.record(ToolsUpdated { model })?;
        }
        Ok(())
    }

    /// Offers the skill tool with the current skills. A session whose tools were chosen without it stays without.
    pub(crate) fn offer_skills(&mut self) -> Result<(), LogError> {
        let is_it = |tool: &Arc<dyn Tool>| tool.spec().name == SKILL_TOOL;
        let before = self.offer.others.iter().position(is_it);
        let wanted = before.is_some() || self.offer.filter.admits(ToolSource::Builtin, SKILL_TOOL);
        self.offer.others.retain(|tool| !is_it(tool));
        if wanted && !self.skills.is_empty() {
            self.offer.others.push(self.skills.tool());
        }
        self.offer_tools()
    }

    fn take_news(&mut self, news: News) -> Result<(), LogError> {
        let tools = matches!(news, News::Tools);
        servers::record(news, &mut self.driver)?;
        if tools { self.refresh_mcp() } else { Ok(()) }
    }

    /// Takes what has happened to the MCP servers, and offers the tools that are there now.
    pub fn catch_up(&mut self) -> Result<(), LogError> {
        if let Some(servers) = &mut self.servers {
            servers.drain(&mut self.driver)?;
        }
        self.refresh_mcp()
    }

    fn refresh_mcp(&mut self) -> Result<(), LogError> {
        let Some(servers) = &self.servers else { return Ok(()) };
        if servers.generation != Some(servers.host.generation()) {
            return self.offer_tools();
        }
        self.driver.session_mut().set_mcp_servers(servers.host.summaries());
        Ok(())
    }

    /// The fact for the model that takes a moment to find out, for front ends that deliver prompts themselves.
    pub fn pending_fact(&mut self) -> Option<BoxFuture<'static, Option<String>>> {
        self.fact.take()
    }

    /// Tells the model a fact with the next prompt.
    pub fn take_fact(&mut self, fact: Option<String>) {
        if let Some(fact) = fact {
            self.driver.session_mut().add_fact(fact);
        }
    }

    fn servers_arrived(&mut self) -> Result<(), LogError> {
        self.starting = None;
        self.catch_up()?;
        std::mem::take(&mut self.held).into_iter().try_for_each(|prompt| self.deliver(prompt))
    }

    /// Replaces the parts of the session by recomposed ones. Current rules, approvals and queued prompts stay.
    pub fn replace(&mut self, parts: EngineParts) {
        let policy = self.session().config().policy.clone();
        let config = self.session().config();
        let clients = config.clients;
        let background = std::mem::replace(&mut self.background, parts.background);
        tokio::spawn(FutureExt::boxed(background.shutdown()));
        let mut before = std::mem::replace(&mut self.driver, parts.driver);
        let session = self.driver.session_mut();
        session.take_queue(before.session_mut());
        session.set_clients(clients);
        let confinement = session.config().policy.confinement.clone();
        let roots = std::mem::take(&mut session.policy_mut().roots);
        *session.policy_mut() = Policy { roots, confinement, ..policy };
        drop(before);
        self.skills = parts.skills;
        self.sandboxed = parts.sandboxed;
        if parts.directory != self.directory {
            self.moved = parts.opening.iter().find_map(|input| match input {
                SessionInput::Opened(Opening::Resumed { context, .. }) => Some(context.clone()),
                _ => None,
            });
        }
        self.directory = parts.directory;
        self.fact = parts.fact;
        self.set_mcp(parts.mcp);
        self.offer = McpOffer {
            others: self.driver.tools().iter().cloned().collect(),
            filter: parts.filter,
            hidden: Vec::new(),
        };
        self.opening = Some(parts.opening);
    }

    /// Ends the current work after a panic, and records the panic. The session is closed next.
    pub fn crashed(&mut self, message: &str) {
        self.held.clear();
        self.replies.clear();
        self.starting = None;
        // A log that has not begun stays empty.
        if self.has_begun()
            && let Err(error) = self.driver.crash(message)
        {
            tracing::error!(%error, "a crash could not be recorded");
        }
    }

    /// Ends the session: its last event, its MCP servers, its background work. `hurry` ends the wait for the first of
    /// these, for callers that cannot wait: everything that happened is logged by then.
    pub async fn close(
        &mut self,
        error: Option<String>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), LogError> {
        let closed = match self.has_begun() {
            // Nothing has happened in it.
            false => Ok(()),
            true => tokio::select! {
                closed = self.driver.close(error) => closed,
                () = hurry => Ok(()),
            },
        };
        if let Some(servers) = &self.servers {
            servers.host.shutdown().await;
        }
        self.background.shutdown().await;
        closed
    }
}

/// Next message of the servers; pending forever if there are none.
async fn next_news(servers: &mut Option<Servers>) -> News {
    match servers {
        Some(servers) => servers.next().await,
        None => std::future::pending().await,
    }
}

async fn found(fact: Option<BoxFuture<'static, Option<String>>>) -> Option<String> {
    match fact {
        Some(fact) => fact.await,
        None => None,
    }
}

/// Waits for something that is on its way; forever if nothing is.
async fn arrival(starting: &mut Option<BoxFuture<'static, Option<String>>>) -> Option<String> {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
