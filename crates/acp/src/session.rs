//! The task that drives a session. Client messages arrive through a channel. The task handles them, the client's replies to
//! permission requests and the progress of the engine one at a time, so it needs no lock.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hangar_agent::log::LogError;
use hangar_agent::session::{Command, Session};
use hangar_engine::commands::CommandError;
use hangar_engine::{Engine, EngineProgress, supervise};
use hangar_peer::Peer;
use hangar_protocol::data::Mode;
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::rpc::{ErrorObject, Id, codes};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::answers::{answer, error, internal};
use crate::commands;
use crate::content;
use crate::options;
use crate::permission;
use crate::schema::{ContentBlock, PromptAnswer, StopReason, Update, Usage};
use crate::updates::UpdateSender;

/// Message of a client to a session. Requests carry the id to answer to.
pub(crate) enum SessionMessage {
    Prompt(Id, Vec<ContentBlock>),
    Cancel,
    SetMode(Id, String),
    SetConfigOption(Id, String, Value),
    SetModel(Id, String),
}

pub(crate) struct EditorSession {
    channel: UpdateSender,
    engine: Engine,
    jobs: mpsc::Receiver<SessionMessage>,
    /// The prompt that waits for its answer.
    prompt: Option<Id>,
    /// Whether the session has had a prompt since it was opened.
    prompted: bool,
    /// Answers of the client to questions about permissions, on their way.
    answers: FuturesUnordered<BoxFuture<'static, (String, PermissionOutcome)>>,
    /// Usage of the session when it was opened.
    used_before: Usage,
    /// The mode that the client knows of.
    known_mode: Mode,
}

impl hangar_engine::FrontEndTask for EditorSession {
    fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn run(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let error = self.drive().await.err()?;
            tracing::error!(%error, "a session cannot go on");
            self.channel.send(&Update::said(format!("Error: {error}")));
            Some(error.to_string())
        })
    }
}

impl EditorSession {
    pub(crate) fn new(channel: UpdateSender, engine: Engine, jobs: mpsc::Receiver<SessionMessage>) -> Self {
        let mut task = Self {
            channel,
            known_mode: engine.session().state().mode,
            engine,
            jobs,
            prompt: None,
            prompted: false,
            answers: FuturesUnordered::new(),
            used_before: Usage::default(),
        };
        task.used_before = task.used();
        task
    }

    /// Options of the session, as the answer to opening it.
    pub(crate) fn choices(&self) -> Value {
        json!({ "configOptions": self.config_options(), "modes": options::modes(self.session().state().mode) })
    }

    fn session(&self) -> &Session {
        self.engine.session()
    }

    fn peer(&self) -> &Peer {
        &self.channel.peer
    }

    fn config_options(&self) -> Value {
        options::config(self.session().state().mode, &self.session().config().policy)
    }

    /// Drives the session until its client closes it, then ends its background work.
    pub(crate) async fn live(mut self) {
        supervise(&mut self, std::future::pending()).await;
        self.answer(StopReason::Cancelled);
    }

    async fn drive(&mut self) -> Result<(), LogError> {
        // The client knows of the session by now, so it may be told.
        self.channel.send(&commands::available(&[]));
        self.engine.begin().await?;
        loop {
            tokio::select! {
                biased;
                job = self.jobs.recv() => match job {
                    Some(job) => self.job(job)?,
                    None => return Ok(()),
                },
                Some((request_id, answer)) = self.answers.next() => {
                    self.engine.command(Command::AnswerPermission { request_id, answer })?;
                }
                progress = self.engine.next() => match progress? {
                    EngineProgress::Moved => {}
                    EngineProgress::Ended(_) => self.answer(StopReason::EndTurn),
                    EngineProgress::Closed => return Ok(()),
                },
            }
            self.ask();
            self.settle_mode();
            if self.prompt.is_none() {
                self.engine.rest();
            }
        }
    }

    /// Asks the client about permissions that came up, of the main agent and of its sub-agents.
    fn ask(&mut self) {
        for permission in self.engine.new_questions() {
            let peer = self.peer().clone();
            let session_id = Arc::clone(&self.channel.session_id);
            self.answers.push(Box::pin(async move {
                let question = permission::question(&session_id, &permission.request);
                let answer = peer.request("session/request_permission", &question).await;
                (permission.request_id, permission::outcome(answer, &permission.request))
            }));
        }
        if !self.engine.has_questions() {
            // The run that asked is over; what the client still says is not waited for.
            self.answers.clear();
        }
    }

    /// Follows a change of mode: autopilot has all permissions, and leaving it asks again.
    fn settle_mode(&mut self) {
        let mode = self.session().state().mode;
        let before = std::mem::replace(&mut self.known_mode, mode);
        if before == mode {
            return;
        }
        if mode == Mode::Autopilot || before == Mode::Autopilot {
            self.engine.policy_mut().set_allow_all(mode == Mode::Autopilot);
        }
        self.tell_options();
    }

    fn tell_options(&self) {
        self.channel.send(&Update::ConfigOptionUpdate { config_options: self.config_options() });
    }

    fn answer(&mut self, stop_reason: StopReason) {
        if let Some(id) = self.prompt.take() {
            let usage = self.used().since(self.used_before);
            self.peer().respond(id, answer(&PromptAnswer { stop_reason, usage }));
        }
    }

    /// Usage according to the session's log.
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

    fn job(&mut self, job: SessionMessage) -> Result<(), LogError> {
        match job {
            SessionMessage::Prompt(id, blocks) => self.prompted(id, blocks)?,
            SessionMessage::Cancel => self.stop()?,
            SessionMessage::SetMode(id, mode) => {
                let result = self.set_mode(&mode)?;
                self.peer().respond(id, result.map_err(invalid).and_then(|()| answer(&json!({}))));
            }
            SessionMessage::SetConfigOption(id, option, value) => {
                let result = self.set_option(&option, &value)?;
                let options = json!({ "configOptions": self.config_options() });
                self.peer().respond(id, result.map_err(invalid).and_then(|()| answer(&options)));
            }
            SessionMessage::SetModel(id, model) => {
                let result = self.set_model(model)?;
                self.peer().respond(id, result.and_then(|()| answer(&json!({}))));
            }
        }
        Ok(())
    }

    /// Starts a prompt, which replaces the current one.
    fn prompted(&mut self, id: Id, blocks: Vec<ContentBlock>) -> Result<(), LogError> {
        match self.engine.waits_for_background() {
            // It goes on.
            true => self.answer(StopReason::EndTurn),
            false => self.stop()?,
        }
        if !std::mem::replace(&mut self.prompted, true) {
            self.tell_options();
        }
        self.prompt = Some(id);
        self.engine.submit(content::prompt(blocks))
    }

    /// Aborts the current prompt and answers it as cancelled.
    fn stop(&mut self) -> Result<(), LogError> {
        let stopped = self.engine.abort("user_initiated");
        self.answer(StopReason::Cancelled);
        stopped
    }

    fn set_mode(&mut self, id: &str) -> Result<Result<(), String>, LogError> {
        let mode = match options::parse_mode(id) {
            Ok(mode) => mode,
            Err(why) => return Ok(Err(why)),
        };
        self.engine.command(Command::SetMode(mode))?;
        self.settle_mode();
        Ok(Ok(()))
    }

    fn set_option(&mut self, option: &str, value: &Value) -> Result<Result<(), String>, LogError> {
        Ok(match (option, value.as_str()) {
            ("mode", Some(mode)) => return self.set_mode(mode),
            ("allow_all", Some(choice @ ("on" | "off"))) => {
                self.engine.policy_mut().set_allow_all(choice == "on");
                self.tell_options();
                Ok(())
            }
            ("mode", None) => Err(format!("Invalid mode {value}: it must be a string.")),
            ("allow_all", _) => {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Err(format!("Invalid allow_all value '{shown}'. Use \"on\" or \"off\"."))
            }
            _ => Err(format!("Unknown config option '{option}'.")),
        })
    }

    fn set_model(&mut self, model: String) -> Result<Result<(), ErrorObject>, LogError> {
        let switched = self.engine.switch_model(&model);
        match switched {
            Ok(_) => Ok(Ok(())),
            Err(CommandError::Refused(refusal)) => Ok(Err(internal(refusal.to_string()))),
            Err(CommandError::Log(error)) => Err(error),
        }
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

fn invalid(message: String) -> ErrorObject {
    error(codes::INVALID_PARAMS, message)
}
