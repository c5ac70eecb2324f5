//! The one task that drives one session. Whoever wants something of the session gives the task a job; jobs, the
//! client's answers and the session's own happenings take turns, so nothing here needs a lock.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hangar_agent::driver::Driver;
use hangar_agent::log::{Fact, LogError};
use hangar_agent::session::{Command, Input, Prompt, Session};
use hangar_mcp::{News, Running};
use hangar_peer::Peer;
use hangar_protocol::Body;
use hangar_protocol::data::{CompactionTrigger, Mode, TitleChanged};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::rpc::{ErrorObject, Id, codes};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::agent::AgentConfig;
use crate::answers::{answer, error, internal};
use crate::commands::{self, AutopilotSwitch, SlashCommand, Switch};
use crate::content;
use crate::opener::{Background, Opened};
use crate::options;
use crate::permission;
use crate::schema::{ContentBlock, PromptAnswer, StopReason, Update, Usage};
use crate::updates::{Channel, LastCompaction};

/// What a client wants of a session. Requests carry the id to answer to.
pub(crate) enum Job {
    Prompt(Id, Vec<ContentBlock>),
    Cancel,
    SetMode(Id, String),
    SetConfigOption(Id, String, Value),
    SetModel(Id, String),
}

/// A prompt that waits for its answer.
struct Asked {
    id: Id,
    /// What it is that is waited for.
    until: Until,
}

enum Until {
    Idle,
    Compacted,
}

pub(crate) struct SessionTask {
    config: Arc<AgentConfig>,
    channel: Channel,
    driver: Driver,
    /// What the session begins with, until it has begun.
    opening: Vec<Input>,
    background: Box<dyn Background>,
    servers: Option<Running>,
    /// The servers are on their way, and the prompt that waits for their tools.
    starting: Option<BoxFuture<'static, ()>>,
    held: Option<Prompt>,
    compaction: LastCompaction,
    prompt: Option<Asked>,
    /// Whether the session has had a prompt since it was opened.
    prompted: bool,
    /// Permissions that the client was asked for, and its answers on their way.
    asked: HashSet<String>,
    answers: FuturesUnordered<BoxFuture<'static, (String, PermissionOutcome)>>,
    /// What had been used when the session was opened.
    used_before: Usage,
    /// The mode that the client knows of.
    known_mode: Mode,
    failed: Option<String>,
}

impl SessionTask {
    pub(crate) fn new(
        config: Arc<AgentConfig>,
        channel: Channel,
        opened: Opened,
        compaction: LastCompaction,
    ) -> Self {
        let servers = opened.mcp.map(|(host, news)| Running::new(host, news, opened.filter, &opened.driver));
        let mut task = Self {
            config,
            channel,
            servers,
            starting: None,
            held: None,
            known_mode: opened.driver.session().state().mode,
            driver: opened.driver,
            opening: opened.opening,
            background: opened.background,
            compaction,
            prompt: None,
            prompted: false,
            asked: HashSet::new(),
            answers: FuturesUnordered::new(),
            used_before: Usage::default(),
            failed: None,
        };
        let hooks = task.session().config().client_hooks;
        // Permissions can be asked for; for questions in words the protocol has no form.
        task.driver.session_mut().set_reachable(true, false, hooks);
        task.used_before = task.used();
        task
    }

    /// Says what the session begins with. The client knows of the session by then, so it may be told.
    fn begin(&mut self) {
        self.channel.send(&commands::available(&[]));
        for input in std::mem::take(&mut self.opening) {
            self.input(input);
        }
        self.driver.rest();
    }

    /// What a client may choose, as the answer to opening the session.
    pub(crate) fn choices(&self) -> Value {
        json!({ "configOptions": self.config_options(), "modes": options::modes(self.session().state().mode) })
    }

    fn session(&self) -> &Session {
        self.driver.session()
    }

    fn peer(&self) -> &Peer {
        &self.channel.peer
    }

    fn config_options(&self) -> Value {
        options::config(self.session().state().mode, &self.session().config().policy)
    }

    fn input(&mut self, input: Input) {
        let result = self.driver.advance(input);
        self.survive(result);
    }

    fn command(&mut self, command: Command) {
        self.input(Input::Command(command));
    }

    /// A log that cannot be written ends the session.
    fn survive(&mut self, result: Result<(), LogError>) {
        if let Err(error) = result {
            tracing::error!(%error, "a session cannot go on");
            self.channel.send(&Update::said(format!("Error: {error}")));
            self.failed = Some(error.to_string());
        }
    }

    /// Drives the session until nobody wants anything of it any more, and ends what it left running.
    pub(crate) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        self.begin();
        while self.failed.is_none() {
            tokio::select! {
                biased;
                job = jobs.recv() => match job {
                    Some(job) => self.job(job),
                    None => break,
                },
                news = news(&mut self.servers) => if let Some(servers) = &mut self.servers {
                    let taken = servers.take(news, &mut self.driver);
                    self.survive(taken);
                },
                () = arrival(&mut self.starting) => self.servers_arrived(),
                Some((request_id, answer)) = self.answers.next() => {
                    self.asked.remove(&request_id);
                    self.command(Command::AnswerPermission { request_id, answer });
                }
                going = self.driver.turn() => match going {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => self.survive(Err(error)),
                },
            }
            self.settle();
        }
        self.answer(StopReason::Cancelled);
        let failed = self.failed.take();
        if let Err(error) = self.driver.close(failed).await {
            tracing::error!(%error, "closing a session failed");
        }
        if let Some(servers) = &self.servers {
            servers.shutdown().await;
        }
        self.background.shutdown().await;
    }

    /// What follows from whatever just happened: questions to ask, choices to tell, a prompt to answer.
    fn settle(&mut self) {
        let pending = self.session().pending_permissions();
        if pending.is_empty() && !self.asked.is_empty() {
            // The run that asked is over; what the client still says is not waited for.
            self.asked.clear();
            self.answers = FuturesUnordered::new();
        }
        for permission in pending {
            if !self.asked.insert(permission.request_id.clone()) {
                continue;
            }
            let peer = self.peer().clone();
            let session_id = Arc::clone(&self.channel.session_id);
            self.answers.push(Box::pin(async move {
                let question = permission::question(&session_id, &permission.request);
                let answer = peer.request("session/request_permission", &question).await;
                (permission.request_id, permission::outcome(answer, &permission.request))
            }));
        }
        self.settle_mode();
        if !self.session().is_idle() || self.session().is_compacting() || self.held.is_some() {
            return;
        }
        match self.prompt.as_ref().map(|asked| &asked.until) {
            None => {}
            Some(Until::Idle) => self.answer(StopReason::EndTurn),
            Some(Until::Compacted) => {
                let text = match self.compaction.take() {
                    Some(complete) if complete.success => format!(
                        "Compacted the conversation: {} messages and {} tokens less.",
                        complete.messages_removed.unwrap_or(0),
                        complete.tokens_removed.unwrap_or(0)
                    ),
                    Some(complete) => {
                        format!("The summary failed: {}", complete.error.unwrap_or_default())
                    }
                    None => "There is nothing to sum up yet.".to_owned(),
                };
                self.channel.send(&Update::said(text));
                self.answer(StopReason::EndTurn);
            }
        }
        if self.session().is_idle() {
            self.driver.rest();
        }
    }

    /// An autopilot has all permissions; whoever takes over from it is asked again.
    fn settle_mode(&mut self) {
        let mode = self.session().state().mode;
        let before = std::mem::replace(&mut self.known_mode, mode);
        if before == mode {
            return;
        }
        if mode == Mode::Autopilot || before == Mode::Autopilot {
            options::set_allow_all(self.driver.session_mut().policy_mut(), mode == Mode::Autopilot);
        }
        self.tell_options();
    }

    fn tell_options(&self) {
        self.channel.send(&Update::ConfigOptionUpdate { config_options: self.config_options() });
    }

    fn answer(&mut self, stop_reason: StopReason) {
        if let Some(asked) = self.prompt.take() {
            let usage = self.used().since(self.used_before);
            self.peer().respond(asked.id, answer(&PromptAnswer { stop_reason, usage }));
        }
    }

    /// What the session's log knows to have been used.
    fn used(&self) -> Usage {
        let mut used = Usage::default();
        for metric in self.session().state().totals.models.values() {
            used.input_tokens += metric.usage.input_tokens;
            used.output_tokens += metric.usage.output_tokens;
            used.cached_read_tokens += metric.usage.cache_read_tokens;
            used.cached_write_tokens += metric.usage.cache_write_tokens;
        }
        used
    }

    fn job(&mut self, job: Job) {
        match job {
            Job::Prompt(id, blocks) => self.prompted(id, blocks),
            Job::Cancel => self.stop(),
            Job::SetMode(id, mode) => {
                let result = self.set_mode(&mode);
                self.peer().respond(id, result.map_err(invalid).and_then(|()| answer(&json!({}))));
            }
            Job::SetConfigOption(id, option, value) => {
                let result = self.set_option(&option, &value);
                let options = json!({ "configOptions": self.config_options() });
                self.peer().respond(id, result.map_err(invalid).and_then(|()| answer(&options)));
            }
            Job::SetModel(id, model) => {
                let result = self.set_model(model);
                self.peer().respond(id, result.and_then(|()| answer(&json!({}))));
            }
        }
    }

    /// A prompt takes the place of one that is under way.
    fn prompted(&mut self, id: Id, blocks: Vec<ContentBlock>) {
        self.stop();
        let prompt = content::prompt(blocks);
        if !std::mem::replace(&mut self.prompted, true) {
            self.tell_options();
            self.name_after(&prompt.text);
        }
        self.prompt = Some(Asked { id, until: Until::Idle });
        match commands::parse(&prompt.text) {
            Some(command) => self.carry_out(command),
            None => self.say(prompt),
        }
    }

    /// Gives the session a prompt, once it has the tools of its servers or has waited for them long enough. They start
    /// with the first prompt.
    fn say(&mut self, prompt: Prompt) {
        let Some(servers) = &self.servers else { return self.command(Command::Send(prompt)) };
        self.held = Some(prompt);
        if self.starting.is_none() {
            let host = servers.host().clone();
            self.starting = Some(Box::pin(async move { host.ready().await }));
        }
    }

    fn servers_arrived(&mut self) {
        self.starting = None;
        if let Some(servers) = &mut self.servers {
            let taken = servers.catch_up(&mut self.driver);
            self.survive(taken);
        }
        if let Some(prompt) = self.held.take() {
            self.command(Command::Send(prompt));
        }
    }

    /// Stops what is under way, and says so to whoever waits for it.
    fn stop(&mut self) {
        self.held = None;
        if !self.session().is_idle() {
            self.command(Command::Abort { reason: "user_initiated".to_owned() });
        }
        self.answer(StopReason::Cancelled);
    }

    fn name_after(&mut self, prompt: &str) {
        let prompt = prompt.trim();
        // A session that has been talked to has its name.
        if prompt.is_empty() || !self.session().state().conversation.is_empty() {
            return;
        }
        if let Some(name) = hangar_store::SessionName::from_prompt(prompt) {
            // A name is a nicety.
            let _ = self.driver.note(Fact::FirstPrompt(prompt.to_owned()));
            self.command(Command::Record(Body::from(TitleChanged { title: name.as_str().to_owned() })));
        }
    }

    fn carry_out(&mut self, command: SlashCommand) {
        let text = match command {
            SlashCommand::AllowAll(switch) => {
                let policy = self.driver.session_mut().policy_mut();
                match switch {
                    Switch::On => options::set_allow_all(policy, true),
                    Switch::Off => options::set_allow_all(policy, false),
                    Switch::Show => {}
                }
                let all = options::allows_all(policy);
                if switch != Switch::Show {
                    self.tell_options();
                }
                if all {
                    "Tools, paths and URLs are used without asking."
                } else {
                    "Tools, paths and URLs are asked for."
                }
                .to_owned()
            }
            SlashCommand::Autopilot(AutopilotSwitch::On) => {
                self.switch_mode(Mode::Autopilot);
                "Switched to autopilot mode.".to_owned()
            }
            SlashCommand::Autopilot(AutopilotSwitch::Off) => {
                self.switch_mode(Mode::Interactive);
                "Switched to interactive mode.".to_owned()
            }
            SlashCommand::Autopilot(AutopilotSwitch::Objective(objective)) => {
                self.switch_mode(Mode::Autopilot);
                return self.say(Prompt::user(objective));
            }
            SlashCommand::Plan(prompt) => {
                self.switch_mode(Mode::Plan);
                if let Some(prompt) = prompt {
                    self.say(Prompt::user(prompt));
                }
                return;
            }
            SlashCommand::Compact(instructions) => {
                self.compaction.take();
                if let Some(asked) = &mut self.prompt {
                    asked.until = Until::Compacted;
                }
                return self
                    .command(Command::Compact { instructions, trigger: Some(CompactionTrigger::Manual) });
            }
            SlashCommand::Model(None) => format!("The model is {}.", self.session().state().model),
            SlashCommand::Model(Some(model)) => match self.set_model(model.clone()) {
                Ok(()) => format!("The model is {model} from now on."),
                Err(error) => format!("Error: {}", error.message),
            },
            SlashCommand::Rename(name) => match self.driver.note(Fact::GivenName(name.clone())) {
                Ok(()) => {
                    self.command(Command::Record(Body::from(TitleChanged { title: name.clone() })));
                    format!("Session renamed to: {name}")
                }
                Err(error) => format!("Error: {error}"),
            },
            SlashCommand::Cwd => format!("Current working directory: {}", self.session().state().cwd),
            SlashCommand::Usage => {
                let used = self.used().since(self.used_before);
                format!(
                    "Tokens: input {}, output {}, cached {}.",
                    used.input_tokens, used.output_tokens, used.cached_read_tokens
                )
            }
        };
        self.channel.send(&Update::said(text));
    }

    fn switch_mode(&mut self, mode: Mode) {
        self.command(Command::SetMode(mode));
        self.settle_mode();
    }

    fn set_mode(&mut self, id: &str) -> Result<(), String> {
        let mode = options::parse_mode(id)?;
        self.switch_mode(mode);
        Ok(())
    }

    fn set_option(&mut self, option: &str, value: &Value) -> Result<(), String> {
        match (option, value.as_str()) {
            ("mode", Some(mode)) => self.set_mode(mode),
            ("allow_all", Some(choice @ ("on" | "off"))) => {
                options::set_allow_all(self.driver.session_mut().policy_mut(), choice == "on");
                self.tell_options();
                Ok(())
            }
            ("mode", None) => Err(format!("Invalid mode {value}: it must be a string.")),
            ("allow_all", _) => {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Err(format!("Invalid allow_all value '{shown}'. Use \"on\" or \"off\"."))
            }
            _ => Err(format!("Unknown config option '{option}'.")),
        }
    }

    fn set_model(&mut self, model: String) -> Result<(), ErrorObject> {
        let provider = self.config.opener.provider(&model).map_err(|error| internal(error.to_string()))?;
        if let Some(servers) = &self.servers {
            servers.host().set_model(Arc::clone(&provider), model.clone());
        }
        self.driver.set_provider(provider);
        let effort = self.session().state().effort.clone();
        self.command(Command::SetModel { model, effort });
        Ok(())
    }
}

impl Usage {
    fn since(self, before: Self) -> Self {
        let input_tokens = self.input_tokens.saturating_sub(before.input_tokens);
        let output_tokens = self.output_tokens.saturating_sub(before.output_tokens);
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens + output_tokens,
            cached_read_tokens: self.cached_read_tokens.saturating_sub(before.cached_read_tokens),
            cached_write_tokens: self.cached_write_tokens.saturating_sub(before.cached_write_tokens),
        }
    }
}

/// What happens next to the servers, if there are any.
async fn news(servers: &mut Option<Running>) -> News {
    match servers {
        Some(servers) => servers.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until the servers that are starting are there.
async fn arrival(starting: &mut Option<BoxFuture<'static, ()>>) {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

fn invalid(message: String) -> ErrorObject {
    error(codes::INVALID_PARAMS, message)
}
